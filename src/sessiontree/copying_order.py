"""In which order the threads of a copy are made, and those that were deleted in the source are deleted again.

A fork needs its fork point, which may be an entry of a deleted thread; a thread that bears the name of a deleted one needs
that name. So a deleted thread is made, stand-ins are forked from it that keep what others inherit, and it is deleted at
once, which sets its name free. The stand-ins go when all is made. As names and fork points came one after the other in the
source, there is always a family that can be made next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessiontree.copying_families import MADE_FOR_A_COPY, Family
from sessiontree.errors import CopyMismatchError
from sessiontree.model import Thread
from sessiontree.model.record import Record

__all__ = ["End", "Make", "in_order", "stand_ins"]

_Place = tuple[str, str | None]


class Make(Record, frozen=True, kw_only=True):
    family: Family


class End(Record, frozen=True, kw_only=True):
    """Delete a thread that was made for its heirs only."""

    family: Family


def in_order(families: Sequence[Family]) -> Iterator[Make | End]:
    """A fork point that is of none of the families is in the target already, from an earlier run."""
    missing = {(family.thread.tree, entry.id) for family in families for entry in family.own}
    waiting = list(families)
    standing: list[Family] = []
    while waiting:
        names = {family.thread.id for family in waiting if family.is_gone}
        left: list[Family] = []
        for family in waiting:
            if _base(family) in missing or (family.thread.id in names and not family.is_gone):
                left.append(family)
                continue
            yield Make(family=family)
            missing.difference_update((family.thread.tree, entry.id) for entry in family.own)
            if family.is_gone:
                keepers = stand_ins(family, families)
                yield from (Make(family=keeper) for keeper in keepers)
                yield End(family=family)
                standing += keepers
        if len(left) == len(waiting):
            raise CopyMismatchError(left[0].thread.id, left[0].base or "")
        waiting = left
    yield from (End(family=family) for family in standing)


def stand_ins(gone: Family, families: Sequence[Family]) -> list[Family]:
    """Forks of a deleted thread that keep every fork point in it, as few as will do."""
    wanted = {family.base for family in families if family.thread.tree == gone.thread.tree}
    parents = {entry.id: entry.parent for entry in gone.own}
    kept: set[str | None] = set()
    found: list[Family] = []
    for tip in reversed(list(parents)):
        if tip in wanted and tip not in kept:
            found.append(_stand_in(gone.thread, tip))
            entry: str | None = tip
            while entry in parents and entry not in kept:
                kept.add(entry)
                entry = parents[entry]
    return found


def _stand_in(gone: Thread, tip: str) -> Family:
    name = f"{gone.id}\0{tip}\0copying"
    thread = Thread(id=name, tree=gone.tree, created_ns=0, updated_ns=0, origin=MADE_FOR_A_COPY)
    return Family(thread=thread, base=tip, own=(), is_gone=True)


def _base(family: Family) -> _Place:
    return family.thread.tree, family.base
