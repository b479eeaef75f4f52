"""Charts as SVG. They differ by lightness and hatching, not by hue, so that they read in print; ``data-t`` is the value that a
pointer or the arrow keys show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta

from sessiontree.model import Record
from sessiontree.render.context_size import ContextPoint
from sessiontree.render.figures import count
from sessiontree.render.times import MONTHS, short_day
from sessiontree.web.markup import Child, Html, join, tag

__all__ = ["Series", "bar", "calendar", "columns", "legend_box", "stacked_days", "steps"]


_WEEKS = 53
_DAYS = ("Mon", "Wed", "Fri")


class Series(Record, frozen=True, kw_only=True):
    """One of the parts of stacked bars: its name, and its values by day."""

    name: str
    values: dict[date, float]


def calendar(days: Mapping[date, int], last: date, noun: str, link: Callable[[date], str]) -> Html:
    """Draw a year of days, a column a week, Monday first; a dot marks the busiest day."""
    cell, step, x0, y0 = 18.6, 15.5, 34, 18
    first = last - timedelta(days=last.weekday() + 7 * (_WEEKS - 1))
    limits = heat_limits(days.values())
    busiest = max(days, key=lambda day: (days[day], day), default=None)
    marks: list[Child] = [text(0, y0 + number * 2 * step + 10, name) for number, name in enumerate(_DAYS)]
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        x, y = x0 + number // 7 * cell, y0 + number % 7 * step
        if day.weekday() == 0 and day.day <= 7:
            marks.append(text(x, 10, MONTHS[day.month - 1]))
        value = days.get(day, 0)
        said = f"{short_day(day)} {day.year}: {value:,} {noun}"
        mark = tag(
            "rect",
            x=f"{x:.1f}",
            y=f"{y:.1f}",
            width=cell - 3,
            height=step - 3,
            rx=2.5,
            class_=f"h{heat_step(value, limits)}",
            data_t=said,
            data_href=link(day) if value else None,
        )
        marks.append(mark)
        if day == busiest:
            marks.append(tag("circle", cx=x + (cell - 3) / 2, cy=y + (step - 3) / 2, r=2.2, class_="dot"))
    return svg(1020, 128, f"Calendar of {noun} a day{_busiest(days, busiest, noun)}", marks)


def heat_limits(values: Iterable[int]) -> tuple[int, int, int]:
    """Return the values from which a day is the second, third and darkest shade: quarters of a usual busy day."""
    found = sorted(value for value in values if value)
    high = found[int(0.9 * (len(found) - 1))] if found else 0
    return max(2, math.ceil(high / 4)), max(3, math.ceil(high / 2)), max(4, high)


def heat_step(value: int, limits: tuple[int, int, int]) -> int:
    """Return the shade of a day: 0 for nothing, up to 4."""
    return 0 if not value else 1 + sum(value >= limit for limit in limits)


def _busiest(days: Mapping[date, int], day: date | None, noun: str) -> str:
    return f". Busiest day: {short_day(day)} {day.year}, {days[day]:,} {noun}." if day and days[day] else "."


def stacked_days(series: Sequence[Series], days: Sequence[date], said: Callable[[float], str], label: str) -> Html:
    """Draw a bar for each day, or for each week that begins with it, its parts one above the other."""
    sums = [sum(one.values.get(day, 0.0) for one in series) for day in days]
    plot = _Plot(left=44, right=720, bottom=220, head=10, top=nice_top(max(sums, default=0.0)))
    wide = (plot.right - plot.left) / max(1, len(days))
    marks = plot.axis(said)
    every = max(1, round(len(days) / 6))
    for at, (day, total) in enumerate(zip(days, sums, strict=True)):
        parts = [f"{one.name} {said(one.values[day])}" for one in series if one.values.get(day)]
        told = f"{short_day(day)}: {said(total)}" + (f" ({', '.join(parts)})" if len(parts) > 1 else "")
        below = 0.0
        for shade, one in enumerate(series):
            value = one.values.get(day, 0.0)
            y = plot.y(below + value)
            if plot.y(below) - y >= 0.3:
                marks.append(rect(plot.left + (at + 0.12) * wide, y, wide * 0.76, plot.y(below) - y, f"s{shade}", told))
            below += value
        if at % every == 0 and at + every / 2 < len(days):
            marks.append(text(plot.left + at * wide, 236, short_day(day)))
    return svg(720, 240, label, [hatching(), marks])


def steps(points: Sequence[ContextPoint], label: str) -> Html:
    """Draw the size of a context as steps, with a zigzag where it was compacted and a cross where a turn failed."""
    most = max((max(one.tokens, one.tokens_before) for one in points), default=0)
    plot = _Plot(left=44, right=1180, bottom=188, head=22, top=nice_top(most))
    wide = (plot.right - plot.left) / max(1, len(points))
    marks: list[Child] = []
    line, every, labelled = "", max(1, math.ceil(len(points) / 8)), -math.inf
    for at, point in enumerate(points):
        x, y = plot.left + at * wide, plot.y(point.tokens)
        if point.kind == "compaction":
            line += f"M{x:.1f} {y:.1f}"
            has_room = x - labelled > 110
            marks.append(_compaction(x, y, plot.y(point.tokens_before), point, is_labelled=has_room))
            labelled = x if has_room else labelled
        line += f"{'V' if line else f'M{x:.1f} '}{y:.1f}H{x + wide:.1f}"
        if point.kind == "failed":
            marks.append(tag("path", d=f"M{x + 4:.1f} {y - 12:.1f}l7 7m0-7l-7 7", class_="fail"))
        if at % every == 0 and (at == 0 or point.turn != points[at - every].turn):
            marks.append(text(x, 205, f"turn {point.turn}"))
        marks.append(rect(x, 0, wide, plot.bottom, "over", _point_words(point)))
    axis = plot.axis(lambda value: count(round(value)))
    return svg(1180, 210, label, [axis, tag("path", d=line, class_="line") if line else None, marks])


def _point_words(point: ContextPoint) -> str:
    match point.kind:
        case "compaction":
            return f"turn {point.turn}: compacted, {count(point.tokens_before)} → {count(point.tokens)} tokens"
        case kind:
            return f"turn {point.turn}: {count(point.tokens)} tokens{', failed' if kind == 'failed' else ''}"


def _compaction(x: float, y: float, top: float, point: ContextPoint, *, is_labelled: bool) -> Html:
    said = f"{count(point.tokens_before)} → {count(point.tokens)}"
    return join(
        tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=f"{top:.1f}", y2=f"{y:.1f}", class_="drop"),
        tag("path", d=f"M{x - 9:.1f} {top - 4:.1f}l4.5-6 4.5 6 4.5-6 4.5 6", class_="zig"),
        text(x + 14, top - 3, said, "v") if is_labelled else None,
    )


def columns(rows: Sequence[tuple[str, int]], strong: int, label: str, said: Callable[[str, int], str]) -> Html:
    """Draw a column for each row, with its number above and its name below; one of them is strong."""
    width, height = 460.0, 196.0
    wide, top = width / max(1, len(rows)), max((number for _, number in rows), default=0) or 1
    marks: list[Child] = []
    for at, (name, number) in enumerate(rows):
        tall, x = number / top * (height - 46), at * wide
        shade = "s0" if at == strong else "pale"
        marks += [
            rect(x + 3, height - 20 - tall, wide - 6, tall, shade, said(name, number), radius=2),
            text(x + wide / 2, height - 5, name, "mid"),
            text(x + wide / 2, height - 26 - tall, f"{number:,}", "mid v" if at == strong else "mid"),
        ]
    return svg(width, height, label, marks)


def bar(value: float, most: float) -> Html:
    """Draw a bar in the row of a table; anything above nothing is visible."""
    share = max(1.5, 100 * value / most) if value > 0 and most > 0 else 0.0
    drawn = tag("rect", width=f"{share:.1f}", height=8, rx=1, class_="s0") if share else None
    return tag("svg", drawn, viewBox="0 0 100 8", preserveAspectRatio="none", class_="share", aria_hidden=True)


def legend_box(shade: str) -> Html:
    """Return the sample of a shade; the pattern of the hatched one is in the chart."""
    return tag(
        "svg",
        tag("rect", width=12, height=12, rx=2, class_=shade),
        viewBox="0 0 12 12",
        aria_hidden=True,
    )


def nice_top(value: float) -> float:
    """Return the end of an axis: 1, 2, 4, 5 or 10 of the power of ten that holds the value.

    >>> [nice_top(value) for value in (0, 0.3, 3.1, 152_000, 47)]
    [1.0, 0.4, 4.0, 200000.0, 50.0]
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(round(step * power, 12) for step in (1, 2, 4, 5, 10) if value <= step * power * 1.000001)


class _Plot(Record, frozen=True, kw_only=True):
    """Where values are drawn: between two sides, from the bottom up to the end of the axis."""

    left: float
    right: float
    bottom: float
    head: float
    top: float

    def y(self, value: float) -> float:
        """Return the height of a value."""
        return self.bottom - value * (self.bottom - self.head) / self.top

    def axis(self, said: Callable[[float], str]) -> list[Child]:
        """Draw five lines across, with their values."""
        marks: list[Child] = []
        for value in (self.top * quarter / 4 for quarter in range(5)):
            y = self.y(value)
            marks += [
                tag("line", class_="ax", x1=f"{self.left:.1f}", x2=f"{self.right:.1f}", y1=f"{y:.1f}", y2=f"{y:.1f}"),
                text(self.left - 8, y + 4, said(value) if value else "0", "end"),
            ]
        return marks


def svg(width: float, height: float, label: str, marks: Child) -> Html:
    """Return a drawing with a sentence that says what it shows."""
    return tag(
        "svg", marks, viewBox=f"0 0 {width:g} {height:g}", role="img", aria_label=label, tabindex="0", class_="chart"
    )


def rect(x: float, y: float, width: float, height: float, shade: str, said: str, radius: float = 0) -> Html:  # noqa: PLR0917
    """Return a rectangle that says its value."""
    return tag(
        "rect",
        x=f"{x:.1f}",
        y=f"{y:.1f}",
        width=f"{max(0.0, width):.1f}",
        height=f"{max(0.0, height):.1f}",
        rx=f"{radius:g}" if radius else None,
        class_=shade,
        data_t=said,
    )


def text(x: float, y: float, words: str, kind: str | None = None) -> Html:
    """Return words at a place."""
    return tag("text", words, x=f"{x:.1f}", y=f"{y:.1f}", class_=kind)


def hatching() -> Html:
    """Return the pattern of the second shade."""
    return tag(
        "defs",
        tag(
            "pattern",
            tag("rect", width=4, height=4, class_="h-bg"),
            tag("rect", width=2, height=4, class_="s0"),
            id="hatch",
            width=4,
            height=4,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        ),
    )
