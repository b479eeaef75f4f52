"""What a program printed on a terminal, as HTML: colours and weights as classes, everything else dropped.

>>> terminal("\\x1b[31;1m1 failed\\x1b[0m, <b> \\x1b]0;title\\x07ok")
'<span class="t-red t-bold">1 failed</span>, &lt;b&gt; ok'
>>> terminal("10%\\r100%\\ndone")
'100%\\ndone'
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator

from sessiontree.render.html.blocks import text

__all__ = ["terminal"]


_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
_COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_HUES = ("red", "yellow", "green", "cyan", "blue", "magenta")
_STYLES = {1: "bold", 2: "dim", 3: "italic", 4: "under", 7: "reverse", 9: "strike"}
_ENDS = {22: {"bold", "dim"}, 23: {"italic"}, 24: {"under"}, 27: {"reverse"}, 29: {"strike"}}


def terminal(raw: str) -> str:
    """Return the text with a span for each run of one style. Colours beyond the basic ones become the nearest of those."""
    pieces: list[str] = []
    style = _Style()
    for code, said in _runs(_as_shown(raw)):
        if code is not None:
            style.apply(code)
        if said:
            names = style.classes
            pieces.append(f'<span class="{names}">{text(said)}</span>' if names else text(said))
    return "".join(pieces)


def _as_shown(raw: str) -> str:
    """What stays on the screen: after a carriage return the line is written over."""
    if "\r" not in raw:
        return raw
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in raw.split("\n"))


def _runs(raw: str) -> Iterator[tuple[str | None, str]]:
    """Pieces of text, each with the style code before it."""
    at, code = 0, None
    for found in _SGR.finditer(raw):
        yield code, raw[at : found.start()]
        at, code = found.end(), found[1]
    yield code, raw[at:]


class _Style:
    """The style in force."""

    def __init__(self) -> None:
        self._colour = ""
        self._ground = ""
        self._marks: set[str] = set()

    @property
    def classes(self) -> str:
        names = [f"t-{self._colour}"] if self._colour else []
        names += [f"t-on-{self._ground}"] if self._ground else []
        return " ".join([*names, *(f"t-{mark}" for mark in sorted(self._marks))])

    def apply(self, code: str) -> None:
        numbers = [int(part) if part.isdigit() and len(part) < 4 else 0 for part in re.split("[;:]", code)] or [0]
        while numbers:
            number = numbers.pop(0)
            if number in (38, 48):
                colour = _extended(numbers)
                self._set(colour, is_ground=number == 48)
            else:
                self._simple(number)

    def _simple(self, number: int) -> None:
        if number == 0:
            self._colour, self._ground, self._marks = "", "", set()
        elif number in _STYLES:
            self._marks.add(_STYLES[number])
        elif number in _ENDS:
            self._marks -= _ENDS[number]
        elif 30 <= number <= 37 or 90 <= number <= 97:
            self._set(_COLOURS[number % 10], is_ground=False)
        elif 40 <= number <= 47 or 100 <= number <= 107:
            self._set(_COLOURS[number % 10], is_ground=True)
        elif number == 39:
            self._colour = ""
        elif number == 49:
            self._ground = ""

    def _set(self, colour: str, *, is_ground: bool) -> None:
        # Black and white are the colours of the page, whichever of them it is in.
        name = "" if colour in {"black", "white"} else colour
        if is_ground:
            self._ground = name
        else:
            self._colour = name


def _extended(numbers: list[int]) -> str:
    """The nearest basic colour of one of 256, or of red, green and blue."""
    kind = numbers.pop(0) if numbers else 0
    if kind == 5 and numbers:
        return _of_256(numbers.pop(0))
    if kind == 2 and len(numbers) >= 3:
        red, green, blue = (numbers.pop(0) for _ in range(3))
        return _nearest(red, green, blue)
    return ""


def _of_256(number: int) -> str:
    if number < 16:
        return _COLOURS[number % 8]
    if number >= 232:
        return "white"
    level = number - 16
    return _nearest(51 * (level // 36), 51 * (level // 6 % 6), 51 * (level % 6))


def _nearest(red: int, green: int, blue: int) -> str:
    hue, _, saturation = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
    return _HUES[round(hue * 6) % 6] if saturation > 0.2 else "white"
