"""The reader's side of the SQLite store: queries on snapshots, on connections that never write."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from operator import itemgetter

import msgspec

from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.model import Entry, Lease, Move, NextMove
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import EntryBody, decode_stored_payload, has_type, stored_type
from sessiontree.model.documents import StoredDocument
from sessiontree.model.sanitize import is_unicode
from sessiontree.model.thread import Direction
from sessiontree.stores.document_queries import ListDocuments, ListScopes, ReadDocument
from sessiontree.stores.queries import NewEntries, ReadEntries, ReadPath, StoreStats
from sessiontree.stores.rules.append import visible
from sessiontree.stores.rules.leaf import next_move
from sessiontree.stores.rules.state import Node, ThreadState
from sessiontree.stores.sqlite.chains import own_keys
from sessiontree.stores.sqlite.rows import DOCUMENT_SELECT, ENTRY_COLUMNS, Row, chain_of, document_of
from sessiontree.stores.sqlite.schema import IS_BRANCH, IS_RARE
from sessiontree.stores.sqlite.view import SqliteView

__all__ = ["ReadSnapshot", "read_transaction"]


_key = itemgetter(0)
_SMALLEST_BATCH = 8
_FIRST_BATCH = 64
_LARGEST_BATCH = 16_384
_NEAR = 16
"""How many keys are looked through for each entry of a page."""
_NEAR_KEYS = 256
"""How many keys are looked through for the next entry of a thread before its links are followed."""
_LAST = "\U0010ffff"

_CHAIN_COLUMNS = ", ".join(f"e.{name}" for name in ENTRY_COLUMNS.split(", "))
_BODY_COLUMNS = "e.key, e.id, e.body, e.parent"
_PARENT = 3
"""The parent's place in both."""


@contextmanager
def read_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Read from one snapshot of the database, whatever is written meanwhile."""
    try:
        connection.execute("BEGIN")
        yield
    finally:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


class ReadSnapshot:
    """Answers queries inside one read transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._run = connection.execute
        self._view = SqliteView(connection)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        return self._view.blobs(hashes)

    def state(self, thread_id: str) -> ThreadState:
        """Return a thread's state; raise ThreadNotFoundError if there is none."""
        state = self._view.thread(thread_id)
        if state is None:
            raise ThreadNotFoundError(thread_id)
        return state

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        return self.entry_at(self._visible(thread_id, entry_id).key)

    def entry_at(self, key: int) -> Entry:
        """Return the entry with a key, which must exist."""
        row = self._run(f"SELECT {ENTRY_COLUMNS} FROM entry WHERE key = ?", (key,)).fetchone()
        return self._entries([row])[0]

    def entries(self, query: ReadEntries) -> list[Entry]:
        state = self.state(query.thread_id)
        start = None if query.after is None else self._visible(query.thread_id, query.after).key
        rows: Iterable[Row]
        if query.rare_types:
            rows = self._rare(state, query, start)
        elif query.newest_first:
            rows = (row for row in self._backwards(state) if start is None or row[0] < start)
        else:
            rows = self._forwards(state, start or 0, None if query.is_filtered else query.limit)
        if query.is_filtered:
            rows = (row for row in rows if query.wants(stored_type(row[6]), row[5]))
        return self._entries(islice(rows, query.limit))

    def entries_by_id(self, entry_ids: Sequence[str], thread_id: str | None) -> list[Entry]:
        state = None if thread_id is None else self.state(thread_id)
        rows: list[Row] = []
        for entry_id in filter(is_unicode, entry_ids):
            if state is None:
                rows += self._run(f"SELECT {ENTRY_COLUMNS} FROM entry WHERE id = ? ORDER BY tree", (entry_id,))
            elif (node := visible(self._view, state, entry_id)) is not None:
                rows += self._run(f"SELECT {ENTRY_COLUMNS} FROM entry WHERE key = ?", (node.key,))
        return self._entries(rows)

    def last_entries(self, thread_ids: Sequence[str]) -> dict[str, Entry]:
        found: list[tuple[str, Row]] = []
        for thread_id in filter(is_unicode, thread_ids):
            rows = self._run(
                f"SELECT {_CHAIN_COLUMNS} FROM thread t JOIN entry e ON e.key = t.leaf WHERE t.id = ?", (thread_id,)
            )
            found += [(thread_id, row) for row in rows]
        entries = self._entries(row for _, row in found)
        return {thread_id: entry for (thread_id, _), entry in zip(found, entries, strict=True)}

    def path(self, query: ReadPath) -> list[Entry]:
        tip = self._tip(query)
        if tip is None or query.limit == 0:
            return []
        if query.types is not None:
            is_wanted = has_type(query.types)
            chosen = self._path_back(tip, query.limit, lambda row: is_wanted(row[6]))
            return self._entries(islice(chosen, query.limit))[::-1]
        rows = self._walk(tip.key, query.limit)
        rows.reverse()
        oldest = rows[0][3]
        return chain_of(rows, self._names(rows), None if oldest is None else self._id_of(oldest))

    def path_bodies(self, query: ReadPath) -> list[EntryBody]:
        tip = self._tip(query)
        if tip is None or query.limit == 0:
            return []
        rows: Iterable[Row]
        if query.types is None:
            rows = self._walk(tip.key, query.limit, columns=_BODY_COLUMNS)
        else:
            is_wanted = has_type(query.types)
            rows = self._path_back(tip, query.limit, lambda row: is_wanted(row[2]), columns=_BODY_COLUMNS)
        return [EntryBody(id=entry_id, body=body) for _, entry_id, body, _ in islice(rows, query.limit)][::-1]

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        state = self.state(thread_id)
        parent = None if entry_id is None else self._visible(thread_id, entry_id)
        rows = self._run(
            f"SELECT {ENTRY_COLUMNS} FROM entry WHERE parent IS ? AND tree = ? AND {IS_BRANCH}",
            (parent and parent.key, state.tree),
        ).fetchall()
        if parent is not None:
            rows += self._continuation(parent)
        return self._entries([row for row in sorted(rows, key=_key) if self._is_seen(state, row)])

    def moves(self, thread_id: str) -> list[Move]:
        return list(self._view.moves(self.state(thread_id)))

    def next_move(self, thread_id: str, direction: Direction) -> NextMove:
        return next_move(self._view, self.state(thread_id), direction)

    def lease(self, thread_id: str) -> Lease | None:
        return self._view.lease(self.state(thread_id))

    def clock(self, now_ns: int) -> int:
        return now_ns

    def new_entries(self, thread_id: str, cursor: int | None) -> NewEntries:
        state = self.state(thread_id)
        if cursor is None:
            return NewEntries(entries=(), cursor=state.newest)
        return NewEntries(entries=tuple(self._entries(self._own(state, cursor))), cursor=max(state.newest, cursor))

    def document(self, query: ReadDocument) -> StoredDocument | None:
        found = self._view.document(query.scope, query.key)
        return None if found is None or found.is_expired(query.now_ns) else found

    def scopes(self, query: ListScopes) -> list[str]:
        rows = self._run(
            "SELECT DISTINCT scope FROM json_document WHERE scope > ?1 AND (expires_ns IS NULL OR expires_ns > ?2)"
            " ORDER BY scope LIMIT ?3",
            (query.after or "", query.now_ns, -1 if query.limit is None else query.limit),
        )
        return [scope for (scope,) in rows]

    def documents(self, query: ListDocuments) -> list[StoredDocument]:
        rows = self._run(
            f"{DOCUMENT_SELECT} WHERE scope = ?1 AND key > ?2 AND substr(key, 1, ?3) = ?4"
            " AND (expires_ns IS NULL OR expires_ns > ?5) ORDER BY key LIMIT ?6",
            (
                query.scope, query.after or "", len(query.prefix), query.prefix, query.now_ns,
                -1 if query.limit is None else query.limit,
            ),
        )  # fmt: skip
        return [document_of(row) for row in rows]

    def stats(self) -> StoreStats:
        counts = self._run(
            "SELECT (SELECT count(*) FROM thread), (SELECT count(*) FROM thread WHERE is_archived),"
            " (SELECT count(*) FROM entry), (SELECT count(*) FROM move), (SELECT count(*) FROM lease),"
            " ((SELECT page_count FROM pragma_page_count()) - (SELECT freelist_count FROM pragma_freelist_count()))"
            " * (SELECT page_size FROM pragma_page_size())"
        ).fetchone()
        threads, archived, entries, moves, leases, size = counts
        return StoreStats(threads=threads, archived=archived, entries=entries, moves=moves, leases=leases, bytes=size)

    def thread_sizes(self) -> dict[str, int]:
        """Return how many bytes the entries take that were appended through each thread."""
        rows = self._run(
            "SELECT t.id, sum(length(e.body)) FROM entry e JOIN thread t ON t.key = e.owner GROUP BY e.owner"
        )
        return dict(rows.fetchall())

    def path_keys(self, thread_id: str) -> tuple[int, ...]:
        """Return the keys of the entries from the leaf to the root."""
        leaf = self.state(thread_id).leaf
        return self._keys_up(leaf)

    def inherited_keys(self, thread_id: str) -> tuple[int, ...]:
        """Return the keys of the entries from the fork point to the root; () if the thread is not a fork."""
        return self._keys_up(self.state(thread_id).base)

    def sees(self, thread_id: str, entry_id: str) -> bool:
        """Return whether a thread shows an entry."""
        return visible(self._view, self.state(thread_id), entry_id) is not None

    def thread_ids(self, part: str, limit: int) -> list[str]:
        if not part:
            return [name for (name,) in self._run("SELECT id FROM thread ORDER BY id LIMIT ?", (limit,))]
        if self._view.thread(part) is not None:
            return [part]
        rows = self._run(
            "SELECT id FROM thread WHERE id >= ?1 AND id < ?2"
            " UNION SELECT id FROM thread WHERE substr(id, -length(?1)) = ?1 ORDER BY id LIMIT ?3",
            (part, part + _LAST, limit),
        )
        return [name for (name,) in rows]

    def entry_ids(self, thread_id: str, part: str, limit: int) -> list[str]:
        state = self.state(thread_id)
        if visible(self._view, state, part) is not None:
            return [part]
        inherited = self._keys_up(state.base)
        keys = [*own_keys(self._connection, state.key, state.newest), *inherited]
        rows = self._run(
            "SELECT e.id FROM json_each(?1) k JOIN entry e ON e.key = k.value"
            " WHERE substr(e.id, 1, length(?2)) = ?2 OR substr(e.id, -length(?2)) = ?2 ORDER BY e.id LIMIT ?3",
            (msgspec.json.encode(keys).decode(), part, limit),
        )
        return [name for (name,) in rows]

    def _keys_up(self, tip: Node | None) -> tuple[int, ...]:
        if tip is None:
            return ()
        rows = self._run(
            "WITH RECURSIVE chain (key) AS ("
            " SELECT ? UNION ALL SELECT e.parent FROM entry e JOIN chain c ON e.key = c.key WHERE e.parent IS NOT NULL"
            ") SELECT key FROM chain",
            (tip.key,),
        )
        return tuple(key for (key,) in rows)

    def _tip(self, query: ReadPath) -> Node | None:
        """Return the node that a path ends with."""
        state = self.state(query.thread_id)
        match query.leaf:
            case None:
                return None
            case str():
                return self._visible(query.thread_id, query.leaf)
            case _:
                return state.leaf

    def _visible(self, thread_id: str, entry_id: str) -> Node:
        node = visible(self._view, self.state(thread_id), entry_id)
        if node is None:
            raise EntryNotFoundError(thread_id, entry_id)
        return node

    def _is_seen(self, state: ThreadState, row: Row) -> bool:
        _, entry_id, owner, *_ = row
        return bool(owner == state.key) or visible(self._view, state, entry_id) is not None

    def _continuation(self, node: Node) -> list[Row]:
        """Return the child that was appended next through the same thread, if there is one: it is not in the index."""
        found = self._run(
            "SELECT newest FROM thread WHERE key = ?1 UNION ALL SELECT newest FROM deleted_thread WHERE key = ?1",
            (node.owner,),
        ).fetchone()
        if found is None or found[0] <= node.key:
            return []
        row = f"SELECT {ENTRY_COLUMNS} FROM entry WHERE parent = ?1 AND previous = ?1"
        near = self._run(f"{row} AND key > ?1 AND key <= ?1 + ?2 LIMIT 1", (node.key, _NEAR_KEYS)).fetchall()
        if near or found[0] <= node.key + _NEAR_KEYS:
            return near
        after = self._chain("previous", found[0], node.key, columns="e.key")
        return self._run(f"{row} AND key = ?2", (node.key, after[-1][0] if after else 0)).fetchall()

    def _rare(self, state: ThreadState, query: ReadEntries, start: int | None) -> list[Row]:
        """Return the rows of rare types that a thread shows after ``start``, in the order of the query."""
        marks = query.rare_marks
        bound = "" if start is None else f" AND key {'<' if query.newest_first else '>'} {start:d}"
        rows = self._run(
            f"SELECT {ENTRY_COLUMNS} FROM entry INDEXED BY entry_rare WHERE owner = ? AND {IS_RARE}"
            f" AND substr(body, 10, 5) IN ({', '.join('?' * len(marks))}){bound}"
            f" ORDER BY key {'DESC' if query.newest_first else 'ASC'} LIMIT ?",
            (state.key, *marks, -1 if query.rare_limit is None else query.rare_limit),
        ).fetchall()
        if state.base is None:
            return rows
        inherited = self._rare_inherited(state, state.base)
        if start is not None:
            inherited = [row for row in inherited if (row[0] < start) == query.newest_first and row[0] != start]
        return sorted([*rows, *inherited], key=_key, reverse=query.newest_first)

    def _rare_inherited(self, state: ThreadState, base: Node) -> list[Row]:
        rows = self._run(
            f"SELECT {ENTRY_COLUMNS} FROM entry INDEXED BY entry_rare WHERE owner IN"
            " (SELECT key FROM thread WHERE tree = ?1 UNION SELECT key FROM deleted_thread WHERE tree = ?1)"
            f" AND owner <> ?2 AND {IS_RARE}",
            (state.tree, state.key),
        ).fetchall()
        inherited = frozenset(self._keys_up(base)) if rows else frozenset()
        return [row for row in rows if row[0] in inherited]

    def _backwards(self, state: ThreadState) -> Iterator[Row]:
        """Yield the rows that a thread shows, newest first, read in growing batches."""
        last = state.newest + 1
        for row in self._links_back("previous", state.newest):
            last = row[0]
            yield row
        yield from self._run(
            f"SELECT {ENTRY_COLUMNS} FROM entry WHERE owner = ?1 AND key < ?2 AND"
            " EXISTS (SELECT 1 FROM entry WHERE key = ?2 AND previous > 0) ORDER BY key DESC",
            (state.key, last),
        )
        if state.base is not None:
            yield from self._links_back("parent", state.base.key)

    def _links_back(self, link: str, key: int) -> Iterator[Row]:
        """Yield the rows from a key back along a link, read in growing batches."""
        size = _FIRST_BATCH
        following: int | None = key
        while following:
            rows = self._chain(link, following, 0, size)
            yield from rows
            if len(rows) < size:
                return
            (following,) = self._run(f"SELECT {link} FROM entry WHERE key = ?", (rows[-1][0],)).fetchone()
            size = min(2 * size, _LARGEST_BATCH)

    def _path_back(
        self, tip: Node, limit: int | None, is_wanted: Callable[[Row], bool], *, columns: str = _CHAIN_COLUMNS
    ) -> Iterator[Row]:
        """Yield the rows from an entry to its root that are wanted, for ``limit`` of them, read in growing batches."""
        size = _LARGEST_BATCH if limit is None else min(max(limit, _SMALLEST_BATCH), _LARGEST_BATCH)
        following: int | None = tip.key
        while following:
            rows = self._walk(following, size, columns=columns)
            yield from filter(is_wanted, rows)
            following = _above(rows[-1]) if len(rows) == size else None
            size = min(2 * size, _LARGEST_BATCH)

    def _walk(self, key: int, limit: int | None = None, *, columns: str = _CHAIN_COLUMNS) -> list[Row]:
        """Return the rows from an entry to its root, or ``limit`` of them, newest first."""
        rows: list[Row] = []
        following: int | None = key
        # One writer leaves entries side by side. Rows are read in half the time that following their links takes.
        for row in self._run(
            f"SELECT {columns} FROM entry e WHERE e.key <= ? ORDER BY e.key DESC LIMIT ?",
            (key, -1 if limit is None else limit),
        ):
            if row[0] != following:
                break
            rows.append(row)
            following = _above(row)
        if following is None or len(rows) == limit:
            return rows
        rest = None if limit is None else limit - len(rows)
        return rows + self._chain("parent", following, 0, rest, columns=columns)

    def _forwards(self, state: ThreadState, start: int, limit: int | None) -> list[Row]:
        """Return the rows that a thread sees after the key ``start``, oldest first: ``limit`` of them or more, if there are."""
        if state.base is not None and state.base.key > start:
            inherited = self._walk(state.base.key)
            return [*(row for row in reversed(inherited) if row[0] > start), *self._own(state, start)]
        if limit is not None:
            # The chain leads back from the newest entry. The next page is usually near its start, where it costs less.
            near = self._run(
                f"SELECT {ENTRY_COLUMNS} FROM entry WHERE owner = ? AND key > ? AND key <= ? ORDER BY key LIMIT ?",
                (state.key, start, start + _NEAR * limit, limit),
            ).fetchall()
            if len(near) == limit:
                return near
        return self._own(state, start)

    def _own(self, state: ThreadState, start: int) -> list[Row]:
        """Return the rows appended through a thread after the key ``start``, oldest first."""
        rows = self._chain("previous", state.newest, start)
        if self._has_gap(rows, state, start):
            rows = self._run(
                f"SELECT {ENTRY_COLUMNS} FROM entry WHERE owner = ? AND key > ? ORDER BY key DESC",
                (state.key, start),
            ).fetchall()
        rows.reverse()
        return rows

    def _has_gap(self, rows: list[Row], state: ThreadState, start: int) -> bool:
        """Return whether the chain has a gap: in a damaged file the entries below it must still be shown."""
        if not rows:
            return state.newest > start
        found = self._run("SELECT previous FROM entry WHERE key = ?", (rows[-1][0],)).fetchone()
        return bool(found[0] > start)

    def _chain(
        self, link: str, key: int, stop: int, limit: int | None = None, *, columns: str = _CHAIN_COLUMNS
    ) -> list[Row]:
        """Return the rows from a key back along a link, down to but not including the key ``stop``; their key is first."""
        chosen = self._run(
            f"WITH RECURSIVE chain (key) AS ("
            f" SELECT ?1 WHERE ?1 > ?2"
            f" UNION ALL SELECT e.{link} FROM entry e JOIN chain c ON e.key = c.key"
            f" WHERE e.{link} > ?2 AND e.{link} < e.key LIMIT ?3"
            f") SELECT {columns} FROM chain c CROSS JOIN entry e ON e.key = c.key",
            (key, stop, -1 if limit is None else limit),
        )
        # Links lead to smaller keys, so this is the order of the chain. SQLite returns it already, but does not
        # guarantee it. In a damaged file the chain ends at a link that leads to a larger key.
        return sorted(chosen, key=_key, reverse=True)

    def _entries(self, rows: Iterable[Row]) -> list[Entry]:
        rows = list(rows)
        names = self._names(rows)
        ids = {row[0]: row[1] for row in rows}
        return [
            Entry(
                id=entry_id,
                thread_id=names[owner],
                parent=None if parent is None else ids.get(parent) or self._id_of(parent),
                created_ns=created_ns,
                turn_id=turn_id,
                payload=decode_stored_payload(body),
            )
            for _, entry_id, owner, parent, created_ns, turn_id, body in rows
        ]

    def _id_of(self, key: int) -> str | None:
        row = self._run("SELECT id FROM entry WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def _names(self, rows: Iterable[Row]) -> dict[int, str]:
        owners = {row[2] for row in rows}
        found = dict.fromkeys(owners, "")  # in a damaged file a name can be missing; the entries must still be shown
        for owner in owners:
            found.update(
                self._run(
                    "SELECT key, id FROM thread WHERE key = ?1 UNION SELECT key, id FROM deleted_thread WHERE key = ?1",
                    (owner,),
                )
            )
        return found


def _above(row: Row) -> int | None:
    """The key of the parent. In a damaged file a path ends at a link that leads to a larger key."""
    parent: int | None = row[_PARENT]
    return None if parent is None or parent >= row[0] else parent
