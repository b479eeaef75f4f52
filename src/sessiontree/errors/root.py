"""The root of the errors, and the ones that need no family."""

from __future__ import annotations

from typing import Any

__all__ = ["DamagedDataError", "InvalidInputError", "MissingExtraError", "SessionTreeError"]


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
