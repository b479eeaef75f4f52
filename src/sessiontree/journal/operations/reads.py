"""Verbs that read: context, search, ids by a part of them, statistics, check, export, events; and deletion by age."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.context import Context, Purpose, as_finished, build_context
from sessiontree.errors import InvalidInputError, ThreadChangedError, ThreadNotFoundError
from sessiontree.journal.operations.artifacts import with_artifacts
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.journal.operations.windows import read_window
from sessiontree.model import Entry, Event, Page, Thread, ThreadQuery, UserMessage
from sessiontree.model._base import Progress, moment
from sessiontree.model.codec import check_number
from sessiontree.model.tokens import TokenCounter, Tools
from sessiontree.search import SearchOrder, SearchPage
from sessiontree.stores.commands import DeleteThread
from sessiontree.stores.queries import (
    FindEntries,
    Finding,
    FindThreads,
    Inspect,
    ListThreads,
    ReadEntries,
    ReadPath,
    ReadStats,
    ReadThread,
    Search,
    StoreStats,
)

if TYPE_CHECKING:
    from sessiontree.model.codec import Scope

__all__ = [
    "ExportFormat",
    "all_threads",
    "check",
    "context",
    "delete_matching",
    "each_entry",
    "entry_ids",
    "events",
    "export",
    "search",
    "stats",
    "thread_ids",
]


def context(
    thread_id: str,
    leaf: str | UnsetType | None,
    purpose: Purpose,
    count: TokenCounter,
    tools: Tools = (),
    *,
    include_partial: bool = False,
) -> Operation[Context]:
    """Build what the model sees."""
    path = yield from read_window(thread_id, leaf)
    shown = as_finished(path) if include_partial else path
    found = build_context(shown, purpose=purpose, count=count, tools=tools)
    return (yield from with_artifacts(found)) if purpose == "provider_request" else found


def stats() -> Operation[StoreStats]:
    """Return how much is in the store."""
    found: StoreStats = yield ReadStats()
    return found


def check(progress: Progress | None) -> Operation[list[Finding]]:
    """Return everything in the store that breaks an invariant."""
    found: list[Finding] = yield Inspect(progress=progress)
    return found


ExportFormat = Literal["markdown", "json", "jsonl"]

_PAGE = 500


def export(
    thread_id: str,
    format: ExportFormat,
    scope: Scope | None,
    leaf: str | UnsetType | None = UNSET,
    progress: Progress | None = None,
) -> Operation[str]:
    """Return a thread as text; with ``leaf``, the path to that entry."""
    thread: Thread = yield ReadThread(thread_id=thread_id)
    asked = scope
    if leaf is not UNSET:
        if scope not in (None, "path"):
            raise InvalidInputError(f"leaf= exports the path to one entry, not scope={scope!r}")
        scope, thread = "path", replace(thread, leaf=leaf)
    if format == "markdown":
        if scope not in (None, "path"):
            raise InvalidInputError("Markdown can only show one path; use json or jsonl for a whole thread or tree")
        is_whole = asked == "path"
        from sessiontree.context.markdown import markdown, whole_markdown  # noqa: PLC0415  most programs never export

        path: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=thread.leaf)
        return whole_markdown(thread, path, progress) if is_whole else markdown(thread, path, progress)
    if format not in ("json", "jsonl"):
        raise InvalidInputError(f"unknown export format {format!r}; use markdown, json or jsonl")
    return (yield from _native(thread, format, scope or "thread", progress))


def _native(thread: Thread, format: ExportFormat, scope: Scope, progress: Progress | None) -> Operation[str]:
    from sessiontree.model.codec import TreeFile, native_json, native_jsonl  # noqa: PLC0415  most programs never export

    threads = (yield from _family(thread)) if scope == "tree" else [thread]
    found: dict[str, Entry] = {}
    for one in threads:
        if scope == "path":
            entries: list[Entry] = yield ReadPath(thread_id=one.id, leaf=one.leaf)
        else:
            entries = yield ReadEntries(thread_id=one.id)
        found |= {entry.id: entry for entry in entries}
    head = TreeFile(scope=scope, threads=tuple(threads))
    if format == "json":
        return native_json(head, found.values(), progress).decode()
    return b"".join(native_jsonl(head, found.values(), progress)).decode()


def _family(thread: Thread) -> Operation[list[Thread]]:
    """Return all threads of a tree, each fork after its source."""
    waiting = yield from all_threads(ThreadQuery(tree=thread.tree, is_archived=None, order="created", limit=_PAGE))
    ordered: dict[str, Thread] = {}
    while waiting:
        names = {one.id for one in waiting}
        ready = [one for one in waiting if one.forked_from_thread not in names] or waiting[:1]
        ordered |= {one.id: one for one in sorted(ready, key=lambda one: (one.created_ns, one.id))}
        waiting = [one for one in waiting if one.id not in ordered]
    return list(ordered.values())


def all_threads(query: ThreadQuery) -> Operation[list[Thread]]:
    """Return the threads of all pages of a query."""
    found: list[Thread] = []
    while True:
        page: Page = yield ListThreads(query=query)
        found += page.threads
        if page.cursor is None:
            return found
        query = replace(query, cursor=page.cursor)


def events(thread_id: str, after: str | None, limit: int | None) -> Operation[list[Entry]]:
    """Return the events of a thread, at most ``limit``."""
    found: list[Entry] = []

    def is_enough(entry: Entry) -> bool:
        if isinstance(entry.payload, Event) and len(found) != limit:
            found.append(entry)
        return len(found) == limit

    yield from each_entry(thread_id, is_enough, after)
    return found


def has_user_interaction(thread_id: str) -> Operation[bool]:
    """Return whether a user has said anything in a thread, on any branch."""

    def is_said(entry: Entry) -> bool:
        return isinstance(entry.payload, UserMessage) and bool(entry.payload.message.text.strip())

    return (yield from each_entry(thread_id, is_said))


def each_entry(thread_id: str, is_enough: Callable[[Entry], bool], after: str | None = None) -> Operation[bool]:
    """Call a function with the entries that a thread sees, page by page, until it is true; return whether it was."""
    while True:
        page: list[Entry] = yield ReadEntries(thread_id=thread_id, after=after, limit=_PAGE)
        if any(map(is_enough, page)):
            return True
        if len(page) < _PAGE:
            return False
        after = page[-1].id


def delete_matching(query: ThreadQuery, *, is_dry_run: bool) -> Operation[list[Thread]]:
    """Delete the threads that match a query with an age, unless they stop to match it first, and return them.

    Registers stay.
    """
    if type(query.updated_before_ns) is not int:
        raise InvalidInputError(
            f"threads are deleted by the time of their last change in nanoseconds, an int, not {query.updated_before_ns!r}"
        )
    check_number(query.updated_before_ns)
    matching = yield from all_threads(replace(query, limit=_PAGE))
    found = [thread for thread in matching if not thread.is_register]
    if is_dry_run:
        return found
    gone: list[Thread] = []
    for thread in found:
        try:
            yield DeleteThread(thread_id=thread.id, expect_match=query)
        except (ThreadNotFoundError, ThreadChangedError):
            continue
        gone.append(thread)
    return gone


def thread_ids(part: str, limit: int) -> Operation[list[str]]:
    """Return the ids of threads that begin or end with ``part``."""
    found: list[str] = yield FindThreads(part=part, limit=_positive(limit))
    return found


def entry_ids(thread_id: str, part: str, limit: int) -> Operation[list[str]]:
    """Return the ids of entries that begin or end with ``part``."""
    found: list[str] = yield FindEntries(thread_id=thread_id, part=part, limit=_positive(limit))
    return found


def search(
    runtime: Runtime,
    text: str,
    *,
    order: SearchOrder,
    limit: int,
    cursor: str | None,
    progress: Progress | None,
) -> Operation[SearchPage]:
    """Parse a query and return the entries that it finds."""
    if not isinstance(text, str):
        raise InvalidInputError(f"a search is a text such as 'word role:user', not {text!r}")
    from sessiontree.search.query import parse_query  # noqa: PLC0415  its patterns are slow to build

    query = parse_query(text, now=moment(runtime.clock()).astimezone())
    threads = yield from _whole_ids(query.threads)
    branches = yield from _whole_ids(query.branches)
    query = replace(query, threads=threads, branches=branches)
    page: SearchPage = yield Search(query=query, order=order, limit=_positive(limit), cursor=cursor, progress=progress)
    return page


def _whole_ids(parts: tuple[str, ...]) -> Operation[tuple[str, ...]]:
    whole: list[str] = []
    for part in parts:
        found = yield from thread_ids(part, 2)
        if not found:
            raise ThreadNotFoundError(part)
        if len(found) > 1:
            raise InvalidInputError(f"{part!r} is the start or end of more than one thread id; write more of the id")
        whole += found
    return tuple(whole)


def _positive(limit: int) -> int:
    if limit < 1:
        raise InvalidInputError(f"limit must be at least 1, not {limit}")
    return limit
