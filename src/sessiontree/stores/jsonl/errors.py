"""Operating system errors of the JSONL store as ours."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from sessiontree.errors import StoreError, StoreFullError, StoreReadOnlyError, StoreUnavailableError

__all__ = ["SyncFailedError", "syncing", "translate_error"]


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


class SyncFailedError(OSError):
    """A sync failed, so it is unknown what is on the disk."""


@contextmanager
def syncing() -> Iterator[None]:
    """Raise SyncFailedError for an OSError in the block."""
    try:
        yield
    except OSError as error:
        raise SyncFailedError(error.errno, str(error)) from error


def translate_error(place: str, error: OSError) -> StoreError:
    """The store error for an error of the operating system."""
    if error.errno in _FULL:
        return StoreFullError(place)
    if error.errno in _READ_ONLY:
        return StoreReadOnlyError(place)
    return StoreUnavailableError(place, str(error))
