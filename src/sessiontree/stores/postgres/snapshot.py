"""The content of a namespace at one moment, as a JSONL store."""

from __future__ import annotations

from sessiontree.model.blobs import batches
from sessiontree.stores.backup.snapshot import Snapshot, SnapshotRequest
from sessiontree.stores.jsonl.dump import Dump, Owners
from sessiontree.stores.postgres.blobs import blobs_of, hashes_of, read_blobs
from sessiontree.stores.postgres.doctor import LENGTHS, StoreContent, read_content
from sessiontree.stores.postgres.documents import all_documents
from sessiontree.stores.postgres.steps import ROLLBACK, Statement, Steps, to_text

__all__ = ["take_snapshot"]


_DELETED = "SELECT key, id FROM sessiontree.deleted_thread WHERE namespace = %(namespace)s"
_PENDING = "SELECT hash FROM sessiontree.pending_artifact WHERE namespace = %(namespace)s"


def take_snapshot(namespace: str, place: str, request: SnapshotRequest) -> Steps[Snapshot]:
    """Write the namespace to the scratch folder, in one transaction. Reads all entries into memory."""
    values = {"namespace": namespace}
    content: StoreContent = yield from read_content(namespace)
    names = {state.key: name for name, state in content.states.items()}
    for key, thread_id in (yield Statement(_DELETED, values)):
        names.setdefault(key, to_text(thread_id))
    dump = Dump(request)
    dump.add_content(content, Owners(trees=content.trees, numbers=content.numbers, names=names))
    lengths = yield Statement(LENGTHS, values)
    for rows in batches(lengths, lambda row: int(row[1])):
        found = blobs_of((yield read_blobs(namespace, [digest.hex() for digest, _ in rows])))
        dump.add_blobs(found.values())
    dump.add_pending(hashes_of((yield Statement(_PENDING, values))))
    dump.add_documents((yield from all_documents(namespace)))
    yield ROLLBACK
    return dump.snapshot(place)
