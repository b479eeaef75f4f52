"""The branches of a thread in the order in which they are drawn, without recursion: a path may have 100,000 entries.

The active path runs straight down. Other branches come directly below the entry that they leave, oldest first, one step
further to the right; then the path goes on. Inside a branch its newest child is the straight one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from sessiontree.model import Entry, Record
from sessiontree.render.turns import is_bookkeeping

__all__ = ["BranchTree", "Branches", "Families", "Linked", "Run"]


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


class Families(Generic[N]):
    """Which entries hang below which, of those that ``shows`` returns True for. It grows with what is added.

    >>> from types import SimpleNamespace as Item
    >>> families = Families([Item(id="a", parent=None), Item(id="b", parent="a")], shows=lambda item: True)
    >>> families.size_of("a")
    2
    """

    def __init__(self, entries: Iterable[N], *, shows: Callable[[N], bool]) -> None:
        self._shows = shows
        self._above: dict[str, str | None] = {}
        self._shown: set[str] = set()
        self._children: dict[str | None, list[N]] = {}
        self._sizes: dict[str, int] = {}
        self.add(entries)

    def __len__(self) -> int:
        return len(self._shown)

    def add(self, entries: Iterable[N]) -> None:
        """Take in more entries; parents come before their children."""
        for entry in entries:
            above = self.shown_at(entry.parent)
            self._above[entry.id] = above
            if self._shows(entry):
                self._shown.add(entry.id)
                self._children.setdefault(above, []).append(entry)
                self._forget_sizes(above)

    def shown_at(self, entry_id: str | None) -> str | None:
        """Return an entry itself if it is shown, else the nearest one above it that is."""
        return entry_id if entry_id is None or entry_id in self._shown else self._above.get(entry_id)

    def children(self, entry_id: str | None) -> Sequence[N]:
        """Return the shown children of an entry, oldest first; ``None`` stands for the parent of the roots."""
        return self._children.get(entry_id, ())

    def family(self, entry_id: str) -> Sequence[N]:
        """Return an entry and its siblings, oldest first."""
        return self.children(self._above.get(entry_id))

    def path(self, leaf: str | None) -> set[str]:
        """Return the shown entries on the path to a leaf."""
        path: set[str] = set()
        at = self.shown_at(leaf)
        while at is not None:
            path.add(at)
            at = self._above.get(at)
        return path

    def size_of(self, entry_id: str) -> int:
        """Return how many entries are shown from an entry on, itself and all branches below it."""
        if entry_id not in self._sizes:
            below = [entry_id]
            for at in below:
                below += [child.id for child in self.children(at) if child.id not in self._sizes]
            for at in reversed(below):
                self._sizes[at] = 1 + sum(self._sizes[child.id] for child in self.children(at))
        return self._sizes[entry_id]

    def _forget_sizes(self, entry_id: str | None) -> None:
        """An entry came below: nothing above an entry whose size is unknown has a known one."""
        while entry_id is not None and self._sizes.pop(entry_id, None) is not None:
            entry_id = self._above.get(entry_id)


class BranchTree(Generic[N]):
    """How families are drawn with a leaf; ``is_active`` says what is on the path to it."""

    def __init__(self, families: Families[N], leaf: str | None, *, is_active: Callable[[str], bool]) -> None:
        self.families = families
        self.head = families.shown_at(leaf)
        self.is_active = is_active

    def runs(self, start: N | None = None) -> Iterator[Run[N]]:
        """Return the runs in the order in which they are drawn: all, or from an entry of the active path on."""
        stack = [(start, 0, False)] if start is not None else self._next(None, 0)
        while stack:
            first, depth, starts = stack.pop()
            run = [first]
            below = self.families.children(first.id)
            while len(below) == 1:
                run.append(below[0])
                below = self.families.children(below[0].id)
            yield Run(entries=tuple(run), depth=depth, starts=starts, is_active=self.is_active(first.id))
            stack += self._next(run[-1].id, depth)

    def end_of(self, entry_id: str) -> str:
        """Return the last entry of the branch that goes on straight from an entry."""
        below = self.families.children(entry_id)
        while below:
            straight = self._straight(below)
            entry_id, below = straight.id, self.families.children(straight.id)
        return entry_id

    def _straight(self, below: Sequence[N]) -> N:
        if len(below) == 1:
            return below[0]
        return next((entry for entry in below if self.is_active(entry.id)), None) or self._newest(below)

    def _newest(self, below: Sequence[N]) -> N:
        """The newest child, unless an older one has most of the entries: so the depth stays below the logarithm."""
        sizes = {entry.id: self.families.size_of(entry.id) for entry in below}
        total = sum(sizes.values())
        largest = max(below, key=lambda entry: sizes[entry.id])
        is_small = total <= _SMALL or sizes[largest.id] <= total // 2
        return below[-1] if is_small else largest

    def _next(self, entry_id: str | None, depth: int) -> list[tuple[N, int, bool]]:
        """What to draw after an entry, in reverse: side branches, oldest first, then the straight one."""
        below = self.families.children(entry_id)
        if not below:
            return []
        straight = self._straight(below)
        sides = [(entry, depth + 1, True) for entry in reversed(below) if entry is not straight]
        return [(straight, depth, False), *sides]


class Branches(BranchTree[Entry]):
    """The tree of a thread, without entries that nobody reads unless ``shows_all``."""

    def __init__(self, entries: Sequence[Entry], leaf: str | None, *, shows_all: bool = False) -> None:
        families = Families(entries, shows=lambda entry: shows_all or not is_bookkeeping(entry))
        self.active = families.path(leaf)
        super().__init__(families, leaf, is_active=self.active.__contains__)

    def children(self, entry_id: str | None) -> Sequence[Entry]:
        """Return the shown children of an entry, oldest first."""
        return self.families.children(entry_id)
