"""Unicode checks, and text that is safe to print on a terminal.

Escape sequences (colours, cursor moves, OSC 8 links, OSC 52 clipboard writes) are removed; other control characters
and direction overrides are replaced by their code points:

>>> for_terminal("red \\x1b[31malert\\x1b[0m \\x1b]52;c;cGFzcw==\\x07done")
'red alert done'
>>> for_terminal("a\\u202eb\\x07")
'a<U+202E>b<U+0007>'
"""

from __future__ import annotations

import re
from functools import cache

__all__ = ["for_terminal", "is_unicode", "one_line", "without_controls"]


def is_unicode(text: str) -> bool:
    """Return whether text is valid Unicode: a lone surrogate cannot be encoded.

    >>> is_unicode("café"), is_unicode("\\ud83d")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def for_terminal(text: str) -> str:
    """Return text without terminal escape sequences and control characters; line breaks and tabs stay."""
    if text.isprintable():
        return text
    return without_controls(_sequences().sub(_unterminated_text, text.replace("\r\n", "\n")))


def _unterminated_text(sequence: re.Match[str]) -> str:
    """Keep the text of a sequence that never ends, so that it cannot hide the rest of the text."""
    return "" if sequence["end"] or not sequence["open"] else sequence["open"]


def without_controls(text: str) -> str:
    """Return text with control characters, invisible characters and direction overrides as code points."""
    if text.isprintable():
        return text
    return _controls().sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


@cache
def _sequences() -> re.Pattern[str]:
    """Compiled on first use, like the other pattern: most texts need neither."""
    return re.compile(
        r"\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor moves, modes
        r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?P<open>[^\x07\x1b\x9c]*)(?P<end>\x07|\x1b\\|\x9c)?"  # OSC, DCS and similar strings
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
    """Return the beginning of a text as one line of at most ``width`` characters.

    >>> one_line("a  long\\n story", 8)
    'a long …'
    """
    if width <= 0:
        return ""
    line = " ".join(for_terminal(text[: 4 * width + 200]).split())
    return line if len(line) <= width and len(text) <= 4 * width + 200 else line[: max(0, width - 1)] + "…"
