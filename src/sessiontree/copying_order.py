"""In which order the threads of a copy are made, and those that were deleted in the source are deleted again.

A fork needs its fork point, which may be an entry of a deleted thread; a thread that bears the name of a deleted one needs
that name. So a deleted thread is made first, and deleted when nobody who waits needs it any more. Who needs both gets a
stand-in that keeps the fork point while the name changes hands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sessiontree.copying_families import Family
from sessiontree.errors import CopyMismatchError
from sessiontree.model import Thread
from sessiontree.model.record import Record

__all__ = ["End", "Make", "in_order"]

_Place = tuple[str, str | None]


class Make(Record, frozen=True, kw_only=True):
    family: Family


class End(Record, frozen=True, kw_only=True):
    """Delete a thread that was made only for its heirs."""

    family: Family


def in_order(families: Sequence[Family]) -> Iterator[Make | End]:
    """Where there is no way, as in a damaged store, CopyMismatchError.

    A fork point that is of none of the families is in the target already, from an earlier run.
    """
    ours = {(family.thread.tree, entry.id) for family in families for entry in family.own}
    waiting = sorted(families, key=lambda family: not family.is_gone)
    standing: dict[str, Family] = {}
    seen: Counter[_Place] = Counter()
    while waiting:
        had = {family.thread.id for family in waiting if family.is_gone}
        left: list[Family] = []
        for family in waiting:
            is_free = family.thread.id not in standing and (family.is_gone or family.thread.id not in had)
            if is_free and (_base(family) not in ours or seen[_base(family)] > 0):
                standing[family.thread.id] = family
                seen.update(_places(family))
                yield Make(family=family)
            else:
                left.append(family)
        if len(left) == len(waiting):
            spent = next((f for f in standing.values() if f.is_gone and not _is_needed(f, waiting, seen)), None)
            if spent is not None:
                del standing[spent.thread.id]
                seen.subtract(_places(spent))
                yield End(family=spent)
            else:
                left += _stand_ins(waiting, standing, seen)
        waiting = left
    yield from (End(family=family) for family in standing.values() if family.is_gone)


def _stand_ins(waiting: Sequence[Family], standing: Mapping[str, Family], seen: Counter[_Place]) -> list[Family]:
    blocked = next((f for f in waiting if f.thread.id in standing and seen[_base(f)] > 0), None)
    if blocked is None:
        raise CopyMismatchError(waiting[0].thread.id, waiting[0].base or "")
    thread = Thread(id=f"{blocked.thread.id}\0copying", tree=blocked.thread.tree, created_ns=0, updated_ns=0)
    return [Family(thread=thread, base=blocked.base, own=(), inherited=blocked.inherited, is_gone=True)]


def _is_needed(gone: Family, waiting: Sequence[Family], seen: Counter[_Place]) -> bool:
    """Whether it alone shows the fork point of somebody who waits."""
    places = _places(gone)
    return any(_base(family) in places and seen[_base(family)] == 1 for family in waiting)


def _places(family: Family) -> set[_Place]:
    """The entries that a thread shows; ids are unique within a tree."""
    return {(family.thread.tree, name) for name in (*family.inherited, *(entry.id for entry in family.own))}


def _base(family: Family) -> _Place:
    return family.thread.tree, family.base
