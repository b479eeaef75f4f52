"""Blobs in the SQLite file: packs cut into rows, an index that says where each blob lies."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence

from sessiontree.blobs import CHUNK_BYTES, Blob, Pack, chunks_of, pack_of
from sessiontree.errors import BlobNotFoundError
from sessiontree.rules.state import Manifests

__all__ = ["blob_hashes", "blobs", "drop_blobs", "manifests", "missing_blobs", "put_pack"]


def missing_blobs(connection: sqlite3.Connection, hashes: Collection[str]) -> frozenset[str]:
    find = connection.execute
    return frozenset(
        name for name in hashes if find("SELECT 1 FROM blob WHERE hash = ?", (bytes.fromhex(name),)).fetchone() is None
    )


def blobs(connection: sqlite3.Connection, hashes: Sequence[str]) -> list[Blob]:
    return [_blob(connection, name) for name in hashes]


def blob_hashes(connection: sqlite3.Connection) -> Collection[str]:
    return {digest.hex() for (digest,) in connection.execute("SELECT hash FROM blob")}


def manifests(connection: sqlite3.Connection, entries: Collection[int]) -> Manifests:
    chosen = set(entries)
    theirs: set[str] = set()
    others: set[str] = set()
    for key, manifest in connection.execute("SELECT entry, manifest FROM checkpoint"):
        (theirs if key in chosen else others).add(manifest)
    return Manifests(frozenset(theirs), frozenset(others))


def put_pack(connection: sqlite3.Connection, pack: Pack) -> None:
    number = connection.execute("SELECT coalesce(max(pack), 0) + 1 FROM chunk").fetchone()[0]
    connection.executemany(
        "INSERT INTO chunk VALUES (?, ?, ?)", [(number, index, body) for index, body in enumerate(chunks_of(pack))]
    )
    # An empty blob takes no room, so its pack may have no chunk: its place is nowhere in particular.
    connection.executemany(
        "INSERT INTO blob VALUES (?, ?, ?, ?, ?)",
        [(bytes.fromhex(at.hash), at.size, number, at.start, at.length) for at in pack.places],
    )


def drop_blobs(connection: sqlite3.Connection, hashes: Collection[str]) -> None:
    """Packs that hold a dropped blob are written anew with the others; deleted pages are zeroed by SQLite."""
    wounded: set[int] = set()
    for name in hashes:
        wounded.update(
            row[0]
            for row in connection.execute("DELETE FROM blob WHERE hash = ? RETURNING pack", (bytes.fromhex(name),))
        )
    for number in wounded:
        survivors = connection.execute("SELECT hash FROM blob WHERE pack = ? ORDER BY start", (number,)).fetchall()
        kept = blobs(connection, [digest.hex() for (digest,) in survivors])
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
