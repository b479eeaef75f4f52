"""Lines of a terminal: texts with styles, measured in cells. Whatever is put into one is safe to print.

>>> line = Line("id ", ("3a19", ID)).add("  \\x1b[31mred alert\\x07")
>>> line.plain, line.width
('id 3a19  red alert<U+0007>', 26)
>>> beside(Line("a long title here"), Line("3 min"), 16).plain
'a long…    3 min'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sessiontree.render.cells import cell_width, fit, printable, wrap

__all__ = [
    "ATTENTION", "BOLD", "DIM", "FAILURE", "GOOD", "HIT", "ID", "NAME", "PLAIN", "THOUGHT", "TOOL", "USER",
    "Line", "Span", "beside", "in_ascii", "paragraph", "rule",
]  # fmt: skip


PLAIN = ""
USER = "1;36"
TOOL = "34"
FAILURE = "31"
GOOD = "32"
NAME = "35"
ID = "33"
ATTENTION = "1;33"
HIT = "33;7"
DIM = "2"
BOLD = "1"
THOUGHT = "2;3"
# Styles are the numbers that select them. Only the 16 colours, so that the user's theme decides; none by itself
# carries a meaning: a glyph or a word says the same.

_ASCII = str.maketrans(
    {
        "❯": ">", "●": "*", "○": "o", "•": "-", "┆": ":", "≈": "=", "✻": "*", "…": "~", "·": "-", "✓": "+", "✗": "x",
        "◀": "<", "▶": ">", "‹": "<", "›": ">", "╭": ",", "├": "|", "╰": "`", "─": "-", "│": "|", "╯": "'", "━": "=",
        "╸": "-", "∙": ".", "▪": "+", "■": "#", "×": "x", "−": "-", "–": "-", "→": ">", "“": '"', "”": '"', "┄": "-",
        "▌": ">", "▏": "|", "↵": "<", "¢": "c",
    }
)  # fmt: skip


class Span(NamedTuple):
    """A piece of a line."""

    text: str
    style: str = PLAIN


class Line:
    """One line, put together from pieces."""

    __slots__ = ("spans",)

    def __init__(self, *pieces: str | tuple[str, str]) -> None:
        self.spans: list[Span] = []
        for piece in pieces:
            self.add(*((piece,) if isinstance(piece, str) else piece))

    def add(self, text: str, style: str = PLAIN) -> Line:
        """Add a text; control characters and line breaks in it are made harmless."""
        if text:
            self.spans.append(Span(printable(text), style))
        return self

    def extend(self, other: Line) -> Line:
        """Add the pieces of another line."""
        self.spans += other.spans
        return self

    @property
    def plain(self) -> str:
        """The text without styles."""
        return "".join(span.text for span in self.spans)

    @property
    def width(self) -> int:
        """The number of cells."""
        return sum(cell_width(span.text) for span in self.spans)

    def cut(self, cells: int) -> Line:
        """Return the line cut to a number of cells."""
        if self.width <= cells:
            return self
        shown = Line()
        room = cells
        for at, span in enumerate(self.spans):
            width = cell_width(span.text)
            is_last = at == len(self.spans) - 1
            if width < room or (width == room and is_last):
                shown.spans.append(span)
                room -= width
                continue
            shown.spans.append(Span(fit(span.text + ("" if is_last else " …"), room), span.style))
            break
        return shown

    def painted(self, *, has_colour: bool) -> str:
        """Return the line as it is sent to a terminal."""
        if not has_colour:
            return self.plain.rstrip()
        spans = list(self.spans)
        while spans and not spans[-1].text.strip():
            spans.pop()
        if spans:
            spans[-1] = Span(spans[-1].text.rstrip(), spans[-1].style)
        return "".join(f"\x1b[{style}m{text}\x1b[0m" if style else text for text, style in spans)


def in_ascii(text: str) -> str:
    """Return a text with our glyphs as ASCII characters; each takes one cell, so nothing moves."""
    return text.translate(_ASCII)


def beside(left: Line, right: Line, cells: int, gap: int = 2) -> Line:
    """Put two lines beside each other, the right one at the right edge; the left one is cut to what is left."""
    if not right.spans:
        return left.cut(cells)
    shown = left.cut(max(1, cells - right.width - gap))
    filled = Line()
    filled.spans = [*shown.spans, Span(" " * max(gap, cells - shown.width - right.width)), *right.spans]
    return filled if filled.width <= cells else filled.cut(cells)


def paragraph(text: str, cells: int, style: str = PLAIN, *, lead: str = "") -> Iterator[Line]:
    """Wrap a text; the lines after the first are indented by the width of ``lead``."""
    indent = " " * cell_width(lead)
    for number, line in enumerate(wrap(printable(text), max(8, cells - len(indent)))):
        yield Line(indent if number else lead, (line, style))


def rule(text: str, cells: int, indent: int = 0) -> Line:
    """A dim line across the screen with a few words in it."""
    start = " " * indent + (f"┄┄ {text} " if text else "")
    return Line((start + "┄" * max(0, cells - cell_width(start)), DIM))


def widest(lines: Iterable[str]) -> int:
    """Return the width of the widest text."""
    return max(map(cell_width, lines), default=0)
