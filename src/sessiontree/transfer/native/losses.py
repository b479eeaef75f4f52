"""What a thread has that an export of its conversation leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from sessiontree.journal import Journal
from sessiontree.model import Compaction, ReasoningPart, Thread
from sessiontree.render.figures import plural

__all__ = ["losses_of"]


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
    children = sum(1 for _ in journal.iter_threads(parent_thread=thread.id, is_archived=None))
    if children:
        yield plural(children, "subagent")
