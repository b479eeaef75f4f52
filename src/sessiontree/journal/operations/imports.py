"""Verbs for imports: threads and histories of other stores, and the blobs that their checkpoints need."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.errors import InvalidInputError
from sessiontree.journal.operations.entries import checked_hashes, checked_id, checked_time
from sessiontree.journal.operations.requests import Operation, Work
from sessiontree.journal.operations.threads import checked_record, checked_thread
from sessiontree.model import Move, Thread
from sessiontree.model.blobs import Blob, data_of
from sessiontree.stores.commands import Draft, ImportHistory, ImportThread, PositionedDraft, PutBlobs
from sessiontree.stores.queries import FindMissingBlobs, ReadBlobs

__all__ = ["import_history", "import_thread", "missing_blobs", "put_blobs", "read_blobs"]


def import_thread(thread: Thread, base: str | None) -> Operation[Thread]:
    """Create a thread as it is in another store."""
    imported: Thread = yield ImportThread(thread=checked_thread(thread), base=base)
    return imported


def import_history(thread_id: str, steps: Iterable[PositionedDraft | Move]) -> Operation[Thread]:
    """Add entries and leaf moves of another store to a thread."""
    checked = tuple([_checked_step(step, thread_id) for step in steps])
    imported: Thread = yield ImportHistory(thread_id=thread_id, steps=checked)
    return imported


def _checked_step(step: PositionedDraft | Move, thread_id: str) -> PositionedDraft | Move:
    match step:
        case PositionedDraft(draft=Draft() as draft):
            checked_id(draft.id, "entry id")
            checked_time(draft.created_ns, "created_ns")
            return step
        case Move() if step.thread_id == thread_id:
            return checked_record(step, f"move {step.number!r} of thread {thread_id!r}", Move)
        case Move():
            raise InvalidInputError(f"the move is of thread {step.thread_id!r}, not of {thread_id!r}")
        case _:
            raise InvalidInputError(f"a step must be a PositionedDraft of make_draft() or a Move, not {step!r}")


def put_blobs(blobs: Iterable[Blob]) -> Operation[int]:
    """Store the blobs that are missing, and return how many those were."""
    given = {_checked_blob(blob).hash: blob for blob in blobs}
    missing = sorted((yield from missing_blobs(given)))
    if missing:
        new = tuple([given[name] for name in missing])
        yield Work(function=_check_contents, arguments=(new,))
        yield PutBlobs(blobs=new)
    return len(missing)


def _checked_blob(blob: Blob) -> Blob:
    if not isinstance(blob, Blob):
        raise InvalidInputError(f"a blob must be what blob_of() returns, not {blob!r}")
    return blob


def _check_contents(blobs: Iterable[Blob]) -> None:
    """Raise DamagedDataError for a blob whose content does not match its hash: it must not enter the store."""
    for blob in blobs:
        data_of(blob)


def missing_blobs(hashes: Iterable[str]) -> Operation[frozenset[str]]:
    """Return those of the hashes for which the store has no blob."""
    asked = checked_hashes(tuple(hashes))
    missing: frozenset[str] = (yield FindMissingBlobs(hashes=asked)) if asked else frozenset()
    return missing


def read_blobs(hashes: Iterable[str]) -> Operation[list[Blob]]:
    """Return the blobs with these hashes."""
    found: list[Blob] = yield ReadBlobs(hashes=checked_hashes(tuple(hashes)))
    return found
