"""What a thread has that an export of its conversation leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from sessiontree.context import window_of
from sessiontree.journal import Journal
from sessiontree.model import (
    Compaction,
    Entry,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Thread,
    ToolResultPart,
)
from sessiontree.render.figures import plural
from sessiontree.transfer.subagents import subagents_left_out

__all__ = ["beside_words", "losses_of", "losses_of_html", "losses_of_markdown"]


def losses_of(journal: Journal, thread: Thread, leaf: str | None = None) -> Iterator[str]:
    """What the path to a leaf has, and what the model sees of it does not have or another tool cannot use."""
    path = journal.path(thread.id, leaf or thread.leaf)
    context = journal.context(thread.id, leaf=leaf or thread.leaf)
    seen = {segment.entry_id for segment in context.segments}
    start = max((index for index, entry in enumerate(path) if isinstance(entry.payload, Compaction)), default=0)
    hidden = sum(entry.message is not None and entry.id not in seen for entry in path[:start])
    if hidden:
        yield f"{plural(hidden, 'message')} before the last compaction"
    kept = {result.call_id for message in context.messages for result in message.tool_results}
    results = (result for entry in path[start:] if entry.message for result in entry.message.tool_results)
    orphans = sum(result.call_id not in kept for result in results)
    if orphans:
        yield plural(orphans, "result without its call", "results without their calls")
    thoughts = sum(isinstance(part, ReasoningPart) for message in context.messages for part in message.parts)
    if thoughts:
        yield plural(thoughts, "piece of reasoning", "pieces of reasoning")


def losses_of_markdown(journal: Journal, thread: Thread, leaf: str | None = None) -> Iterator[str]:
    """What Markdown leaves out: other branches if no leaf is named, everything but words, calls and results."""
    path = journal.path(thread.id, leaf or thread.leaf)
    shown: Sequence[Entry] = path
    if leaf is None:
        window, on_path = window_of(path), {entry.id for entry in path}
        shown = (*window.tail, *window.after)
        others = sum(entry.id not in on_path for entry in journal.entries(thread.id))
        if others:
            yield f"{plural(others, 'entry', 'entries')} on other branches"
    hidden = sum(entry.message is not None for entry in path) - sum(entry.message is not None for entry in shown)
    if hidden:
        yield f"{plural(hidden, 'message')} before the last compaction"
    found = Counter(beside_words(entry.message for entry in shown if entry.message))
    yield from (plural(number, *kind) for kind, number in found.items())
    yield from subagents_left_out(journal, thread.id)


def losses_of_html(journal: Journal, thread: Thread, leaf: str | None = None) -> Iterator[str]:
    """What the page names without its content: images that are not inline, files, and subagents."""
    entries = journal.entries(thread.id) if leaf is None else journal.path(thread.id, leaf)
    messages = (entry.message for entry in entries if entry.message)
    media = [part for message in messages for part in _parts(message)]
    images = sum(isinstance(part, ImagePart) and not part.data for part in media)
    files = sum(isinstance(part, FilePart) for part in media)
    if images:
        yield f"the content of {plural(images, 'image')}"
    if files:
        yield f"the content of {plural(files, 'file')}"
    yield from subagents_left_out(journal, thread.id)


def beside_words(messages: Iterable[Message]) -> Iterator[tuple[str, str]]:
    """What messages hold beside words, calls and results: each as one and as many of its kind."""
    for message in messages:
        for part in _parts(message):
            match part:
                case ReasoningPart():
                    yield "piece of reasoning", "pieces of reasoning"
                case ImagePart():
                    yield "image", "images"
                case FilePart():
                    yield "file", "files"
                case OpaquePart():
                    yield "block of another provider", "blocks of another provider"


def _parts(message: Message) -> Iterator[Part]:
    """The parts of a message, and those of the results in it."""
    for part in message.parts:
        yield part
        if isinstance(part, ToolResultPart):
            yield from part.parts
