"""Markdown as lines of a terminal: paragraphs wrapped, code as it is, no boxes. Rich reads and lays it out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from sessiontree.cli.screen.lines import Line, paragraph
from sessiontree.model.sanitize import for_terminal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.style import Style

__all__ = ["plain_lines", "prose_lines"]


_LONGEST_FORMATTED = 20_000
_LONGEST_LINE = 2_000
_THEME = {
    "markdown.code": "bold",
    "markdown.code_block": "none",
    "markdown.h1": "bold",
    "markdown.h2": "bold",
    "markdown.h3": "bold",
    "markdown.h4": "bold",
    "markdown.link": "underline",
    "markdown.link_url": "underline",
    "markdown.item.bullet": "dim",
    "markdown.item.number": "dim",
    "markdown.block_quote": "dim",
    "markdown.hr": "dim",
    "markdown.table.border": "dim",
    "markdown.table.header": "bold",
}


def prose_lines(text: str, cells: int) -> Iterator[Line]:
    """Render Markdown; a very long text, or one with a very long line, is shown as it is."""
    clean = for_terminal(text).strip("\n")
    if len(clean) > _LONGEST_FORMATTED or any(len(line) > _LONGEST_LINE for line in clean.splitlines()):
        yield from plain_lines(clean, cells)
        return
    console = _console(cells)
    is_empty = True
    for segments in console.render_lines(_markdown(clean), pad=False, new_lines=False):
        line = Line()
        for segment in segments:
            line.add(segment.text, _codes(segment.style))
        # Rich puts empty lines around code and tables; one is enough.
        was_empty, is_empty = is_empty, not line.plain.strip()
        if not is_empty:
            yield line
        elif not was_empty:
            yield Line()


def plain_lines(text: str, cells: int) -> Iterator[Line]:
    """Wrap the lines of a text without reading it as Markdown."""
    for line in for_terminal(text).splitlines():
        if len(line) > _LONGEST_LINE:
            # Wrapping a line of megabytes by cells takes seconds, so it is broken by characters.
            yield from (Line(line[at : at + cells // 2]) for at in range(0, len(line), max(1, cells // 2)))
        else:
            yield from paragraph(line, cells)


@cache
def _console(cells: int) -> Console:
    from io import StringIO  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415  slow to load
    from rich.theme import Theme  # noqa: PLC0415

    return Console(
        file=StringIO(),
        width=cells,
        theme=Theme(_THEME),
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )


def _markdown(text: str) -> Markdown:
    from rich.markdown import Heading, Markdown  # noqa: PLC0415  slow to load

    class _Heading(Heading):
        """A heading without a box, at the left."""

        def __rich_console__(self, console: Console, options: Any) -> Iterator[Any]:
            self.text.justify = "left"
            yield self.text

    class _Plain(Markdown):
        elements = {**Markdown.elements, "heading_open": _Heading}

    return _Plain(text, hyperlinks=False, code_theme="ansi_dark")


def _codes(style: Style | None) -> str:
    """The numbers that select a style; backgrounds are left out, so that the user's theme decides."""
    if style is None:
        return ""
    flags = (("1", style.bold), ("2", style.dim), ("3", style.italic), ("4", style.underline), ("9", style.strike))
    codes = [code for code, is_on in flags if is_on]
    if style.color is not None and style.color.number is not None and style.color.number < 16:
        number = style.color.number % 8
        # White and black by name are unreadable on one of the two backgrounds.
        if number not in {0, 7}:
            codes.append(str(30 + number))
    return ";".join(codes)
