"""The rows of a drawn tree: which entries have one, in which lane, and what is folded. Pure, of an outline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from sessiontree.model import Thread
from sessiontree.render.branches import Run
from sessiontree.web.outline import Node, Outline

__all__ = ["Drawing", "Filter", "Slot", "draw"]


Filter = Literal["all", "prompts", "talk", "labels"]

_LONG = 300
"""In a longer tree, turns are folded to their prompts."""
_LONG_BRANCH = 8
_DEEPEST = 4


class Slot(NamedTuple):
    """One row. ``lanes`` has a bit for each lane to the left that goes on; ``thread`` is a fork that leaves here."""

    node: Node
    depth: int
    starts: bool
    is_active: bool
    hidden: int = 0
    is_folded: bool | None = None
    thread: Thread | None = None
    lanes: int = 0
    has_above: bool = True
    has_below: bool = False


class Drawing(NamedTuple):
    """What is drawn: the leaf of the active path, the filter, and the rows whose fold is not the usual one."""

    leaf: str | None
    filter: Filter = "all"
    toggled: frozenset[str] = frozenset()


class _Drawn(NamedTuple):
    """Rows that were drawn when the outline had ``seen`` entries.

    The first ``settled`` of them stay as they are while entries come only at the end of the path: the last prompt on it,
    ``prompt``, is in the row after them. None if it has no row.
    """

    slots: list[Slot]
    leaf: str | None
    seen: int
    is_long: bool
    settled: int | None
    prompt: Node | None

    def goes_on(self, outline: Outline, leaf: str | None) -> bool:
        """Return whether all that was added since hangs in one line below the leaf."""
        new = outline.window(leaf, outline.length(self.leaf), outline.length(leaf))
        return len(new) == len(outline.nodes) - self.seen and all(node.number >= self.seen for node in new)


def draw(
    outline: Outline, drawing: Drawing, *, labels: frozenset[str] = frozenset(), forks: Mapping[str, Sequence[Thread]]
) -> list[Slot]:
    """Return the rows from top to bottom. A drawing of the same path that was made before is continued."""
    leaf = drawing.leaf
    titles = tuple((fork.id, fork.title) for found in forks.values() for fork in found)
    key = ("rows", drawing.filter, drawing.toggled, labels, titles)

    def drawn(earlier: _Drawn | None) -> _Drawn:
        drawer = _Drawer(outline, drawing, labels, forks)
        if earlier is None or earlier.settled is None or earlier.is_long != drawer.is_long:
            return drawer.drawn()
        return drawer.drawn(earlier) if earlier.goes_on(outline, leaf) else drawer.drawn()

    return outline.grown(key, leaf, drawn).slots


class _Drawer:
    def __init__(
        self, outline: Outline, drawing: Drawing, labels: frozenset[str], forks: Mapping[str, Sequence[Thread]]
    ) -> None:
        self._outline = outline
        self._tree = outline.tree(drawing.leaf)
        self._drawing = drawing
        self._labels = labels
        self._forks = forks
        self.is_long = len(outline.families) > _LONG
        self._turn_folded: dict[int, bool] = {}
        self._prompt = next((node for node in outline.upward(drawing.leaf) if node.kind == "prompt"), None)

    def drawn(self, earlier: _Drawn | None = None) -> _Drawn:
        """Draw everything, or what comes after the settled rows of an earlier drawing."""
        settled = earlier.slots[: earlier.settled] if earlier is not None else []
        start = earlier.prompt if earlier is not None else None
        slots = settled + _with_lanes(list(self._slots(self._tree.runs(start))))
        if slots and slots[0].depth == 0:
            slots[0] = slots[0]._replace(has_above=False)
        places = (at for at in range(len(slots) - 1, -1, -1) if slots[at].node is self._prompt and slots[at].depth == 0)
        return _Drawn(
            slots=slots,
            leaf=self._drawing.leaf,
            seen=len(self._outline.nodes),
            is_long=self.is_long,
            settled=next(places, None),
            prompt=self._prompt,
        )

    def _slots(self, runs: Iterator[Run[Node]]) -> Iterator[Slot]:
        skipped: int | None = None
        for run in runs:
            if skipped is not None and (run.depth > skipped or (run.depth == skipped and not run.starts)):
                continue
            skipped = None
            if run.starts and self._is_branch_folded(run):
                skipped = run.depth
                first = run.entries[0]
                hidden = self._size_of(first) - 1
                yield Slot(first, run.depth, True, run.is_active, hidden=hidden, is_folded=True)
            else:
                yield from self._run(run)

    def _size_of(self, node: Node) -> int:
        return self._outline.families.size_of(node.id)

    def _is_branch_folded(self, run: Run[Node]) -> bool:
        first = run.entries[0]
        if self._drawing.filter == "labels":
            return False
        is_usual = run.depth > _DEEPEST or self._size_of(first) > _LONG_BRANCH
        return (is_usual != (first.id in self._drawing.toggled)) and self._size_of(first) > 1

    def _run(self, run: Run[Node]) -> Iterator[Slot]:
        turns = _turns(run.entries)
        for number, turn in enumerate(turns):
            first = turn[0]
            starts = run.starts and number == 0
            if first.kind != "prompt":
                if number == 0 and not run.starts and self._turn_folded.get(run.depth, False):
                    continue
                self._turn_folded[run.depth] = False
                yield from self._plain(turn, run, starts=starts)
                continue
            is_usual = self.is_long and first is not self._prompt
            is_folded = self._drawing.filter == "all" and is_usual != (first.id in self._drawing.toggled)
            self._turn_folded[run.depth] = is_folded
            if is_folded and len(turn) > 1:
                yield Slot(first, run.depth, starts, run.is_active, hidden=len(turn) - 1, is_folded=True)
                yield from (slot for node in turn for slot in self._forked(node, run))
            else:
                yield from self._plain(turn, run, starts=starts)

    def _plain(self, turn: Sequence[Node], run: Run[Node], *, starts: bool) -> Iterator[Slot]:
        for number, node in enumerate(turn):
            is_start = starts and number == 0
            if is_start or self._passes(node):
                can_fold = (is_start and self._size_of(node) > 1) or (node.kind == "prompt" and len(turn) > 1)
                yield Slot(node, run.depth, is_start, run.is_active, is_folded=False if can_fold else None)
            yield from self._forked(node, run)

    def _forked(self, node: Node, run: Run[Node]) -> Iterator[Slot]:
        for thread in self._forks.get(node.id, ()):
            yield Slot(node, run.depth + 1, True, False, thread=thread)

    def _passes(self, node: Node) -> bool:
        match self._drawing.filter:
            case "all":
                return True
            case "prompts":
                return node.kind in {"prompt", "compaction", "failure"}
            case "talk":
                return node.kind != "calls"
            case "labels":
                return node.id in self._labels


def _turns(nodes: Sequence[Node]) -> list[list[Node]]:
    turns: list[list[Node]] = []
    for node in nodes:
        if node.kind == "prompt" or not turns:
            turns.append([])
        turns[-1].append(node)
    return turns


def _with_lanes(slots: list[Slot]) -> list[Slot]:
    """The same rows with their lines: from below, where it is known which lanes go on."""
    below = [False] * (max((slot.depth for slot in slots), default=0) + 2)
    made: list[Slot] = []
    for slot in reversed(slots):
        lanes = sum(1 << lane for lane in range(slot.depth) if below[lane])
        made.append(slot._replace(lanes=lanes, has_below=below[slot.depth], has_above=not slot.starts))
        for lane in range(slot.depth, len(below)):
            below[lane] = False
        below[slot.depth] = not slot.starts
    made.reverse()
    return made
