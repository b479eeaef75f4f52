"""What a copy carries together: a thread with what was appended through it, living or deleted."""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.journal import Journal
from sessiontree.model import Entry, Move, Thread
from sessiontree.model.record import Record

__all__ = ["MADE_FOR_A_COPY", "Family", "gone_of", "living_of"]

MADE_FOR_A_COPY = {"sessiontree": "made for a copy, to be deleted again"}


class Family(Record, frozen=True, kw_only=True):
    """A thread and what was appended through it. ``is_gone``: it was deleted, but forks still show its entries."""

    thread: Thread
    base: str | None
    own: tuple[Entry, ...]
    inherited: frozenset[str] = frozenset()
    moves: tuple[Move, ...] = ()
    is_gone: bool = False


def living_of(journal: Journal, threads: Sequence[Thread]) -> list[Family]:
    return [_family(journal, thread) for thread in threads]


def _family(journal: Journal, thread: Thread) -> Family:
    base = thread.forked_from_entry or None
    inherited = frozenset(entry.id for entry in journal.path(thread.id, base)) if base else frozenset()
    own = tuple(entry for entry in journal.entries(thread.id) if entry.id not in inherited)
    moves = tuple(journal.reflog(thread.id))
    return Family(thread=thread, base=base, own=own, inherited=inherited, moves=moves)


def gone_of(journal: Journal, living: Sequence[Family]) -> list[Family]:
    """Threads that were deleted, as far as forks still show them."""
    known = {entry.id for family in living for entry in family.own}
    left: dict[str, dict[str, Entry]] = {}
    depths: dict[str, int] = {}
    for family in living:
        if family.inherited - known:
            for depth, entry in enumerate(journal.path(family.thread.id, family.base)):
                depths[entry.id] = depth
                if entry.id not in known:
                    left.setdefault(entry.thread_id, {})[entry.id] = entry
    tree = living[0].thread.tree
    return [
        _gone_family(name, tree, life)
        for name, own in left.items()
        for life in _lives(sorted(own.values(), key=lambda entry: depths[entry.id]))
    ]


def _lives(own: Sequence[Entry]) -> list[list[Entry]]:
    """Entries that hang together, parents first: a name may have been deleted more than once."""
    lives: list[list[Entry]] = []
    found: dict[str, list[Entry]] = {}
    for entry in own:
        life = found.get(entry.parent or "")
        if life is None:
            life = []
            lives.append(life)
        life.append(entry)
        found[entry.id] = life
    return lives


def _gone_family(name: str, tree: str, life: Sequence[Entry]) -> Family:
    first = life[0]
    origin = {**MADE_FOR_A_COPY, "first": first.id}  # so that no living thread, and no other life, looks the same
    thread = Thread(id=name, tree=tree, created_ns=first.created_ns, updated_ns=first.created_ns, origin=origin)
    return Family(thread=thread, base=first.parent, own=tuple(life), is_gone=True)
