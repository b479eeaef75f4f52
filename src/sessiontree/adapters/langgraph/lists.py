"""List channels as deltas: which items a value shares with the one before it, and which are new. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from sessiontree.model import Record

__all__ = ["ListPlan", "numbers_in", "plan_list"]

_MOST_RANGES = 64


class ListPlan(Record, frozen=True, kw_only=True):
    """A value as ranges of item numbers. ``new`` are the positions of items that get the next numbers, in order."""

    ranges: tuple[tuple[int, int], ...]
    new: tuple[int, ...]


def numbers_in(ranges: Iterable[tuple[int, int]]) -> Iterator[int]:
    """Return the numbers in ranges, each without its end."""
    for first, end in ranges:
        yield from range(first, end)


def plan_list(
    old: Sequence[bytes], old_ranges: Sequence[tuple[int, int]], count: int, new: Sequence[bytes]
) -> ListPlan:
    """Plan how to store a list, given the contents of its items and of the value before it, which had ``count`` items.

    >>> plan_list([b"a", b"b"], [(0, 2)], 2, [b"a", b"b", b"c"])
    ListPlan(ranges=((0, 3),), new=(2,))
    >>> plan_list([b"a", b"b", b"c"], [(0, 3)], 3, [b"b", b"x"])
    ListPlan(ranges=((1, 2), (3, 4)), new=(1,))

    If the ranges get many, or most items that a reader would pass are not in the value any more, all items are new ones.
    """
    same = _common_prefix(old, new)
    numbers = list(islice(numbers_in(old_ranges), same))
    known = dict(zip(old[same:], islice(numbers_in(old_ranges), same, None), strict=True))
    added: list[int] = []
    for position, content in enumerate(new[same:], same):
        number = known.get(content)
        if number is None:
            number = count + len(added)
            added.append(position)
        numbers.append(number)
    ranges = _ranges(numbers)
    first = min(numbers, default=count)
    if len(ranges) > _MOST_RANGES or count + len(added) - first > 2 * len(new) + _MOST_RANGES:
        return ListPlan(ranges=((count, count + len(new)),), new=tuple(range(len(new))))
    return ListPlan(ranges=ranges, new=tuple(added))


def _common_prefix(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    for position, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            return position
    return min(len(old), len(new))


def _ranges(numbers: Sequence[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number:
            ranges[-1] = (ranges[-1][0], number + 1)
        else:
            ranges.append((number, number + 1))
    return tuple(ranges)
