"""Titles: the first real words of the user, cut where a reader sees a whole character.

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
"""Makes a title out of the user's first words; under an AsyncJournal it may be a coroutine function."""

_COMMAND = r"/\w+(\s|$)"
_WRAPPED = r"(?s)<([\w-]+)(\s[^>]*)?>.*</\1>\s*$"


def first_user_text(path: Sequence[Entry]) -> str:
    """The first thing that a person said: no blank, no slash command, no block that a host wrapped in a tag."""
    said = (entry.payload.message.text.strip() for entry in path if isinstance(entry.payload, UserMessage))
    return next((text for text in said if text and not re.match(_COMMAND, text) and not re.match(_WRAPPED, text)), "")


def title_from(text: str, limit: int = 60) -> str:
    """At most ``limit`` characters as a reader counts them, the last one a mark that something is missing."""
    if limit < 1:
        raise InvalidInputError(f"a title has room for at least one character, not {limit}")
    flat = " ".join(text.split())
    seen: list[str] = []
    for cluster in graphemes(flat):
        seen.append(cluster)
        if len(seen) > limit:
            return "".join(seen[: limit - 1]).rstrip() + "…"
    return flat


def graphemes(text: str) -> Iterator[str]:
    """Text in pieces that must not be cut: letters with their marks, conjuncts, flags, joined emoji, Hangul syllables."""
    if text.isascii() and "\r\n" not in text:
        return iter(text)
    from wcwidth import iter_graphemes  # noqa: PLC0415  its tables take a while to load

    return iter_graphemes(text)
