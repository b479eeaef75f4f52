"""In which order the threads of a copy are made, and those that were deleted in the source are deleted again.

A fork needs the threads that it inherits from, also the deleted ones; a thread that bears the name of a deleted one needs
that name. So a deleted thread is made first, and deleted when nobody is left who inherits from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessiontree.copying_families import Family
from sessiontree.model.record import Record

__all__ = ["End", "Make", "in_order"]


class Make(Record, frozen=True, kw_only=True):
    family: Family


class End(Record, frozen=True, kw_only=True):
    """Delete a thread that was made only for its heirs."""

    family: Family


def in_order(families: Sequence[Family]) -> Iterator[Make | End]:
    """Where there is no way, as in a damaged store, the rest comes as it is, and the target says what is wrong."""
    needs = _needs(families)
    waiting = sorted(range(len(families)), key=lambda number: not families[number].is_gone)
    made: set[int] = set()
    names: set[str] = set()
    while waiting:
        promised = {families[number].thread.id for number in waiting if families[number].is_gone}
        ready = [
            number
            for number in waiting
            if needs[number] <= made
            and families[number].thread.id not in names
            and (families[number].is_gone or families[number].thread.id not in promised)
        ]
        spent = [number for number in made if families[number].is_gone and not any(number in needs[w] for w in waiting)]
        if ready or not spent:
            number = ready[0] if ready else waiting[0]
            waiting.remove(number)
            made.add(number)
            names.add(families[number].thread.id)
            yield Make(family=families[number])
        else:
            made.remove(spent[0])
            names.remove(families[spent[0]].thread.id)
            yield End(family=families[spent[0]])
    yield from (End(family=families[number]) for number in sorted(made) if families[number].is_gone)


def _needs(families: Sequence[Family]) -> list[set[int]]:
    """For each family the ones whose entries it inherits; ids are unique within a tree."""
    owners = {(family.thread.tree, entry.id): number for number, family in enumerate(families) for entry in family.own}
    inherited = [{(family.thread.tree, name) for name in (*family.inherited, family.base)} for family in families]
    return [
        {owners[place] for place in places if place in owners} - {number} for number, places in enumerate(inherited)
    ]
