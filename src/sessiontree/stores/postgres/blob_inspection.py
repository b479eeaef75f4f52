"""Doctor for blobs: every body against its name, a few megabytes at a time, and every checkpoint's needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from sessiontree.blobs import Blob
from sessiontree.check import blob_findings
from sessiontree.errors import BlobNotFoundError
from sessiontree.queries import Finding
from sessiontree.stores.postgres.blobs import blobs_of, in_order, read_blobs, texts_of
from sessiontree.stores.postgres.steps import Row, Statement, Steps

__all__ = ["blob_faults"]

_BATCH_BYTES = 16 << 20
_BATCH_BLOBS = 500
_LENGTHS = "SELECT hash, length FROM sessiontree.blob WHERE namespace = %(namespace)s ORDER BY hash"
_MANIFESTS = """
SELECT DISTINCT c.manifest FROM sessiontree.checkpoint c
JOIN sessiontree.entry e ON e.tree = c.tree AND e.owner = c.owner AND e.seq = c.seq
WHERE c.namespace = %(namespace)s"""


def blob_faults(namespace: str, place: str) -> Steps[list[Finding]]:
    """Blobs that are damaged, and blobs that a checkpoint needs and that are gone."""
    lengths = yield Statement(_LENGTHS, {"namespace": namespace})
    manifests = texts_of((yield Statement(_MANIFESTS, {"namespace": namespace})))
    stock = _Stock(row[0].hex() for row in lengths)
    found: list[Finding] = []
    for names in _batches(lengths):
        batch = blobs_of((yield read_blobs(namespace, names)))
        found += blob_findings((), _Stock(batch, batch), batch, place)
        stock.keep({name: blob for name, blob in batch.items() if name in manifests})
    while True:
        try:
            return found + blob_findings(manifests, stock, (), place)
        except _Unread as unread:
            stock.keep(blobs_of((yield read_blobs(namespace, [unread.name]))))


class _Unread(Exception):  # noqa: N818  no fault: a question
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _Stock:
    """``Blobs`` of which all the names are known, and some bodies."""

    def __init__(self, names: Iterable[str], bodies: dict[str, Blob] | None = None) -> None:
        self._names = frozenset(names)
        self._bodies = dict(bodies or {})

    def keep(self, bodies: dict[str, Blob]) -> None:
        self._bodies |= bodies

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return frozenset(hashes) - self._names

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        for name in hashes:
            if name not in self._names:
                raise BlobNotFoundError(name)
            if name not in self._bodies:
                raise _Unread(name)
        return in_order(self._bodies, hashes)


def _batches(lengths: Iterable[Row]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for digest, length in lengths:
        if batch and (size + length > _BATCH_BYTES or len(batch) == _BATCH_BLOBS):
            yield batch
            batch, size = [], 0
        batch.append(digest.hex())
        size += length
    if batch:
        yield batch
