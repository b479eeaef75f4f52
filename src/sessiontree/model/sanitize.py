"""Foreign text made harmless: nothing in it may steer a terminal or turn a line around.

Escape sequences (colours, cursor moves, OSC 8 links, OSC 52 clipboard writes) go; other control characters and
direction overrides are shown as what they are:

>>> for_terminal("red \\x1b[31malert\\x1b[0m \\x1b]52;c;cGFzcw==\\x07done")
'red alert done'
>>> for_terminal("a\\u202eb\\x07")
'a<U+202E>b<U+0007>'
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["for_terminal", "one_line", "without_controls"]


def for_terminal(text: str) -> str:
    """Text that a terminal shows and does not obey; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return without_controls(_sequences().sub(_left_of, text.replace("\r\n", "\n")))


def _left_of(sequence: re.Match[str]) -> str:
    """Nothing; but a sequence without an end must not take the rest of a text along unseen."""
    return "" if sequence["end"] or not sequence["open"] else sequence["open"]


def without_controls(text: str) -> str:
    """Control characters, invisible ones and direction overrides by their names."""
    if text.isprintable():
        return text
    return _controls().sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


@cache
def _sequences() -> re.Pattern[str]:
    """Made on first use, as the other one: most texts need neither, and a command starts sooner."""
    return re.compile(
        r"\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor moves, modes
        r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?P<open>[^\x07\x1b\x9c]*)(?P<end>\x07|\x1b\\|\x9c)?"  # OSC and the like
        r"|\x9b[0-?]*[ -/]*[@-~]?"  # CSI as one character
        r"|\x1b[ -/]*[0-~]?"
    )


@cache
def _controls() -> re.Pattern[str]:
    return re.compile(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
        "\ud800-\udfff\U000e0000-\U000e007f]"
    )


def one_line(text: str, width: int) -> str:
    """The beginning of a text as one line of at most ``width`` characters.

    >>> one_line("a  long\\n story", 8)
    'a long …'
    """
    if width <= 0:
        return ""
    line = " ".join(for_terminal(text[: 4 * width + 200]).split())
    return line if len(line) <= width and len(text) <= 4 * width + 200 else line[: max(0, width - 1)] + "…"
