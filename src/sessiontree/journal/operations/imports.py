"""Verbs for imports: threads and histories of other stores, and the blobs that their checkpoints need."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.journal.operations.requests import Operation, Work
from sessiontree.journal.operations.threads import checked_thread
from sessiontree.model import Move, Thread
from sessiontree.model.blobs import Blob, data_of
from sessiontree.stores.commands import ImportHistory, ImportThread, PositionedDraft, PutBlobs
from sessiontree.stores.queries import FindMissingBlobs, ReadBlobs

__all__ = ["import_history", "import_thread", "missing_blobs", "put_blobs", "read_blobs"]


def import_thread(thread: Thread, base: str | None) -> Operation[Thread]:
    """Create a thread as it is in another store."""
    imported: Thread = yield ImportThread(thread=checked_thread(thread), base=base)
    return imported


def import_history(thread_id: str, steps: Iterable[PositionedDraft | Move]) -> Operation[Thread]:
    """Add entries and leaf moves of another store to a thread."""
    imported: Thread = yield ImportHistory(thread_id=thread_id, steps=tuple(steps))
    return imported


def put_blobs(blobs: Iterable[Blob]) -> Operation[int]:
    """Store the blobs that are missing, and return how many those were."""
    given = {blob.hash: blob for blob in blobs}
    missing = sorted((yield from missing_blobs(given)))
    if missing:
        new = tuple([given[name] for name in missing])
        yield Work(function=_check_contents, arguments=(new,))
        yield PutBlobs(blobs=new)
    return len(missing)


def _check_contents(blobs: Iterable[Blob]) -> None:
    """Raise DamagedDataError for a blob whose content does not match its hash: it must not enter the store."""
    for blob in blobs:
        data_of(blob)


def missing_blobs(hashes: Iterable[str]) -> Operation[frozenset[str]]:
    """Return those of the hashes for which the store has no blob."""
    asked = tuple(hashes)
    missing: frozenset[str] = (yield FindMissingBlobs(hashes=asked)) if asked else frozenset()
    return missing


def read_blobs(hashes: Iterable[str]) -> Operation[list[Blob]]:
    """Return the blobs with these hashes."""
    found: list[Blob] = yield ReadBlobs(hashes=tuple(hashes))
    return found
