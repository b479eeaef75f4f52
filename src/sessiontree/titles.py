"""Titles: the first real words of the user, cut where a reader sees a whole character.

>>> title_from("Please   fix the\\nlogin page")
'Please fix the login page'
>>> title_from("👩‍👩‍👧 family photos", limit=4)
'👩‍👩‍👧 f…'
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Sequence

from sessiontree.model import Entry, UserMessage

__all__ = ["Titler", "first_user_text", "graphemes", "title_from"]

Titler = Callable[[str], str | Awaitable[str]]
"""Makes a title out of the user's first words; under an AsyncJournal it may be a coroutine function."""

_COMMAND = r"/\w+(\s|$)"
_WRAPPED = r"(?s)<([\w-]+)(\s[^>]*)?>.*</\1>\s*$"
_JOINER = "\u200d"


def first_user_text(path: Sequence[Entry]) -> str:
    """The first thing that a person said: no blank, no slash command, no block that a host wrapped in a tag."""
    said = (entry.payload.message.text.strip() for entry in path if isinstance(entry.payload, UserMessage))
    return next((text for text in said if text and not re.match(_COMMAND, text) and not re.match(_WRAPPED, text)), "")


def title_from(text: str, limit: int = 60) -> str:
    """At most ``limit`` characters as a reader counts them, the last one a mark that something is missing."""
    flat = " ".join(text.split())
    seen: list[str] = []
    for cluster in graphemes(flat):
        seen.append(cluster)
        if len(seen) > limit:
            return "".join(seen[: limit - 1]).rstrip() + "…"
    return flat


def graphemes(text: str) -> Iterator[str]:
    """Text in pieces that must not be cut: letters with their marks, flags, joined emoji, Hangul syllables."""
    cluster = ""
    for character in text:
        if cluster and not _continues(cluster, character):
            yield cluster
            cluster = ""
        cluster += character
    if cluster:
        yield cluster


def _continues(cluster: str, character: str) -> bool:
    before = cluster[-1]
    if before == "\r" and character == "\n":
        return True
    if unicodedata.category(character) in {"Mn", "Me", "Mc"} or character == _JOINER or _is_modifier(character):
        return True
    if before == _JOINER and len(cluster) > 1:
        return ord(character) > 0x2000
    if _is_flag_half(character):
        return len(cluster) == 1 and _is_flag_half(before)
    return _is_hangul_tail(before, character)


def _is_modifier(character: str) -> bool:
    """Skin tones and the tag characters of sub-national flags."""
    return 0x1F3FB <= ord(character) <= 0x1F3FF or 0xE0020 <= ord(character) <= 0xE007F


def _is_flag_half(character: str) -> bool:
    return 0x1F1E6 <= ord(character) <= 0x1F1FF


def _is_hangul_tail(before: str, character: str) -> bool:
    code, last = ord(character), ord(before)
    is_vowel, is_final = 0x1160 <= code <= 0x11A7, 0x11A8 <= code <= 0x11FF
    is_leading = 0x1100 <= last <= 0x115F
    is_open = 0xAC00 <= last <= 0xD7A3 or 0x1160 <= last <= 0x11FF
    return (is_vowel and (is_leading or is_open)) or (is_final and is_open) or (is_leading and 0x1100 <= code <= 0x115F)
