"""The writer's side of the SQLite store: the view that the rules look through, and how facts become rows.

Delete: which entries go with a thread, and how the ones that stay keep their chain.

The entries of a thread are found along ``entry.previous``. Where a thread goes and a fork still shows some of its
entries, the thread becomes a row of ``departed`` and its chain is closed over the gaps.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence

from sessiontree.model import Checkpoint, Lease, Move
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import encode_record
from sessiontree.stores.commands import Draft
from sessiontree.stores.rules.state import (
    DropBlobs,
    DropThread,
    Fact,
    Manifests,
    Node,
    PutEntry,
    PutHead,
    PutLease,
    PutMove,
    PutPack,
    PutThread,
    ThreadState,
)
from sessiontree.stores.sqlite.rows import (
    NODE_COLUMNS,
    SETTLED_STATE_SELECT,
    STATE_SELECT,
    Row,
    blob_hashes,
    blobs,
    draft_of,
    drop_blobs,
    entry_row,
    is_storable,
    lease_of,
    manifests,
    meta_row,
    missing_blobs,
    move_of,
    put_pack,
    state_of,
)
from sessiontree.stores.sqlite.tail import FIRST_ID_FROM, KEY_OF_ID, LONGEST, is_told_by_tail, settle

__all__ = ["SqliteView", "drop_thread", "own_keys", "unseen_without"]


def own_keys(connection: sqlite3.Connection, owner: int, newest: int) -> list[int]:
    """Keys of the entries that were appended through a thread, newest first; in a damaged file also below a hole."""
    rows = connection.execute(
        "WITH RECURSIVE chain (key, previous) AS ("
        " SELECT key, previous FROM entry WHERE key = ?1 AND owner = ?2"
        " UNION ALL SELECT e.key, e.previous FROM entry e JOIN chain c ON e.key = c.previous"
        " WHERE e.key < c.key AND e.owner = ?2"
        ") SELECT key, previous FROM chain ORDER BY key DESC",
        (newest, owner),
    ).fetchall()
    is_cut_short = bool(rows[-1][1]) if rows else newest > 0
    if is_cut_short:
        rows = connection.execute("SELECT key FROM entry WHERE owner = ? ORDER BY key DESC", (owner,)).fetchall()
    return [row[0] for row in rows]


def unseen_without(connection: sqlite3.Connection, state: ThreadState) -> list[int]:
    """Keys of the entries that nobody sees once the thread is gone."""
    inherited = {
        key
        for (key,) in connection.execute(
            "WITH RECURSIVE inherited (key) AS ("
            " SELECT base FROM thread WHERE tree = ?1 AND key <> ?2 AND base IS NOT NULL"
            " UNION SELECT e.parent FROM entry e JOIN inherited i ON e.key = i.key WHERE e.parent IS NOT NULL"
            ") SELECT key FROM inherited",
            (state.tree, state.key),
        )
    }
    return [
        key
        for owner, newest, _ in _without_owner(connection, state)
        for key in own_keys(connection, owner, newest)
        if key not in inherited
    ]


def drop_thread(connection: sqlite3.Connection, state: ThreadState, entries: Sequence[int]) -> None:
    gone = frozenset(entries)
    for owner, newest, thread_id in _without_owner(connection, state):
        kept = _close_gaps(connection, own_keys(connection, owner, newest), gone)
        connection.execute("DELETE FROM departed WHERE key = ?", (owner,))
        if kept:
            connection.execute("INSERT INTO departed VALUES (?, ?, ?, ?)", (owner, state.tree, kept[0], thread_id))
    places = [(key,) for key in entries]
    connection.executemany("DELETE FROM entry_id WHERE (id, tree) = (SELECT id, tree FROM entry WHERE key = ?)", places)
    connection.executemany("DELETE FROM entry WHERE key = ?", places)
    connection.executemany("DELETE FROM checkpoint WHERE entry = ?", places)
    for table, column in (
        ("thread", "key"), ("thread_meta", "key"), ("thread_tag", "key"), ("move", "thread"), ("lease", "thread"),
    ):  # fmt: skip
        connection.execute(f"DELETE FROM {table} WHERE {column} = ?", (state.key,))


def _without_owner(connection: sqlite3.Connection, state: ThreadState) -> list[tuple[int, int, str]]:
    """The thread that goes and the ones that went before it: key, newest entry, id."""
    departed = connection.execute("SELECT key, newest, id FROM departed WHERE tree = ?", (state.tree,))
    return [(state.key, state.newest, state.meta.id), *departed]


def _close_gaps(connection: sqlite3.Connection, keys: Sequence[int], gone: Collection[int]) -> list[int]:
    kept = [key for key in keys if key not in gone]
    if len(kept) < len(keys):
        links = zip((*kept[1:], 0), kept, strict=True) if kept else ()
        connection.executemany("UPDATE entry SET previous = ?1 WHERE key = ?2 AND previous <> ?1", links)
    return kept


_MOST_CACHED = 20_000


class SqliteView:
    """Valid inside one write transaction. Thread rows are kept between transactions while nobody else writes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._states: dict[str, ThreadState] = {}
        self._leases: dict[int, Lease | None] = {}
        self._dirty: dict[int, ThreadState] = {}
        self._rows: list[Row] = []
        self._data_version = -1
        self._last_entry_key = 0
        self._settled = 0
        self._knows_tail = False
        """Whether the threads of all entries in the tail are in ``_states``: they are when all were put here."""
        self._free_after = ""
        self._free_before: str | None = ""
        self._fresh_thread = 0
        self._empty_trees: set[int] = set()
        self.has_dropped = False
        self.dropped: list[int] = []

    def begin(self) -> None:
        """Start from what is true now; another process may have written since the last transaction."""
        self._fresh_thread = 0
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._data_version or len(self._states) > _MOST_CACHED:
            self.forget()
            self._data_version = version
            self._last_entry_key, self._settled = self._run(
                "SELECT max(entry_key, (SELECT coalesce(max(key), 0) FROM entry)), settled FROM floor"
            ).fetchone()
            self._knows_tail = self._settled == self._last_entry_key

    def forget(self) -> None:
        self._states.clear()
        self._leases.clear()
        self._dirty.clear()
        self._rows.clear()
        self._empty_trees.clear()
        self._free_before = ""
        self._data_version = -1
        self.has_dropped = False
        self.dropped = []

    def flush(self) -> None:
        """Write what was put off: new entries, and each changed head once, however many commands changed it."""
        self._put_rows()
        if self._dirty:
            self._connection.executemany(
                "UPDATE thread SET leaf = ?, updated_ns = ?, fence = ?, moves = ?, newest = ? WHERE key = ?",
                [
                    (state.leaf and state.leaf.key, state.updated_ns, state.fence, state.moves, state.newest, state.key)
                    for state in self._dirty.values()
                ],
            )
            self._dirty.clear()

    def thread(self, thread_id: str) -> ThreadState | None:
        state = self._states.get(thread_id)
        if state is None:
            if not is_storable(thread_id):
                return None
            select = SETTLED_STATE_SELECT if self._knows_tail else STATE_SELECT
            row = self._run(select + "WHERE t.id = ?", (thread_id,)).fetchone()
            if row is None:
                return None
            state = self._states[thread_id] = state_of(row)
        return state

    def find(self, tree: int, entry_id: str) -> Node | None:
        if tree in self._empty_trees or not is_storable(entry_id):
            return None
        row = self._run(f"SELECT {NODE_COLUMNS} FROM entry WHERE key = {KEY_OF_ID}", (entry_id, tree)).fetchone()
        return None if row is None else Node(*row)

    def has_new(self, tree: int, entry_id: str) -> bool:
        """New ids are ordered by time, so one look finds a stretch without ids, and the next ones are within it."""
        before = self._free_before
        if self._free_after < entry_id and (before is None or entry_id < before):
            self._free_after = entry_id
            return False
        first = self._run(f"SELECT {FIRST_ID_FROM}", (entry_id,)).fetchone()[0]
        self._free_after, self._free_before = entry_id, first
        return first == entry_id and self.find(tree, entry_id) is not None

    def draft(self, node: Node) -> Draft:
        parent = self.parent(node)
        before = (parent.messages, parent.tokens) if parent else (0, 0)
        row = self._run("SELECT id, created_ns, turn_id, body FROM entry WHERE key = ?", (node.key,)).fetchone()
        return draft_of((*row, node.messages - before[0], node.tokens - before[1]))

    def parent(self, node: Node) -> Node | None:
        if node.parent is None:
            return None
        row = self._run(f"SELECT {NODE_COLUMNS} FROM entry WHERE key = ?", (node.parent,)).fetchone()
        return None if row is None else Node(*row)

    def is_ancestor(self, node: Node, of: Node) -> bool:
        found = self._run(
            "WITH RECURSIVE up (key) AS ("
            " SELECT ?1 UNION ALL SELECT e.parent FROM entry e JOIN up ON e.key = up.key"
            " WHERE e.parent >= ?2 AND e.parent < e.key"
            ") SELECT 1 FROM up WHERE key = ?2",
            (of.key, node.key),
        )
        return found.fetchone() is not None

    def moves(self, state: ThreadState) -> Sequence[Move]:
        rows = self._run(
            "SELECT number, from_entry, to_entry, reason, at_ns FROM move WHERE thread = ? ORDER BY number",
            (state.key,),
        )
        return [move_of(state.meta.id, row) for row in rows]

    def lease(self, state: ThreadState) -> Lease | None:
        if state.key not in self._leases:
            row = self._run(
                "SELECT token, turn_id, owner, created_ns, expires_ns FROM lease WHERE thread = ?", (state.key,)
            ).fetchone()
            self._leases[state.key] = None if row is None else lease_of(state.meta.id, row)
        return self._leases[state.key]

    def owned(self, state: ThreadState) -> int:
        self._put_rows()
        return len(own_keys(self._connection, state.key, state.newest))

    def tree_of(self, thread_id: str) -> int | None:
        row = self._run(
            "SELECT t.tree FROM thread_meta m JOIN thread t ON t.key = m.key WHERE m.tree_id = ? LIMIT 1", (thread_id,)
        ).fetchone()
        return None if row is None else int(row[0])

    def unseen_without(self, state: ThreadState) -> Sequence[int]:
        self._put_rows()
        return unseen_without(self._connection, state)

    def next_entry_key(self) -> int:
        self._last_entry_key += 1
        return self._last_entry_key

    def next_thread_key(self) -> int:
        row = self._run("SELECT seq FROM sqlite_sequence WHERE name = 'thread'").fetchone()
        self._fresh_thread = 1 if row is None else int(row[0]) + 1
        return self._fresh_thread

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return missing_blobs(self._connection, hashes)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        return blobs(self._connection, hashes)

    def blob_hashes(self) -> Collection[str]:
        return blob_hashes(self._connection)

    def manifests(self, entries: Collection[int]) -> Manifests:
        return manifests(self._connection, entries)

    def apply(self, fact: Fact) -> None:
        match fact:
            case PutEntry():
                self._put_entry(fact)
            case PutHead():
                self._put_head(fact.state)
            case PutThread(state=state):
                self._put_thread(state)
            case PutMove(state=state, move=move):
                self._run(
                    "INSERT INTO move VALUES (?,?,?,?,?,?)",
                    (state.key, move.number, move.from_entry, move.to_entry, move.reason, move.at_ns),
                )
            case PutLease(state=state, lease=lease):
                self._put_lease(state, lease)
            case DropThread(state=state, entries=entries):
                self._drop(state, entries)
            case PutPack(pack=pack):
                put_pack(self._connection, pack)
            case DropBlobs(hashes=hashes):
                drop_blobs(self._connection, hashes)

    def _run(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        if self._rows:
            self._put_rows()
        return self._connection.execute(statement, values)

    def _put_rows(self) -> None:
        """New entries go in together, before the first question that could be about them."""
        rows, self._rows = self._rows, []
        if rows:
            self._connection.executemany("INSERT INTO entry VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)
            last = rows[-1][0]
            if last - self._settled > LONGEST:
                settle(self._connection, last)
                self._settled = last
                self._knows_tail = True

    def _put_entry(self, fact: PutEntry) -> None:
        tree, draft = fact.state.tree, fact.draft
        if self._empty_trees:
            self._empty_trees.discard(tree)
        self._rows.append(entry_row(tree, fact.node, fact.previous, draft))
        if not draft.has_new_id:
            self._end_free_stretch_at(draft.id)
        payload = draft.payload
        if type(payload) is Checkpoint:
            self._run("INSERT INTO checkpoint VALUES (?, ?)", (fact.node.key, payload.manifest))

    def _end_free_stretch_at(self, entry_id: str) -> None:
        before = self._free_before
        if self._free_after < entry_id and (before is None or entry_id < before):
            self._free_before = entry_id

    def _put_head(self, state: ThreadState) -> None:
        before = self._states.get(state.meta.id)
        self._states[state.meta.id] = state
        if state.key in self._dirty or not is_told_by_tail(before, state):
            self._dirty[state.key] = state

    def _put_thread(self, state: ThreadState) -> None:
        body = encode_record(state.meta, f"thread {state.meta.id!r}")
        head = (state.leaf.key if state.leaf else None, state.base.key if state.base else None)
        self._dirty.pop(state.key, None)
        if state.key == state.tree == self._fresh_thread:
            # Nothing can be in a tree that starts here, so a long first append need not look for its ids.
            self._empty_trees.add(state.tree)
        self._fresh_thread = 0
        self._run(
            "INSERT INTO thread VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (key) DO UPDATE SET leaf = excluded.leaf,"
            " updated_ns = excluded.updated_ns, fence = excluded.fence, moves = excluded.moves,"
            " newest = excluded.newest, is_archived = excluded.is_archived",
            (
                state.key, state.meta.id, state.tree, *head,
                state.updated_ns, state.fence, state.moves, state.newest, state.meta.is_archived,
            ),
        )  # fmt: skip
        self._run(f"INSERT OR REPLACE INTO thread_meta VALUES ({','.join('?' * 16)})", meta_row(state, body))
        self._run("DELETE FROM thread_tag WHERE key = ?", (state.key,))
        for tag in set(state.meta.tags):
            self._run("INSERT INTO thread_tag VALUES (?, ?)", (tag, state.key))
        self._states[state.meta.id] = state

    def _put_lease(self, state: ThreadState, lease: Lease | None) -> None:
        self._leases[state.key] = lease
        if lease is None:
            self._run("DELETE FROM lease WHERE thread = ?", (state.key,))
            return
        self._run(
            "INSERT OR REPLACE INTO lease VALUES (?,?,?,?,?,?)",
            (state.key, lease.token, lease.turn_id, lease.owner, lease.created_ns, lease.expires_ns),
        )

    def _drop(self, state: ThreadState, entries: Sequence[int]) -> None:
        self.dropped += entries
        self.has_dropped = True
        self._states.pop(state.meta.id, None)
        self._leases.pop(state.key, None)
        self._dirty.pop(state.key, None)
        self._put_rows()
        drop_thread(self._connection, state, entries)
        # Keys are never used again, so that a follower's cursor stays right after a delete.
        self._run("UPDATE floor SET entry_key = ?, drops = drops + 1", (self._last_entry_key,))
