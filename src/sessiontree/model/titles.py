"""Titles from the text of a user, cut at whole characters as readers see them.

>>> title_from("Please   fix the\\nlogin page")
'Please fix the login page'
>>> title_from("👩‍👩‍👧 family photos", limit=4)
'👩‍👩‍👧 f…'
>>> is_title_text("/new"), is_title_text("<environment>\\ncwd=/x\\n</environment>"), is_title_text("hello")
(False, False, True)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from sessiontree.errors import InvalidInputError

__all__ = ["FIRST_MESSAGE", "graphemes", "is_title_text", "title_from"]


FIRST_MESSAGE = "first_message"
"""The ``title_source`` of a title that a thread got by itself, from the first text of a user."""

_COMMAND = re.compile(r"/\w+(\s|$)")
_WRAPPED = re.compile(r"(?s)<([\w-]+)(\s[^>]*)?>.*</\1>\s*$")


def is_title_text(text: str) -> bool:
    """Return whether a stripped text can be a title: not blank, no slash command, no block that a host wrapped in a tag."""
    return bool(text) and not _COMMAND.match(text) and not _WRAPPED.match(text)


def title_from(text: str, limit: int = 60) -> str:
    """Return a text as one line of at most ``limit`` characters as a reader counts them, with "…" if it was cut."""
    if limit < 1:
        raise InvalidInputError(f"a title needs a limit of at least one character, not {limit}")
    # A line that is not cut has fewer words than that, so the rest of a long text need not be looked at.
    words = text.split(maxsplit=limit + 1)[: limit + 1]
    line = " ".join(words)
    characters = list(islice(graphemes(line), limit + 1))
    return line if len(characters) <= limit else "".join(characters[: limit - 1]).rstrip() + "…"


def graphemes(text: str) -> Iterator[str]:
    """Return the characters of a text as a reader sees them: letters with marks, flags, joined emoji, and so on."""
    if text.isascii() and "\r\n" not in text:
        return iter(text)
    from wcwidth import iter_graphemes  # noqa: PLC0415  its tables are slow to load

    return iter_graphemes(text)
