"""Copy entries together with the blobs that their checkpoints need: first the blobs, then who refers to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from sessiontree.blobs import Blob, data_of
from sessiontree.commands import ImportHistory, Placed, PutBlobs
from sessiontree.errors import MissingBlobsError
from sessiontree.journal import Journal
from sessiontree.manifest import decode_manifest
from sessiontree.model import Checkpoint, Move
from sessiontree.queries import FindMissingBlobs, ReadBlobs

__all__ = ["import_steps"]

_ATTEMPTS = 5
_BATCH_BYTES = 16 << 20
_BATCH_BLOBS = 500

Sizes = Mapping[str, int]


def import_steps(old: Journal, new: Journal, thread_id: str, steps: Sequence[Placed | Move]) -> int:
    """Write a part of a thread's history; how many blobs that took.

    A delete in the target may collect the blobs before the entries are there; then they are put again.
    """
    needs = [_needs(old, step) for step in steps]
    sizes = {name: size for need in needs for name, size in need.items()}
    command = ImportHistory(thread_id=thread_id, steps=tuple(map(_relying, steps, needs)))
    for attempt in range(_ATTEMPTS):
        copied = _copy_blobs(old, new, sizes)
        try:
            new.store.commit(command)
        except MissingBlobsError:
            if attempt == _ATTEMPTS - 1:
                raise
            continue
        break
    return copied


def _needs(old: Journal, step: Placed | Move) -> Sizes:
    """The manifest of a checkpoint, its base and the files it lists; what the base lists came with its own entry."""
    if not isinstance(step, Placed) or not isinstance(step.draft.payload, Checkpoint):
        return {}
    name = step.draft.payload.manifest
    if not name:
        return {}
    (blob,) = _read(old, [name])
    manifest = decode_manifest(data_of(blob), f"blob {name}")
    files = {item.hash: item.size for item in manifest.changed.values() if item.kind == "file"}
    return {name: blob.size, **({manifest.base: 0} if manifest.base else {}), **files}


def _relying(step: Placed | Move, needs: Sizes) -> Placed | Move:
    if isinstance(step, Move) or not needs:
        return step
    return replace(step, draft=replace(step.draft, blobs=tuple(needs)))


def _copy_blobs(old: Journal, new: Journal, sizes: Sizes) -> int:
    if not sizes:
        return 0
    missing = new.store.read(FindMissingBlobs(hashes=tuple(sizes)))
    for batch in _batches(sorted(missing), sizes):
        blobs = _read(old, batch)
        for blob in blobs:
            data_of(blob)  # damage must not travel
        new.store.commit(PutBlobs(blobs=tuple(blobs)))
    return len(missing)


def _read(journal: Journal, names: Sequence[str]) -> list[Blob]:
    return journal.store.read(ReadBlobs(hashes=tuple(names)))


def _batches(names: Iterable[str], sizes: Sizes) -> Iterator[list[str]]:
    batch: list[str] = []
    weight = 0
    for name in names:
        if batch and (weight + sizes[name] > _BATCH_BYTES or len(batch) == _BATCH_BLOBS):
            yield batch
            batch, weight = [], 0
        batch.append(name)
        weight += sizes[name]
    if batch:
        yield batch
