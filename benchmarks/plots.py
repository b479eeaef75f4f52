"""Plots as SVG: bars for one size, lines for several, on logarithmic scales.

The colours are legible on light and dark pages; texts and grid follow the reader's colour scheme.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

WIDTH = 860
_STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #24292f; }
.small { font-size: 11px; fill: #57606a; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.spread { stroke: #24292f; stroke-width: 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .small { fill: #9198a1; } .grid { stroke: #3d444d; } .spread { stroke: #e6edf3; }
}
</style>"""
FAMILIES = {
    "ours": "sessiontree",
    "floor": "raw storage",
    "adapter": "a framework on sessiontree",
    "peer": "a framework's own store",
}
COLOURS = {"ours": "#1f9d8b", "floor": "#8b949e", "adapter": "#3b82f6", "peer": "#d9822b"}
_LINES = ("#1f9d8b", "#3b82f6", "#a855f7", "#d9822b", "#e5534b", "#8b949e", "#7a9e1f", "#c2519a")

Bar = tuple[str, str, float, tuple[float, float]]
"""The name of a system, its family, the median, and the quartiles."""


def _document(height: float, title: str, body: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
    caption = f"<title>{escape(title)}</title>"
    heading = f'<text x="8" y="20" font-weight="600">{escape(title)}</text>'
    return "\n".join([head, caption, _STYLE, heading, *body, "</svg>"]) + "\n"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def number(value: float) -> str:
    """A number with three digits.

    >>> number(0.01234), number(1234567)
    ('0.0123', '1,230,000')
    """
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{round(value, 2 - math.floor(math.log10(abs(value)))):,.{digits}f}"


def _label(exponent: int) -> str:
    return f"{10**exponent:,}" if exponent >= 0 else f"{10.0**exponent:g}"


def bars(title: str, rows: Sequence[Bar]) -> str:
    """One bar for each system, the best first, with the quartiles as a line."""
    left, right, top, step = 290, 90, 44, 24
    low, high = _decades([value for _, _, median, ends in rows for value in (median, *ends) if value > 0])

    def x(value: float) -> float:
        place = (math.log10(max(value, 10.0**low)) - low) / (high - low)
        return left + place * (WIDTH - left - right)

    bottom = top + step * len(rows)
    body = []
    for exponent in range(low, high + 1):
        at = x(10.0**exponent)
        body.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{top - 8}" y2="{bottom}"/>')
        body.append(
            f'<text class="small" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{_label(exponent)}</text>'
        )
    for place, (name, family, median, (begin, end)) in enumerate(rows):
        y, width = top + place * step, max(2.0, x(median) - left)
        body.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        body.append(f'<rect x="{left}" y="{y + 2}" width="{width:.1f}" height="15" rx="2" fill="{COLOURS[family]}"/>')
        body.append(f'<line class="spread" x1="{x(begin):.1f}" x2="{x(end):.1f}" y1="{y + 9.5}" y2="{y + 9.5}"/>')
        body.append(f'<text x="{max(x(median), x(end)) + 6:.1f}" y="{y + 13}">{number(median)}</text>')
    body += _legend(bottom + 40, [family for family in FAMILIES if family in {row[1] for row in rows}])
    return _document(bottom + 52, title, body)


def _legend(y: float, families: Sequence[str]) -> list[str]:
    """What the colours mean, in one line."""
    body = []
    for place, family in enumerate(families):
        x = 8 + 210 * place
        body.append(f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLOURS[family]}"/>')
        body.append(f'<text class="small" x="{x + 15}" y="{y}">{FAMILIES[family]}</text>')
    return body


def lines(title: str, axis: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """One line for each system over the sizes."""
    left, right, top, bottom = 80, 270, 44, 340
    points = [point for line in series.values() for point in line]
    x_low, x_high = _decades([x for x, _ in points])
    y_low, y_high = _decades([y for _, y in points])

    def place(point: tuple[float, float]) -> tuple[float, float]:
        across = (math.log10(point[0]) - x_low) / (x_high - x_low)
        up = (math.log10(point[1]) - y_low) / (y_high - y_low)
        return left + across * (WIDTH - left - right), bottom - up * (bottom - top)

    body = []
    for exponent in range(x_low, x_high + 1):
        at, _ = place((10.0**exponent, 10.0**y_low))
        body.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{bottom}"/>')
        body.append(
            f'<text class="small" x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{_label(exponent)}</text>'
        )
    for exponent in range(y_low, y_high + 1):
        _, at = place((10.0**x_low, 10.0**exponent))
        body.append(f'<line class="grid" x1="{left}" x2="{WIDTH - right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        body.append(f'<text class="small" x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{_label(exponent)}</text>')
    body.append(f'<text class="small" x="{WIDTH - right}" y="{bottom + 32}" text-anchor="end">{escape(axis)}</text>')
    ends = sorted(((place(line[-1])[1], name) for name, line in series.items() if line), key=lambda end: end[0])
    heights = _apart([height for height, _ in ends])
    colours = dict(zip(series, _LINES * (len(series) // len(_LINES) + 1), strict=False))
    for (_, name), height in zip(ends, heights, strict=True):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in map(place, series[name]))
        body.append(f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2"/>')
        body += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[name]}"/>' for x, y in map(place, series[name])
        ]
        x = WIDTH - right + 44
        body.append(f'<rect x="{x}" y="{height - 9:.1f}" width="10" height="10" fill="{colours[name]}"/>')
        body.append(f'<text class="small" x="{x + 15}" y="{height:.1f}">{escape(name)}</text>')
    return _document(bottom + 44, title, body)


def _apart(heights: list[float], gap: float = 15) -> list[float]:
    """The same order, but no two closer than the height of a line."""
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap) if placed else height)
    return placed
