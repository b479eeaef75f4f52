"""Blobs in PostgreSQL: small ones share a row of at most a megabyte (a pack), a large one has rows of its own.

A row for each small blob would waste a sixth of the space. A pack is never changed; when one of its blobs is deleted,
the others are written to a new pack.

A transaction that refers to blobs locks the namespace's row of ``stock`` shared, one that deletes blobs locks it
exclusively. So no blob is deleted between the check that it exists and the commit of the entry that needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.numeric import Int8

from sessiontree.errors import BlobNotFoundError
from sessiontree.model import Checkpoint
from sessiontree.model.blobs import CHUNK_BYTES, Blob, chunks_of, pack_of
from sessiontree.model.ids import IdSource
from sessiontree.stores.postgres.steps import Row, Statement, Steps, insert_rows, to_bytes, to_text
from sessiontree.stores.rules.state import PutEntry

__all__ = [
    "all_hashes",
    "artifacts_of",
    "artifacts_outside",
    "blobs_of",
    "drop_blobs",
    "find_blobs",
    "hashes_of",
    "in_order",
    "lock_exclusive",
    "lock_shared",
    "manifests_of",
    "manifests_outside",
    "put_artifacts",
    "put_blobs",
    "put_checkpoints",
    "put_pending",
    "read_blobs",
    "texts_of",
]


_LOCK_SHARED = "SELECT 1 FROM sessiontree.stock WHERE namespace = %(namespace)s FOR KEY SHARE"
_LOCK_EXCLUSIVE = "SELECT 1 FROM sessiontree.stock WHERE namespace = %(namespace)s FOR UPDATE"
_CREATE_LOCK_ROW = "INSERT INTO sessiontree.stock (namespace) VALUES (%(namespace)s) ON CONFLICT DO NOTHING"
_FIND = "SELECT hash FROM sessiontree.blob WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)"
_ALL_HASHES = "SELECT hash FROM sessiontree.blob WHERE namespace = %(namespace)s"
# One statement, so that both tables are seen at the same moment.
_READ = f"""
WITH place AS MATERIALIZED (
    SELECT hash, size, pack, start, length FROM sessiontree.blob
    WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)
)
SELECT hash, -1, size, NULL::bytea FROM place
UNION ALL
SELECT p.hash, c.number, 0, substring(c.body FROM (p.start + 1)::integer FOR least(p.length, {CHUNK_BYTES})::integer)
FROM place p JOIN sessiontree.chunk c ON c.namespace = %(namespace)s AND c.pack = p.pack
ORDER BY 1, 2"""
_DROP = """
DELETE FROM sessiontree.blob WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s) RETURNING pack"""
_IN_PACKS = "SELECT hash FROM sessiontree.blob WHERE namespace = %(namespace)s AND pack = ANY(%(packs)s)"
_DROP_PACKS = (
    "DELETE FROM sessiontree.blob WHERE namespace = %(namespace)s AND pack = ANY(%(packs)s)",
    "DELETE FROM sessiontree.chunk WHERE namespace = %(namespace)s AND pack = ANY(%(packs)s)",
)
_PACKS_AT_ONCE = 16
_THEIRS = """
SELECT c.manifest FROM unnest(%(owners)s::bigint[], %(seqs)s::bigint[]) AS x (owner, seq)
JOIN sessiontree.checkpoint c ON c.tree = %(tree)s AND c.owner = x.owner AND c.seq = x.seq
    AND c.namespace = %(namespace)s"""
# During a rolling upgrade a program that does not know checkpoints deletes entries without these rows; they do not count.
_OTHERS = """
SELECT DISTINCT c.manifest FROM sessiontree.checkpoint c
JOIN sessiontree.entry e ON e.tree = c.tree AND e.owner = c.owner AND e.seq = c.seq AND e.namespace = c.namespace
WHERE c.namespace = %(namespace)s AND NOT (c.tree = %(tree)s AND (c.owner, c.seq) IN (
    SELECT x.owner, x.seq FROM unnest(%(owners)s::bigint[], %(seqs)s::bigint[]) AS x (owner, seq)))"""

_NOT_PENDING = "DELETE FROM sessiontree.pending_artifact WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)"
_THEIR_ARTIFACTS = """
SELECT DISTINCT a.hash FROM unnest(%(owners)s::bigint[], %(seqs)s::bigint[]) AS x (owner, seq)
JOIN sessiontree.artifact a ON a.tree = %(tree)s AND a.owner = x.owner AND a.seq = x.seq
    AND a.namespace = %(namespace)s"""
_OTHER_ARTIFACTS = """
SELECT DISTINCT a.hash FROM sessiontree.artifact a
WHERE a.namespace = %(namespace)s AND NOT (a.tree = %(tree)s AND (a.owner, a.seq) IN (
    SELECT x.owner, x.seq FROM unnest(%(owners)s::bigint[], %(seqs)s::bigint[]) AS x (owner, seq)))
UNION SELECT p.hash FROM sessiontree.pending_artifact p WHERE p.namespace = %(namespace)s"""

Place = tuple[int, int]
"""Owner and number of an entry in its tree."""


def lock_shared(namespace: str) -> Statement:
    """Lock against garbage collection. No row means that the namespace never had a blob."""
    return Statement(_LOCK_SHARED, {"namespace": namespace})


def lock_exclusive(namespace: str) -> Statement:
    """Lock against transactions that refer to blobs, for garbage collection."""
    return Statement(_LOCK_EXCLUSIVE, {"namespace": namespace})


def find_blobs(namespace: str, hashes: Iterable[str]) -> Statement:
    """Which of the hashes exist."""
    return Statement(_FIND, _named(namespace, hashes))


def all_hashes(namespace: str) -> Statement:
    """The hashes of all blobs."""
    return Statement(_ALL_HASHES, {"namespace": namespace})


def hashes_of(rows: Iterable[Row]) -> frozenset[str]:
    """The hashes of rows that begin with one."""
    return frozenset(row[0].hex() for row in rows)


def read_blobs(namespace: str, hashes: Iterable[str]) -> Statement:
    """Sizes and bodies of blobs, for ``blobs_of``."""
    return Statement(_READ, _named(namespace, hashes))


def blobs_of(rows: Iterable[Row]) -> dict[str, Blob]:
    """The blobs by hash. If a chunk is missing the body does not match its hash, which its reader detects."""
    sizes: dict[str, int] = {}
    pieces: dict[str, list[bytes]] = {}
    for digest, number, size, body in rows:
        if number < 0:
            sizes[digest.hex()] = size
        else:
            pieces.setdefault(digest.hex(), []).append(body)
    return {name: Blob(hash=name, size=size, body=b"".join(pieces.get(name, ()))) for name, size in sizes.items()}


def in_order(found: dict[str, Blob], hashes: Sequence[str]) -> list[Blob]:
    """Blobs in the order of ``hashes``; raise BlobNotFoundError for a missing one."""
    for name in hashes:
        if name not in found:
            raise BlobNotFoundError(name)
    return [found[name] for name in hashes]


def put_blobs(blobs: Iterable[Blob], namespace: str, ids: IdSource) -> Iterator[Statement]:
    """Store blobs, sorted by hash, so that two transactions that store the same blobs cannot deadlock."""
    packs = [(UUID(ids.new()), pack_of(group)) for group in _groups(sorted(blobs, key=lambda blob: blob.hash))]
    places = [(number, place) for number, pack in packs for place in pack.places]
    yield Statement(_CREATE_LOCK_ROW, {"namespace": namespace})
    rows = [
        (namespace, bytes.fromhex(place.hash), Int8(place.size), pack_id, Int8(place.start), Int8(place.length))
        for pack_id, place in places
    ]
    yield from insert_rows("blob", ("namespace", "hash", "size", "pack", "start", "length"), rows)
    for pack_id, pack in packs:
        for number, body in enumerate(chunks_of(pack)):
            yield from insert_rows(
                "chunk", ("namespace", "pack", "number", "body"), [(namespace, pack_id, number, body)]
            )


def drop_blobs(hashes: Collection[str], namespace: str, ids: IdSource) -> Steps[None]:
    """Delete blobs: packs that contain one are replaced by packs of the others."""
    affected = sorted({row[0] for row in (yield Statement(_DROP, _named(namespace, sorted(hashes))))})
    for start in range(0, len(affected), _PACKS_AT_ONCE):
        values = {"namespace": namespace, "packs": affected[start : start + _PACKS_AT_ONCE]}
        remaining = hashes_of((yield Statement(_IN_PACKS, values)))
        kept = blobs_of((yield read_blobs(namespace, remaining))) if remaining else {}
        for sql in _DROP_PACKS:
            yield Statement(sql, values)
        if kept:
            yield from put_blobs(kept.values(), namespace, ids)


def put_checkpoints(facts: Iterable[PutEntry], tree: UUID, namespace: str) -> Iterator[Statement]:
    """Record the checkpoints among new entries and their manifests."""
    found = [(fact, fact.draft.payload.manifest) for fact in facts if isinstance(fact.draft.payload, Checkpoint)]
    marked = [(fact, manifest) for fact, manifest in found if manifest]
    rows = [(tree, fact.state.key, Int8(fact.node.key), namespace, to_bytes(manifest)) for fact, manifest in marked]
    yield from insert_rows("checkpoint", ("tree", "owner", "seq", "namespace", "manifest"), rows)


def manifests_of(namespace: str, tree: UUID, entries: Sequence[Place]) -> Statement:
    """The manifests of the checkpoints among these entries."""
    return Statement(_THEIRS, _placed(namespace, tree, entries))


def manifests_outside(namespace: str, tree: UUID, entries: Sequence[Place]) -> Statement:
    """The manifests of all other checkpoints."""
    return Statement(_OTHERS, _placed(namespace, tree, entries))


def put_artifacts(facts: Iterable[PutEntry], tree: UUID, namespace: str) -> Iterator[Statement]:
    """Record which artifacts new entries refer to; they are no longer pending."""
    shown = [(fact, name) for fact in facts for name in fact.draft.artifacts]
    if shown:
        yield Statement(_NOT_PENDING, _named(namespace, [name for _, name in shown]))
        rows = [(tree, fact.state.key, Int8(fact.node.key), bytes.fromhex(name), namespace) for fact, name in shown]
        yield from insert_rows("artifact", ("tree", "owner", "seq", "hash", "namespace"), rows)


def put_pending(hashes: Iterable[str], namespace: str) -> Iterator[Statement]:
    """Keep artifacts until an entry refers to them."""
    yield Statement(_CREATE_LOCK_ROW, {"namespace": namespace})
    rows = [(namespace, bytes.fromhex(name)) for name in sorted(hashes)]
    yield from insert_rows("pending_artifact", ("namespace", "hash"), rows, "ON CONFLICT DO NOTHING")


def artifacts_of(namespace: str, tree: UUID, entries: Sequence[Place]) -> Statement:
    """The artifacts that these entries refer to."""
    return Statement(_THEIR_ARTIFACTS, _placed(namespace, tree, entries))


def artifacts_outside(namespace: str, tree: UUID, entries: Sequence[Place]) -> Statement:
    """The artifacts that all other entries refer to, and those that are pending."""
    return Statement(_OTHER_ARTIFACTS, _placed(namespace, tree, entries))


def texts_of(rows: Iterable[Row]) -> frozenset[str]:
    """The texts of rows that begin with one."""
    return frozenset(to_text(row[0]) for row in rows)


def _named(namespace: str, hashes: Iterable[str]) -> dict[str, Any]:
    return {"namespace": namespace, "hashes": [bytes.fromhex(name) for name in hashes]}


def _placed(namespace: str, tree: UUID, entries: Sequence[Place]) -> dict[str, Any]:
    owners, seqs = [owner for owner, _ in entries], [seq for _, seq in entries]
    return {"namespace": namespace, "tree": tree, "owners": owners, "seqs": seqs}


def _groups(blobs: Iterable[Blob]) -> Iterator[list[Blob]]:
    """Groups of blobs that fit into one row; a blob that is larger forms its own group."""
    group: list[Blob] = []
    size = 0
    for blob in blobs:
        if group and size + len(blob.body) > CHUNK_BYTES:
            yield group
            group, size = [], 0
        group.append(blob)
        size += len(blob.body)
    if group:
        yield group
