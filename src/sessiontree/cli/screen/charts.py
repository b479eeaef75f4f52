"""Charts of the command stats: a heatmap of days, and bars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import zip_longest

from sessiontree.cli.screen.lines import BOLD, DIM, FAILURE, TOOL, Line, Span
from sessiontree.render.cells import cell_width, fit, pad
from sessiontree.render.figures import bar, percent
from sessiontree.render.times import MONTHS

__all__ = ["bars", "beside_each_other", "heatmap"]


_WEEKS = 12
_OFTEN = 0.1
_WIDE = 44


def heatmap(days: Mapping[date, int], today: date, title: str) -> list[Line]:
    """Draw the last twelve weeks, one column a week: nothing, something, much."""
    first = today - timedelta(days=today.weekday() + 7 * (_WEEKS - 1))
    shown = [count for day, count in days.items() if first <= day <= today]
    much = sorted(shown)[int(len(shown) * 0.8)] if shown else 0
    lines = [Line((title, BOLD)), Line((_month_names(first), DIM))]
    for weekday in range(7):
        name = ("Mon", "", "Wed", "", "Fri", "", "Sun")[weekday]
        line = Line((f"{name:<5}", DIM))
        for week in range(_WEEKS):
            day = first + timedelta(days=7 * week + weekday)
            if day > today:
                break
            count = days.get(day, 0)
            line.add("■ " if count and count >= much else "▪ " if count else "∙ ", TOOL if count else DIM)
        lines.append(line)
    return lines


def _month_names(first: date) -> str:
    cells = [" "] * (2 * _WEEKS + 4)
    last, free = 0, 0
    for week in range(_WEEKS):
        month = (first + timedelta(days=7 * week)).month
        at = 2 * week
        if month != last and at >= free:
            cells[at : at + 3] = MONTHS[month - 1]
            last, free = month, at + 4
    return "     " + "".join(cells).rstrip()


def bars(title: str, rows: Sequence[tuple[str, str, float, float]], width: int) -> list[Line]:
    """Draw rows of a name, its number, the value of its bar and the share that failed. The number stands before the bar."""
    names = [fit(name, 20) for name, _, _, _ in rows]
    name_width = max(map(cell_width, names), default=0)
    number_width = max((cell_width(number) for _, number, _, _ in rows), default=0)
    has_failures = any(share > 0 for _, _, _, share in rows)
    is_wide = width >= _WIDE
    note_width = 12 if is_wide else 7
    cells = min(16, width - name_width - number_width - 4 - (note_width if has_failures else 0))
    cells = max(4, min(cells, 16 if is_wide else 12))
    most = max((value for _, _, value, _ in rows), default=0.0)
    lines = [Line((title, BOLD))]
    for name, (_, number, value, share) in zip(names, rows, strict=True):
        line = Line(f"{pad(name, name_width)}  ", (pad(number, number_width, is_right=True), DIM), "  ")
        drawn = bar(value, most, cells)
        line.add(pad(drawn, cells), TOOL)
        if share > 0:
            words = " failed" if is_wide else " ✗"
            line.add("  ").add(percent(round(share * 1000), 1000) + words, FAILURE if share >= _OFTEN else DIM)
        lines.append(line)
    return lines


def beside_each_other(blocks: Sequence[Sequence[Line]], width: int, gap: int = 6) -> Iterator[Line]:
    """Put blocks side by side in columns of the same width; one below the other if there is one."""
    cells = (width - gap * (len(blocks) - 1)) // len(blocks)
    for rows in zip_longest(*blocks, fillvalue=Line()):
        line = Line()
        for number, row in enumerate(rows):
            shown = row.cut(cells)
            line.spans += shown.spans
            if number < len(rows) - 1:
                line.spans.append(Span(" " * (cells - shown.width + gap)))
        yield line
