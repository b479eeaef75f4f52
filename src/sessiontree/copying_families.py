"""What a copy carries together: a thread with what was appended through it, living or deleted."""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.journal import Journal
from sessiontree.model import Entry, Move, Thread
from sessiontree.model.record import Record

__all__ = ["Family", "gone_of", "living_of"]


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
        _gone_family(name, tree, sorted(own.values(), key=lambda e: depths[e.id]), depths) for name, own in left.items()
    ]


def _gone_family(name: str, tree: str, own: Sequence[Entry], depths: dict[str, int]) -> Family:
    ids = {entry.id for entry in own}
    foreign = [entry.parent for entry in own if entry.parent is not None and entry.parent not in ids]
    born = own[0].created_ns
    return Family(
        thread=Thread(id=name, tree=tree, created_ns=born, updated_ns=born),
        base=max(foreign, key=lambda parent: depths[parent], default=None),
        own=tuple(own),
        is_gone=True,
    )
