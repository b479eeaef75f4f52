"""The root of the errors, and the ones that need no family.

Somebody else was there first.

A folder cannot be read or changed as asked.

What was asked for is not there.

A store cannot be opened, read or written.

A model or its summary does not do.

Every error that sessiontree raises, in one tree; a module for each branch.

::

    SessionTreeError                     root.py
    ├── InvalidInputError                nothing was written: mend the input
    ├── MissingExtraError                install the extra that it names
    ├── DamagedDataError                 bytes on disk are not what was written: run doctor
    ├── NotFoundError                    missing.py
    │   ├── ThreadNotFoundError
    │   ├── EntryNotFoundError
    │   ├── SessionNotFoundError
    │   ├── BlobNotFoundError
    │   ├── NoCheckpointError
    │   ├── NothingToUndoError
    │   ├── NothingToRedoError
    │   ├── NothingToRetryError
    │   └── NothingToUncompactError
    ├── ConflictError                    conflicts.py; somebody else was there first: read again, then decide
    │   ├── ThreadExistsError
    │   ├── ThreadArchivedError          it was put away: bring it back or start another one
    │   ├── DuplicateEntryError
    │   ├── InvalidParentError
    │   ├── StaleLeafError
    │   ├── StaleVersionError
    │   ├── ActiveTurnError
    │   ├── FencedError
    │   ├── CompactionClaimedError       somebody else compacts the thread at this moment
    │   ├── ClaimLostError
    │   ├── InvalidMoveError             a session's state cannot become that one
    │   ├── SessionNotArchivedError
    │   ├── CopyMismatchError
    │   ├── MissingBlobsError            blobs went away between put and append: put them again
    │   └── RestoreConflictError         a restore would overwrite somebody else's work
    ├── SummaryError                     summaries.py; a summariser failed: nothing was written
    │   ├── EmptySummaryError
    │   ├── OversizedSummaryError
    │   └── TruncatedSummaryError
    ├── ContextOverflowError             too long for the model, also after one compaction
    ├── WorkspaceError                   folders.py; a folder is as it was
    │   ├── UnsafePathError              a path would leave the folder or cannot exist in it
    │   ├── FolderChangedError           somebody wrote to the folder while it was being restored
    │   └── PendingRestoreError          an interrupted restore belongs to another store
    └── StoreError                       stores.py
        ├── StoreUrlError                the address names no store
        ├── ForeignStoreError            the file or folder is not ours; it was left untouched
        ├── NewerFormatError             written by a newer sessiontree; it was left untouched
        ├── NetworkFileSystemError       locks are not safe there
        ├── StoreReadOnlyError
        ├── StoreAccessError             the role may not do this
        ├── StoreFullError
        ├── StoreUnavailableError        safe to try again
        ├── StoreClosedError
        ├── StoreGoneError               its file or folder was deleted or replaced while it was open
        ├── StorePoisonedError           a sync failed: reopen the store
        └── CommitUnknownError           may or may not be committed: the entry id tells

Each error carries the ids it is about as attributes and ends with what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = [
    "ActiveTurnError",
    "BlobNotFoundError",
    "ClaimLostError",
    "CommitUnknownError",
    "CompactionClaimedError",
    "ConflictError",
    "ContextOverflowError",
    "CopyMismatchError",
    "DamagedDataError",
    "DuplicateEntryError",
    "EmptySummaryError",
    "EntryNotFoundError",
    "FencedError",
    "FolderChangedError",
    "ForeignStoreError",
    "InvalidInputError",
    "InvalidMoveError",
    "InvalidParentError",
    "MissingBlobsError",
    "MissingExtraError",
    "NetworkFileSystemError",
    "NewerFormatError",
    "NoCheckpointError",
    "NotFoundError",
    "NothingToRedoError",
    "NothingToRetryError",
    "NothingToUncompactError",
    "NothingToUndoError",
    "OversizedSummaryError",
    "PendingRestoreError",
    "RestoreConflictError",
    "SessionNotArchivedError",
    "SessionNotFoundError",
    "SessionTreeError",
    "StaleLeafError",
    "StaleVersionError",
    "StoreAccessError",
    "StoreClosedError",
    "StoreError",
    "StoreFullError",
    "StoreGoneError",
    "StorePoisonedError",
    "StoreReadOnlyError",
    "StoreUnavailableError",
    "StoreUrlError",
    "SummaryError",
    "ThreadArchivedError",
    "ThreadExistsError",
    "ThreadNotFoundError",
    "TruncatedSummaryError",
    "UnsafePathError",
    "WorkspaceError",
]


class SessionTreeError(Exception):
    """The root of every error raised by sessiontree. Errors can be pickled, so they cross to other processes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, vars(self))


class InvalidInputError(SessionTreeError, ValueError):
    """The input cannot be stored as it is; nothing was written."""


class MissingExtraError(SessionTreeError, ImportError):
    """A feature needs a package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        super().__init__(f"{feature} needs an optional package; install it with: pip install 'sessiontree[{extra}]'")


class DamagedDataError(SessionTreeError):
    def __init__(self, place: str, offset: int, problem: str) -> None:
        self.place = place
        self.offset = offset
        self.problem = problem
        super().__init__(
            f"{place} is damaged at byte {offset}: {problem}; run `sessiontree doctor` to see and repair it"
        )


def _restored(kind: type[SessionTreeError], arguments: tuple[Any, ...], fields: dict[str, Any]) -> SessionTreeError:
    error = kind.__new__(kind, *arguments)
    vars(error).update(fields)
    return error


class ConflictError(SessionTreeError):
    """The store holds something that contradicts the request; nothing was written."""


class ThreadArchivedError(ConflictError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} is archived; bring it back, or append without expect_live to write to it all the same"
        )


class ThreadExistsError(ConflictError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} exists already; use another id, or go on with that one")


class DuplicateEntryError(ConflictError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"entry id {entry_id!r} is taken by another entry of the tree of thread {thread_id!r}; "
            "give the new content a new id"
        )


class InvalidParentError(ConflictError):
    def __init__(self, thread_id: str, parent: str) -> None:
        self.thread_id = thread_id
        self.parent = parent
        super().__init__(
            f"entry {parent!r} cannot be a parent in thread {thread_id!r}: the thread does not see it; fork there instead"
        )


class StaleLeafError(ConflictError):
    def __init__(self, thread_id: str, expected: str | None, actual: str | None) -> None:
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"the leaf of thread {thread_id!r} is {actual!r}, not {expected!r}; read the new entries, then try again"
        )


class StaleVersionError(ConflictError):
    def __init__(self, thread_id: str, expected: int, actual: int) -> None:
        self.thread_id = thread_id
        self.expected = expected
        self.actual = actual
        super().__init__(f"thread {thread_id!r} is at version {actual}, not {expected}; read it again, then update")


class ActiveTurnError(ConflictError):
    def __init__(self, thread_id: str, owner: str, turn_id: str, expires_ns: int) -> None:
        self.thread_id = thread_id
        self.owner = owner
        self.turn_id = turn_id
        self.expires_ns = expires_ns
        super().__init__(
            f"a turn {turn_id!r} of {owner!r} runs on thread {thread_id!r} until {_moment(expires_ns)}; "
            "wait for it, or take over after it expires"
        )


class CopyMismatchError(ConflictError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        what = f"entry {entry_id!r} of thread {thread_id!r}" if entry_id else f"thread {thread_id!r}"
        super().__init__(f"{what} is not the same in both stores; copy into an empty store, while nobody writes")


class FencedError(ConflictError):
    def __init__(self, thread_id: str, token: int, current: int) -> None:
        self.thread_id = thread_id
        self.token = token
        self.current = current
        super().__init__(
            f"lease token {token} on thread {thread_id!r} is no longer valid (current token {current}); "
            "another owner took over or the lease was released: stop this turn and acquire a new lease"
        )


class CompactionClaimedError(ConflictError):
    def __init__(self, thread_id: str, owner: str, expires_ns: int) -> None:
        self.thread_id = thread_id
        self.owner = owner
        self.expires_ns = expires_ns
        super().__init__(
            f"{owner!r} is compacting thread {thread_id!r}, until {_moment(expires_ns)} at most; "
            "its result serves you too: read the context again later"
        )


class ClaimLostError(ConflictError):
    def __init__(self, thread_id: str, owner: str) -> None:
        self.thread_id = thread_id
        self.owner = owner
        who = f"{owner!r} took it over" if owner else "it was given back"
        super().__init__(
            f"the claim to compact thread {thread_id!r} expired and {who}; nothing was installed, "
            "give the summariser a shorter time-out or the claim a longer one"
        )


class InvalidMoveError(ConflictError):
    def __init__(self, key: str, state: str, wanted: str, allowed: Iterable[str]) -> None:
        self.key = key
        self.state = state
        self.wanted = wanted
        self.allowed = tuple(allowed)
        super().__init__(f"session {key!r} is {state} and cannot become {wanted}; it can become {list(self.allowed)}")


class SessionNotArchivedError(ConflictError):
    """The conversation in use is not archived; earlier ones are, and a generation names one of them."""

    def __init__(self, key: str, generations: Iterable[int]) -> None:
        self.key = key
        self.generations = tuple(generations)
        super().__init__(
            f"session {key!r} is in use; unarchive(key, generation=...) brings one of its earlier conversations back:"
            f" {list(self.generations)}"
        )


class MissingBlobsError(ConflictError):
    def __init__(self, thread_id: str, hashes: Iterable[str]) -> None:
        self.thread_id = thread_id
        self.hashes = tuple(hashes)
        super().__init__(
            f"{len(self.hashes)} blobs that an entry for thread {thread_id!r} needs are not in the store; "
            "put them again, then append"
        )


class RestoreConflictError(ConflictError):
    def __init__(self, root: str, paths: Iterable[str]) -> None:
        self.root = root
        self.paths = tuple(paths)
        shown = ", ".join(map(repr, self.paths[:5])) + (" …" if len(self.paths) > 5 else "")
        super().__init__(
            f"restoring {root} would overwrite {len(self.paths)} files that somebody else changed or that no checkpoint "
            f"holds: {shown}; look at the plan of a dry run, then choose keep_mine or force for such conflicts"
        )


def _moment(time_ns: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415  most runs end without an error

    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{time_ns} ns"


class WorkspaceError(SessionTreeError):
    """A folder cannot be read or changed as asked; it is as it was before."""

    def __init__(self, root: str, problem: str) -> None:
        self.root = root
        super().__init__(f"{root}: {problem}")


class UnsafePathError(WorkspaceError, ValueError):
    def __init__(self, root: str, path: str, problem: str) -> None:
        self.path = path
        super().__init__(root, f"path {path!r} {problem}; nothing was changed")


class FolderChangedError(WorkspaceError):
    def __init__(self, root: str, path: str) -> None:
        self.path = path
        super().__init__(
            root,
            f"{path!r} was changed by somebody else meanwhile; everything is as before, try again when they are done",
        )


class PendingRestoreError(WorkspaceError):
    def __init__(self, root: str, place: str, thread_id: str) -> None:
        self.place = place
        self.thread_id = thread_id
        super().__init__(
            root,
            f"an interrupted rewind of thread {thread_id!r} in {place} waits to be settled; "
            "repeat it in that store, which settles the files first, or recover the folder here, preferring old or new",
        )


class NotFoundError(SessionTreeError):
    """Something that was asked for by name is not there."""


class ThreadNotFoundError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no thread {thread_id!r} in this store; list the threads to see what is there")


class EntryNotFoundError(NotFoundError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"thread {thread_id!r} cannot see an entry {entry_id!r}; "
            "list its entries to see which it can, forks keep their own"
        )


class NothingToUndoError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} has no leaf move left to undo; its reflog lists them all")


class NothingToRedoError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} has nothing to redo: the last thing that happened to it was not an undo; "
            "a move of the leaf reaches every entry in its reflog"
        )


class NothingToRetryError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} has no failed turn and no user message to retry from")


class NothingToUncompactError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no compaction is in force on the path of thread {thread_id!r}; its context is whole")


class SessionNotFoundError(NotFoundError):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"no session {key!r} in this store; list() shows what is there, get_or_create() starts one")


class NoCheckpointError(NotFoundError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"no workspace checkpoint for entry {entry_id!r} in thread {thread_id!r}; "
            "files come back only to entries at which a snapshot of their folder was taken"
        )


class BlobNotFoundError(NotFoundError):
    def __init__(self, hash: str) -> None:
        self.hash = hash
        super().__init__(f"no blob {hash!r} in this store; run `sessiontree doctor` to see which checkpoints need it")


class StoreError(SessionTreeError):
    """The store itself cannot do its work."""

    def __init__(self, place: str, message: str) -> None:
        self.place = place
        super().__init__(f"{place}: {message}")


class StoreUrlError(StoreError, ValueError):
    def __init__(self, url: str, problem: str) -> None:
        self.url = url
        super().__init__(
            url, f"{problem}; use memory:, sqlite:///file.db, jsonl:///folder, postgresql://host/db or a plain path"
        )


class ForeignStoreError(StoreError):
    def __init__(self, place: str, found: str) -> None:
        super().__init__(
            place, f"this is not a sessiontree store ({found}); it was left untouched, choose another path"
        )


class NewerFormatError(StoreError):
    def __init__(self, place: str, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            place,
            f"format {found} is newer than {supported}, the newest known here; upgrade sessiontree (left untouched)",
        )


class NetworkFileSystemError(StoreError):
    def __init__(self, place: str, file_system: str) -> None:
        self.file_system = file_system
        super().__init__(
            place,
            f"the file system is {file_system}, where file locks and memory maps are not safe between machines; "
            "use a local disk, or the PostgreSQL store",
        )


class StoreReadOnlyError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(place, "cannot be written; check the permissions of the file and its folder")


class StoreAccessError(StoreError):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, f"access denied ({problem}); use a role that is bound to this namespace")


class StoreFullError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(place, "no space left; nothing of this request was kept, free some space and try again")


class StoreUnavailableError(StoreError):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, f"not available now ({problem}); it is safe to try again")


class StoreClosedError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(place, "is closed; open it again")


class StoreGoneError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(
            place, "was deleted or replaced while it was open, so nothing more is written; open it again to go on"
        )


class StorePoisonedError(StoreError):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(
            place,
            f"a write to disk failed ({problem}), so nothing more is acknowledged; close the store and open it again",
        )


class CommitUnknownError(StoreError):
    def __init__(self, place: str, problem: str, entry_ids: Iterable[str] = ()) -> None:
        self.entry_ids = tuple(entry_ids)
        way_out = (
            f"look whether {list(self.entry_ids)} are there; to repeat it with the same ids is a no-op if they are"
            if self.entry_ids
            else "read the thread to see whether it went through before you repeat it"
        )
        super().__init__(place, f"the outcome of the commit is not known ({problem}); {way_out}")


class SummaryError(SessionTreeError):
    """A summariser gave no usable answer. The conversation is as it was."""

    def __init__(self, problem: str, *, retry_after_seconds: float | None = None) -> None:
        self.problem = problem
        self.retry_after_seconds = retry_after_seconds
        wait = "" if retry_after_seconds is None else f" after {retry_after_seconds:g} seconds"
        super().__init__(
            f"no summary: {problem}; nothing was changed, try again{wait}, or use the strategy hybrid or truncate"
        )


class EmptySummaryError(SummaryError):
    def __init__(self) -> None:
        super().__init__("the answer was empty")


class OversizedSummaryError(SummaryError):
    def __init__(self, tokens: int, most_tokens: int) -> None:
        self.tokens = tokens
        self.most_tokens = most_tokens
        super().__init__(f"the answer has {tokens} tokens and at most {most_tokens} fit the window")


class TruncatedSummaryError(SummaryError):
    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        super().__init__(f"the answer was cut off at {max_tokens} tokens; allow more summary_tokens")


class ContextOverflowError(SessionTreeError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"the context of thread {thread_id!r} is too long for the model, also after a compaction; "
            "use a model with a larger window, or rewind to before the entry that is too big"
        )
