"""The exit codes of the command, and which error leads to which."""

from __future__ import annotations

from sessiontree.errors import (
    ConflictError,
    DamagedDataError,
    ForeignStoreError,
    InvalidInputError,
    NewerFormatError,
    NotFoundError,
    SessionTreeError,
    StoreUrlError,
)

__all__ = [
    "BROKEN_PIPE",
    "CONFLICT",
    "DAMAGED",
    "INTERRUPTED",
    "NOT_FOUND",
    "OK",
    "STORE",
    "USAGE",
    "UsageError",
    "code_for",
]


OK = 0
NOT_FOUND = 1
USAGE = 2
DAMAGED = 3
CONFLICT = 4
STORE = 5
INTERRUPTED = 130
BROKEN_PIPE = 141


class UsageError(SessionTreeError):
    """The command was called with arguments it cannot work with."""


def code_for(error: SessionTreeError) -> int:
    """Return the exit code for an error."""
    match error:
        case NotFoundError():
            return NOT_FOUND
        case UsageError() | InvalidInputError() | StoreUrlError():
            return USAGE
        case DamagedDataError() | ForeignStoreError() | NewerFormatError():
            return DAMAGED
        case ConflictError():
            return CONFLICT
        case _:
            return STORE
