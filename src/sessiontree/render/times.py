"""Times as people read them: in lists how long ago, inside a thread the clock.

>>> from datetime import UTC
>>> now = datetime(2026, 11, 17, 12, 0, tzinfo=UTC)
>>> [when(now - timedelta(**ago), now) for ago in ({"seconds": 3}, {"minutes": 3}, {"hours": 5}, {"days": 1}, {"days": 4})]
['now', '3 min', '5 h', 'yesterday', 'Fri']
>>> when(datetime(2026, 5, 24, tzinfo=UTC), now), when(datetime(2025, 11, 2, tzinfo=UTC), now)
('24 May', 'Nov 2025')
>>> ago(now - timedelta(minutes=3), now), ago(now - timedelta(days=1), now)
('3 min ago', 'yesterday')
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

__all__ = ["MONTHS", "ago", "clock", "day", "iso", "moment_at", "short_day", "when"]


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_NOW = timedelta(seconds=45)
_MINUTES = timedelta(minutes=60)
_WEEK = 7
_ELEVEN_MONTHS = 334


def when(moment: datetime, now: datetime, *, is_short: bool = False) -> str:
    """Return how long ago a moment is, or its day; ``is_short`` is for narrow columns."""
    moment = moment.astimezone(now.tzinfo)
    passed = now - moment
    days = (now.date() - moment.date()).days
    if abs(passed) < _NOW:
        return "now"
    if timedelta(0) <= passed < _MINUTES:
        minutes = max(1, passed // timedelta(minutes=1))
        return f"{minutes}m" if is_short else f"{minutes} min"
    if timedelta(0) <= passed and days == 0:
        hours = passed // timedelta(hours=1)
        return f"{hours}h" if is_short else f"{hours} h"
    if days == 1:
        return "yest." if is_short else "yesterday"
    if 0 < days < _WEEK:
        return _DAYS[moment.weekday()]
    if 0 <= days < _ELEVEN_MONTHS:
        return short_day(moment.date())
    return f"{moment.year}" if is_short else f"{MONTHS[moment.month - 1]} {moment.year}"


def ago(moment: datetime, now: datetime) -> str:
    """Return the same for prose."""
    text = when(moment, now)
    return f"{text} ago" if text.endswith((" min", " h")) else text


def clock(moment: datetime, now: datetime) -> str:
    """Return the local time of day, in the zone of ``now``."""
    return f"{moment.astimezone(now.tzinfo):%H:%M}"


def day(moment: datetime, now: datetime) -> str:
    """Return the local day; with the year if it is not that of ``now``."""
    local = moment.astimezone(now.tzinfo)
    year = "" if local.year == now.year else f" {local.year}"
    return f"{_DAYS[local.weekday()]} {short_day(local.date())}{year}"


def short_day(one: date) -> str:
    """Return a day as ``24 May``."""
    return f"{one.day} {MONTHS[one.month - 1]}"


def iso(moment: datetime) -> str:
    """Return a time in UTC, for programs."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def moment_at(time_ns: int, now: datetime) -> datetime:
    """Return the time of a number of nanoseconds since 1970, in the zone of ``now``."""
    return datetime.fromtimestamp(time_ns // 1_000_000_000, now.tzinfo)
