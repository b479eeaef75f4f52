"""Every error that sessiontree raises, in one tree; a module for each branch.

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

from sessiontree.errors.conflicts import (
    ActiveTurnError,
    ClaimLostError,
    CompactionClaimedError,
    ConflictError,
    CopyMismatchError,
    DuplicateEntryError,
    FencedError,
    InvalidMoveError,
    InvalidParentError,
    MissingBlobsError,
    RestoreConflictError,
    SessionNotArchivedError,
    StaleLeafError,
    StaleVersionError,
    ThreadArchivedError,
    ThreadExistsError,
)
from sessiontree.errors.folders import FolderChangedError, PendingRestoreError, UnsafePathError, WorkspaceError
from sessiontree.errors.missing import (
    BlobNotFoundError,
    EntryNotFoundError,
    NoCheckpointError,
    NotFoundError,
    NothingToRedoError,
    NothingToRetryError,
    NothingToUncompactError,
    NothingToUndoError,
    SessionNotFoundError,
    ThreadNotFoundError,
)
from sessiontree.errors.root import DamagedDataError, InvalidInputError, MissingExtraError, SessionTreeError
from sessiontree.errors.stores import (
    CommitUnknownError,
    ForeignStoreError,
    NetworkFileSystemError,
    NewerFormatError,
    StoreAccessError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreGoneError,
    StorePoisonedError,
    StoreReadOnlyError,
    StoreUnavailableError,
    StoreUrlError,
)
from sessiontree.errors.summaries import (
    ContextOverflowError,
    EmptySummaryError,
    OversizedSummaryError,
    SummaryError,
    TruncatedSummaryError,
)

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
