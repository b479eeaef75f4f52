"""The reads of the store as statements, most of them one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any, TypeVar
from uuid import UUID

from psycopg.types.numeric import Int8

from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.model import Entry, Lease, Move, NextMove, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import EntryBody, has_type, stored_type
from sessiontree.model.documents import StoredDocument
from sessiontree.model.ids import IdSource
from sessiontree.model.thread import Direction
from sessiontree.search import SearchPage
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.listing import matching_ids
from sessiontree.stores.postgres.blobs import blobs_of, find_blobs, hashes_of, in_order, read_blobs
from sessiontree.stores.postgres.doctor import inspect
from sessiontree.stores.postgres.documents import list_documents, list_scopes, read_document
from sessiontree.stores.postgres.known import KnownThreads
from sessiontree.stores.postgres.leases import READ_CLOCK
from sessiontree.stores.postgres.listing import list_threads
from sessiontree.stores.postgres.rows import (
    ENTRY_COLUMNS,
    HEAD_FROM,
    NODE_COLUMNS,
    STATE_COLUMNS,
    ThreadHead,
    entries_of,
    head_of,
    json_row,
    logged_of,
    move_of,
    node_of,
)
from sessiontree.stores.postgres.schema import IS_RARE
from sessiontree.stores.postgres.search import find_thread_ids, search_entries
from sessiontree.stores.postgres.steps import Row, Statement, Steps, TreeLookup, to_bytes, to_text
from sessiontree.stores.postgres.view import IS_ANCESTOR, MOVES, SnapshotView, run_rule
from sessiontree.stores.queries import (
    Finding,
    ListDocuments,
    ListScopes,
    NewEntries,
    ReadDocument,
    ReadEntries,
    ReadPath,
    Search,
    StoreStats,
)
from sessiontree.stores.rules.leaf import next_move

__all__ = ["StepReads"]


T = TypeVar("T")

_NO_LIMIT = 1 << 62
_FIRST_BATCH = 64
_LARGEST_BATCH = 16_384
_seq = itemgetter(6)

_OF_THREAD = "h.tree = %(tree)s AND h.id = %(thread)s AND h.namespace = %(namespace)s"
_HEAD = f"SELECT {STATE_COLUMNS} FROM {HEAD_FROM} WHERE {_OF_THREAD}"
# With the last moves, those that an undo or a redo takes back, and the entries that it leads to, as JSON.
_OF_LOG = "m.tree = %(tree)s AND m.thread = h.key AND m.namespace = %(namespace)s"
_HEAD_AND_MOVES = f"""
SELECT {STATE_COLUMNS}, (
    SELECT json_agg(json_build_array(m.number, m.from_entry, m.to_entry, m.reason, m.at_ns, m.undo, m.redo,
        m.redo_below))
    FROM sessiontree.move m
    WHERE {_OF_LOG} AND (m.number > h.moves - 5 OR m.number IN (l.undo, l.undo - 1, l.redo, l.redo - 1))
), (
    SELECT json_agg(json_build_array({NODE_COLUMNS}, {ENTRY_COLUMNS})) FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND e.id IN (
        SELECT m.from_entry FROM sessiontree.move m WHERE {_OF_LOG} AND m.number IN (l.undo, l.redo))
)
FROM {HEAD_FROM}
LEFT JOIN sessiontree.move l
    ON l.tree = %(tree)s AND l.thread = h.key AND l.number = h.moves AND l.namespace = %(namespace)s
WHERE {_OF_THREAD}"""
_ENTRY = f"""
SELECT h.key, t.base, e.depth, {ENTRY_COLUMNS} FROM sessiontree.head h
JOIN sessiontree.thread t ON t.tree = h.tree AND t.id = h.id AND t.namespace = h.namespace
LEFT JOIN sessiontree.entry e ON e.tree = h.tree AND e.id = %(entry)s AND e.namespace = h.namespace
WHERE {_OF_THREAD}"""
# The first row is about the thread and has no body; the others are entries. A thread's entries are numbered without
# gaps, so a limit is a range of numbers: the server never sorts, and uses the primary key whatever its estimates.
_PATH_OF_LEAF = f"""
WITH tip AS (
    SELECT h.key, h.leaf, e.owner, e.seq FROM sessiontree.head h
    LEFT JOIN sessiontree.entry e ON e.tree = %(tree)s AND e.id = h.leaf AND e.namespace = %(namespace)s
    WHERE {_OF_THREAD}
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
_OWN = f"""
WITH me AS (
    SELECT t.key, t.base FROM sessiontree.head h
    JOIN sessiontree.thread t ON t.tree = %(tree)s AND t.id = h.id AND t.namespace = %(namespace)s
    WHERE {_OF_THREAD}
)
SELECT base, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM me
UNION ALL
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND e.owner = (SELECT key FROM me)
    AND e.seq > %(after)s AND e.seq <= greatest((SELECT key FROM me), %(after)s) + %(limit)s"""
_NEWEST = f"""
WITH me AS (
    SELECT t.key, t.base, least(h.seq, %(upto)s) AS upto FROM sessiontree.head h
    JOIN sessiontree.thread t ON t.tree = %(tree)s AND t.id = h.id AND t.namespace = %(namespace)s
    WHERE {_OF_THREAD}
)
SELECT base, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM me
UNION ALL
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND e.owner = (SELECT key FROM me)
    AND e.seq <= (SELECT upto FROM me) AND e.seq > (SELECT upto FROM me) - %(limit)s"""
_RARE = f"""
WITH me AS (
    SELECT t.key, t.base FROM sessiontree.head h
    JOIN sessiontree.thread t ON t.tree = %(tree)s AND t.id = h.id AND t.namespace = %(namespace)s
    WHERE {_OF_THREAD}
)
SELECT base, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM me
UNION ALL
SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND {IS_RARE}
    AND (e.owner = (SELECT key FROM me) OR (SELECT base FROM me) IS NOT NULL)"""
_RARE_OWN = f"""
WITH me AS (
    SELECT t.key, t.base FROM sessiontree.head h
    JOIN sessiontree.thread t ON t.tree = %(tree)s AND t.id = h.id AND t.namespace = %(namespace)s
    WHERE {_OF_THREAD}
)
SELECT base, key, NULL::bytea, NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint FROM me
UNION ALL
(SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e
    WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s AND {IS_RARE}
    AND e.owner = (SELECT key FROM me) AND e.seq > %(above)s AND e.seq < %(below)s
    AND substring(e.body FROM 10 FOR 5) = ANY(%(marks)s) ORDER BY e.seq {{order}} LIMIT %(limit)s)"""
_OF_TREE = f"SELECT {ENTRY_COLUMNS} FROM sessiontree.entry e WHERE e.tree = %(tree)s AND e.namespace = %(namespace)s"
_CHILDREN = f"{_OF_TREE} AND e.parent = %(parent)s"
_IN_TREE = f"{_OF_TREE} AND e.id = ANY(%(ids)s)"
_ROOTS = f"{_OF_TREE} AND e.parent IS NULL"
_OWNER_NAME = """
    coalesce((SELECT t.id FROM sessiontree.thread t
            WHERE t.tree = e.tree AND t.key = e.owner AND t.namespace = e.namespace),
        (SELECT d.id FROM sessiontree.deleted_thread d
            WHERE d.tree = e.tree AND d.key = e.owner AND d.namespace = e.namespace))"""
_LAST = f"""
WITH o AS MATERIALIZED (
    SELECT id, tree FROM sessiontree.home WHERE id = ANY(%(ids)s) AND namespace = %(namespace)s
)
SELECT h.id, {_OWNER_NAME}, {ENTRY_COLUMNS} FROM o
JOIN sessiontree.head h ON h.tree = o.tree AND h.id = o.id AND h.namespace = %(namespace)s
JOIN sessiontree.entry e ON e.tree = h.tree AND e.id = h.leaf AND e.namespace = h.namespace"""
_ANYWHERE = f"""
SELECT {_OWNER_NAME}, {ENTRY_COLUMNS} FROM sessiontree.entry e
WHERE e.id = ANY(%(ids)s) AND e.namespace = %(namespace)s ORDER BY e.tree"""
_NAMES = """
SELECT key, id FROM sessiontree.thread
WHERE tree = %(tree)s AND key = ANY(%(keys)s) AND namespace = %(namespace)s
UNION ALL SELECT key, id FROM sessiontree.deleted_thread
WHERE tree = %(tree)s AND key = ANY(%(keys)s) AND namespace = %(namespace)s"""
_SIZES = "SELECT id, bytes FROM sessiontree.head WHERE namespace = %(namespace)s AND bytes > 0"
# Every head counts its own entries. Those that forks keep of deleted threads have none, and are counted one by one.
_STATS = """
WITH living AS (
    SELECT count(*) AS threads, coalesce(sum(seq - key), 0)::bigint AS entries, coalesce(sum(moves), 0)::bigint AS moves,
        count(lease_token) AS leases, coalesce(sum(bytes), 0)::bigint AS bytes
    FROM sessiontree.head WHERE namespace = %(namespace)s
), deleted AS (
    SELECT coalesce(sum(kept.counts[1]), 0)::bigint AS entries, coalesce(sum(kept.counts[2]), 0)::bigint AS bytes
    FROM (
        SELECT (SELECT ARRAY[count(*), sum(octet_length(e.body))] FROM sessiontree.entry e
            WHERE e.tree = d.tree AND e.owner = d.key AND e.namespace = d.namespace) AS counts
        FROM sessiontree.deleted_thread d WHERE d.namespace = %(namespace)s
    ) kept
)
SELECT l.threads, (SELECT count(*) FROM sessiontree.thread WHERE namespace = %(namespace)s AND is_archived),
    l.entries + d.entries, l.moves, l.leases, l.bytes + d.bytes
    + (SELECT coalesce(sum(length), 0)::bigint FROM sessiontree.blob WHERE namespace = %(namespace)s)
FROM living l, deleted d"""


class StepReads:
    """The methods of ``queries.Reads`` as generators of steps."""

    def __init__(self, place: str, lookup: TreeLookup, known: KnownThreads) -> None:
        self._place = place
        self._lookup = lookup
        self._known = known

    def thread(self, thread_id: str) -> Steps[Thread]:
        head = yield from self._head(thread_id)
        return head.state.public()

    def threads(self, query: ThreadQuery) -> Steps[Page]:
        page, trees = yield from list_threads(self._lookup.namespace, query)
        for thread_id, tree in trees.items():
            self._lookup.remember(thread_id, tree)
        return page

    def entry(self, thread_id: str, entry_id: str) -> Steps[Entry]:
        tree, row = yield from self._visible(thread_id, entry_id)
        return (yield from self._entries_of(tree, [row], thread_id, row[1]))[0]

    def entries(self, query: ReadEntries) -> Steps[list[Entry]]:
        thread_id = query.thread_id
        start: Row | None = None
        if query.after is not None:
            _, start = yield from self._visible(thread_id, query.after)
        own = (yield from self._rare_own(query, start)) if query.rare_types else None
        if own is not None:
            key, rows = own
        elif query.newest_first and not query.rare_types:
            key, rows = yield from self._newest_first(query, start)
        else:
            key, rows = yield from self._oldest_first(query, start)
            if start is not None:
                rows = _beyond(start, key, rows, newest_first=query.newest_first)
            if query.newest_first:
                rows.reverse()
            rows = [row for row in rows if query.wants(stored_type(row[5]), to_text(row[4]))][: query.limit]
        tree = yield from self._lookup.find(thread_id)
        return (yield from self._entries_of(tree, rows, thread_id, key))

    def entries_by_id(self, entry_ids: tuple[str, ...], thread_id: str | None) -> Steps[list[Entry]]:
        if thread_id is None:
            return (yield from self._entries_anywhere(entry_ids))
        head = yield from self._head(thread_id)
        rows = yield self._in_tree(_IN_TREE, head.tree, ids=[to_bytes(entry_id) for entry_id in entry_ids])
        seen = {row[0]: row for row in (yield from self._seen(head, rows))}
        chosen = [seen[name] for entry_id in entry_ids if (name := to_bytes(entry_id)) in seen]
        return (yield from self._entries_of(head.tree, chosen, thread_id, head.state.key))

    def last_entries(self, thread_ids: tuple[str, ...]) -> Steps[dict[str, Entry]]:
        ids = [to_bytes(thread_id) for thread_id in thread_ids]
        rows = yield Statement(_LAST, {"ids": ids, "namespace": self._lookup.namespace})
        entries = entries_of((row[2:] for row in rows), {row[3]: to_text(row[1]) for row in rows})
        last = {to_text(row[0]): entry for row, entry in zip(rows, entries, strict=True)}
        return {thread_id: last[thread_id] for thread_id in thread_ids if thread_id in last}

    def path(self, query: ReadPath) -> Steps[list[Entry]]:
        tree, key, rows = yield from self._path_rows(query)
        return (yield from self._entries_of(tree, rows, query.thread_id, key)) if rows else []

    def path_bodies(self, query: ReadPath) -> Steps[list[EntryBody]]:
        _, _, rows = yield from self._path_rows(query)
        return [EntryBody(id=to_text(row[0]), body=row[5]) for row in rows]

    def _path_rows(self, query: ReadPath) -> Steps[tuple[UUID, int | None, list[Row]]]:
        """The tree of a thread, its key if it was read, and the rows of a path, root first."""
        thread_id, limit = query.thread_id, query.limit
        size = limit if query.types is None else _FIRST_BATCH
        match query.leaf:
            case None:
                return (yield from self._head(thread_id)).tree, None, []
            case str():
                tree, _ = yield from self._visible(thread_id, query.leaf)
                key = None
                rows = yield from self._walk(tree, to_bytes(query.leaf), size)
            case _:
                tree, key, rows = yield from self._path_of_leaf(thread_id, size)
        if query.types is not None:
            is_wanted = has_type(query.types)
            is_over = len(rows) < _FIRST_BATCH
            rows = yield from self._walk_for(tree, rows, limit, lambda row: is_wanted(row[5]), is_over=is_over)
        rows.reverse()
        return tree, key, rows

    def children(self, thread_id: str, entry_id: str | None) -> Steps[list[Entry]]:
        if entry_id is not None:
            yield from self._visible(thread_id, entry_id)
        head = yield from self._head(thread_id)
        if entry_id is None:
            rows = yield self._in_tree(_ROOTS, head.tree)
        else:
            rows = yield self._in_tree(_CHILDREN, head.tree, parent=to_bytes(entry_id))
        seen = yield from self._seen(head, sorted(rows, key=lambda row: (row[1] == head.state.key, row[6])))
        return (yield from self._entries_of(head.tree, seen, thread_id, head.state.key))

    def moves(self, thread_id: str) -> Steps[list[Move]]:
        head = yield from self._head(thread_id)
        rows = yield self._in_tree(MOVES, head.tree, key=head.state.key)
        return [move_of(thread_id, row) for row in rows]

    def next_move(self, thread_id: str, direction: Direction) -> Steps[NextMove]:
        _, ((*row, moves, entries),) = yield from self._thread_rows(thread_id, _HEAD_AND_MOVES, {})
        head = head_of(tuple(row))
        known = self._known.read(head)
        rows = [json_row(entry) for entry in entries or ()]
        logged = [logged_of(thread_id, json_row(move)) for move in moves or ()]
        known.add((node_of(entry[:6]) for entry in rows), logged)
        view = SnapshotView(IdSource(), self._lookup.namespace)
        view.set_known(known)
        view.add_nodes((), rows)
        return (yield from run_rule(view, lambda: next_move(view, head.state, direction)))

    def lease(self, thread_id: str) -> Steps[Lease | None]:
        return (yield from self._head(thread_id)).lease

    def clock(self, now_ns: int) -> Steps[int]:
        ((now,),) = yield READ_CLOCK
        return int(now)

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
        entries = yield from self.entries(ReadEntries(thread_id=thread_id))
        return matching_ids((entry.id for entry in entries), part)[:limit]

    def document(self, query: ReadDocument) -> Steps[StoredDocument | None]:
        return read_document(self._lookup.namespace, query)

    def scopes(self, query: ListScopes) -> Steps[list[str]]:
        return list_scopes(self._lookup.namespace, query)

    def documents(self, query: ListDocuments) -> Steps[list[StoredDocument]]:
        return list_documents(self._lookup.namespace, query)

    def search(self, search: Search) -> Steps[SearchPage]:
        return search_entries(self, self._lookup.namespace, search)

    def stats(self) -> Steps[StoreStats]:
        ((threads, archived, entries, moves, leases, size),) = yield Statement(
            _STATS, {"namespace": self._lookup.namespace}
        )
        return StoreStats(threads=threads, archived=archived, entries=entries, moves=moves, leases=leases, bytes=size)

    def thread_sizes(self) -> Steps[dict[str, int]]:
        rows = yield Statement(_SIZES, {"namespace": self._lookup.namespace})
        return {to_text(thread_id): size for thread_id, size in rows}

    def missing_blobs(self, hashes: Collection[str]) -> Steps[frozenset[str]]:
        rows = yield find_blobs(self._lookup.namespace, hashes)
        return frozenset(hashes) - hashes_of(rows)

    def blobs(self, hashes: Sequence[str]) -> Steps[list[Blob]]:
        rows = yield read_blobs(self._lookup.namespace, hashes)
        return in_order(blobs_of(rows), hashes)

    def inspect(self, progress: Progress | None = None) -> Steps[list[Finding]]:
        return inspect(self._lookup.namespace, self._place, progress)

    def snapshot(self, request: SnapshotRequest) -> Steps[Snapshot]:
        from sessiontree.stores.postgres.snapshot import take_snapshot  # noqa: PLC0415  only backups need it

        return take_snapshot(self._lookup.namespace, self._place, request)

    def _head(self, thread_id: str) -> Steps[ThreadHead]:
        _, rows = yield from self._thread_rows(thread_id, _HEAD, {})
        head = head_of(rows[0])
        self._known.read(head)
        return head

    def _in_tree(self, sql: str, tree: UUID, **values: Any) -> Statement:
        return Statement(sql, {"tree": tree, "namespace": self._lookup.namespace, **values})

    def _thread_rows(self, thread_id: str, sql: str, values: dict[str, Any]) -> Steps[tuple[UUID, list[Row]]]:
        """Rows about a thread. Without a row the cached tree may be wrong, so the tree is read again."""
        ways: tuple[Callable[[str], Steps[UUID]], ...] = (self._lookup.find, self._lookup.refresh)
        for find in ways:
            tree = yield from find(thread_id)
            rows = yield self._in_tree(sql, tree, thread=to_bytes(thread_id), **values)
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
            rows = yield self._in_tree(IS_ANCESTOR, tree, tip=base, id=row[0], depth=depth)
            if rows:
                return tree, tuple(row)
        raise EntryNotFoundError(thread_id, entry_id)

    def _seen(self, head: ThreadHead, rows: list[Row]) -> Steps[list[Row]]:
        """Those of some rows of a tree that a thread sees; the path above its fork point is read only if it matters."""
        key, base = head.state.key, head.state.base
        if base is None or all(row[1] == key for row in rows):
            return [row for row in rows if row[1] == key]
        inherited = {row[0] for row in (yield from self._walk(head.tree, to_bytes(base.id)))}
        return [row for row in rows if row[1] == key or row[0] in inherited]

    def _rare_own(self, query: ReadEntries, start: Row | None) -> Steps[tuple[int, list[Row]] | None]:
        """A thread's key and the entries of rare types that a query selects; None for a fork, which has others as well."""
        values = {
            "above": Int8(start[6] if start is not None and not query.newest_first else 0),
            "below": Int8(start[6] if start is not None and query.newest_first else _NO_LIMIT),
            "marks": list(query.rare_marks),
            "limit": None if query.rare_limit is None else Int8(query.rare_limit),
        }
        order = "DESC" if query.newest_first else "ASC"
        _, rows = yield from self._thread_rows(query.thread_id, _RARE_OWN.format(order=order), values)
        (base, key, *_), own = _split(rows)
        if base is not None:
            return None
        own.sort(key=_seq, reverse=query.newest_first)
        return key, [row for row in own if query.wants(stored_type(row[5]), to_text(row[4]))][: query.limit]

    def _oldest_first(self, query: ReadEntries, start: Row | None) -> Steps[tuple[int, list[Row]]]:
        """A thread's key, and the entries that it sees and that a query may select, oldest first."""
        if query.rare_types:
            tree, rows = yield from self._thread_rows(query.thread_id, _RARE, {})
            (base, key, *_), entries = _split(rows)
            own = sorted((row for row in entries if row[1] == key), key=_seq)
            if base is None or (start is None and len(own) == len(entries)):
                return key, own
            inherited = yield from self._inherited(tree, base)
            return key, [*inherited, *own]
        most = None if query.is_filtered or start is not None else query.limit
        key, base, own = yield from self._own(query.thread_id, 0, most)
        if base is None:
            return key, own
        tree = yield from self._lookup.find(query.thread_id)
        return key, [*(yield from self._inherited(tree, base)), *own]

    def _newest_first(self, query: ReadEntries, start: Row | None) -> Steps[tuple[int, list[Row]]]:
        """A thread's key, and the entries that a query selects, read in growing batches from the newest one."""

        def wants(row: Row) -> bool:
            return query.wants(stored_type(row[5]), to_text(row[4]))

        chosen: list[Row] = []
        size = _FIRST_BATCH if query.is_filtered else query.limit
        upto = _NO_LIMIT
        while True:
            values = {"upto": Int8(upto), "limit": _range(size)}
            tree, rows = yield from self._thread_rows(query.thread_id, _NEWEST, values)
            (base, key, *_), own = _split(rows)
            own.sort(key=_seq, reverse=True)
            if start is not None and start[1] == key and upto == _NO_LIMIT:
                upto = start[6] - 1
                continue
            if start is None or start[1] == key:
                chosen += filter(wants, own)
            if not own or size is None or len(own) < size or len(chosen) >= (query.limit or _NO_LIMIT):
                break
            upto, size = own[-1][6] - 1, min(2 * size, _LARGEST_BATCH)
        if query.limit is None or len(chosen) < query.limit:
            tip = base if start is None or start[1] == key else start[2]
            most = None if query.limit is None else query.limit - len(chosen)
            first = yield from self._walk(tree, tip, _FIRST_BATCH)
            chosen += yield from self._walk_for(tree, first, most, wants, is_over=len(first) < _FIRST_BATCH)
        return key, chosen[: query.limit]

    def _walk_for(
        self, tree: UUID, first: list[Row], limit: int | None, wants: Callable[[Row], bool], *, is_over: bool
    ) -> Steps[list[Row]]:
        """The rows that are wanted, of ``first`` and of what is above it, read in growing batches."""
        chosen = list(filter(wants, first))
        rows, size = first, _FIRST_BATCH
        while not is_over and (limit is None or len(chosen) < limit):
            size = min(2 * size, _LARGEST_BATCH)
            rows = yield from self._walk(tree, rows[-1][2], size)
            chosen += filter(wants, rows)
            is_over = len(rows) < size
        return chosen[:limit]

    def _entries_anywhere(self, entry_ids: tuple[str, ...]) -> Steps[list[Entry]]:
        ids = [to_bytes(entry_id) for entry_id in entry_ids]
        rows = yield Statement(_ANYWHERE, {"ids": ids, "namespace": self._lookup.namespace})
        by_id: dict[str, list[Entry]] = {}
        for row in rows:
            (entry,) = entries_of([row[1:]], {row[2]: to_text(row[0])})
            by_id.setdefault(entry.id, []).append(entry)
        return [entry for entry_id in entry_ids for entry in by_id.get(entry_id, ())]

    def _own(self, thread_id: str, after: int, limit: int | None = None) -> Steps[tuple[int, bytes | None, list[Row]]]:
        """A thread's key, its fork point, and the entries appended through it."""
        _, rows = yield from self._thread_rows(thread_id, _OWN, {"after": Int8(after), "limit": _range(limit)})
        (base, key, *_), entries = _split(rows)
        entries.sort(key=_seq)
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
            segment = yield self._in_tree(_SEGMENT, tree, tip=tip, limit=_range(most))
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
            found = yield self._in_tree(_NAMES, tree, keys=sorted(missing))
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


def _beyond(start: Row, key: int, rows: list[Row], *, newest_first: bool) -> list[Row]:
    """Those of a thread's rows, oldest first, that come before or after one that it sees."""
    if start[1] == key:
        ranks = [row[6] if row[1] == key else 0 for row in rows]
        place = start[6]
    else:
        ranks = list(range(len(rows)))
        place = next(number for number, row in enumerate(rows) if row[0] == start[0])
    return [row for row, rank in zip(rows, ranks, strict=True) if (rank < place if newest_first else rank > place)]
