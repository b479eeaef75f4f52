"""What to type next: a few words and a command, which is broken or left out where there is no room, but never cut."""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.cli.screen.lines import DIM, Line
from sessiontree.cli.typed import broken, with_store

__all__ = ["fitting", "for_store", "hint_lines", "joined"]


def for_store(line: Line, store: str) -> Line:
    """Return advice whose commands are about the store that ``--store`` named."""
    shown = Line()
    for text, style in line.spans:
        shown.add(with_store(text, store) if text.startswith("sessiontree ") else text, style)
    return shown


def hint_lines(pieces: Sequence[tuple[str, str]], width: int) -> list[Line]:
    """Return hints in one line if they fit, else one below the other."""
    first = pieces[0][0]
    indent = " " * (len(first) - len(first.lstrip()))
    lines = [Line((f"{words.strip()} ", DIM), command) for words, command in pieces]
    return [Line(indent).extend(line) for line in joined(lines, width - len(indent), gap="   ")]


def joined(pieces: Sequence[Line], width: int, gap: str = " · ") -> list[Line]:
    """Return pieces in one line if they fit, else one below the other, each as it fits."""
    together = Line()
    for number, piece in enumerate(pieces):
        together.add(gap if number else "", DIM).extend(piece)
    return [together] if together.width <= width else [line for piece in pieces for line in fitting(piece, width)]


def fitting(line: Line, width: int) -> list[Line]:
    """Return words and a command that fit: without room for both, the command alone, in as many lines as it needs."""
    if line.width <= width:
        return [line]
    text, style = line.spans[-1]
    if style or not text.startswith("sessiontree"):
        return [line.cut(width)]
    indent = "  " * line.plain.startswith("  ")
    return [Line(indent + part) for part in broken(text, width - len(indent))]
