"""Times as people write and read them."""

from __future__ import annotations

from datetime import datetime, timedelta

from sessiontree.cli.exits import UsageError
from sessiontree.errors import InvalidInputError

__all__ = ["ago", "clock_time", "nanoseconds"]


def ago(moment: datetime, now: datetime) -> str:
    """How long ago, in the largest unit that fits.

    >>> from datetime import UTC
    >>> ago(datetime(2026, 1, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 12, 5, tzinfo=UTC))
    '2 h ago'
    """
    passed = now - moment
    for unit, length in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1))):
        if passed >= length:
            count = passed // length
            return f"{moment.astimezone().date()}" if unit == "d" and count > 30 else f"{count} {unit} ago"
    return "just now" if passed >= timedelta(0) else f"{moment.astimezone():%Y-%m-%d %H:%M}"


def clock_time(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def nanoseconds(option: str, text: str) -> int:
    """A time given as a date, a word or an age, as in search."""
    from sessiontree.search.parsing import moment_of, nanoseconds_of  # noqa: PLC0415  its patterns are slow to build

    try:
        return nanoseconds_of(moment_of(option, text, datetime.now().astimezone()))
    except InvalidInputError as error:
        raise UsageError(str(error)) from error
