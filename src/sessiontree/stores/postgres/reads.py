"""The reads of the store as statements, most of them one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from sessiontree.model import Entry, Lease, Move, NextMove, Page, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import EntryBody, has_type
from sessiontree.model.documents import StoredDocument
from sessiontree.model.ids import IdSource
from sessiontree.model.thread import Direction
from sessiontree.search import SearchPage
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.document_queries import ListDocuments, ListScopes, ReadDocument
from sessiontree.stores.listing import matching_ids
from sessiontree.stores.postgres.blobs import blobs_of, find_blobs, hashes_of, in_order, read_blobs
from sessiontree.stores.postgres.doctor import inspect
from sessiontree.stores.postgres.documents import list_documents, list_scopes, read_document
from sessiontree.stores.postgres.entry_selection import select_entries
from sessiontree.stores.postgres.known import KnownThreads
from sessiontree.stores.postgres.leases import READ_CLOCK
from sessiontree.stores.postgres.listing import list_threads
from sessiontree.stores.postgres.rows import (
    ENTRY_COLUMNS,
    HEAD_FROM,
    NODE_COLUMNS,
    STATE_COLUMNS,
    entries_of,
    head_of,
    json_row,
    logged_of,
    move_of,
    node_of,
)
from sessiontree.stores.postgres.search import find_thread_ids, search_entries
from sessiontree.stores.postgres.steps import Row, Statement, Steps, TreeLookup, to_bytes, to_text
from sessiontree.stores.postgres.tree_rows import OF_THREAD, TreeRows, first_batch
from sessiontree.stores.postgres.view import MOVES, SnapshotView, run_rule
from sessiontree.stores.queries import Finding, NewEntries, ReadEntries, ReadPath, Search, StoreStats
from sessiontree.stores.rules.leaf import next_move

__all__ = ["StepReads"]


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
WHERE {OF_THREAD}"""
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
        self._rows = TreeRows(lookup, known)

    def thread(self, thread_id: str) -> Steps[Thread]:
        head = yield from self._rows.head(thread_id)
        return head.state.public()

    def threads(self, query: ThreadQuery) -> Steps[Page]:
        page, trees = yield from list_threads(self._lookup.namespace, query)
        for thread_id, tree in trees.items():
            self._lookup.remember(thread_id, tree)
        return page

    def entry(self, thread_id: str, entry_id: str) -> Steps[Entry]:
        tree, row = yield from self._rows.visible(thread_id, entry_id)
        return (yield from self._rows.to_entries(tree, [row], thread_id, row[1]))[0]

    def entries(self, query: ReadEntries) -> Steps[list[Entry]]:
        key, rows = yield from select_entries(self._rows, query)
        tree = yield from self._lookup.find(query.thread_id)
        return (yield from self._rows.to_entries(tree, rows, query.thread_id, key))

    def entries_by_id(self, entry_ids: tuple[str, ...], thread_id: str | None) -> Steps[list[Entry]]:
        if thread_id is None:
            return (yield from self._entries_anywhere(entry_ids))
        head = yield from self._rows.head(thread_id)
        rows = yield self._rows.in_tree(_IN_TREE, head.tree, ids=[to_bytes(entry_id) for entry_id in entry_ids])
        seen = {row[0]: row for row in (yield from self._rows.seen(head, rows))}
        chosen = [seen[name] for entry_id in entry_ids if (name := to_bytes(entry_id)) in seen]
        return (yield from self._rows.to_entries(head.tree, chosen, thread_id, head.state.key))

    def last_entries(self, thread_ids: tuple[str, ...]) -> Steps[dict[str, Entry]]:
        ids = [to_bytes(thread_id) for thread_id in thread_ids]
        rows = yield Statement(_LAST, {"ids": ids, "namespace": self._lookup.namespace})
        entries = entries_of((row[2:] for row in rows), {row[3]: to_text(row[1]) for row in rows})
        last = {to_text(row[0]): entry for row, entry in zip(rows, entries, strict=True)}
        return {thread_id: last[thread_id] for thread_id in thread_ids if thread_id in last}

    def path(self, query: ReadPath) -> Steps[list[Entry]]:
        tree, key, rows = yield from self._path_rows(query)
        return (yield from self._rows.to_entries(tree, rows, query.thread_id, key)) if rows else []

    def path_bodies(self, query: ReadPath) -> Steps[list[EntryBody]]:
        _, _, rows = yield from self._path_rows(query)
        return [EntryBody(id=to_text(row[0]), body=row[5]) for row in rows]

    def _path_rows(self, query: ReadPath) -> Steps[tuple[UUID, int | None, list[Row]]]:
        """The tree of a thread, its key if it was read, and the rows of a path, root first."""
        thread_id, limit = query.thread_id, query.limit
        size = first_batch(limit)
        first = limit if query.types is None else size
        match query.leaf:
            case None:
                return (yield from self._rows.head(thread_id)).tree, None, []
            case str():
                tree, _ = yield from self._rows.visible(thread_id, query.leaf)
                key = None
                rows = yield from self._rows.walk(tree, to_bytes(query.leaf), first)
            case _:
                tree, key, rows = yield from self._rows.path_of_leaf(thread_id, first)
        if query.types is not None:
            is_wanted = has_type(query.types)
            rows = yield from self._rows.walk_for(tree, rows, size, limit, lambda row: is_wanted(row[5]))
        rows.reverse()
        return tree, key, rows

    def children(self, thread_id: str, entry_id: str | None) -> Steps[list[Entry]]:
        if entry_id is not None:
            yield from self._rows.visible(thread_id, entry_id)
        head = yield from self._rows.head(thread_id)
        if entry_id is None:
            rows = yield self._rows.in_tree(_ROOTS, head.tree)
        else:
            rows = yield self._rows.in_tree(_CHILDREN, head.tree, parent=to_bytes(entry_id))
        seen = yield from self._rows.seen(head, sorted(rows, key=lambda row: (row[1] == head.state.key, row[6])))
        return (yield from self._rows.to_entries(head.tree, seen, thread_id, head.state.key))

    def moves(self, thread_id: str) -> Steps[list[Move]]:
        head = yield from self._rows.head(thread_id)
        rows = yield self._rows.in_tree(MOVES, head.tree, key=head.state.key)
        return [move_of(thread_id, row) for row in rows]

    def next_move(self, thread_id: str, direction: Direction) -> Steps[NextMove]:
        _, ((*row, moves, entries),) = yield from self._rows.of_thread(thread_id, _HEAD_AND_MOVES, {})
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
        return (yield from self._rows.head(thread_id)).lease

    def clock(self, now_ns: int) -> Steps[int]:
        ((now,),) = yield READ_CLOCK
        return int(now)

    def new_entries(self, thread_id: str, cursor: int | None) -> Steps[NewEntries]:
        if cursor is None:
            head = yield from self._rows.head(thread_id)
            return NewEntries(entries=(), cursor=head.seq)
        _, key, _, rows = yield from self._rows.own(thread_id, cursor)
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

    def _entries_anywhere(self, entry_ids: tuple[str, ...]) -> Steps[list[Entry]]:
        ids = [to_bytes(entry_id) for entry_id in entry_ids]
        rows = yield Statement(_ANYWHERE, {"ids": ids, "namespace": self._lookup.namespace})
        by_id: dict[str, list[Entry]] = {}
        for row in rows:
            (entry,) = entries_of([row[1:]], {row[2]: to_text(row[0])})
            by_id.setdefault(entry.id, []).append(entry)
        return [entry for entry_id in entry_ids for entry in by_id.get(entry_id, ())]
