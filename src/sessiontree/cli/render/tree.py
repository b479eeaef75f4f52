"""Draw the tree of a thread, without recursion: a path may have 100,000 entries.

The active path runs straight down on the left; other branches are indented below the entry where they start. Long
runs of entries without a branch are folded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from sessiontree.cli.render.text import is_bookkeeping
from sessiontree.model import Checkpoint, Compaction, Entry, Record, RunFailure, TurnMarker

__all__ = ["Glyphs", "Row", "rows_of"]


_RUN_ENDS = 2
"""How many entries are shown at each end of a folded run."""

_SHORTEST_FOLD = 3


class Glyphs(Record, frozen=True, kw_only=True):
    """The characters that the tree is drawn with."""

    active: str = "●"
    other: str = "○"
    compaction: str = "◆"
    failure: str = "✗"
    checkpoint: str = "◼"
    fold: str = "⋮"
    start: str = "├─"
    beside: str = "│ "


ASCII = Glyphs(active="*", other="o", compaction="#", failure="x", checkpoint="+", fold=":", start="|-", beside="| ")


class Row(Record, frozen=True, kw_only=True):
    """One line of the drawing: an entry, or the number of ``folded`` entries."""

    prefix: str
    glyph: str
    entry: Entry | None = None
    folded: int = 0
    is_active: bool = False
    is_leaf: bool = False
    labels: tuple[str, ...] = ()


def rows_of(
    entries: Sequence[Entry],
    *,
    leaf: str | None,
    labels: Mapping[str, str] | None = None,
    notable: Collection[str] = (),
    glyphs: Glyphs | None = None,
    is_folded: bool = True,
    shows_all: bool = False,
) -> Iterator[Row]:
    """Draw entries, given in commit order.

    ``labels`` maps a name to an entry id; ``notable`` entries are never folded.
    """
    drawing = _Drawing(entries, leaf, labels or {}, notable, glyphs or Glyphs(), shows_all=shows_all)
    for prefix, first, run in drawing.runs():
        shown = [entry for entry in run if drawing.is_shown(entry)]
        yield from drawing.rows(shown, prefix, first, is_folded=is_folded)


class _Drawing:
    def __init__(
        self,
        entries: Sequence[Entry],
        leaf: str | None,
        labels: Mapping[str, str],
        notable: Collection[str],
        glyphs: Glyphs,
        *,
        shows_all: bool,
    ) -> None:
        self._leaf = leaf
        self._glyphs = glyphs
        self._notable = notable
        self._shows_all = shows_all
        self._by_id = {entry.id: entry for entry in entries}
        self._children: dict[str | None, list[Entry]] = {}
        for entry in entries:
            parent = entry.parent if entry.parent in self._by_id else None
            self._children.setdefault(parent, []).append(entry)
        self._names: dict[str, list[str]] = {}
        for name, target in labels.items():
            self._names.setdefault(target, []).append(name)
        self._path = set(self._upwards(leaf))
        self._sizes = self._count()

    def runs(self) -> Iterator[tuple[str, str, list[Entry]]]:
        """Runs without a branch: the prefix of their lines, the prefix of the first line, and the entries."""
        stack = self._branches(self._children.get(None, []), "")
        while stack:
            start, prefix, first = stack.pop()
            run = [start]
            below = self._children.get(start.id, [])
            while len(below) == 1:
                run.append(below[0])
                below = self._children.get(below[0].id, [])
            yield prefix, first, run
            stack += self._branches(below, prefix)

    def is_shown(self, entry: Entry) -> bool:
        return self._shows_all or not is_bookkeeping(entry) or entry.id in self._names or entry.id == self._leaf

    def rows(self, run: Sequence[Entry], prefix: str, first: str, *, is_folded: bool) -> Iterator[Row]:
        for entry, hidden in self._folded(run) if is_folded else ((entry, 0) for entry in run):
            lead, first = first, prefix
            if entry is None:
                yield Row(prefix=lead, glyph=self._glyphs.fold, folded=hidden)
            else:
                yield self._row(entry, lead)

    def _branches(self, below: Sequence[Entry], prefix: str) -> list[tuple[Entry, str, str]]:
        """What to draw next, in reverse: side branches in commit order, then the main line.

        Off the active path the largest branch is the main line, so that the indentation grows only with the logarithm
        of the number of entries.
        """
        if not below:
            return []
        main = next((entry for entry in below if entry.id in self._path), None)
        main = main or max(reversed(below), key=lambda entry: self._sizes[entry.id])
        sides = [entry for entry in below if entry is not main]
        stack = [(main, prefix, prefix)]
        stack += [(side, prefix + self._glyphs.beside, prefix + self._glyphs.start) for side in reversed(sides)]
        return stack

    def _folded(self, run: Sequence[Entry]) -> Iterator[tuple[Entry | None, int]]:
        """The entries to show, and in between the number of entries that are folded."""
        pinned = {at for at, entry in enumerate(run) if self._is_pinned(entry)}
        last = len(run) - 1
        shown = {near for at in {0, last, *pinned} for near in range(at - _RUN_ENDS + 1, at + _RUN_ENDS)}
        hidden: list[Entry] = []
        for at, entry in enumerate(run):
            if at not in shown:
                hidden.append(entry)
                continue
            yield from _fold(hidden)
            hidden = []
            yield entry, 0
        yield from _fold(hidden)

    def _is_pinned(self, entry: Entry) -> bool:
        match entry.payload:
            case Compaction() | RunFailure() | Checkpoint() | TurnMarker(status="failed" | "aborted"):
                return True
            case _:
                return entry.id in self._names or entry.id == self._leaf or entry.id in self._notable

    def _row(self, entry: Entry, prefix: str) -> Row:
        is_active = entry.id in self._path
        return Row(
            prefix=prefix,
            glyph=self._glyph(entry, is_active=is_active),
            entry=entry,
            is_active=is_active,
            is_leaf=entry.id == self._leaf,
            labels=tuple(self._names.get(entry.id, ())),
        )

    def _glyph(self, entry: Entry, *, is_active: bool) -> str:
        match entry.payload:
            case Compaction():
                return self._glyphs.compaction
            case RunFailure() | TurnMarker(status="failed" | "aborted"):
                return self._glyphs.failure
            case Checkpoint():
                return self._glyphs.checkpoint
            case _:
                return self._glyphs.active if is_active else self._glyphs.other

    def _count(self) -> dict[str, int]:
        """The size of the subtree of each entry, itself included."""
        order = list(self._children.get(None, ()))
        for entry in order:
            order += self._children.get(entry.id, ())
        sizes = dict.fromkeys(self._by_id, 1)
        for entry in reversed(order):
            if entry.parent in sizes:
                sizes[entry.parent] += sizes[entry.id]
        return sizes

    def _upwards(self, entry_id: str | None) -> Iterator[str]:
        entry = self._by_id.get(entry_id) if entry_id else None
        while entry is not None:
            yield entry.id
            entry = self._by_id.get(entry.parent) if entry.parent else None


def _fold(hidden: Sequence[Entry]) -> Iterator[tuple[Entry | None, int]]:
    if len(hidden) >= _SHORTEST_FOLD:
        yield None, len(hidden)
    else:
        yield from ((entry, 0) for entry in hidden)
