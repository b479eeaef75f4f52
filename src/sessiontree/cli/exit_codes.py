"""The exit codes of the command, and which error leads to which."""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.cli.screen.lines import Line
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
    "MissingError",
    "SwitchVerb",
    "UsageError",
    "advice_of",
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


class SwitchVerb(Exception):  # noqa: N818  it is not an error
    """The user chose another verb for a thread."""

    def __init__(self, verb: str, thread_id: str) -> None:
        super().__init__(verb)
        self.arguments = [verb, "--", thread_id]


class UsageError(SessionTreeError):
    """The command was called with arguments it cannot work with; ``advice`` are lines that help."""

    def __init__(self, message: str, advice: Sequence[Line] = ()) -> None:
        super().__init__(message)
        self.advice = advice


class MissingError(NotFoundError):
    """What the user named is not there; ``advice`` are lines that help."""

    def __init__(self, message: str, advice: Sequence[Line] = ()) -> None:
        super().__init__(message)
        self.advice = advice


def advice_of(error: SessionTreeError) -> Sequence[Line]:
    """Return the lines that help with an error."""
    return error.advice if isinstance(error, UsageError | MissingError) else ()


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
