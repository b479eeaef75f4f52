"""What callers give, checked before anything is written."""

from __future__ import annotations

from sessiontree.codec import encode_record
from sessiontree.errors import InvalidInputError
from sessiontree.model import Lease

__all__ = ["checked_hashes", "checked_id", "checked_lease", "checked_time"]

_LATEST_NS = 2**63 - 1
_HASH_LENGTH = 64
_HASH_LETTERS = frozenset("0123456789abcdef")


def checked_id(text: str, what: str) -> str:
    """An id that every store can hold: any text but the empty one."""
    if not isinstance(text, str) or not text:
        raise InvalidInputError(f"{what} must be a text that is not empty, not {text!r}")
    if not text.isascii():
        encode_record(text, what)
    return text


def checked_hashes(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names of blobs: each is the SHA-256 of what it names, in small letters."""
    if not isinstance(names, tuple):
        raise InvalidInputError(f"blobs must be a tuple of hashes, not {names!r}")
    for name in names:
        if not isinstance(name, str) or len(name) != _HASH_LENGTH or not _HASH_LETTERS.issuperset(name):
            raise InvalidInputError(
                f"a blob is named by {_HASH_LENGTH} hexadecimal digits in small letters, not {name!r}"
            )
    return names


def checked_time(nanoseconds: int, what: str) -> int:
    """A moment that fits into 64 bits: from the year 1677 to 2262."""
    if type(nanoseconds) is not int or not -_LATEST_NS <= nanoseconds <= _LATEST_NS:
        raise InvalidInputError(f"{what} must be whole nanoseconds within 64 bits, not {nanoseconds!r}")
    return nanoseconds


def checked_lease(lease: Lease, thread_id: str | None = None) -> Lease:
    """A lease, and the one of that thread if one is named."""
    if not isinstance(lease, Lease):
        raise InvalidInputError(f"a lease is what acquire_lease() gives, not {lease!r}")
    if thread_id is not None and lease.thread_id != thread_id:
        raise InvalidInputError(f"the lease is for thread {lease.thread_id!r}, not for {thread_id!r}")
    return lease
