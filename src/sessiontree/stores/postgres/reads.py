"""The reads of the store as statements, most of them one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar
from uuid import UUID

from msgspec import UnsetType
from psycopg.types.numeric import Int8

from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.model import Entry, Lease, Move, NextMove, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob
from sessiontree.model.ids import IdSource
from sessiontree.model.thread import Direction
from sessiontree.search import SearchPage
from sessiontree.stores.listing import matching_ids
from sessiontree.stores.postgres.blobs import blobs_of, find_blobs, hashes_of, in_order, read_blobs
from sessiontree.stores.postgres.doctor import inspect
from sessiontree.stores.postgres.listing import list_threads
from sessiontree.stores.postgres.rows import (
    ENTRY_COLUMNS,
    HEAD_FROM,
    STATE_COLUMNS,
    ThreadHead,
    entries_of,
    head_of,
    move_of,
)
from sessiontree.stores.postgres.search import find_thread_ids, search_entries
from sessiontree.stores.postgres.steps import Row, Statement, Steps, TreeLookup, to_bytes, to_text
from sessiontree.stores.postgres.view import IS_ANCESTOR, MOVES, SnapshotView, run_rule
from sessiontree.stores.queries import Finding, NewEntries, Search, StoreStats
from sessiontree.stores.rules.leaf import next_move

__all__ = ["StepReads"]


T = TypeVar("T")

_NO_LIMIT = 1 << 62

_HEAD = f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE h.tree = %(tree)s AND h.id = %(thread)s"
_ENTRY = f"""
SELECT h.key, t.base, e.depth, {ENTRY_COLUMNS} FROM sessiontree.head h
JOIN sessiontree.thread t ON t.tree = h.tree AND t.id = h.id
LEFT JOIN sessiontree.entry e ON e.tree = h.tree AND e.id = %(entry)s
WHERE h.tree = %(tree)s AND h.id = %(thread)s"""
# The first row is about the thread and has no body; the others are entries. A thread's entries are numbered without
# gaps, so a limit is a range of numbers: the server never sorts, and uses the primary key whatever its estimates.
_PATH_OF_LEAF = f"""
WITH tip AS (
    SELECT h.key, h.leaf, e.owner, e.seq FROM sessiontree.head h
    LEFT JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.id = h.leaf
    WHERE h.tree = %(tree)s AND h.id = %(thread)s
)
SELECT leaf, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM tip
UNION ALL
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.owner = (SELECT owner FROM tip)
    AND e.seq <= (SELECT seq FROM tip) AND e.seq > (SELECT seq FROM tip) - %(limit)s"""
_SEGMENT = f"""
WITH tip AS (SELECT owner, seq FROM sessiontree.entry WHERE tree = %(tree)s AND id = %(tip)s)
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.owner = (SELECT owner FROM tip)
    AND e.seq <= (SELECT seq FROM tip) AND e.seq > (SELECT seq FROM tip) - %(limit)s"""
_OWN = f"""
WITH me AS (
    SELECT t.key, t.base FROM sessiontree.head h JOIN sessiontree.thread t ON t.tree = %(tree)s AND t.id = h.id
    WHERE h.tree = %(tree)s AND h.id = %(thread)s
)
SELECT base, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM me
UNION ALL
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.owner = (SELECT key FROM me)
    AND e.seq > %(after)s AND e.seq <= greatest((SELECT key FROM me), %(after)s) + %(limit)s"""
_NAMES = """
SELECT key, id FROM sessiontree.thread WHERE tree = %(tree)s AND key = ANY(%(keys)s)
UNION ALL SELECT key, id FROM sessiontree.deleted_thread WHERE tree = %(tree)s AND key = ANY(%(keys)s)"""
_STATS = """
SELECT (SELECT count(*) FROM sessiontree.thread WHERE namespace = %(namespace)s),
    (SELECT count(*) FROM sessiontree.thread WHERE namespace = %(namespace)s AND is_archived),
    (SELECT count(*) FROM sessiontree.entry WHERE namespace = %(namespace)s),
    (SELECT count(*) FROM sessiontree.move WHERE namespace = %(namespace)s),
    (SELECT count(*) FROM sessiontree.head WHERE namespace = %(namespace)s AND lease_token IS NOT NULL),
    (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM sessiontree.entry WHERE namespace = %(namespace)s)
    + (SELECT coalesce(sum(length), 0)::bigint FROM sessiontree.blob WHERE namespace = %(namespace)s)"""


class StepReads:
    """The methods of ``queries.Reads`` as generators of steps."""

    def __init__(self, place: str, lookup: TreeLookup) -> None:
        self._place = place
        self._lookup = lookup

    def thread(self, thread_id: str) -> Steps[Thread]:
        head = yield from self._head(thread_id)
        return head.state.public()

    def threads(self, query: ThreadQuery) -> Steps[Page]:
        page, heads = yield from list_threads(self._lookup.namespace, query)
        for head in heads:
            self._lookup.remember(head.state.meta.id, head.tree)
        return page

    def entry(self, thread_id: str, entry_id: str) -> Steps[Entry]:
        tree, row = yield from self._visible(thread_id, entry_id)
        return (yield from self._entries_of(tree, [row], thread_id, row[1]))[0]

    def entries(self, thread_id: str, after: str | None, limit: int | None) -> Steps[list[Entry]]:
        if after is not None:
            tree, start = yield from self._visible(thread_id, after)
            key, base, own = yield from self._own(thread_id, 0)
            inherited = yield from self._inherited(tree, base)
            rows = _after(start[0], [*inherited, *own])
        else:
            key, base, rows = yield from self._own(thread_id, 0, limit)
            tree = yield from self._lookup.find(thread_id)
            if base is not None:
                rows = [*(yield from self._inherited(tree, base)), *rows]
        return (yield from self._entries_of(tree, rows[:limit], thread_id, key))

    def path(self, thread_id: str, leaf: str | UnsetType | None, limit: int | None) -> Steps[list[Entry]]:
        match leaf:
            case None:
                yield from self._head(thread_id)
                return []
            case str():
                tree, _ = yield from self._visible(thread_id, leaf)
                key = None
                rows = yield from self._walk(tree, to_bytes(leaf), limit)
            case _:
                tree, key, rows = yield from self._path_of_leaf(thread_id, limit)
        rows.reverse()
        return (yield from self._entries_of(tree, rows, thread_id, key))

    def children(self, thread_id: str, entry_id: str | None) -> Steps[list[Entry]]:
        if entry_id is not None:
            yield from self._visible(thread_id, entry_id)
        key, base, own = yield from self._own(thread_id, 0)
        tree = yield from self._lookup.find(thread_id)
        parent = None if entry_id is None else to_bytes(entry_id)
        inherited = yield from self._inherited(tree, base)
        rows = [row for row in (*inherited, *own) if row[2] == parent]
        return (yield from self._entries_of(tree, rows, thread_id, key))

    def moves(self, thread_id: str) -> Steps[list[Move]]:
        head = yield from self._head(thread_id)
        rows = yield Statement(MOVES, {"tree": head.tree, "key": head.state.key})
        return [move_of(thread_id, row) for row in rows]

    def next_move(self, thread_id: str, direction: Direction) -> Steps[NextMove]:
        head = yield from self._head(thread_id)
        view = SnapshotView(IdSource(), self._lookup.namespace)
        view.set_thread(thread_id, head)
        return (yield from run_rule(view, lambda: next_move(view, head.state, direction)))

    def lease(self, thread_id: str) -> Steps[Lease | None]:
        return (yield from self._head(thread_id)).lease

    def new_entries(self, thread_id: str, cursor: int | None) -> Steps[NewEntries]:
        if cursor is None:
            head = yield from self._head(thread_id)
            return NewEntries(entries=(), cursor=head.seq)
        key, _, rows = yield from self._own(thread_id, cursor)
        entries = entries_of(rows, {key: thread_id})
        return NewEntries(entries=tuple(entries), cursor=rows[-1][6] if rows else cursor)

    def thread_ids(self, part: str, limit: int) -> Steps[list[str]]:
        return find_thread_ids(self._lookup.namespace, part, limit)

    def entry_ids(self, thread_id: str, part: str, limit: int) -> Steps[list[str]]:
        entries = yield from self.entries(thread_id, None, None)
        return matching_ids((entry.id for entry in entries), part)[:limit]

    def search(self, search: Search) -> Steps[SearchPage]:
        return search_entries(self, self._lookup.namespace, search)

    def stats(self) -> Steps[StoreStats]:
        ((threads, archived, entries, moves, leases, size),) = yield Statement(
            _STATS, {"namespace": self._lookup.namespace}
        )
        return StoreStats(threads=threads, archived=archived, entries=entries, moves=moves, leases=leases, bytes=size)

    def missing_blobs(self, hashes: Collection[str]) -> Steps[frozenset[str]]:
        rows = yield find_blobs(self._lookup.namespace, hashes)
        return frozenset(hashes) - hashes_of(rows)

    def blobs(self, hashes: Sequence[str]) -> Steps[list[Blob]]:
        rows = yield read_blobs(self._lookup.namespace, hashes)
        return in_order(blobs_of(rows), hashes)

    def inspect(self, progress: Progress | None = None) -> Steps[list[Finding]]:
        return inspect(self._lookup.namespace, self._place, progress)

    def _head(self, thread_id: str) -> Steps[ThreadHead]:
        _, rows = yield from self._thread_rows(thread_id, _HEAD, {})
        return head_of(rows[0])

    def _thread_rows(self, thread_id: str, sql: str, values: dict[str, Any]) -> Steps[tuple[UUID, list[Row]]]:
        """Rows about a thread. Without a row the cached tree may be wrong, so the tree is read again."""
        ways: tuple[Callable[[str], Steps[UUID]], ...] = (self._lookup.find, self._lookup.refresh)
        for find in ways:
            tree = yield from find(thread_id)
            rows = yield Statement(sql, {**values, "tree": tree, "thread": to_bytes(thread_id)})
            if rows:
                return tree, rows
        raise ThreadNotFoundError(thread_id)

    def _visible(self, thread_id: str, entry_id: str) -> Steps[tuple[UUID, Row]]:
        tree, ((key, base, depth, *row),) = yield from self._thread_rows(
            thread_id, _ENTRY, {"entry": to_bytes(entry_id)}
        )
        if row[0] is not None and row[1] == key:
            return tree, tuple(row)
        if row[0] is not None and base is not None:
            rows = yield Statement(IS_ANCESTOR, {"tree": tree, "tip": base, "id": row[0], "depth": depth})
            if rows:
                return tree, tuple(row)
        raise EntryNotFoundError(thread_id, entry_id)

    def _own(self, thread_id: str, after: int, limit: int | None = None) -> Steps[tuple[int, bytes | None, list[Row]]]:
        """A thread's key, its fork point, and the entries appended through it."""
        _, rows = yield from self._thread_rows(thread_id, _OWN, {"after": Int8(after), "limit": _range(limit)})
        (base, key, *_), entries = _split(rows)
        entries.sort(key=lambda row: row[6])
        return key, base, entries

    def _path_of_leaf(self, thread_id: str, limit: int | None) -> Steps[tuple[UUID, int, list[Row]]]:
        tree, rows = yield from self._thread_rows(thread_id, _PATH_OF_LEAF, {"limit": _range(limit)})
        (leaf, key, *_), segment = _split(rows)
        path: list[Row] = []
        want = _follow(segment, leaf, path, limit)
        if want is not None and len(path) != limit:
            path += yield from self._walk(tree, want, None if limit is None else limit - len(path))
        return tree, key, path

    def _walk(self, tree: UUID, tip: bytes | None, limit: int | None = None) -> Steps[list[Row]]:
        """Rows from a tip to its root: one scan for each thread whose entries are on the path."""
        rows: list[Row] = []
        while tip is not None and len(rows) != limit:
            most = None if limit is None else limit - len(rows)
            segment = yield Statement(_SEGMENT, {"tree": tree, "tip": tip, "limit": _range(most)})
            before = len(rows)
            tip = _follow(segment, tip, rows, limit)
            if len(rows) == before:
                break
        return rows

    def _inherited(self, tree: UUID, base: bytes | None) -> Steps[list[Row]]:
        rows = yield from self._walk(tree, base)
        rows.reverse()
        return rows

    def _entries_of(self, tree: UUID, rows: list[Row], thread_id: str, key: int | None) -> Steps[list[Entry]]:
        """Entries of rows, each with the id of the thread it was appended through."""
        names = {} if key is None else {key: thread_id}
        missing = {row[1] for row in rows} - set(names)
        if missing:
            found = yield Statement(_NAMES, {"tree": tree, "keys": sorted(missing)})
            names |= {owner: to_text(name) for owner, name in found}
        return entries_of(rows, names)


def _range(limit: int | None) -> Int8:
    return Int8(_NO_LIMIT if limit is None else limit)


def _split(rows: list[Row]) -> tuple[Row, list[Row]]:
    """The row about the thread, and the entries."""
    if rows[0][5] is None:
        return rows[0], rows[1:]
    thread = next(row for row in rows if row[5] is None)
    return thread, [row for row in rows if row[5] is not None]


def _follow(segment: list[Row], want: bytes | None, path: list[Row], limit: int | None) -> bytes | None:
    """Append the rows from ``want`` upwards to the path; return the next id, which is in another segment."""
    by_id = {row[0]: row for row in segment}
    while want is not None and len(path) != limit and want in by_id:
        path.append(by_id[want])
        want = path[-1][2]
    return want


def _after(entry_id: bytes, rows: list[Row]) -> list[Row]:
    for number, row in enumerate(rows):
        if row[0] == entry_id:
            return rows[number + 1 :]
    return rows
