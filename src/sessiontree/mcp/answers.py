"""The answer of each tool, as text."""

from __future__ import annotations

from collections.abc import Iterable
from json import dumps

from sessiontree.mcp.arguments import (
    ForkArguments,
    LabelArguments,
    ListArguments,
    ReadArguments,
    RecallArguments,
    SearchArguments,
)
from sessiontree.mcp.library import Library
from sessiontree.mcp.names import argument, find_entry, shown
from sessiontree.mcp.reading import Passage, passage_around, passage_before, single_entry
from sessiontree.mcp.recall import find_memories
from sessiontree.mcp.text import about_thread, entry_head, entry_text, fair_share, quoted
from sessiontree.model import Entry, Thread, ThreadFields, ThreadFilters
from sessiontree.model.sanitize import one_line
from sessiontree.render.figures import plural
from sessiontree.search import Hit
from sessiontree.search.query import moment_of, nanoseconds_of

__all__ = ["fork", "label", "list_threads", "passage_text", "read", "recall", "search", "thread_line"]


_ANSWER = 20_000
"""How many characters of conversations an answer quotes at most: about 5,000 tokens."""

_PROMPT = 400


def list_threads(library: Library, given: ListArguments) -> str:
    """List threads, one a line."""
    filters: ThreadFilters = {"is_empty": False, "is_archived": given.archived, "limit": given.limit}
    if given.cursor:
        filters["cursor"] = given.cursor
    if given.title:
        filters["title_contains"] = given.title
    if given.folder:
        filters["workspace"] = _folder(given.folder)
    if given.tag:
        filters["tags"] = (given.tag,)
    if given.since:
        filters["updated_after_ns"] = _nanoseconds(library, "since ", given.since)
    if given.until:
        filters["updated_before_ns"] = _nanoseconds(library, "until ", given.until)
    page = library.journal.list_threads(**filters)
    if not page.threads:
        return "No thread fits. Leave out a filter, or use search to look into the conversations."
    lines = [thread_line(library, thread) for thread in page]
    return _joined(f"{plural(len(lines), 'thread')}, last changed first.", lines, _more("list", page.cursor))


def search(library: Library, given: SearchArguments) -> str:
    """Find entries, grouped by thread."""
    page = library.journal.search(given.query, order=given.order, limit=given.limit, cursor=given.cursor or None)
    if not page.hits:
        return "Nothing found. All words must occur in one entry: use fewer words, prefix*, or recall for a question."
    groups: dict[str, list[Hit]] = {}
    for hit in page.hits:
        groups.setdefault(hit.thread_id, []).append(hit)
    lines: list[str] = []
    for thread_id, hits in groups.items():
        lines.append(thread_line(library, library.journal.thread(thread_id)))
        for hit in hits:
            lines += _hit_lines(library, hit)
    best = _reading(page.hits[0].thread_id, page.hits[0].entry.id)
    notes = (f"{best} shows the first hit in its context.", _more("search", page.cursor))
    return _joined(f"{plural(len(page.hits), 'hit')} in {plural(len(groups), 'thread')}.", lines, *notes)


def read(library: Library, given: ReadArguments) -> str:
    """Show a part of a conversation."""
    thread = library.thread(given.thread)
    journal = library.journal
    if given.entry and given.limit == 1:
        passage = single_entry(journal, thread, find_entry(journal, thread.id, given.entry))
    elif given.entry:
        passage = passage_around(journal, thread, find_entry(journal, thread.id, given.entry), given.limit)
    else:
        before = find_entry(journal, thread.id, given.before) if given.before else None
        passage = passage_before(journal, thread, before, given.limit)
    return passage_text(library, thread, passage, offset=given.offset)


def passage_text(library: Library, thread: Thread, passage: Passage, *, offset: int = 0, room: int = _ANSWER) -> str:
    """Return a part of a conversation, and how to read what stands before and after it."""
    is_whole = len(passage.entries) == 1
    start = offset if is_whole else 0
    texts = [entry_text(entry, thread.workspace, is_whole=is_whole)[start:] for entry in passage.entries]
    share = fair_share([len(text) for text in texts], room)
    labels = _labels(library, thread)
    lines: list[str] = []
    if passage.has_earlier:
        lines.append(f"Earlier: read(thread={argument(thread.id)}, before={argument(passage.entries[0].id)})")
    for entry, text in zip(passage.entries, texts, strict=True):
        lines += [_head(library, entry, labels.get(entry.id, [])), quoted(text[:share])]
        if len(text) > share:
            rest = _reading(thread.id, entry.id, limit=1, offset=start + share)
            lines.append(f"({len(text) - share:,} characters more: {rest})")
    if passage.has_later and passage.entries:
        lines.append(f"Later: {_reading(thread.id, passage.entries[-1].id)}")
    if passage.other_branches:
        lines.append(f"{plural(passage.other_branches, 'other branch', 'other branches')} went on from here.")
    return _joined(thread_line(library, thread), lines or ["There is nothing to read here."])


def recall(library: Library, given: RecallArguments) -> str:
    """Show the threads that help with a question, each with the passages that say why."""
    memories = find_memories(library, given.question, _folder(given.folder), given.limit)
    if not memories:
        return "Nothing found. Ask with other words, or without a folder."
    lines: list[str] = []
    for memory in memories:
        lines.append(thread_line(library, memory.thread))
        if memory.prompt is not None:
            asked = one_line(entry_text(memory.prompt, "", is_whole=False), _PROMPT)
            lines += [_head(library, memory.prompt), quoted(asked)]
        for hit in memory.hits:
            lines += _hit_lines(library, hit)
    best = _reading(memories[0].thread.id, memories[0].hits[0].entry.id)
    return _joined(
        f"{plural(len(memories), 'thread')} that may help, best first.", lines, f"{best} shows the best one."
    )


def fork(library: Library, given: ForkArguments) -> str:
    """Fork a thread, and say what was made."""
    thread = library.thread(given.thread)
    at = find_entry(library.journal, thread.id, given.entry) if given.entry else None
    fields: ThreadFields = {"title": given.title or thread.title}
    made = library.journal.fork(thread.id, at=at, **fields)
    shared = plural(made.entries, "entry", "entries")
    return f"Created thread {shown(made.id)}. It shares {shared} with {shown(thread.id)}; nothing was copied."


def label(library: Library, given: LabelArguments) -> str:
    """Label an entry, or remove its label."""
    thread = library.thread(given.thread)
    entry_id = find_entry(library.journal, thread.id, given.entry)
    library.journal.label(thread.id, entry_id, given.label)
    return f"[{shown(entry_id)}] " + (f"is labelled {dumps(given.label)}." if given.label else "has no label now.")


def thread_line(library: Library, thread: Thread) -> str:
    """Return a thread in one line."""
    return about_thread(thread, library.title(thread), library.when(thread.updated_ns))


def _head(library: Library, entry: Entry, labels: list[str] | None = None) -> str:
    return entry_head(entry, library.when(entry.created_ns), labels or [])


def _hit_lines(library: Library, hit: Hit) -> list[str]:
    """The entry of a hit, and its snippet with the matches in «»."""
    text = hit.snippet.text
    for start, end in reversed(hit.snippet.marks):
        text = f"{text[:start]}«{text[start:end]}»{text[end:]}"
    return [_head(library, hit.entry), quoted(text)]


def _labels(library: Library, thread: Thread) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, entry_id in library.journal.labels(thread.id).items():
        found.setdefault(entry_id, []).append(name)
    return found


def _reading(thread_id: str, entry_id: str, **more: int) -> str:
    """The call that shows an entry."""
    rest = "".join(f", {name}={value}" for name, value in more.items())
    return f"read(thread={argument(thread_id)}, entry={argument(entry_id)}{rest})"


def _more(tool: str, cursor: str | None) -> str:
    return f"More: {tool}(…, cursor={dumps(cursor)})" if cursor else ""


def _joined(head: str, lines: Iterable[str], *notes: str) -> str:
    return "\n".join([head, *lines, *filter(None, notes)])


def _folder(path: str) -> str:
    return path.rstrip("/") or path


def _nanoseconds(library: Library, name: str, text: str) -> int:
    return nanoseconds_of(moment_of(name, text, library.now))
