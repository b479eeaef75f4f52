"""Times as Go writes them, to the nanosecond.

>>> nanoseconds("2026-03-03T15:30:00.26122846+02:00")
1772544600261228460
>>> text(1772544600261228460)
'2026-03-03T13:30:00.26122846Z'
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

__all__ = ["ZERO", "nanoseconds", "nanoseconds_of_any", "text", "whole_seconds"]

ZERO = "0001-01-01T00:00:00Z"
"""Go's zero time, which stands for no time at all."""

_SECOND = 1_000_000_000
_EPOCH = date(1970, 1, 1)
_WHOLE = len("0001-01-01T00:00:00")
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
# Go's time.String(), ISO 8601 and the same without a zone; a zone's name and the monotonic reading are left out.
_LOOSE = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d+))? ?(Z|[+-]\d\d:?\d\d)?(?: [^ ]+)?(?: m=.*)?", re.ASCII
)


def nanoseconds(written: str) -> int | None:
    """Nanoseconds since 1970 of an RFC 3339 time; ``None`` where it is none or lies outside of 1678 to 2262."""
    if len(written) > _WHOLE and written[-1] == "Z" and written[_WHOLE] == ".":
        seconds, fraction = _seconds_of(written[:_WHOLE]), written[_WHOLE + 1 : -1]
        if seconds is not None and fraction.isdecimal() and fraction.isascii():
            return seconds + int(fraction[:9].ljust(9, "0"))
    found = _RFC3339.fullmatch(written)
    return _sum(found) if found else None


def nanoseconds_of_any(written: str) -> int | None:
    """The same for every form that a database driver may have left."""
    found = _LOOSE.fullmatch(written.strip())
    return _sum(found) if found else None


def text(time_ns: int) -> str:
    """RFC 3339 in UTC, without zeros at the end of the fraction."""
    seconds, rest = divmod(time_ns, _SECOND)
    start = _seconds_text(seconds)
    return f"{start}.{rest:09}".rstrip("0") + "Z" if rest else start + "Z"


def whole_seconds(written: str) -> str:
    """Go's ``time.RFC3339``: the same time with the fraction cut off."""
    return re.sub(r"\.\d+", "", written)


def _sum(found: re.Match[str]) -> int | None:
    day, hour, minute, second, fraction, zone = found.groups()
    start = _day_seconds(day)
    if start is None or int(hour) > 23 or int(minute) > 59 or int(second) > 59:
        return None
    seconds = start + int(hour) * 3600 + int(minute) * 60 + int(second) - _zone_seconds(zone)
    value = seconds * _SECOND + (int(fraction[:9].ljust(9, "0")) if fraction else 0)
    return value if _LEAST <= value <= _MOST else None


@lru_cache(maxsize=1024)
def _seconds_of(written: str) -> int | None:
    """Nanoseconds of a time in UTC without a fraction; many records lie in the same second."""
    found = _RFC3339.fullmatch(written + "Z")
    return _sum(found) if found else None


@lru_cache(maxsize=1024)
def _day_seconds(day: str) -> int | None:
    try:
        return (date.fromisoformat(day) - _EPOCH).days * 86400
    except ValueError:
        return None


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[0] == "-" else seconds


@lru_cache(maxsize=1024)
def _seconds_text(seconds: int) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
