"""Text measured in cells of a terminal: CJK and emoji take two, combining marks none, a joined emoji as one character."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessiontree.model.sanitize import for_terminal

__all__ = ["CUT", "cell_width", "chop", "cut_middle", "fit", "pad", "printable", "wrap"]


CUT = "…"
_LOSS_AT_A_WORD = 10
"""A text is cut at a word if that loses less than a tenth of the room."""
_NARROW = re.compile(
    r"[\x20-\x7e\xa1-\xac\xae-\u02ff\u2010-\u2027\u2030-\u205e\u2500-\u259f\u2713\u2717\u276f←→↵■▪▶◀○●✻−≈]*"
)
"""Texts whose characters all take one cell: Latin letters, punctuation and our glyphs. They need no tables."""
_JOINERS = "\u200c\u200d"
_UNKNOWN = {"Cn", "Co"}


def cell_width(text: str) -> int:
    """Return the number of cells that a printable text takes.

    >>> cell_width("日本"), cell_width("👩‍👩‍👧 ok"), cell_width("a\u200db")
    (4, 5, 2)
    """
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    from wcwidth import iter_graphemes, wcswidth  # noqa: PLC0415  its tables are slow to load

    # One character at a time, as terminals do: a joiner hides what follows it only inside of an emoji.
    return sum(max(0, wcswidth(character)) for character in iter_graphemes(text))


def printable(text: str) -> str:
    """Return a text as it is printed in a line: harmless, with every kind of space as spaces.

    >>> printable("red \x1b[31malert\x07 \u3000👩‍👩‍👧")
    'red alert<U+0007>   👩‍👩‍👧'
    """
    if text.isprintable():
        return text
    clean = for_terminal(text).replace("\t", "    ").replace("\n", " ")
    return clean if clean.isprintable() else "".join(map(_harmless, clean))


def _harmless(letter: str) -> str:
    """A character as it is printed, in the same number of cells. Joiners, and letters newer than Python's tables, stay."""
    from unicodedata import category  # noqa: PLC0415  only needed for odd characters

    if letter.isprintable() or letter in _JOINERS or category(letter) in _UNKNOWN:
        return letter
    return (" " if letter.isspace() else "�") * cell_width(letter)


def fit(text: str, cells: int) -> str:
    """Cut a text to a number of cells, at a word if that loses little; an ellipsis marks the cut.

    >>> fit("The login test fails", 12), fit("日本語のテスト", 8), fit("short", 9)
    ('The login…', '日本語…', 'short')
    """
    if len(text) <= cells and text.isascii():
        return text
    if cell_width(text[: 4 * cells + 8]) <= cells and len(text) <= 4 * cells + 8:
        return text
    if cells <= 1:
        return CUT[:cells]
    kept = _beginning(text, cells - 1)
    word = kept.rstrip().rfind(" ")
    if (
        not text[len(kept) : len(kept) + 1].isspace()
        and word > 0
        and (cell_width(kept) - cell_width(kept[:word]) <= max(2, cells // _LOSS_AT_A_WORD))
    ):
        kept = kept[:word]
    return kept.rstrip(" ,;:.") + CUT


def _beginning(text: str, cells: int) -> str:
    """The longest beginning that takes no more cells; never half of a character as readers see it."""
    if text.isascii():
        return text[:cells]
    from sessiontree.model.titles import graphemes  # noqa: PLC0415  only needed for text that is not ASCII

    taken: list[str] = []
    room = cells
    for character in graphemes(text[: 4 * cells + 8]):
        room -= cell_width(character)
        if room < 0:
            break
        taken.append(character)
    return "".join(taken)


def cut_middle(path: str, cells: int) -> str:
    """Cut a path in its middle: the end, which says most, stays.

    >>> cut_middle("~/code/shop/src/sessions/login.py", 24)
    '~/…/sessions/login.py'
    """
    if cell_width(path) <= cells:
        return path
    sign = "/" if "/" in path else "\\"
    parts = path.split(sign)
    for dropped in range(1, len(parts) - 1):
        shorter = sign.join((parts[0], CUT, *parts[1 + dropped :]))
        if cell_width(shorter) <= cells:
            return shorter
    name = parts[-1]
    if cell_width(name) + 2 <= cells:
        return f"{CUT}{sign}{name}"
    return fit(name, cells)


def chop(text: str, cells: int) -> Iterator[str]:
    """Break a text after every so many cells, and change nothing in it.

    >>> list(chop("a = [1,   2]", 5)), list(chop("日本語", 4))
    (['a = [', '1,   ', '2]'], ['日本', '語'])
    """
    at = 0
    while at < len(text):
        part = _beginning(text[at : at + 4 * cells + 8], cells) or text[at]
        yield part
        at += len(part)


def pad(text: str, cells: int, *, is_right: bool = False) -> str:
    """Fill a text with spaces to a number of cells."""
    space = " " * (cells - cell_width(text))
    return space + text if is_right else text + space


def wrap(text: str, cells: int) -> list[str]:
    """Break one paragraph into lines of at most so many cells.

    >>> wrap("users was empty because of this", 12)
    ['users was', 'empty', 'because of', 'this']
    """
    lines: list[str] = []
    line, room = "", cells
    for word in _pieces(text, max(2, cells)):
        width = cell_width(word)
        if line and width + 1 > room:
            lines.append(line)
            line, room = "", cells
        line, room = (f"{line} {word}", room - 1 - width) if line else (word, room - width)
    return [*lines, line] if line else lines or [""]


def _pieces(text: str, cells: int) -> Iterator[str]:
    """The words; those longer than a line in pieces. CJK text has no spaces, so it breaks anywhere."""
    for word in text.split():
        rest = word
        while cell_width(rest) > cells:
            piece = _beginning(rest, cells) or rest[0]
            yield piece
            rest = rest[len(piece) :]
        if rest:
            yield rest
