"""Errors of the operating system as ours."""

from __future__ import annotations

import errno

from sessiontree.errors import StoreError, StoreFullError, StoreReadOnlyError, StoreUnavailableError

__all__ = ["translate_error"]


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_READ_ONLY = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_WRONG_PATH = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP})
"""Trying again does not help."""


def translate_error(place: str, error: OSError) -> StoreError:
    """The store error for an error of the operating system."""
    if error.errno in _FULL:
        return StoreFullError(place)
    if error.errno in _READ_ONLY:
        return StoreReadOnlyError(place)
    if error.errno in _WRONG_PATH:
        return StoreError(place, str(error))
    return StoreUnavailableError(place, str(error))
