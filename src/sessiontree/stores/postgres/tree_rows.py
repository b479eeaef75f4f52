"""Rows of a thread, and of the entries that it sees.

A path is read in segments: the entries that were appended through one thread are numbered without gaps, so each segment
is a range of the primary key.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any
from uuid import UUID

from psycopg.types.numeric import Int8

from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.model import Entry
from sessiontree.stores.postgres.known import KnownThreads
from sessiontree.stores.postgres.rows import ENTRY_COLUMNS, HEAD_FROM, STATE_COLUMNS, ThreadHead, entries_of, head_of
from sessiontree.stores.postgres.steps import Row, Statement, Steps, TreeLookup, to_bytes, to_text
from sessiontree.stores.postgres.view import IS_ANCESTOR

__all__ = [
    "FIRST_BATCH",
    "LARGEST_BATCH",
    "NO_LIMIT",
    "OF_THREAD",
    "THREAD_FIRST",
    "TreeRows",
    "first_batch",
    "range_of",
    "seq_of",
    "split",
]


NO_LIMIT = 1 << 62
FIRST_BATCH = 64
LARGEST_BATCH = 16_384
seq_of = itemgetter(6)

OF_THREAD = "h.tree = %(tree)s AND h.id = %(thread)s AND h.namespace = %(namespace)s"
_HEAD = f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE {OF_THREAD}"
_ENTRY = f"""
SELECT h.key, t.base, e.depth, {ENTRY_COLUMNS} FROM sessiontree.head h
JOIN sessiontree.thread t ON t.tree = h.tree AND t.id = h.id AND t.namespace = h.namespace
LEFT JOIN sessiontree.entry e ON e.tree = h.tree AND e.id = %(entry)s AND e.namespace = h.namespace
WHERE {OF_THREAD}"""
# The first row is about the thread and has no body; the others are entries. A thread's entries are numbered without
# gaps, so a limit is a range of numbers: the server never sorts, and uses the primary key whatever its estimates.
_PATH_OF_LEAF = f"""
WITH tip AS (
    SELECT h.key, h.leaf, e.owner, e.seq FROM sessiontree.head h
    LEFT JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.id = h.leaf AND e.namespace = %(namespace)s
    WHERE {OF_THREAD}
)
SELECT leaf, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM tip
UNION ALL
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND e.owner = (SELECT owner FROM tip)
    AND e.seq <= (SELECT seq FROM tip) AND e.seq > (SELECT seq FROM tip) - %(limit)s"""
_SEGMENT = f"""
WITH tip AS (
    SELECT owner, seq FROM sessiontree.entry WHERE tree = %(tree)s AND id = %(tip)s AND namespace = %(namespace)s
)
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND e.owner = (SELECT owner FROM tip)
    AND e.seq <= (SELECT seq FROM tip) AND e.seq > (SELECT seq FROM tip) - %(limit)s"""
THREAD_FIRST = f"""
WITH me AS (
    SELECT t.key, t.base FROM sessiontree.head h
    JOIN sessiontree.thread t ON t.tree = %(tree)s AND t.id = h.id AND t.namespace = %(namespace)s
    WHERE {OF_THREAD}
)
SELECT base, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM me
UNION ALL"""
_OWN = f"""{THREAD_FIRST}
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND e.owner = (SELECT key FROM me)
    AND e.seq > %(after)s AND e.seq <= greatest((SELECT key FROM me), %(after)s) + %(limit)s"""
_NAMES = """
SELECT key, id FROM sessiontree.thread
WHERE tree = %(tree)s AND key = ANY(%(keys)s) AND namespace = %(namespace)s
UNION ALL SELECT key, id FROM sessiontree.deleted_thread
WHERE tree = %(tree)s AND key = ANY(%(keys)s) AND namespace = %(namespace)s"""


class TreeRows:
    """Reads rows of threads of one namespace."""

    def __init__(self, lookup: TreeLookup, known: KnownThreads) -> None:
        self._lookup = lookup
        self._known = known

    def in_tree(self, sql: str, tree: UUID, **values: Any) -> Statement:
        """A statement about one tree."""
        return Statement(sql, {"tree": tree, "namespace": self._lookup.namespace, **values})

    def of_thread(self, thread_id: str, sql: str, values: dict[str, Any]) -> Steps[tuple[UUID, list[Row]]]:
        """Rows about a thread. Without a row the cached tree may be wrong, so the tree is read again."""
        ways: tuple[Callable[[str], Steps[UUID]], ...] = (self._lookup.find, self._lookup.refresh)
        for find in ways:
            tree = yield from find(thread_id)
            rows = yield self.in_tree(sql, tree, thread=to_bytes(thread_id), **values)
            if rows:
                return tree, rows
        raise ThreadNotFoundError(thread_id)

    def head(self, thread_id: str) -> Steps[ThreadHead]:
        """A thread, which is known from now on."""
        _, rows = yield from self.of_thread(thread_id, _HEAD, {})
        head = head_of(rows[0])
        self._known.read(head)
        return head

    def visible(self, thread_id: str, entry_id: str) -> Steps[tuple[UUID, Row]]:
        """The tree of a thread, and an entry that the thread sees; raise EntryNotFoundError if it does not."""
        tree, ((key, base, depth, *row),) = yield from self.of_thread(thread_id, _ENTRY, {"entry": to_bytes(entry_id)})
        if row[0] is not None and row[1] == key:
            return tree, tuple(row)
        if row[0] is not None and base is not None:
            rows = yield self.in_tree(IS_ANCESTOR, tree, tip=base, id=row[0], depth=depth)
            if rows:
                return tree, tuple(row)
        raise EntryNotFoundError(thread_id, entry_id)

    def seen(self, head: ThreadHead, rows: list[Row]) -> Steps[list[Row]]:
        """Those of some rows of a tree that a thread sees; the path above its fork point is read only if it matters."""
        key, base = head.state.key, head.state.base
        if base is None or all(row[1] == key for row in rows):
            return [row for row in rows if row[1] == key]
        inherited = {row[0] for row in (yield from self.walk(head.tree, to_bytes(base.id)))}
        return [row for row in rows if row[1] == key or row[0] in inherited]

    def own(
        self, thread_id: str, after: int, limit: int | None = None
    ) -> Steps[tuple[UUID, int, bytes | None, list[Row]]]:
        """A thread's tree, its key, its fork point, and the entries appended through it."""
        tree, rows = yield from self.of_thread(thread_id, _OWN, {"after": Int8(after), "limit": range_of(limit)})
        (base, key, *_), entries = split(rows)
        entries.sort(key=seq_of)
        return tree, key, base, entries

    def path_of_leaf(self, thread_id: str, limit: int | None) -> Steps[tuple[UUID, int, list[Row]]]:
        """A thread's tree, its key, and the rows from its leaf to the root."""
        tree, rows = yield from self.of_thread(thread_id, _PATH_OF_LEAF, {"limit": range_of(limit)})
        (leaf, key, *_), segment = split(rows)
        path: list[Row] = []
        want = _follow(segment, leaf, path, limit)
        if want is not None and len(path) != limit:
            path += yield from self.walk(tree, want, None if limit is None else limit - len(path))
        return tree, key, path

    def walk(self, tree: UUID, tip: bytes | None, limit: int | None = None) -> Steps[list[Row]]:
        """Rows from a tip to its root: one scan for each thread whose entries are on the path."""
        rows: list[Row] = []
        while tip is not None and len(rows) != limit:
            most = None if limit is None else limit - len(rows)
            segment = yield self.in_tree(_SEGMENT, tree, tip=tip, limit=range_of(most))
            before = len(rows)
            tip = _follow(segment, tip, rows, limit)
            if len(rows) == before:
                break
        return rows

    def walk_for(
        self, tree: UUID, rows: list[Row], size: int, limit: int | None, wants: Callable[[Row], bool]
    ) -> Steps[list[Row]]:
        """The rows that are wanted, of the first ``size`` and of what is above them, read in growing batches."""
        chosen = list(filter(wants, rows))
        while len(rows) == size and (limit is None or len(chosen) < limit):
            size = min(2 * size, LARGEST_BATCH)
            rows = yield from self.walk(tree, rows[-1][2], size)
            chosen += filter(wants, rows)
        return chosen[:limit]

    def inherited(self, tree: UUID, base: bytes | None) -> Steps[list[Row]]:
        """Rows from the root to a fork point."""
        rows = yield from self.walk(tree, base)
        rows.reverse()
        return rows

    def to_entries(self, tree: UUID, rows: list[Row], thread_id: str, key: int | None) -> Steps[list[Entry]]:
        """Entries of rows, each with the id of the thread it was appended through."""
        names = {} if key is None else {key: thread_id}
        missing = {row[1] for row in rows} - set(names)
        if missing:
            found = yield self.in_tree(_NAMES, tree, keys=sorted(missing))
            names |= {owner: to_text(name) for owner, name in found}
        return entries_of(rows, names)


def first_batch(limit: int | None) -> int:
    """How many entries to read first of a path of which ``limit`` are wanted."""
    return LARGEST_BATCH if limit is None else min(max(limit, FIRST_BATCH), LARGEST_BATCH)


def range_of(limit: int | None) -> Int8:
    """A limit as a number of entries."""
    return Int8(NO_LIMIT if limit is None else limit)


def split(rows: list[Row]) -> tuple[Row, list[Row]]:
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
