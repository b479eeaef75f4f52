"""Contents that imported checkpoints refer to: into the store before them, and all of them or none."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.blobs import Blob, data_of
from sessiontree.commands import PutBlobs
from sessiontree.errors import BlobNotFoundError, DamagedDataError, NewerFormatError
from sessiontree.journal import Journal
from sessiontree.manifest import reachable
from sessiontree.queries import FindMissingBlobs, ReadBlobs

__all__ = ["has_files", "put_blobs"]


def put_blobs(journal: Journal, blobs: Iterable[Blob]) -> None:
    """Put what the store does not have."""
    new = {blob.hash: blob for blob in blobs}
    if new:
        missing = journal.store.read(FindMissingBlobs(hashes=tuple(new)))
        if missing:
            journal.store.commit(PutBlobs(blobs=tuple(new[name] for name in sorted(missing))))


def has_files(journal: Journal, manifest: str, coming: Iterable[Blob]) -> bool:
    """Whether a manifest and every file in it are on their way or in the store."""
    near = {blob.hash: blob for blob in coming}

    def read(name: str) -> bytes:
        (blob,) = (near[name],) if name in near else journal.store.read(ReadBlobs(hashes=(name,)))
        return data_of(blob)

    try:
        needed = reachable([manifest], read) - near.keys()
    except (BlobNotFoundError, DamagedDataError, NewerFormatError):
        return False
    return not needed or not journal.store.read(FindMissingBlobs(hashes=tuple(needed)))
