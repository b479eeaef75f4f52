"""Convert rows to records and back; read and write blobs, whose packs are stored as rows of chunks."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from sessiontree.errors import BlobNotFoundError
from sessiontree.model import Entry, Lease, Move, Thread
from sessiontree.model._base import UNREADABLE
from sessiontree.model.blobs import CHUNK_BYTES, Blob, Pack, chunks_of, pack_of
from sessiontree.model.codec import DAMAGED, decode_stored_payload, decode_thread
from sessiontree.model.documents import StoredDocument
from sessiontree.stores.commands import Draft
from sessiontree.stores.rules.state import BlobRoots, Node, ThreadState

__all__ = [
    "DOCUMENT_SELECT",
    "ENTRY_COLUMNS",
    "META_COLUMNS",
    "NODE_COLUMNS",
    "STATE_SELECT",
    "THREAD_SELECT",
    "blob_hashes",
    "blob_roots",
    "blobs",
    "chain_of",
    "document_of",
    "draft_of",
    "drop_blobs",
    "entry_row",
    "lease_of",
    "meta_row",
    "missing_blobs",
    "move_of",
    "put_artifacts",
    "put_pack",
    "put_pending",
    "state_of",
    "thread_of",
]


Row = tuple[Any, ...]

NODE_COLUMNS = "key, id, owner, parent, depth, messages, tokens"
ENTRY_COLUMNS = "key, id, owner, parent, created_ns, turn_id, body"
META_COLUMNS = (
    "created_ns", "tree_id", "title_folded", "workspace", "vendor", "model", "agent", "channel", "peer", "key_thread",
    "state", "status", "parent_thread", "forked_from_thread",
)  # fmt: skip

STATE_SELECT = """
SELECT t.key, t.tree, m.body, t.updated_ns, t.fence, t.moves, t.newest,
       leaf.key, leaf.id, leaf.owner, leaf.parent, leaf.depth, leaf.messages, leaf.tokens,
       base.key, base.id, base.owner, base.parent, base.depth, base.messages, base.tokens, t.id
FROM thread t
JOIN thread_meta m ON m.key = t.key
LEFT JOIN entry leaf ON leaf.key = t.leaf
LEFT JOIN entry base ON base.key = t.base
"""


def state_of(row: Row) -> ThreadState:
    """Return a thread's state from a row of ``STATE_SELECT``."""
    key, tree, body, updated_ns, fence, moves, newest = row[:7]
    leaf = Node(*row[7:14]) if row[7] is not None else None
    base = Node(*row[14:21]) if row[14] is not None else None
    return ThreadState(key, tree, _meta_of(row[21], body), leaf, base, updated_ns, fence, moves, newest)


THREAD_SELECT = """
SELECT t.id, m.body, t.updated_ns, leaf.id, leaf.depth, leaf.messages, leaf.tokens
FROM thread t
JOIN thread_meta m ON m.key = t.key
LEFT JOIN entry leaf ON leaf.key = t.leaf
"""


def thread_of(row: Row) -> Thread:
    """Return a thread as callers get it from a row of ``THREAD_SELECT``."""
    thread_id, body, updated_ns, leaf, entries, messages, tokens = row
    return msgspec.structs.replace(
        _meta_of(thread_id, body),
        updated_ns=updated_ns,
        leaf=leaf,
        entries=entries or 0,
        messages=messages or 0,
        tokens=tokens or 0,
    )


def _meta_of(thread_id: str, body: bytes) -> Thread:
    """Decode metadata; if it is unreadable, return a placeholder, so that the conversation can still be read."""
    try:
        return decode_thread(body)
    except (*UNREADABLE, TypeError):
        return Thread(id=thread_id, tree=thread_id, created_ns=0, updated_ns=0, status=DAMAGED)


def meta_row(state: ThreadState) -> Row:
    """Return the columns of ``thread_meta`` between the key and the body, ``META_COLUMNS``."""
    meta: Thread = state.meta
    return (
        meta.created_ns, meta.tree, meta.title.casefold(), meta.workspace, meta.vendor, meta.model,
        meta.key.agent, meta.key.channel, meta.key.peer, meta.key.thread, meta.state, meta.status,
        meta.parent_thread, meta.forked_from_thread,
    )  # fmt: skip


def entry_row(tree: int, node: Node, previous: int, draft: Draft) -> Row:
    """Return a row of ``entry``."""
    return (
        node.key, tree, node.owner, previous, node.id, node.parent, node.depth, node.messages, node.tokens,
        draft.created_ns, draft.turn_id, zlib.crc32(draft.body), draft.body,
    )  # fmt: skip


def chain_of(rows: Sequence[Row], names: dict[int, str], parent: str | None) -> list[Entry]:
    """Return the entries of one path from its rows, oldest first: each row is the parent of the next one."""
    entries: list[Entry] = []
    for _, entry_id, owner, _, created_ns, turn_id, body in rows:
        entries.append(
            Entry(
                id=entry_id,
                thread_id=names[owner],
                parent=parent,
                created_ns=created_ns,
                turn_id=turn_id,
                payload=decode_stored_payload(body),
            )
        )
        parent = entry_id
    return entries


def draft_of(row: Row) -> Draft:
    """Return a draft from id, time, turn, body, and the messages and tokens of this entry alone."""
    entry_id, created_ns, turn_id, body, messages, tokens = row
    return Draft(
        id=entry_id,
        payload=decode_stored_payload(body),
        body=body,
        created_ns=created_ns,
        turn_id=turn_id,
        messages=messages,
        tokens=tokens,
    )


DOCUMENT_SELECT = "SELECT scope, key, version, updated_ns, expires_ns, body FROM json_document"


def document_of(row: Row) -> StoredDocument:
    """Return a document from a row of ``DOCUMENT_SELECT``."""
    scope, key, version, updated_ns, expires_ns, body = row
    return StoredDocument(
        scope=scope, key=key, version=version, updated_ns=updated_ns, expires_ns=expires_ns, body=body
    )


def move_of(thread_id: str, row: Row) -> Move:
    """Return a leaf move from number, from, to, reason and time."""
    number, from_entry, to_entry, reason, at_ns = row
    return Move(
        number=number, thread_id=thread_id, from_entry=from_entry, to_entry=to_entry, reason=reason, at_ns=at_ns
    )


def lease_of(thread_id: str, row: Row) -> Lease:
    """Return a lease from token, turn, owner, creation and expiry."""
    token, turn_id, owner, created_ns, expires_ns = row
    return Lease(
        thread_id=thread_id, turn_id=turn_id, owner=owner, token=token, created_ns=created_ns, expires_ns=expires_ns
    )


def missing_blobs(connection: sqlite3.Connection, hashes: Collection[str]) -> frozenset[str]:
    """Return those of some hashes for which there is no blob."""
    find = connection.execute
    return frozenset(
        name for name in hashes if find("SELECT 1 FROM blob WHERE hash = ?", (bytes.fromhex(name),)).fetchone() is None
    )


def blobs(connection: sqlite3.Connection, hashes: Sequence[str]) -> list[Blob]:
    """Return blobs in the order of their hashes; raise BlobNotFoundError for one that is missing."""
    return [_blob(connection, name) for name in hashes]


def blob_hashes(connection: sqlite3.Connection) -> Collection[str]:
    """Return the hashes of all blobs."""
    return {digest.hex() for (digest,) in connection.execute("SELECT hash FROM blob")}


def blob_roots(connection: sqlite3.Connection, entries: Collection[int]) -> tuple[BlobRoots, BlobRoots]:
    """Return what some entries refer to, and what all others do, with the artifacts that are pending."""
    chosen = set(entries)
    their_manifests, other_manifests = _split(connection, "SELECT entry, manifest FROM checkpoint", chosen)
    their_artifacts, other_artifacts = _split(connection, "SELECT entry, lower(hex(hash)) FROM artifact", chosen)
    pending = {digest.hex() for (digest,) in connection.execute("SELECT hash FROM pending_artifact")}
    theirs = BlobRoots(frozenset(their_manifests), frozenset(their_artifacts))
    return theirs, BlobRoots(frozenset(other_manifests), frozenset(other_artifacts | pending))


def _split(connection: sqlite3.Connection, statement: str, chosen: set[int]) -> tuple[set[str], set[str]]:
    theirs: set[str] = set()
    others: set[str] = set()
    for key, name in connection.execute(statement):
        (theirs if key in chosen else others).add(name)
    return theirs, others


def put_artifacts(connection: sqlite3.Connection, entry: int, hashes: Collection[str]) -> None:
    """Record which artifacts a new entry refers to; they are no longer pending."""
    digests = [bytes.fromhex(name) for name in hashes]
    connection.executemany("INSERT INTO artifact VALUES (?, ?)", [(entry, digest) for digest in digests])
    connection.executemany("DELETE FROM pending_artifact WHERE hash = ?", [(digest,) for digest in digests])


def put_pending(connection: sqlite3.Connection, hashes: Collection[str]) -> None:
    """Keep artifacts until an entry refers to them."""
    digests = [(bytes.fromhex(name),) for name in hashes]
    connection.executemany("INSERT OR IGNORE INTO pending_artifact VALUES (?)", digests)


def put_pack(connection: sqlite3.Connection, pack: Pack) -> None:
    """Store a pack of blobs, cut into chunks."""
    number = connection.execute("SELECT coalesce(max(pack), 0) + 1 FROM chunk").fetchone()[0]
    connection.executemany(
        "INSERT INTO chunk VALUES (?, ?, ?)", [(number, index, body) for index, body in enumerate(chunks_of(pack))]
    )
    # A pack of empty blobs has no chunk.
    connection.executemany(
        "INSERT INTO blob VALUES (?, ?, ?, ?, ?)",
        [(bytes.fromhex(at.hash), at.size, number, at.start, at.length) for at in pack.places],
    )


def drop_blobs(connection: sqlite3.Connection, hashes: Collection[str]) -> None:
    """Delete blobs. Their packs are rewritten with the blobs that stay; SQLite zeroes the deleted pages."""
    packs: set[int] = set()
    for name in hashes:
        packs.update(
            row[0]
            for row in connection.execute("DELETE FROM blob WHERE hash = ? RETURNING pack", (bytes.fromhex(name),))
        )
    for number in packs:
        remaining = connection.execute("SELECT hash FROM blob WHERE pack = ? ORDER BY start", (number,)).fetchall()
        kept = blobs(connection, [digest.hex() for (digest,) in remaining])
        connection.execute("DELETE FROM blob WHERE pack = ?", (number,))
        connection.execute("DELETE FROM chunk WHERE pack = ?", (number,))
        if kept:
            put_pack(connection, pack_of(kept))


def _blob(connection: sqlite3.Connection, name: str) -> Blob:
    row = connection.execute(
        "SELECT size, pack, start, length FROM blob WHERE hash = ?", (bytes.fromhex(name),)
    ).fetchone()
    if row is None:
        raise BlobNotFoundError(name)
    size, pack, start, length = row
    first, last = start // CHUNK_BYTES, (start + length) // CHUNK_BYTES
    chunks: Iterable[tuple[bytes]] = connection.execute(
        "SELECT body FROM chunk WHERE pack = ? AND number BETWEEN ? AND ? ORDER BY number", (pack, first, last)
    )
    run = b"".join(body for (body,) in chunks)
    offset = start - first * CHUNK_BYTES
    return Blob(hash=name, size=size, body=run[offset : offset + length])
