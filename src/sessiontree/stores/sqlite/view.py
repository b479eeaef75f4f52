"""The writer's side of the SQLite store: what the rules read inside a transaction, and how facts become rows."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec.structs import astuple

from sessiontree.model import Checkpoint, Lease, Move
from sessiontree.model.blobs import Blob
from sessiontree.model.codec import encode_record
from sessiontree.model.documents import StoredDocument
from sessiontree.model.sanitize import is_unicode
from sessiontree.stores.commands import Draft
from sessiontree.stores.rules.append import visible
from sessiontree.stores.rules.state import (
    ERASED_BODY,
    BlobRoots,
    DropBlobs,
    DropDocument,
    DropExpiredDocuments,
    DropThread,
    Fact,
    LoggedMove,
    Node,
    PutDocument,
    PutEntry,
    PutErased,
    PutHead,
    PutLease,
    PutMove,
    PutPack,
    PutPending,
    PutThread,
    ThreadState,
    Tops,
)
from sessiontree.stores.sqlite.chains import drop_thread, inherited_keys, own_keys, unseen_without
from sessiontree.stores.sqlite.rows import (
    DOCUMENT_SELECT,
    META_COLUMNS,
    NODE_COLUMNS,
    STATE_SELECT,
    Row,
    blob_hashes,
    blob_roots,
    blobs,
    document_of,
    draft_of,
    drop_blobs,
    entry_row,
    lease_of,
    meta_row,
    missing_blobs,
    move_of,
    put_artifacts,
    put_pack,
    put_pending,
    state_of,
)

__all__ = ["SqliteView"]


_MOST_CACHED = 20_000


class _SavePoint(NamedTuple):
    """What was deleted in the transaction before a save point."""

    deleted_keys: list[int]
    deletions: int
    freed_bytes: int


class SqliteView:
    """What the rules may ask. Valid inside one transaction.

    Thread rows and leases are cached between transactions until another connection writes.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._states: dict[str, ThreadState] = {}
        self._leases: dict[int, Lease | None] = {}
        self._dirty: dict[int, ThreadState] = {}
        self._rows: list[Row] = []
        self._data_version = -1
        self._last_entry_key = 0
        self._checks_new_ids = False
        self._deleted_keys: list[int] = []
        self._deletions = 0
        self._freed_bytes = 0

    @property
    def has_deleted(self) -> bool:
        """Whether the transaction deleted something."""
        return self._deletions > 0

    def take_deleted(self) -> tuple[list[int], int, int]:
        """Return and forget the keys of deleted entries, the number of deletions, and the bytes they freed."""
        deleted = self._deleted_keys, self._deletions, self._freed_bytes
        self._forget_deleted()
        return deleted

    def _forget_deleted(self) -> None:
        self._deleted_keys, self._deletions, self._freed_bytes = [], 0, 0

    def begin(self, *, check_new_ids: bool = False) -> None:
        """Start a write transaction; another process may have written since the last one."""
        self._checks_new_ids = check_new_ids
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        if version != self._data_version or len(self._states) > _MOST_CACHED:
            self.reset()
            self._data_version = version
            self._last_entry_key = self._run(
                "SELECT max(last_entry_key, (SELECT coalesce(max(key), 0) FROM entry)) FROM store_meta"
            ).fetchone()[0]

    def reset(self) -> None:
        """Discard what is cached and not written yet."""
        self._states.clear()
        self._leases.clear()
        self._dirty.clear()
        self._rows.clear()
        self._data_version = -1
        self._forget_deleted()

    def flush(self) -> None:
        """Write the pending entries, and each changed thread row once, however many commands changed it."""
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

    def save_point(self) -> _SavePoint:
        """Begin what ``roll_back`` takes back and ``release`` keeps, within the transaction."""
        self.flush()
        self._connection.execute("SAVEPOINT together")
        return _SavePoint([*self._deleted_keys], self._deletions, self._freed_bytes)

    def release(self) -> None:
        """Keep what was written since ``save_point``."""
        self.flush()
        self._connection.execute("RELEASE together")

    def roll_back(self, to: _SavePoint) -> None:
        """Take back what was written since ``save_point``."""
        self._rows.clear()
        self._connection.execute("ROLLBACK TO together")
        self._connection.execute("RELEASE together")
        version = self._data_version
        self.reset()
        self._data_version = version
        self._deleted_keys, self._deletions, self._freed_bytes = to

    def thread(self, thread_id: str) -> ThreadState | None:
        state = self._states.get(thread_id)
        if state is None:
            if not is_unicode(thread_id):
                return None
            row = self._run(STATE_SELECT + "WHERE t.id = ?", (thread_id,)).fetchone()
            if row is None:
                return None
            state = self._states[thread_id] = state_of(row)
        return state

    def find(self, tree: int, entry_id: str) -> Node | None:
        if not is_unicode(entry_id):
            return None
        row = self._run(f"SELECT {NODE_COLUMNS} FROM entry WHERE id = ? AND tree = ?", (entry_id, tree)).fetchone()
        return None if row is None else Node(*row)

    def has_new(self, tree: int, entry_id: str) -> bool:
        """Look only after the unique index refused an id of the group: a lookup for every append would be felt."""
        return self._checks_new_ids and self.find(tree, entry_id) is not None

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

    def logged(self, state: ThreadState, number: int) -> LoggedMove:
        row = self._run(
            "SELECT number, from_entry, to_entry, reason, at_ns, undo, redo, redo_below FROM move"
            " WHERE thread = ? AND number = ?",
            (state.key, number),
        ).fetchone()
        if row is None:
            raise IndexError(number)
        return LoggedMove(move_of(state.meta.id, row[:5]), None if row[5] is None else Tops(*row[5:]))

    def family(self, state: ThreadState) -> Sequence[ThreadState]:
        rows = self._run("SELECT id FROM thread WHERE tree = ? AND key <> ?", (state.tree, state.key)).fetchall()
        found = [self.thread(name) for (name,) in rows]
        return [other for other in found if other is not None]

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

    def seen_only_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        self._put_rows()
        inherited = inherited_keys(self._connection, state)
        found = (self.find(state.tree, entry_id) for entry_id in dict.fromkeys(entry_ids))
        return [node for node in found if node and node.owner == state.key and node.key not in inherited]

    def seen_by(self, state: ThreadState, entry_ids: Collection[str]) -> Sequence[Node]:
        found = (visible(self, state, entry_id) for entry_id in entry_ids)
        return [node for node in found if node is not None]

    def next_entry_key(self) -> int:
        self._last_entry_key += 1
        return self._last_entry_key

    def next_thread_key(self) -> int:
        row = self._run("SELECT seq FROM sqlite_sequence WHERE name = 'thread'").fetchone()
        return 1 if row is None else int(row[0]) + 1

    def document(self, scope: str, key: str) -> StoredDocument | None:
        row = self._run(f"{DOCUMENT_SELECT} WHERE scope = ? AND key = ?", (scope, key)).fetchone()
        return None if row is None else document_of(row)

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return missing_blobs(self._connection, hashes)

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        return blobs(self._connection, hashes)

    def blob_hashes(self) -> Collection[str]:
        return blob_hashes(self._connection)

    def blob_roots(self, entries: Collection[int]) -> tuple[BlobRoots, BlobRoots]:
        self._put_rows()
        return blob_roots(self._connection, entries)

    def apply(self, fact: Fact) -> None:
        """Write one fact. Entries and thread rows stay pending until ``flush`` or a query needs them."""
        match fact:
            case PutEntry():
                self._put_entry(fact)
            case PutHead():
                self._put_head(fact.state)
            case PutThread(state=state):
                self._put_thread(state)
            case PutMove(state=state, move=move, tops=tops):
                self._run(
                    "INSERT INTO move VALUES (?,?,?,?,?,?,?,?,?)",
                    (
                        state.key, move.number, move.from_entry, move.to_entry, move.reason, move.at_ns,
                        *(tops or (None, None, None)),
                    ),
                )  # fmt: skip
            case PutErased(nodes=nodes):
                self._erase([node.key for node in nodes])
            case PutLease(state=state, lease=lease):
                self._put_lease(state, lease)
            case DropThread(state=state, entries=entries):
                self._drop(state, entries)
            case PutPack(pack=pack):
                put_pack(self._connection, pack)
            case PutPending(hashes=hashes):
                put_pending(self._connection, hashes)
            case DropBlobs(hashes=hashes):
                drop_blobs(self._connection, hashes)
            case PutDocument(document=document):
                self._run("INSERT OR REPLACE INTO json_document VALUES (?,?,?,?,?,?)", astuple(document))
            case DropDocument(scope=scope, key=key):
                self._run("DELETE FROM json_document WHERE scope = ? AND key = ?", (scope, key))
            case DropExpiredDocuments(now_ns=now):
                self._run("DELETE FROM json_document WHERE expires_ns <= ?", (now,))

    def _run(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        if self._rows:
            self._put_rows()
        return self._connection.execute(statement, values)

    def _put_rows(self) -> None:
        """Insert the pending entries together, before the first query that could be about them."""
        rows, self._rows = self._rows, []
        if rows:
            self._connection.executemany("INSERT INTO entry VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)

    def _put_entry(self, fact: PutEntry) -> None:
        draft = fact.draft
        self._rows.append(entry_row(fact.state.tree, fact.node, fact.previous, draft))
        payload = draft.payload
        if type(payload) is Checkpoint:
            self._run("INSERT INTO checkpoint VALUES (?, ?)", (fact.node.key, payload.manifest))
        if draft.artifacts:
            put_artifacts(self._connection, fact.node.key, draft.artifacts)

    def _put_head(self, state: ThreadState) -> None:
        self._states[state.meta.id] = state
        self._dirty[state.key] = state

    def _put_thread(self, state: ThreadState) -> None:
        # The rules have read the thread, if there is one, in this transaction.
        before = self._states.get(state.meta.id)
        if before is None:
            self._insert_thread(state)
        else:
            self._update_thread(before, state)
        self._states[state.meta.id] = state

    def _insert_thread(self, state: ThreadState) -> None:
        head = (state.leaf.key if state.leaf else None, state.base.key if state.base else None)
        self._run(
            "INSERT INTO thread VALUES (?,?,?,?,?,?,?,?,?,?)",
            (
                state.key, state.meta.id, state.tree, *head,
                state.updated_ns, state.fence, state.moves, state.newest, state.meta.is_archived,
            ),
        )  # fmt: skip
        self._run(
            f"INSERT INTO thread_meta VALUES ({'?,' * len(META_COLUMNS)} ?, ?)",
            (state.key, *meta_row(state), _body(state)),
        )
        self._put_tags(state)

    def _update_thread(self, before: ThreadState, state: ThreadState) -> None:
        """Write the columns that changed: most changes, such as that of a title, are in no index."""
        self._dirty[state.key] = state
        if before.meta.is_archived != state.meta.is_archived:
            self._run("UPDATE thread SET is_archived = ? WHERE key = ?", (state.meta.is_archived, state.key))
        if before.meta is not state.meta:
            old, new = meta_row(before), meta_row(state)
            changed = [number for number, value in enumerate(new) if value != old[number]]
            columns = "".join(f"{META_COLUMNS[number]} = ?, " for number in changed)
            self._run(
                f"UPDATE thread_meta SET {columns} body = ? WHERE key = ?",
                (*(new[number] for number in changed), _body(state), state.key),
            )
        if before.meta.tags != state.meta.tags:
            self._run("DELETE FROM thread_tag WHERE key = ?", (state.key,))
            self._put_tags(state)

    def _put_tags(self, state: ThreadState) -> None:
        for tag in set(state.meta.tags):
            self._run("INSERT INTO thread_tag VALUES (?, ?)", (tag, state.key))

    def _put_lease(self, state: ThreadState, lease: Lease | None) -> None:
        self._leases[state.key] = lease
        if lease is None:
            self._run("DELETE FROM lease WHERE thread = ?", (state.key,))
            return
        self._run(
            "INSERT OR REPLACE INTO lease VALUES (?,?,?,?,?,?)",
            (state.key, lease.token, lease.turn_id, lease.owner, lease.created_ns, lease.expires_ns),
        )

    def _erase(self, keys: Sequence[int]) -> None:
        self._deleted_keys += keys
        self._deletions += 1
        self._put_rows()
        for key in keys:
            ((size,),) = self._connection.execute("SELECT length(body) FROM entry WHERE key = ?", (key,))
            self._freed_bytes += size - len(ERASED_BODY)
        self._connection.executemany("DELETE FROM checkpoint WHERE entry = ?", [(key,) for key in keys])
        self._connection.executemany(
            "UPDATE entry SET body = ?, crc = ? WHERE key = ?",
            [(ERASED_BODY, zlib.crc32(ERASED_BODY), key) for key in keys],
        )
        self._connection.executemany("DELETE FROM artifact WHERE entry = ?", [(key,) for key in keys])
        self._run("UPDATE store_meta SET deletions = deletions + 1")

    def _drop(self, state: ThreadState, entries: Sequence[int]) -> None:
        self._deleted_keys += entries
        self._deletions += 1
        self._states.pop(state.meta.id, None)
        self._leases.pop(state.key, None)
        self._dirty.pop(state.key, None)
        self._put_rows()
        drop_thread(self._connection, state, entries)
        # Keys are never reused, so that the cursors of watchers stay valid after a delete.
        self._run("UPDATE store_meta SET last_entry_key = ?, deletions = deletions + 1", (self._last_entry_key,))


def _body(state: ThreadState) -> bytes:
    return encode_record(state.meta, f"thread {state.meta.id!r}")
