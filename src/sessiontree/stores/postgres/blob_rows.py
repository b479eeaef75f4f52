"""Blobs and checkpoints: one row a blob; whoever relies on blobs or collects them holds a lock of the namespace."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sessiontree.blobs import Blob, Pack, unpacked
from sessiontree.errors import BlobNotFoundError
from sessiontree.model import Checkpoint
from sessiontree.rules.state import PutEntry
from sessiontree.stores.postgres.steps import Row, Statement

__all__ = [
    "ALL_HASHES",
    "blobs_of",
    "drop",
    "held",
    "lock",
    "manifests_in",
    "missing_of",
    "put",
    "put_checkpoints",
    "read",
]

_HELD = "SELECT hash FROM sessiontree.blob WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)"
_READ = "SELECT hash, size, body FROM sessiontree.blob WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)"
ALL_HASHES = "SELECT hash FROM sessiontree.blob WHERE namespace = %(namespace)s"
_MANIFESTS = "SELECT tree, owner, seq, manifest FROM sessiontree.checkpoint WHERE namespace = %(namespace)s"
_PUT = """
INSERT INTO sessiontree.blob (hash, namespace, size, body) VALUES (%(hash)s, %(namespace)s, %(size)s, %(body)s)
ON CONFLICT DO NOTHING"""
_DROP = "DELETE FROM sessiontree.blob WHERE namespace = %(namespace)s AND hash = ANY(%(hashes)s)"
_CHECKPOINT = """
INSERT INTO sessiontree.checkpoint (tree, owner, seq, namespace, manifest)
VALUES (%(tree)s, %(owner)s, %(seq)s, %(namespace)s, %(manifest)s)"""
_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtext('sessiontree blobs'), hashtext(%(namespace)s))"
_ALONE = "SELECT pg_advisory_xact_lock(hashtext('sessiontree blobs'), hashtext(%(namespace)s))"


def lock(namespace: str, *, is_alone: bool) -> Statement:
    """Shared by those who need blobs to stay; alone for who may collect them."""
    return Statement(_ALONE if is_alone else _SHARED, {"namespace": namespace})


def held(namespace: str, hashes: Collection[str]) -> Statement:
    return Statement(_HELD, {"namespace": namespace, "hashes": [bytes.fromhex(name) for name in hashes]})


def missing_of(hashes: Collection[str], rows: Sequence[Row]) -> frozenset[str]:
    return frozenset(hashes) - {digest.hex() for (digest,) in rows}


def read(namespace: str, hashes: Collection[str]) -> Statement:
    return Statement(_READ, {"namespace": namespace, "hashes": [bytes.fromhex(name) for name in hashes]})


def blobs_of(hashes: Sequence[str], rows: Sequence[Row]) -> list[Blob]:
    found = {digest.hex(): Blob(hash=digest.hex(), size=size, body=body) for digest, size, body in rows}
    for name in hashes:
        if name not in found:
            raise BlobNotFoundError(name)
    return [found[name] for name in hashes]


def manifests_in(namespace: str) -> Statement:
    return Statement(_MANIFESTS, {"namespace": namespace})


def put(pack: Pack, namespace: str) -> Iterator[Statement]:
    for blob in unpacked(pack):
        values = {"hash": bytes.fromhex(blob.hash), "namespace": namespace, "size": blob.size, "body": blob.body}
        yield Statement(_PUT, values)


def drop(hashes: Collection[str], namespace: str) -> Statement:
    return Statement(_DROP, {"namespace": namespace, "hashes": [bytes.fromhex(name) for name in hashes]})


def put_checkpoints(facts: Sequence[PutEntry], tree: object, namespace: str) -> Iterator[Statement]:
    for fact in facts:
        payload = fact.draft.payload
        if isinstance(payload, Checkpoint) and payload.manifest:
            values = {"tree": tree, "owner": fact.state.key, "seq": fact.node.key, "namespace": namespace}
            yield Statement(_CHECKPOINT, {**values, "manifest": payload.manifest})
