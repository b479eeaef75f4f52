"""Verbs that give a thread away: export, the stream of its events, and cleaning up what is old."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from sessiontree.commands import DeleteThread
from sessiontree.errors import InvalidInputError, ThreadNotFoundError
from sessiontree.model import Entry, Event, Page, Thread, ThreadQuery
from sessiontree.operations.requests import Operation
from sessiontree.progress import Progress
from sessiontree.queries import ListThreads, ReadEntries, ReadPath, ReadThread

if TYPE_CHECKING:
    from sessiontree.exports.native import Scope

__all__ = ["ExportFormat", "delete_older_than", "events", "export"]

ExportFormat = Literal["markdown", "json", "jsonl"]

_PAGE = 500


def export(
    thread_id: str,
    format: ExportFormat,
    scope: Scope | None,
    progress: Progress | None = None,
) -> Operation[str]:
    thread: Thread = yield ReadThread(thread_id=thread_id)
    if format == "markdown":
        if scope not in (None, "path"):
            raise InvalidInputError("Markdown shows one path; use json or jsonl for a whole thread or tree")
        from sessiontree.exports import markdown  # noqa: PLC0415  most programs never export

        path: list[Entry] = yield ReadPath(thread_id=thread_id)
        return markdown(thread, path, progress)
    if format not in ("json", "jsonl"):
        raise InvalidInputError(f"there is no export {format!r}; use markdown, json or jsonl")
    return (yield from _native(thread, format, scope or "thread", progress))


def _native(thread: Thread, format: ExportFormat, scope: Scope, progress: Progress | None) -> Operation[str]:
    from sessiontree.exports import TreeFile, native_json, native_jsonl  # noqa: PLC0415  most programs never export

    threads = (yield from _family(thread)) if scope == "tree" else [thread]
    found: dict[str, Entry] = {}
    for one in threads:
        if scope == "path":
            entries: list[Entry] = yield ReadPath(thread_id=one.id)
        else:
            entries = yield ReadEntries(thread_id=one.id)
        found |= {entry.id: entry for entry in entries}
    head = TreeFile(scope=scope, threads=tuple(threads))
    if format == "json":
        return native_json(head, found.values(), progress).decode()
    return b"".join(native_jsonl(head, found.values(), progress)).decode()


def _family(thread: Thread) -> Operation[list[Thread]]:
    """All threads of a tree, a fork after its source."""
    waiting = yield from _all_threads(ThreadQuery(tree=thread.tree, is_archived=None, order="created", limit=_PAGE))
    ordered: dict[str, Thread] = {}
    while waiting:
        names = {one.id for one in waiting}
        ready = [one for one in waiting if one.forked_from_thread not in names] or waiting[:1]
        ordered |= {one.id: one for one in sorted(ready, key=lambda one: (one.created_ns, one.id))}
        waiting = [one for one in waiting if one.id not in ordered]
    return list(ordered.values())


def _all_threads(query: ThreadQuery) -> Operation[list[Thread]]:
    found: list[Thread] = []
    while True:
        page: Page = yield ListThreads(query=query)
        found += page.threads
        if page.cursor is None:
            return found
        query = replace(query, cursor=page.cursor)


def events(thread_id: str, after: str | None, limit: int | None) -> Operation[list[Entry]]:
    found: list[Entry] = []
    while True:
        page: list[Entry] = yield ReadEntries(thread_id=thread_id, after=after, limit=_PAGE)
        found += [entry for entry in page if isinstance(entry.payload, Event)]
        if limit is not None and len(found) >= limit:
            return found[:limit]
        if len(page) < _PAGE:
            return found
        after = page[-1].id


def delete_older_than(updated_before_ns: int, is_archived: bool | None, *, is_dry_run: bool) -> Operation[list[Thread]]:
    query = ThreadQuery(updated_before_ns=updated_before_ns, is_archived=is_archived, limit=_PAGE)
    old = yield from _all_threads(query)
    if is_dry_run:
        return old
    gone: list[Thread] = []
    for thread in old:
        try:
            yield DeleteThread(thread_id=thread.id)
        except ThreadNotFoundError:
            continue
        gone.append(thread)
    return gone
