"""Blobs in PostgreSQL: a row for each, and further rows for what goes beyond the first megabyte.

Whoever is about to refer to blobs holds the namespace's ``stock`` row shared with others of that kind; whoever collects
garbage holds it alone. So nothing is collected between the look at a blob and the commit of the entry that needs it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from sessiontree.blobs import CHUNK_BYTES, Blob, Pack, unpacked
from sessiontree.errors import BlobNotFoundError
from sessiontree.model import Checkpoint
from sessiontree.rules.state import PutEntry
from sessiontree.stores.postgres.steps import Row, Statement, to_bytes, to_text

__all__ = [
    "blob_names",
    "blobs_of",
    "collect_alone",
    "drop_blobs",
    "find_blobs",
    "hold_shared",
    "in_order",
    "manifests_besides",
    "manifests_of",
    "names_of",
    "put_checkpoints",
    "put_pack",
    "read_blobs",
    "texts_of",
]

_HOLD = "SELECT 1 FROM sessiontree.stock WHERE namespace = %(namespace)s FOR KEY SHARE"
_COLLECT = "SELECT 1 FROM sessiontree.stock WHERE namespace = %(namespace)s FOR UPDATE"
_OPEN_STOCK = "INSERT INTO sessiontree.stock (namespace) VALUES (%(namespace)s) ON CONFLICT DO NOTHING"
_FIND = "SELECT hash FROM sessiontree.blob WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)"
_NAMES = "SELECT hash FROM sessiontree.blob WHERE namespace = %(namespace)s"
# One statement, so that both tables are seen at the same moment.
_READ = """
SELECT hash, 0 AS number, size, body FROM sessiontree.blob
WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)
UNION ALL
SELECT hash, number, 0, body FROM sessiontree.chunk WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)
ORDER BY hash, number"""
_PUT = """
INSERT INTO sessiontree.blob (namespace, hash, size, length, body)
SELECT %(namespace)s, d.hash, d.size, d.length, d.body
FROM unnest(%(hashes)s::bytea[], %(sizes)s::bigint[], %(lengths)s::bigint[], %(bodies)s::bytea[])
    AS d (hash, size, length, body)
ON CONFLICT DO NOTHING"""
_PUT_CHUNK = """
INSERT INTO sessiontree.chunk (namespace, hash, number, body)
VALUES (%(namespace)s, %(hash)s, %(number)s, %(body)s) ON CONFLICT DO NOTHING"""
_DROP = (
    "DELETE FROM sessiontree.chunk WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)",
    "DELETE FROM sessiontree.blob WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)",
)
_PUT_CHECKPOINTS = """
INSERT INTO sessiontree.checkpoint (tree, owner, seq, namespace, manifest)
SELECT %(tree)s, %(owner)s, d.seq, %(namespace)s, d.manifest
FROM unnest(%(seqs)s::bigint[], %(manifests)s::bytea[]) AS d (seq, manifest)"""
_THEIRS = """
SELECT c.manifest FROM unnest(%(owners)s::bigint[], %(seqs)s::bigint[]) AS x (owner, seq)
JOIN sessiontree.checkpoint c ON c.tree = %(tree)s AND c.owner = x.owner AND c.seq = x.seq"""
# A program from before checkpoints, in a rolling upgrade, deletes entries and leaves these rows: they count no more.
_OTHERS = """
SELECT DISTINCT c.manifest FROM sessiontree.checkpoint c
JOIN sessiontree.entry e ON e.tree = c.tree AND e.owner = c.owner AND e.seq = c.seq
WHERE c.namespace = %(namespace)s AND NOT (c.tree = %(tree)s AND (c.owner, c.seq) IN (
    SELECT x.owner, x.seq FROM unnest(%(owners)s::bigint[], %(seqs)s::bigint[]) AS x (owner, seq)))"""

Place = tuple[int, int]
"""Owner and number of an entry in its tree."""


def hold_shared(namespace: str) -> Statement:
    """No row means that this namespace never had a blob."""
    return Statement(_HOLD, {"namespace": namespace})


def collect_alone(namespace: str) -> Statement:
    return Statement(_COLLECT, {"namespace": namespace})


def find_blobs(namespace: str, hashes: Iterable[str]) -> Statement:
    return Statement(_FIND, _named(namespace, hashes))


def blob_names(namespace: str) -> Statement:
    return Statement(_NAMES, {"namespace": namespace})


def names_of(rows: Iterable[Row]) -> frozenset[str]:
    return frozenset(row[0].hex() for row in rows)


def read_blobs(namespace: str, hashes: Iterable[str]) -> Statement:
    return Statement(_READ, _named(namespace, hashes))


def blobs_of(rows: Iterable[Row]) -> dict[str, Blob]:
    """The blobs by name. A lost row leaves a body that does not hash to its name, which whoever reads it finds out."""
    sizes: dict[str, int] = {}
    pieces: dict[str, list[bytes]] = {}
    for digest, number, size, body in rows:
        name = digest.hex()
        pieces.setdefault(name, []).append(body)
        if number == 0:
            sizes[name] = size
    return {name: Blob(hash=name, size=size, body=b"".join(pieces[name])) for name, size in sizes.items()}


def in_order(found: dict[str, Blob], hashes: Sequence[str]) -> list[Blob]:
    for name in hashes:
        if name not in found:
            raise BlobNotFoundError(name)
    return [found[name] for name in hashes]


def put_pack(pack: Pack, namespace: str) -> Iterator[Statement]:
    """In the order of names, so that two who put the same blobs wait for each other in one direction only."""
    blobs = sorted(unpacked(pack), key=lambda blob: blob.hash)
    yield Statement(_OPEN_STOCK, {"namespace": namespace})
    yield Statement(
        _PUT,
        {
            **_named(namespace, [blob.hash for blob in blobs]),
            "sizes": [blob.size for blob in blobs],
            "lengths": [len(blob.body) for blob in blobs],
            "bodies": [blob.body[:CHUNK_BYTES] for blob in blobs],
        },
    )
    for blob in blobs:
        for number, start in enumerate(range(CHUNK_BYTES, len(blob.body), CHUNK_BYTES), start=1):
            body = blob.body[start : start + CHUNK_BYTES]
            values = {"namespace": namespace, "hash": bytes.fromhex(blob.hash), "number": number, "body": body}
            yield Statement(_PUT_CHUNK, values)


def drop_blobs(hashes: Collection[str], namespace: str) -> Iterator[Statement]:
    for sql in _DROP:
        yield Statement(sql, _named(namespace, sorted(hashes)))


def put_checkpoints(facts: Iterable[PutEntry], tree: UUID, namespace: str) -> Iterator[Statement]:
    """Which of the new entries need blobs."""
    found = [(fact, fact.draft.payload.manifest) for fact in facts if isinstance(fact.draft.payload, Checkpoint)]
    marked = [(fact, manifest) for fact, manifest in found if manifest]
    if marked:
        values = {
            "tree": tree,
            "owner": marked[0][0].state.key,
            "namespace": namespace,
            "seqs": [fact.node.key for fact, _ in marked],
            "manifests": [to_bytes(manifest) for _, manifest in marked],
        }
        yield Statement(_PUT_CHECKPOINTS, values)


def manifests_of(tree: UUID, entries: Sequence[Place]) -> Statement:
    return Statement(_THEIRS, _placed(tree, entries))


def manifests_besides(namespace: str, tree: UUID, entries: Sequence[Place]) -> Statement:
    return Statement(_OTHERS, {"namespace": namespace, **_placed(tree, entries)})


def texts_of(rows: Iterable[Row]) -> frozenset[str]:
    return frozenset(to_text(row[0]) for row in rows)


def _named(namespace: str, hashes: Iterable[str]) -> dict[str, Any]:
    return {"namespace": namespace, "hashes": [bytes.fromhex(name) for name in hashes]}


def _placed(tree: UUID, entries: Sequence[Place]) -> dict[str, Any]:
    return {"tree": tree, "owners": [owner for owner, _ in entries], "seqs": [seq for _, seq in entries]}
