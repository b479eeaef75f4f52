"""Titles from the first message of the user, cut at whole characters as readers see them.

>>> title_from("Please   fix the\\nlogin page")
'Please fix the login page'
>>> title_from("👩‍👩‍👧 family photos", limit=4)
'👩‍👩‍👧 f…'
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence

from sessiontree.errors import InvalidInputError
from sessiontree.model import Entry, UserMessage

__all__ = ["Titler", "first_user_text", "graphemes", "title_from"]


Titler = Callable[[str], str | Awaitable[str]]
"""Returns a title for the first message of the user; with an AsyncJournal it may be a coroutine function."""

_COMMAND = r"/\w+(\s|$)"
_WRAPPED = r"(?s)<([\w-]+)(\s[^>]*)?>.*</\1>\s*$"


def first_user_text(path: Sequence[Entry]) -> str:
    """Return the first user message that is not blank, a slash command, or a block that a host wrapped in a tag."""
    texts = (entry.payload.message.text.strip() for entry in path if isinstance(entry.payload, UserMessage))
    return next((text for text in texts if text and not re.match(_COMMAND, text) and not re.match(_WRAPPED, text)), "")


def title_from(text: str, limit: int = 60) -> str:
    """Return a text as one line of at most ``limit`` characters as a reader counts them, with "…" if it was cut."""
    if limit < 1:
        raise InvalidInputError(f"a title needs a limit of at least one character, not {limit}")
    line = " ".join(text.split())
    characters: list[str] = []
    for character in graphemes(line):
        characters.append(character)
        if len(characters) > limit:
            return "".join(characters[: limit - 1]).rstrip() + "…"
    return line


def graphemes(text: str) -> Iterator[str]:
    """Return the characters of a text as a reader sees them: letters with marks, flags, joined emoji, and so on."""
    if text.isascii() and "\r\n" not in text:
        return iter(text)
    from wcwidth import iter_graphemes  # noqa: PLC0415  its tables are slow to load

    return iter_graphemes(text)
