"""The base of every record: frozen, keyword-only, defaults left out on the wire."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

__all__ = ["Record", "moment"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An immutable value; ``msgspec.structs.replace`` makes a changed copy.

    A value cannot contain itself, so the cycle collector need not look at it: that is felt with many of them.
    """


def moment(nanoseconds: int) -> datetime:
    """A UTC datetime for a nanosecond timestamp, cut to microseconds.

    >>> moment(1_700_000_000_123_456_789).isoformat()
    '2023-11-14T22:13:20.123456+00:00'
    """
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)
