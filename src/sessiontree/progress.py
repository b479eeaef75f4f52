"""How far long work has come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

__all__ = ["Progress", "counted"]

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with how much is done, and how much there is in all."""

_TELL_EVERY = 256


def counted(items: Collection[T], progress: Progress | None) -> Iterator[T]:
    """The items; ``progress`` hears now and then how many were worked on.

    >>> list(counted("abc", lambda done, total: print(done, "of", total)))
    3 of 3
    ['a', 'b', 'c']
    """
    if progress is None:
        yield from items
        return
    total = len(items)
    for done, item in enumerate(items, start=1):
        yield item
        if done % _TELL_EVERY == 0 or done == total:
            progress(done, total)
