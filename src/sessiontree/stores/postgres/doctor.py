"""Integrity checks of a namespace, in one snapshot: the invariants of every store, and every blob against its hash."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sessiontree.errors import BlobNotFoundError
from sessiontree.model._base import Progress
from sessiontree.model.blobs import Blob, batches
from sessiontree.stores.check import blob_findings, findings_in
from sessiontree.stores.postgres.blobs import blobs_of, hashes_of, in_order, read_blobs, texts_of
from sessiontree.stores.postgres.content import BEGIN_SNAPSHOT, StoreContent, read_content
from sessiontree.stores.postgres.distribution import misplaced
from sessiontree.stores.postgres.steps import ROLLBACK, Statement, Steps, to_text
from sessiontree.stores.queries import Finding
from sessiontree.stores.rules.state import BlobRoots

__all__ = ["LENGTHS", "inspect"]


LENGTHS = "SELECT hash, length FROM sessiontree.blob WHERE namespace = %(namespace)s ORDER BY hash"
_MANIFESTS = """
SELECT DISTINCT c.manifest FROM sessiontree.checkpoint c
JOIN sessiontree.entry e ON e.tree = c.tree AND e.owner = c.owner AND e.seq = c.seq AND e.namespace = c.namespace
WHERE c.namespace = %(namespace)s"""
_ARTIFACTS = "SELECT DISTINCT hash FROM sessiontree.artifact WHERE namespace = %(namespace)s"
_COUNT = "SELECT count(*) FROM sessiontree.entry WHERE namespace = %(namespace)s"
# The homes are read first: a distributed server cannot join what is on different nodes.
_WITHOUT_LOOKUP = """
WITH o AS MATERIALIZED (SELECT id, tree FROM sessiontree.home WHERE namespace = %(namespace)s)
SELECT h.id FROM sessiontree.head h LEFT JOIN o ON o.id = h.id AND o.tree = h.tree
WHERE h.namespace = %(namespace)s AND o.id IS NULL"""
_MISCOUNTED = """
SELECT h.id FROM sessiontree.head h
WHERE h.namespace = %(namespace)s AND (h.seq - h.key, h.bytes) <> (
    SELECT count(*), coalesce(sum(octet_length(e.body)), 0) FROM sessiontree.entry e
    WHERE e.tree = h.tree AND e.owner = h.key AND e.namespace = h.namespace)"""


def inspect(namespace: str, place: str, progress: Progress | None = None) -> Steps[list[Finding]]:
    """List every broken invariant."""
    values = {"namespace": namespace}
    yield BEGIN_SNAPSHOT
    found = _Findings(place, progress, (yield Statement(_COUNT, values))[0][0])
    yield from read_content(namespace, found.check)
    unreachable = yield Statement(_WITHOUT_LOOKUP, values)
    miscounted = yield Statement(_MISCOUNTED, values)
    blob_problems = yield from _check_blobs(namespace, place)
    yield ROLLBACK
    placement_problems = [
        Finding(
            kind="placement",
            place=place,
            problem=f"{name} is not distributed as it should be; run: sessiontree postgres distribute",
        )
        for name in (yield from misplaced())
    ]
    lookup_problems = [
        Finding(kind="home", place=place, problem="the thread cannot be found by its id", thread_id=to_text(name))
        for (name,) in unreachable
    ]
    count_problems = [
        Finding(
            kind="counter", place=place, problem="its entries are not those that were counted", thread_id=to_text(name)
        )
        for (name,) in miscounted
    ]
    return [
        *placement_problems,
        *lookup_problems,
        *count_problems,
        *found.findings,
        *blob_problems,
    ]


class _Findings:
    """What is found in some trees after the other. ``progress`` counts entries."""

    def __init__(self, place: str, progress: Progress | None, total: int) -> None:
        self.findings: list[Finding] = []
        self._place = place
        self._progress = progress
        self._total = total
        self._done = 0

    def check(self, content: StoreContent) -> None:
        self.findings += findings_in(content, self._place, self._count if self._progress else None)
        self._done += len(content.nodes)

    def _count(self, done: int, _: int) -> None:
        assert self._progress is not None
        self._progress(self._done + done, self._total)


def _check_blobs(namespace: str, place: str) -> Steps[list[Finding]]:
    """List damaged blobs and missing ones that an entry needs, reading a few megabytes at a time."""
    lengths = yield Statement(LENGTHS, {"namespace": namespace})
    manifests = texts_of((yield Statement(_MANIFESTS, {"namespace": namespace})))
    roots = BlobRoots(manifests, hashes_of((yield Statement(_ARTIFACTS, {"namespace": namespace}))))
    blobs = _FetchedBlobs(row[0].hex() for row in lengths)
    found: list[Finding] = []
    for rows in batches(lengths, lambda row: int(row[1])):
        batch = blobs_of((yield read_blobs(namespace, [digest.hex() for digest, _ in rows])))
        found += blob_findings(BlobRoots(), _FetchedBlobs(batch, batch), batch, place)
        blobs.add({name: blob for name, blob in batch.items() if name in manifests})
    while True:
        try:
            return found + blob_findings(roots, blobs, (), place)
        except _NotFetched as missing:
            blobs.add(blobs_of((yield read_blobs(namespace, [missing.name]))))


class _NotFetched(Exception):  # noqa: N818  not an error: a request for a blob
    """The check needs a blob that was not fetched."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class _FetchedBlobs:
    """``Blobs`` of which all hashes and some bodies are known."""

    def __init__(self, names: Iterable[str], bodies: dict[str, Blob] | None = None) -> None:
        self._names = frozenset(names)
        self._bodies = dict(bodies or {})

    def add(self, bodies: dict[str, Blob]) -> None:
        self._bodies |= bodies

    def missing_blobs(self, hashes: Collection[str]) -> frozenset[str]:
        return frozenset(hashes) - self._names

    def blobs(self, hashes: Sequence[str]) -> list[Blob]:
        for name in hashes:
            if name not in self._names:
                raise BlobNotFoundError(name)
            if name not in self._bodies:
                raise _NotFetched(name)
        return in_order(self._bodies, hashes)
