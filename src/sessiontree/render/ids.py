"""Short forms of ids: the shortest end that no other id begins or ends with, so that it can be typed.

The end, because UUIDs with a time and dated ids begin alike, and entries of one batch differ only there.

>>> names = ShortIds(["019a8c5e-41f0-7a53-9c1e-5b0f7d2e3a19", "019a7d20-93c4-7b11-8f2a-c0d94be18b1f", "odd-keys"])
>>> names["019a8c5e-41f0-7a53-9c1e-5b0f7d2e3a19"], names["odd-keys"]
('3a19', 'odd-keys')
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable

__all__ = ["LEAST", "ShortIds", "is_chosen", "runs_in"]


LEAST = 4
"""An id is never shown with fewer characters."""

_LONGEST_NAME = 24
_HEX = re.compile(r"[0-9a-fA-F-]+")
_SIGNS = ":@~^"


def is_chosen(name: str) -> bool:
    """Return whether a person chose this id, so that it is shown whole: short, and mostly letters that are not hex."""
    digits = sum(letter.isdigit() for letter in name)
    return len(name) <= _LONGEST_NAME and not _HEX.fullmatch(name) and 3 * digits <= len(name)


def runs_in(names: Iterable[str], part: str) -> list[str]:
    """Return the ids that contain a part of at least four characters."""
    return sorted(name for name in names if part in name) if len(part) >= LEAST else []


class ShortIds:
    """The short forms of the ids of one store, or of one thread.

    Lists show a few ids out of very many, so only ids with the same last characters as a shown one are compared with it.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = sorted(ids)
        self._by_end: dict[str, list[str]] = {}
        for name in self._ids:
            self._by_end.setdefault(name[-LEAST:], []).append(name)
        self._backwards: dict[str, list[str]] = {}
        self._found: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, name: str) -> str:
        """Return the short form of an id; one that is not known is returned whole."""
        if name not in self._found:
            self._found[name] = name if is_chosen(name) else self.end_of(name)
        return self._found[name]

    def end_of(self, name: str) -> str:
        """Return the shortest end of an id that can be typed, also if a person chose it."""
        if not self._knows(name):
            return name
        for length in range(max(LEAST, self._shared(name) + 1), len(name)):
            end = name[-length:]
            if not self._begins_another(end, name) and _is_typed_easily(end):
                return end
        return name

    def _knows(self, name: str) -> bool:
        at = bisect_left(self._ids, name)
        return at < len(self._ids) and self._ids[at] == name

    def _shared(self, name: str) -> int:
        """How many characters at its end the id shares with its nearest neighbour."""
        end = name[-LEAST:]
        if end not in self._backwards:
            self._backwards[end] = sorted(other[::-1] for other in set(self._by_end[end]))
        near, backwards = self._backwards[end], name[::-1]
        at = bisect_left(near, backwards)
        return max((_common(backwards, near[other]) for other in (at - 1, at + 1) if 0 <= other < len(near)), default=0)

    def _begins_another(self, end: str, name: str) -> bool:
        at = bisect_left(self._ids, end)
        return any(one.startswith(end) and one != name for one in self._ids[at : at + 2])


def _is_typed_easily(end: str) -> bool:
    return end.isprintable() and end[0] not in "- " and not any(sign in end for sign in _SIGNS)


def _common(left: str, right: str) -> int:
    length = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        length += 1
    return length
