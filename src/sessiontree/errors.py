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
    """A feature needs a package that is not installed, or a newer version of it. ``packages`` names both versions."""

    def __init__(self, feature: str, extra: str, *, packages: tuple[str, ...] = ()) -> None:
        self.feature, self.extra, self.packages = feature, extra, packages
        needed = ", ".join(packages) or "an optional package"
        super().__init__(f"{feature} needs {needed}; install it with: pip install 'sessiontree[{extra}]'")


class DamagedDataError(SessionTreeError):
    """Stored bytes are not what was written."""

    def __init__(self, place: str, offset: int, problem: str) -> None:
        self.place, self.offset, self.problem = place, offset, problem
        super().__init__(f"{place} is damaged at byte {offset}: {problem}; run `sessiontree doctor --repair`")


class ContextOverflowError(SessionTreeError):
    """The context of a thread is too long for the model, even after a compaction."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"the context of thread {thread_id!r} is too long for the model, even after a compaction; "
            "use a model with a larger window, or rewind to before the largest entry"
        )


class AnswerInterruptedError(SessionTreeError):
    """A streamed answer ended early; what was shown is stored under ``answer_id``."""

    def __init__(self, thread_id: str, answer_id: str, reason: str) -> None:
        self.thread_id, self.answer_id, self.reason = thread_id, answer_id, reason
        super().__init__(
            f"the answer in thread {thread_id!r} was interrupted ({reason}); what was shown is stored, try again"
        )


class NotFoundError(SessionTreeError):
    """The store does not contain what was asked for."""


class ThreadNotFoundError(NotFoundError):
    """The store has no thread with this id."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no thread {thread_id!r} in this store; list the threads to see what is there")


class EntryNotFoundError(NotFoundError):
    """The thread does not show an entry with this id."""

    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id, self.entry_id = thread_id, entry_id
        super().__init__(
            f"no entry {entry_id!r} is visible in thread {thread_id!r}; list its entries (a fork has entries of its own)"
        )


class SessionNotFoundError(NotFoundError):
    """The store has no session with this key."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__(f"no session {key!r} in this store; list() shows what is there, get_or_create() starts one")


class BlobNotFoundError(NotFoundError):
    """The store has no blob with this hash."""

    def __init__(self, hash: str) -> None:
        self.hash = hash
        super().__init__(f"no blob {hash!r} in this store; run `sessiontree doctor` to see which entries need it")


class NoCheckpointError(NotFoundError):
    """No checkpoint of files belongs to this entry."""

    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id, self.entry_id = thread_id, entry_id
        super().__init__(
            f"no checkpoint for {entry_id!r} in thread {thread_id!r}; "
            "choose one of those that its list of checkpoints shows"
        )


class NothingToUndoError(NotFoundError):
    """No move of the leaf is left to undo."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no leaf move of thread {thread_id!r} is left to undo; see its reflog")


class NothingToRedoError(NotFoundError):
    """The last change was not an undo."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"nothing to redo in thread {thread_id!r}: its last change was not an undo; "
            "move the leaf to any entry that its reflog lists"
        )


class NothingToRetryError(NotFoundError):
    """The thread has no failed turn and no user message."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} has no failed turn and no user message to retry; append a message first"
        )


class NothingToUncompactError(NotFoundError):
    """No compaction is in force."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"no compaction is in force in thread {thread_id!r}; its context is already complete")


class ConflictError(SessionTreeError):
    """The request contradicts what is in the store; nothing was written."""


class ThreadExistsError(ConflictError):
    """The id belongs to another thread."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} already exists; use another id, or continue that thread")


class ThreadArchivedError(ConflictError):
    """An append with ``expect_live`` found the thread archived."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id!r} is archived; unarchive it first, or append without expect_live")


class ThreadChangedError(ConflictError):
    """A thread was not deleted, because it does not match the query any more."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id!r} was not deleted, because it does not match the query any more; "
            "read it again, then decide"
        )


class DuplicateEntryError(ConflictError):
    """The id belongs to an entry with other content."""

    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id, self.entry_id = thread_id, entry_id
        super().__init__(
            f"entry id {entry_id!r} already belongs to another entry in the tree of thread {thread_id!r}; use a new id"
        )


class InvalidParentError(ConflictError):
    """The parent of an append is not visible in the thread."""

    def __init__(self, thread_id: str, parent: str) -> None:
        self.thread_id, self.parent = thread_id, parent
        super().__init__(
            f"entry {parent!r} cannot be a parent in thread {thread_id!r}, where it is not visible; fork there instead"
        )


class StaleLeafError(ConflictError):
    """An append or a move expected another leaf: ``actual`` is the leaf now."""

    def __init__(self, thread_id: str, expected: str | None, actual: str | None) -> None:
        self.thread_id, self.expected, self.actual = thread_id, expected, actual
        super().__init__(
            f"the leaf of thread {thread_id!r} is {actual!r}, not {expected!r}; read the new entries, then try again"
        )


class StaleVersionError(ConflictError):
    """An update expected another version of the thread: ``actual`` is the version now."""

    def __init__(self, thread_id: str, expected: int, actual: int) -> None:
        self.thread_id, self.expected, self.actual = thread_id, expected, actual
        super().__init__(f"thread {thread_id!r} is at version {actual}, not {expected}; read it again, then update")


class StaleDocumentError(ConflictError):
    """A put expected another version of the document: ``actual`` is the version now, 0 if it does not exist."""

    def __init__(self, scope: str, key: str, expected: int, actual: int) -> None:
        self.scope, self.key, self.expected, self.actual = scope, key, expected, actual
        super().__init__(
            f"document {key!r} in {scope!r} is at version {actual}, not {expected}; read it again, then put it"
        )


class ActiveTurnError(ConflictError):
    """Another turn is running on the thread; ``owner`` holds the lease until ``expires_ns``."""

    def __init__(self, thread_id: str, owner: str, turn_id: str, expires_ns: int) -> None:
        self.thread_id, self.owner, self.turn_id, self.expires_ns = thread_id, owner, turn_id, expires_ns
        super().__init__(
            f"turn {turn_id!r} of {owner!r} is running on thread {thread_id!r} until {_time_text(expires_ns)}; "
            "wait for it to end, or take over after it expires"
        )


class FencedError(ConflictError):
    """The lease was lost: another owner took over, or it was released. Nothing was written."""

    def __init__(self, thread_id: str, token: int, current: int) -> None:
        self.thread_id, self.token, self.current = thread_id, token, current
        super().__init__(
            f"lease token {token} on thread {thread_id!r} is no longer valid (current token: {current}), because "
            "another owner took over or the lease was released; stop this turn and acquire a new lease"
        )


class CompactionClaimedError(ConflictError):
    """Another process is compacting the thread, until ``expires_ns`` at most."""

    def __init__(self, thread_id: str, owner: str, expires_ns: int) -> None:
        self.thread_id, self.owner, self.expires_ns = thread_id, owner, expires_ns
        super().__init__(
            f"{owner!r} is already compacting thread {thread_id!r} (until {_time_text(expires_ns)} at most); "
            "wait for its result, then read the context again"
        )


class ClaimLostError(ConflictError):
    """The claim to compact expired before the summary was there; nothing was written."""

    def __init__(self, thread_id: str, owner: str) -> None:
        self.thread_id, self.owner = thread_id, owner
        reason = f"was taken over by {owner!r}" if owner else "was released"
        super().__init__(
            f"the claim to compact thread {thread_id!r} expired and {reason}; nothing was written, "
            "use a shorter time-out for the summariser or a longer claim"
        )


class InvalidTransitionError(ConflictError):
    """The session cannot change from its state to the wanted one."""

    def __init__(self, key: str, state: str, wanted: str, allowed: Iterable[str]) -> None:
        self.key, self.state, self.wanted = key, state, wanted
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
    """A copy found a thread or an entry that differs between the two stores."""

    def __init__(self, thread_id: str, entry_id: str) -> None:
        self.thread_id, self.entry_id = thread_id, entry_id
        what = f"entry {entry_id!r} of thread {thread_id!r}" if entry_id else f"thread {thread_id!r}"
        super().__init__(f"{what} differs between the stores; copy into an empty store that nothing else writes to")


class MissingBlobsError(ConflictError):
    """An entry refers to content that is not in the store."""

    def __init__(self, thread_id: str, hashes: Iterable[str]) -> None:
        self.thread_id = thread_id
        self.hashes = tuple(hashes)
        super().__init__(
            f"an entry for thread {thread_id!r} refers to content that is not in the store: "
            f"{', '.join(self.hashes[:3])}; store it first, then append again"
        )


class RestoreConflictError(ConflictError):
    """A restore would overwrite files that were changed outside the thread."""

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
        self.problem, self.retry_after_seconds = problem, retry_after_seconds
        wait = "" if retry_after_seconds is None else f" after {retry_after_seconds:g} seconds"
        super().__init__(
            f"no summary: {problem}; nothing was changed, try again{wait}, or use the strategy hybrid or truncate"
        )


class EmptySummaryError(SummaryError):
    """The summariser answered with no text."""

    def __init__(self) -> None:
        super().__init__("the answer was empty")


class OversizedSummaryError(SummaryError):
    """The summary does not fit the window."""

    def __init__(self, tokens: int, max_tokens: int) -> None:
        self.tokens, self.max_tokens = tokens, max_tokens
        super().__init__(f"the answer has {tokens} tokens, but at most {max_tokens} fit the window")


class TruncatedSummaryError(SummaryError):
    """The model stopped in the middle of the summary."""

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        super().__init__(f"the answer was cut off at {max_tokens} tokens; allow more summary_tokens")


class WorkspaceError(SessionTreeError):
    """A folder could not be read or changed; it is unchanged."""

    def __init__(self, root: str, problem: str) -> None:
        self.root = root
        super().__init__(f"{root}: {problem}")


class UnsafePathError(WorkspaceError, ValueError):
    """A path leaves the folder, or cannot exist in it."""

    def __init__(self, root: str, path: str, problem: str) -> None:
        self.path = path
        super().__init__(root, f"path {path!r} {problem}; nothing was changed")


class FolderChangedError(WorkspaceError):
    """Another program changed a file while the folder was being restored; the restore was undone."""

    def __init__(self, root: str, path: str) -> None:
        self.path = path
        super().__init__(
            root, f"{path!r} was changed by another program; the restore was undone, try again when it has finished"
        )


class PendingRestoreError(WorkspaceError):
    """An interrupted restore of the folder has to be finished first."""

    def __init__(self, root: str, place: str, thread_id: str) -> None:
        self.place, self.thread_id = place, thread_id
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
    """The address does not name a store."""

    def __init__(self, url: str, problem: str) -> None:
        self.url = url
        super().__init__(
            url, f"{problem}; use memory:, sqlite:///file.db, jsonl:///folder, postgresql://host/db or a plain path"
        )


class ForeignStoreError(StoreError):
    """The file or folder is not a sessiontree store; it was left untouched."""

    def __init__(self, place: str, found: str) -> None:
        super().__init__(place, f"this is not a sessiontree store ({found}); left untouched, choose another path")


class NewerFormatError(StoreError):
    """The store was written by a newer version of sessiontree; it was left untouched."""

    def __init__(self, place: str, found: int, supported: int) -> None:
        self.found, self.supported = found, supported
        super().__init__(place, f"format {found} is newer than {supported}; left untouched, upgrade sessiontree")


class NetworkFileSystemError(StoreError):
    """The store is on a network file system, where file locks are not reliable."""

    def __init__(self, place: str, file_system: str) -> None:
        self.file_system = file_system
        super().__init__(
            place,
            f"the file system is {file_system}, where file locks and memory maps are not safe between machines; "
            "use a local disk, or the PostgreSQL store",
        )


class StoreReadOnlyError(StoreError):
    """The file or its folder cannot be written."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "the store cannot be written; check the permissions of the file and its folder")


class StoreAccessError(StoreError):
    """The database role lacks a permission."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, f"access denied ({problem}); use a role that is bound to this namespace")


class StoreFullError(StoreError):
    """The disk or the database is full; nothing of the request was kept."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "no space left; nothing of this request was kept, free some space and try again")


class StoreUnavailableError(StoreError):
    """The store cannot be reached now; nothing was written, and it is safe to try again."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, f"not available now ({problem}); it is safe to try again")


class StoreClosedError(StoreError):
    """The store was closed."""

    def __init__(self, place: str) -> None:
        super().__init__(place, "the store is closed; open it again")


class StoreGoneError(StoreError):
    """The store was deleted or replaced while it was open."""

    def __init__(self, place: str, part: str = "the store") -> None:
        problem = (
            f"{part} was deleted or replaced while open; nothing more is written, close the store and open it again"
        )
        super().__init__(place, problem)


class StorePoisonedError(StoreError):
    """A write to disk failed, so nothing more is acknowledged until the store is opened again."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, f"a write to disk failed ({problem}); close the store and open it again")


class BackupError(StoreError):
    """A backup could not be made, read or restored; earlier backups are unchanged."""


class CommitUnknownError(StoreError):
    """The connection broke during a commit; ``entry_ids`` tell whether it took effect."""

    def __init__(self, place: str, problem: str, entry_ids: Iterable[str] = ()) -> None:
        self.entry_ids = tuple(entry_ids)
        advice = (
            f"repeat it with the same ids: it has no effect if {list(self.entry_ids)} are stored already"
            if self.entry_ids
            else "read the thread before you repeat it"
        )
        super().__init__(place, f"the outcome of the commit is unknown ({problem}); {advice}")
