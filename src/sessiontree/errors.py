"""Every error that sessiontree raises.

::

    SessionTreeError
    ├── InvalidInputError                the input was refused; nothing was written
    ├── MissingExtraError                an optional package is not installed
    ├── DamagedDataError                 stored bytes are not what was written: run doctor
    ├── ContextOverflowError             too long for the model, even after a compaction
    ├── AnswerInterruptedError           a streamed answer has no end; a part of it is stored
    ├── NotFoundError
    │   ├── ThreadNotFoundError
    │   ├── EntryNotFoundError
    │   ├── SessionNotFoundError
    │   ├── BlobNotFoundError
    │   ├── NoCheckpointError            no snapshot of files for this entry
    │   ├── NothingToUndoError
    │   ├── NothingToRedoError
    │   ├── NothingToRetryError
    │   └── NothingToUncompactError
    ├── ConflictError                    the store has changed: read it again, then decide
    │   ├── ThreadExistsError
    │   ├── ThreadArchivedError
    │   ├── ThreadChangedError           the thread does not match the query any more
    │   ├── DuplicateEntryError          the id belongs to an entry with other content
    │   ├── InvalidParentError           the parent is not visible in the thread
    │   ├── StaleLeafError               another writer moved the leaf
    │   ├── StaleVersionError            another writer updated the thread
    │   ├── StaleDocumentError           another writer updated the document
    │   ├── ActiveTurnError              another turn is running on the thread
    │   ├── FencedError                  the lease was lost: stop this turn
    │   ├── CompactionClaimedError       another process is compacting the thread
    │   ├── ClaimLostError               the claim to compact expired before the end
    │   ├── InvalidTransitionError       the session cannot change to that state
    │   ├── SessionNotArchivedError
    │   ├── CopyMismatchError            the two stores differ
    │   ├── MissingBlobsError            blobs were removed between put and append
    │   └── RestoreConflictError         a restore would overwrite other work
    ├── SummaryError                     the summariser failed; nothing was written
    │   ├── EmptySummaryError
    │   ├── OversizedSummaryError
    │   └── TruncatedSummaryError
    ├── WorkspaceError                   a folder could not be used; it is unchanged
    │   ├── UnsafePathError              a path leaves the folder or cannot exist in it
    │   ├── FolderChangedError           files changed while they were being restored
    │   └── PendingRestoreError          an interrupted restore has to be finished first
    └── StoreError
        ├── StoreUrlError                the address names no store
        ├── ForeignStoreError            not a sessiontree store; left untouched
        ├── NewerFormatError             written by a newer version; left untouched
        ├── NetworkFileSystemError       file locks are not reliable there
        ├── StoreReadOnlyError
        ├── StoreAccessError             the database role lacks a permission
        ├── StoreFullError
        ├── StoreUnavailableError        safe to try again
        ├── StoreClosedError
        ├── StoreGoneError               deleted or replaced while it was open
        ├── StorePoisonedError           a sync failed: close the store and open it again
        ├── BackupError                  no backup was made, or none can be restored
        └── CommitUnknownError           it may or may not be committed: check by id

Errors have the ids that they are about as attributes, and their text ends with what to do. They can be pickled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class SessionTreeError(Exception):
    """The root of every error raised by sessiontree."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (type(self), self.args, vars(self))


def _unpickle(kind: type[SessionTreeError], arguments: tuple[Any, ...], fields: dict[str, Any]) -> SessionTreeError:
    """Rebuild an error without calling its constructor, which takes ids and not the text."""
    error = kind.__new__(kind, *arguments)
    vars(error).update(fields)
    return error


class InvalidInputError(SessionTreeError, ValueError):
    """The input cannot be stored or understood; nothing was written."""


class MissingExtraError(SessionTreeError, ImportError):
    """A feature needs a package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.feature = feature
        self.extra = extra
        super().__init__(f"{feature} needs an optional package; install it with: pip install 'sessiontree[{extra}]'")


class DamagedDataError(SessionTreeError):
    """Stored bytes are not what was written."""

    def __init__(self, place: str, offset: int, problem: str) -> None:
        self.place = place
        self.offset = offset
        self.problem = problem
        super().__init__(f"{place} is damaged at byte {offset}: {problem}; run `sessiontree doctor --repair`")


class ContextOverflowError(SessionTreeError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"the context of thread {thread_id!r} is too long for the model, even after a compaction; "
            "use a model with a larger window, or rewind to before the largest entry"
        )


class AnswerInterruptedError(SessionTreeError):
    def __init__(self, thread_id: str, answer_id: str, reason: str) -> None:
        self.thread_id, self.answer_id, self.reason = thread_id, answer_id, reason
        super().__init__(
            f"the answer in thread {thread_id!r} was interrupted ({reason}); what was shown is stored, try again"
        )


class NotFoundError(SessionTreeError):
    """The store does not contain what was asked for."""


class ThreadNotFoundError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no thread {thread_id!r} in this store; list the threads to see what is there")


class EntryNotFoundError(NotFoundError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"no entry {entry_id!r} is visible in thread {thread_id!r}; list its entries (a fork has entries of its own)"
        )


class SessionNotFoundError(NotFoundError):
    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"no session {key!r} in this store; list() shows what is there, get_or_create() starts one")


class BlobNotFoundError(NotFoundError):
    def __init__(self, hash: str) -> None:
        self.hash = hash
        super().__init__(f"no blob {hash!r} in this store; run `sessiontree doctor` to see which entries need it")


class NoCheckpointError(NotFoundError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"no checkpoint for {entry_id!r} in thread {thread_id!r}; "
            "choose one of those that its list of checkpoints shows"
        )


class NothingToUndoError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no leaf move of thread {thread_id!r} is left to undo; see its reflog")


class NothingToRedoError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"nothing to redo in thread {thread_id!r}: its last change was not an undo; "
            "move the leaf to any entry that its reflog lists"
        )


class NothingToRetryError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} has no failed turn and no user message to retry; append a message first"
        )


class NothingToUncompactError(NotFoundError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no compaction is in force in thread {thread_id!r}; its context is already complete")


class ConflictError(SessionTreeError):
    """The request contradicts what is in the store; nothing was written."""


class ThreadExistsError(ConflictError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} already exists; use another id, or continue that thread")


class ThreadArchivedError(ConflictError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} is archived; unarchive it first, or append without expect_live")


class ThreadChangedError(ConflictError):
    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} was not deleted, because it does not match the query any more; "
            "read it again, then decide"
        )


class DuplicateEntryError(ConflictError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        super().__init__(
            f"entry id {entry_id!r} already belongs to another entry in the tree of thread {thread_id!r}; use a new id"
        )


class InvalidParentError(ConflictError):
    def __init__(self, thread_id: str, parent: str) -> None:
        self.thread_id = thread_id
        self.parent = parent
        super().__init__(
            f"entry {parent!r} cannot be a parent in thread {thread_id!r}, where it is not visible; fork there instead"
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


class StaleDocumentError(ConflictError):
    def __init__(self, scope: str, key: str, expected: int, actual: int) -> None:
        self.scope = scope
        self.key = key
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"document {key!r} in {scope!r} is at version {actual}, not {expected}; read it again, then put it"
        )


class ActiveTurnError(ConflictError):
    def __init__(self, thread_id: str, owner: str, turn_id: str, expires_ns: int) -> None:
        self.thread_id = thread_id
        self.owner = owner
        self.turn_id = turn_id
        self.expires_ns = expires_ns
        super().__init__(
            f"turn {turn_id!r} of {owner!r} is running on thread {thread_id!r} until {_time_text(expires_ns)}; "
            "wait for it to end, or take over after it expires"
        )


class FencedError(ConflictError):
    def __init__(self, thread_id: str, token: int, current: int) -> None:
        self.thread_id = thread_id
        self.token = token
        self.current = current
        super().__init__(
            f"lease token {token} on thread {thread_id!r} is no longer valid (current token: {current}), because "
            "another owner took over or the lease was released; stop this turn and acquire a new lease"
        )


class CompactionClaimedError(ConflictError):
    def __init__(self, thread_id: str, owner: str, expires_ns: int) -> None:
        self.thread_id = thread_id
        self.owner = owner
        self.expires_ns = expires_ns
        super().__init__(
            f"{owner!r} is already compacting thread {thread_id!r} (until {_time_text(expires_ns)} at most); "
            "wait for its result, then read the context again"
        )


class ClaimLostError(ConflictError):
    def __init__(self, thread_id: str, owner: str) -> None:
        self.thread_id = thread_id
        self.owner = owner
        reason = f"was taken over by {owner!r}" if owner else "was released"
        super().__init__(
            f"the claim to compact thread {thread_id!r} expired and {reason}; nothing was written, "
            "use a shorter time-out for the summariser or a longer claim"
        )


class InvalidTransitionError(ConflictError):
    def __init__(self, key: str, state: str, wanted: str, allowed: Iterable[str]) -> None:
        self.key = key
        self.state = state
        self.wanted = wanted
        self.allowed = tuple(allowed)
        super().__init__(f"session {key!r} is {state} and cannot become {wanted}; allowed: {list(self.allowed)}")


class SessionNotArchivedError(ConflictError):
    """The current conversation is not archived; ``generations`` are the earlier ones, which are."""

    def __init__(self, key: str, generations: Iterable[int]) -> None:
        self.key = key
        self.generations = tuple(generations)
        super().__init__(
            f"the current conversation of session {key!r} is not archived; "
            f"use unarchive(key, generation=...) with an earlier one: {list(self.generations)}"
        )


class CopyMismatchError(ConflictError):
    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id = thread_id
        self.entry_id = entry_id
        what = f"entry {entry_id!r} of thread {thread_id!r}" if entry_id else f"thread {thread_id!r}"
        super().__init__(f"{what} differs between the stores; copy into an empty store that nothing else writes to")


class MissingBlobsError(ConflictError):
    def __init__(self, thread_id: str, hashes: Iterable[str]) -> None:
        self.thread_id = thread_id
        self.hashes = tuple(hashes)
        super().__init__(
            f"an entry for thread {thread_id!r} refers to content that is not in the store: "
            f"{', '.join(self.hashes[:3])}; store it first, then append again"
        )


class RestoreConflictError(ConflictError):
    def __init__(self, root: str, paths: Iterable[str]) -> None:
        self.root = root
        self.paths = tuple(paths)
        shown = ", ".join(map(repr, self.paths[:5])) + (" …" if len(self.paths) > 5 else "")
        super().__init__(
            f"restoring {root} would overwrite {len(self.paths)} files that were changed outside this thread or are in "
            f"no checkpoint: {shown}; review the plan of a dry run, then choose keep_mine or force"
        )


def _time_text(time_ns: int) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415  most runs end without an error

    try:
        return datetime.fromtimestamp(time_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return f"{time_ns} ns"


class SummaryError(SessionTreeError):
    """The summariser failed; the conversation is unchanged."""

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
    def __init__(self, tokens: int, max_tokens: int) -> None:
        self.tokens = tokens
        self.max_tokens = max_tokens
        super().__init__(f"the answer has {tokens} tokens, but at most {max_tokens} fit the window")


class TruncatedSummaryError(SummaryError):
    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        super().__init__(f"the answer was cut off at {max_tokens} tokens; allow more summary_tokens")


class WorkspaceError(SessionTreeError):
    """A folder could not be read or changed; it is unchanged."""

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
            root, f"{path!r} was changed by another program; the restore was undone, try again when it has finished"
        )


class PendingRestoreError(WorkspaceError):
    def __init__(self, root: str, place: str, thread_id: str) -> None:
        self.place = place
        self.thread_id = thread_id
        super().__init__(
            root,
            f"an interrupted rewind of thread {thread_id!r} in {place} is not finished; "
            "repeat it in that store, or recover the folder here, preferring old or new",
        )


class StoreError(SessionTreeError):
    """The store could not do what was asked."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        super().__init__(f"{place}: {problem}")


class StoreUrlError(StoreError, ValueError):
    def __init__(self, url: str, problem: str) -> None:
        self.url = url
        super().__init__(
            url, f"{problem}; use memory:, sqlite:///file.db, jsonl:///folder, postgresql://host/db or a plain path"
        )


class ForeignStoreError(StoreError):
    def __init__(self, place: str, found: str) -> None:
        super().__init__(place, f"this is not a sessiontree store ({found}); left untouched, choose another path")


class NewerFormatError(StoreError):
    def __init__(self, place: str, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(place, f"format {found} is newer than {supported}; left untouched, upgrade sessiontree")


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
        super().__init__(place, "the store cannot be written; check the permissions of the file and its folder")


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
        super().__init__(place, "the store is closed; open it again")


class StoreGoneError(StoreError):
    def __init__(self, place: str) -> None:
        super().__init__(place, "the store was deleted or replaced while open; nothing more is written, open it again")


class StorePoisonedError(StoreError):
    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, f"a write to disk failed ({problem}); close the store and open it again")


class BackupError(StoreError):
    """A backup could not be made, read or restored; earlier backups are unchanged."""


class CommitUnknownError(StoreError):
    def __init__(self, place: str, problem: str, entry_ids: Iterable[str] = ()) -> None:
        self.entry_ids = tuple(entry_ids)
        advice = (
            f"repeat it with the same ids: it has no effect if {list(self.entry_ids)} are stored already"
            if self.entry_ids
            else "read the thread before you repeat it"
        )
        super().__init__(place, f"the outcome of the commit is unknown ({problem}); {advice}")
