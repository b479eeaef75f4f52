"""The content of a namespace at one moment, as a JSONL store."""

from __future__ import annotations

from sessiontree.model.blobs import batches
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.jsonl.dump import Dump, Owners
from sessiontree.stores.postgres.blobs import blobs_of, hashes_of, read_blobs
from sessiontree.stores.postgres.content import BEGIN_SNAPSHOT, Cursor, StoreContent, read_content
from sessiontree.stores.postgres.doctor import LENGTHS
from sessiontree.stores.postgres.documents import ALL_DOCUMENTS, documents_of
from sessiontree.stores.postgres.steps import ROLLBACK, Statement, Steps

__all__ = ["take_snapshot"]


_PENDING = "SELECT hash FROM sessiontree.pending_artifact WHERE namespace = %(namespace)s"


def take_snapshot(namespace: str, place: str, request: SnapshotRequest) -> Steps[Snapshot]:
    """Write the namespace to the scratch folder, in one transaction."""
    dump = Dump(request)

    def add_trees(content: StoreContent) -> None:
        dump.add_content(content, Owners(trees=content.trees, numbers=content.numbers, names=content.names))

    yield BEGIN_SNAPSHOT
    yield from read_content(namespace, add_trees)
    yield from _add_blobs(dump, namespace)
    dump.add_pending(hashes_of((yield Statement(_PENDING, {"namespace": namespace}))))
    yield from _add_documents(dump, namespace)
    yield ROLLBACK
    return dump.snapshot(place)


def _add_blobs(dump: Dump, namespace: str) -> Steps[None]:
    cursor = Cursor("lengths", LENGTHS, namespace)
    yield from cursor.open()
    while lengths := (yield from cursor.fetch()):
        for rows in batches(lengths, lambda row: int(row[1])):
            found = blobs_of((yield read_blobs(namespace, [digest.hex() for digest, _ in rows])))
            dump.add_blobs(found.values())


def _add_documents(dump: Dump, namespace: str) -> Steps[None]:
    cursor = Cursor("documents", ALL_DOCUMENTS, namespace)
    yield from cursor.open()
    while rows := (yield from cursor.fetch()):
        dump.add_documents(documents_of(rows))
