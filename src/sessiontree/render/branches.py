"""The branches of a thread in the order in which they are drawn, without recursion: a path may have 100,000 entries.

The active path runs straight down. Other branches come directly below the entry that they leave, oldest first, one step
further to the right; then the path goes on. Inside a branch its newest child is the straight one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from sessiontree.model import Entry, Record
from sessiontree.render.turns import is_bookkeeping

__all__ = ["BranchTree", "Branches", "Linked", "Run"]


_SMALL = 8


class Linked(Protocol):
    """An entry, or what stands for one in a list: it knows its parent."""

    @property
    def id(self) -> str: ...
    @property
    def parent(self) -> str | None: ...


N = TypeVar("N", bound=Linked)


class Run(Record, Generic[N], frozen=True, kw_only=True):
    """Entries without a branch between them. ``depth`` 0 is the first column; ``starts`` a branch or goes on after one."""

    entries: tuple[N, ...]
    depth: int
    starts: bool
    is_active: bool


class BranchTree(Generic[N]):
    """The tree of a thread, of the entries that ``shows`` returns True for."""

    def __init__(self, entries: Sequence[N], leaf: str | None, *, shows: Callable[[N], bool]) -> None:
        self._parents = {entry.id: entry.parent for entry in entries}
        self._shown = {entry.id: entry for entry in entries if shows(entry)}
        self._children: dict[str | None, list[N]] = {}
        above: dict[str, str | None] = {}
        for entry in entries:
            # Parents come before their children, so the nearest shown one above is known.
            parent = entry.parent if entry.parent in self._parents else None
            nearest = parent if parent is None or parent in self._shown else above.get(parent)
            above[entry.id] = nearest
            if entry.id in self._shown:
                self._children.setdefault(nearest, []).append(entry)
        self._sizes = dict.fromkeys(self._shown, 1)
        for entry in reversed(entries):
            parent = above[entry.id]
            if entry.id in self._sizes and parent is not None:
                self._sizes[parent] += self._sizes[entry.id]
        self.head = leaf if leaf is None or leaf in self._shown else above.get(leaf)
        self._above = above
        self.active: set[str] = set()
        at = self.head
        while at is not None:
            self.active.add(at)
            at = above.get(at)

    def children(self, entry_id: str | None) -> Sequence[N]:
        """Return the shown children of an entry, oldest first; ``None`` stands for the parent of the roots."""
        return self._children.get(entry_id, ())

    def runs(self) -> Iterator[Run[N]]:
        """Return the runs in the order in which they are drawn."""
        stack = self._next(None, 0)
        while stack:
            start, depth, starts = stack.pop()
            run = [start]
            below = self.children(start.id)
            while len(below) == 1:
                run.append(below[0])
                below = self.children(below[0].id)
            yield Run(entries=tuple(run), depth=depth, starts=starts, is_active=start.id in self.active)
            stack += self._next(run[-1].id, depth)

    def family(self, entry_id: str) -> Sequence[N]:
        """Return an entry and its siblings, oldest first."""
        return self.children(self._above.get(entry_id))

    def size_of(self, entry_id: str) -> int:
        """Return how many entries are shown from an entry on, itself and all branches below it."""
        return self._sizes.get(entry_id, 0)

    def end_of(self, entry_id: str) -> str:
        """Return the last entry of the branch that goes on straight from an entry."""
        below = self.children(entry_id)
        while below:
            straight = next((entry for entry in below if entry.id in self.active), None) or self._newest(below)
            entry_id, below = straight.id, self.children(straight.id)
        return entry_id

    def _newest(self, below: Sequence[N]) -> N:
        """The newest child, unless an older one has most of the entries: so the depth stays below the logarithm."""
        total = sum(self._sizes[entry.id] for entry in below)
        largest = max(below, key=lambda entry: self._sizes[entry.id])
        is_small = total <= _SMALL or self._sizes[largest.id] <= total // 2
        return below[-1] if is_small else largest

    def _next(self, entry_id: str | None, depth: int) -> list[tuple[N, int, bool]]:
        """What to draw after an entry, in reverse: side branches, oldest first, then the straight one."""
        below = self.children(entry_id)
        if not below:
            return []
        straight = next((entry for entry in below if entry.id in self.active), None) or self._newest(below)
        sides = [(entry, depth + 1, True) for entry in reversed(below) if entry is not straight]
        return [(straight, depth, False), *sides]


class Branches(BranchTree[Entry]):
    """The tree of a thread, without entries that nobody reads unless ``shows_all``."""

    def __init__(self, entries: Sequence[Entry], leaf: str | None, *, shows_all: bool = False) -> None:
        super().__init__(entries, leaf, shows=lambda entry: shows_all or not is_bookkeeping(entry))
