"""What a list of threads means in every store: filters, order, cursors; and ids by prefix or suffix.

The SQL stores translate the filters and share ``cut`` and ``position_of``; the others call ``page_of``.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from sessiontree.errors import InvalidInputError
from sessiontree.model import Page, Thread, ThreadQuery
from sessiontree.model._base import json_decoder

__all__ = [
    "EVERYTHING",
    "WORD_COLUMNS",
    "Position",
    "cursor_after",
    "cut",
    "matches",
    "matching_ids",
    "page_of",
    "position_of",
    "rows_wanted",
    "sort_by_created",
]


WORD_COLUMNS = {
    "workspace": "workspace",
    "vendor": "vendor",
    "model": "model",
    "agent": "agent",
    "channel": "channel",
    "peer": "peer",
    "key_thread": "key_thread",
    "state": "state",
    "status": "status",
    "parent_thread": "parent_thread",
    "forked_from_thread": "forked_from_thread",
    "tree": "tree_id",
}
"""Query fields that are compared for equality, and their columns in the SQL stores."""


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The decoded cursor: the order, and the time and id of the last thread of a page."""

    order: str
    time_ns: int
    thread_id: str


_positions = json_decoder(Position)


EVERYTHING = ThreadQuery(is_archived=None, limit=None)
"""The query that every thread matches, on one page."""


def sort_by_created(threads: Iterable[Thread]) -> list[Thread]:
    """All of the threads, the last created first, ties by id; the input is not changed."""
    return list(page_of(threads, replace(EVERYTHING, order="created")))


def page_of(threads: Iterable[Thread], query: ThreadQuery = EVERYTHING) -> Page:
    """Filter threads, sort them newest first (ties by id), skip to the cursor, cut at the limit.

    Without a query, all of the threads are returned, archived ones too. The input is not changed.
    """
    start = position_of(query)
    found = [thread for thread in threads if matches(thread, query)]
    found.sort(key=lambda thread: (-_time(thread, query), thread.id))
    if start is not None:
        found = [thread for thread in found if (-_time(thread, query), thread.id) > (-start.time_ns, start.thread_id)]
    return cut(found, query)


def cut(found: list[Thread], query: ThreadQuery) -> Page:
    """Make a page of a sorted list that has one thread more than ``limit`` if there is another page."""
    shown = tuple(found[: query.limit])
    has_more = len(found) > len(shown)
    return Page(threads=shown, cursor=cursor_after(shown[-1], query) if has_more and shown else None)


def rows_wanted(query: ThreadQuery) -> int | None:
    """How many threads a store must find: one more than the page shows, or all if it has no limit."""
    return None if query.limit is None else query.limit + 1


def cursor_after(thread: Thread, query: ThreadQuery) -> str:
    """The cursor of the page that follows a thread."""
    position = Position(query.order, _time(thread, query), thread.id)
    return msgspec.json.encode(position).hex()


def position_of(query: ThreadQuery) -> Position | None:
    """Decode the cursor of a query; raise InvalidInputError if it, or the limit, is invalid."""
    if query.limit is not None and query.limit < 1:
        raise InvalidInputError(f"limit must be at least 1, not {query.limit}")
    if query.cursor is None:
        return None
    try:
        position = _positions.decode(bytes.fromhex(query.cursor))
    except (ValueError, msgspec.MsgspecError) as error:
        raise InvalidInputError(f"invalid cursor {query.cursor!r}; pass the cursor of the previous page") from error
    if position.order != query.order:
        raise InvalidInputError(
            f"the cursor is from a list ordered by {position.order}, not by {query.order}; use the same order for every page"
        )
    return position


def matches(thread: Thread, query: ThreadQuery) -> bool:
    """Whether a thread passes every filter of a query."""
    return _matches_fields(thread, query) and _matches_times(thread, query)


def matching_ids(ids: Iterable[str], part: str) -> list[str]:
    """Sorted ids that start or end with ``part``; only ``part`` if it is itself an id."""
    known = list(ids)
    if part in known:
        return [part]
    return sorted(name for name in known if name.startswith(part) or name.endswith(part))


def _matches_fields(thread: Thread, query: ThreadQuery) -> bool:
    wanted = (
        (query.is_archived, thread.is_archived),
        (query.is_empty, thread.is_empty),
        (query.workspace, thread.workspace),
        (query.vendor, thread.vendor),
        (query.model, thread.model),
        (query.agent, thread.key.agent),
        (query.channel, thread.key.channel),
        (query.peer, thread.key.peer),
        (query.key_thread, thread.key.thread),
        (query.state, thread.state),
        (query.status, thread.status),
        (query.parent_thread, thread.parent_thread),
        (query.forked_from_thread, thread.forked_from_thread),
        (query.tree, thread.tree),
    )
    if any(want is not None and want != has for want, has in wanted):
        return False
    if query.title_contains is not None and query.title_contains.casefold() not in thread.title.casefold():
        return False
    return set(query.tags) <= set(thread.tags)


def _matches_times(thread: Thread, query: ThreadQuery) -> bool:
    """Ranges include their start and exclude their end."""
    return (
        (query.created_after_ns is None or thread.created_ns >= query.created_after_ns)
        and (query.created_before_ns is None or thread.created_ns < query.created_before_ns)
        and (query.updated_after_ns is None or thread.updated_ns >= query.updated_after_ns)
        and (query.updated_before_ns is None or thread.updated_ns < query.updated_before_ns)
    )


def _time(thread: Thread, query: ThreadQuery) -> int:
    return thread.created_ns if query.order == "created" else thread.updated_ns
