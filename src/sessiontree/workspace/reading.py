"""Reading the files that a scan found changed, a batch at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sessiontree.blobs import Blob, blob_of
from sessiontree.workspace.cache import Known, key_of
from sessiontree.workspace.safe_paths import Folder
from sessiontree.workspace.scan import Pending, Scan

__all__ = ["Loaded", "batches_of", "compressed", "load"]

_BATCH_BYTES = 8 << 20
_BATCH_FILES = 1000
_ATTEMPTS = 3


class Loaded(NamedTuple):
    """A file's bytes, named by their hash."""

    hash: str
    data: bytes


def batches_of(pending: Sequence[Pending]) -> Iterator[Sequence[Pending]]:
    """Runs of files that fit into memory together."""
    batch: list[Pending] = []
    size = 0
    for file in pending:
        if batch and (size + file.size > _BATCH_BYTES or len(batch) == _BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def load(folder: Folder, scan: Scan, batch: Sequence[Pending]) -> list[Loaded]:
    """Read and hash files, and tell the scan; what vanished or cannot be read is told too."""
    loaded: list[Loaded] = []
    for pending in batch:
        try:
            data, known = _steady(folder, scan, pending)
        except (FileNotFoundError, NotADirectoryError):
            scan.removed.append(pending.path)
        except OSError:
            scan.leave_out(pending.folder, pending.name, "unreadable", pending.size)
        else:
            scan.believe(pending, known)
            loaded.append(Loaded(known.content.hex(), data))
    return loaded


def compressed(loaded: Sequence[Loaded], wanted: frozenset[str]) -> tuple[Blob, ...]:
    """Blobs of those that the store does not have."""
    fresh = {file.hash: file.data for file in loaded if file.hash in wanted}
    return tuple(blob_of(data, name) for name, data in fresh.items())


def _steady(folder: Folder, scan: Scan, pending: Pending) -> tuple[bytes, Known]:
    """A file that is being written is read again; if it never holds still, what was read counts, but not its stat."""
    for _ in range(_ATTEMPTS):
        data, before = folder.read_file(pending.path)
        after = folder.look(pending.path)
        key = key_of(before)
        is_steady = after is not None and key_of(after) == key and len(data) == before.st_size
        if is_steady:
            break
    size_as_read = (key[0], key[1], len(data), key[3], key[4])
    return data, Known(size_as_read, "file", hashlib.sha256(data).digest(), not is_steady or scan.is_racy(key))
