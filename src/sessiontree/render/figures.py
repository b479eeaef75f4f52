"""Numbers as people read them: counts, money, durations, sizes. An unknown value is ``–``, never 0.

>>> count(9548), count(31_400), count(43_200_000), count(None)
('9,548', '31.4k', '43.2M', '–')
>>> money(0.206), money(0.004), money(218.4), money(0.0), money(0.4, is_estimate=True)
('$0.21', '<1¢', '$218', '$0', '~$0.40')
>>> duration(0.41), duration(25), duration(132), duration(900), duration(3840)
('0.4s', '25s', '2m 12s', '15m', '1h 04m')
>>> size(212_000), size(1_900_000_000), size(87)
('212 kB', '1.9 GB', '87 B')
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "UNKNOWN",
    "bar",
    "count",
    "duration",
    "money",
    "money_column",
    "percent",
    "plural",
    "size",
    "threads_and_records",
]


UNKNOWN = "–"

_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£"}
_EXACT_BELOW = 10_000
_TEN_MINUTES = 600
_HOUR = 3600
_DAY = 86_400
_WHOLE_DOLLARS = 100
_CENT = 0.01


def count(number: int | None, *, is_estimate: bool = False) -> str:
    """Return a count: exact below 10,000, then three digits."""
    if number is None:
        return UNKNOWN
    mark = "~" if is_estimate else ""
    if number < _EXACT_BELOW:
        return f"{mark}{number:,}"
    return mark + _three_digits(number, ("k", "M", "G", "T"), 1000)


def _three_digits(number: float, units: tuple[str, ...], step: int) -> str:
    value = float(number)
    for unit in units:
        value /= step
        # 999.95 would be shown as 1000.
        if value < 999.5 or unit == units[-1]:
            break
    text = f"{value:.0f}" if value >= 99.95 else f"{value:.1f}".removesuffix(".0")
    return text + unit


def money(amount: float | None, currency: str = "USD", *, is_estimate: bool = False) -> str:
    """Return an amount of money; ``~`` marks one that was computed from a table of prices."""
    if amount is None:
        return UNKNOWN
    mark = "~" if is_estimate and amount else ""
    return mark + _amount(amount, currency, decimals=0 if abs(amount) >= _WHOLE_DOLLARS else 2)


def _amount(amount: float, currency: str, *, decimals: int) -> str:
    sign = _SIGNS.get(currency)
    unit = sign or f"{currency[:8]} "
    if amount == 0:
        return f"{unit}0"
    if 0 < amount < _CENT:
        return "<1¢" if sign == "$" else f"<{unit}0.01"
    return f"{unit}{amount:,.{decimals}f}"


def money_column(rows: Sequence[tuple[float | None, str, bool]]) -> list[str]:
    """Return amounts for one column, each with its currency and whether it is an estimate: all with the same decimals.

    >>> money_column([(171.2, "USD", False), (31.04, "USD", True), (0.0, "USD", False), (None, "USD", False)])
    ['$171.20', '~$31.04', '$0', '–']
    """
    decimals = 2 if any(amount and abs(amount) < _WHOLE_DOLLARS for amount, _, _ in rows) else 0
    return [
        UNKNOWN
        if amount is None
        else ("~" if is_estimate and amount else "") + _amount(amount, currency, decimals=decimals)
        for amount, currency, is_estimate in rows
    ]


def duration(seconds: float | None) -> str:
    """Return a length of time."""
    if seconds is None or seconds < 0:
        return UNKNOWN
    if seconds < 9.95:
        return f"{seconds:.1f}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < _TEN_MINUTES:
        return f"{whole // 60}m {whole % 60:02}s"
    if whole < _HOUR:
        return f"{whole // 60}m"
    return (
        f"{whole // _HOUR}h {whole % _HOUR // 60:02}m" if whole < _DAY else f"{whole // _DAY}d {whole % _DAY // _HOUR}h"
    )


def size(number: int | None) -> str:
    """Return a number of bytes."""
    if number is None:
        return UNKNOWN
    if number < 1000:
        return f"{number} B"
    return _three_digits(number, (" kB", " MB", " GB", " TB"), 1000)


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Return a count and its noun.

    >>> plural(1, "entry", "entries"), plural(2, "step")
    ('1 entry', '2 steps')
    """
    return f"{count(number)} {noun if number == 1 else nouns or noun + 's'}"


def threads_and_records(threads: int, records: int) -> str:
    """How many threads and records a store has, as people read it."""
    return f"{plural(threads, 'thread')}, {plural(records, 'record')}"


def percent(part: int, whole: int) -> str:
    """Return a share: one decimal below ten percent.

    >>> percent(58, 1000), percent(1, 4)
    ('5.8%', '25%')
    """
    share = 100 * part / whole if whole else 0.0
    return f"{share:.1f}%".replace(".0%", "%") if share < 10 else f"{share:.0f}%"


def bar(value: float, most: float, cells: int) -> str:
    """Return a bar of at most ``cells`` cells; any value above nothing is visible.

    >>> bar(10, 10, 4), bar(3, 8, 4), bar(0, 8, 4), bar(0.001, 8, 4)
    ('━━━━', '━╸', '', '╸')
    """
    if value <= 0 or most <= 0:
        return ""
    halves = max(1, round(2 * cells * min(value, most) / most))
    return "━" * (halves // 2) + "╸" * (halves % 2)
