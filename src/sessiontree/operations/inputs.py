"""What callers give, checked before anything is written."""

from __future__ import annotations

from sessiontree.codec import encode_record
from sessiontree.errors import InvalidInputError

__all__ = ["checked_id", "checked_time"]

_LATEST_NS = 2**63 - 1


def checked_id(text: str, what: str) -> str:
    """An id that every store can hold: any text but the empty one."""
    if not isinstance(text, str) or not text:
        raise InvalidInputError(f"{what} must be a text that is not empty, not {text!r}")
    if not text.isascii():
        encode_record(text, what)
    return text


def checked_time(nanoseconds: int, what: str) -> int:
    """A moment that fits into 64 bits: from the year 1677 to 2262."""
    if isinstance(nanoseconds, bool) or not isinstance(nanoseconds, int) or abs(nanoseconds) > _LATEST_NS:
        raise InvalidInputError(f"{what} must be whole nanoseconds within 64 bits, not {nanoseconds!r}")
    return nanoseconds
