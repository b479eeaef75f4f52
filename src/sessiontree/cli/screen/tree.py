"""The tree of a thread: what the user said and what was answered, the steps in between folded into one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.lines import ATTENTION, DIM, FAILURE, Line, beside, rule
from sessiontree.cli.screen.rows import ThreadView, entry_line, notes_line
from sessiontree.model import AssistantMessage, Compaction, Entry, Record, RunFailure, TurnMarker
from sessiontree.render.branches import Branches, Run
from sessiontree.render.figures import duration, plural
from sessiontree.render.gists import Gist
from sessiontree.render.steps import Figures, figures_of_turn
from sessiontree.render.times import day
from sessiontree.render.turns import is_prompt, turns_of

__all__ = ["TreeFilter", "fold_words", "path_lines", "tree_lines"]


_CLOCK_FROM = 60
_FIGURES_FROM = 120

TreeFilter = Callable[[Entry], bool]


class _Row(Record, frozen=True):
    """An entry, or several that are folded."""

    entry: Entry | None
    folded: tuple[Entry, ...] = ()
    is_cut_off: bool = False
    last: Entry | None = None


def tree_lines(
    view: ThreadView,
    *,
    is_folded: bool = True,
    shows_all: bool = False,
    keep: TreeFilter | None = None,
    depth: int | None = None,
) -> Iterator[Line]:
    """Draw all branches. ``keep`` chooses the entries that are shown, ``depth`` how far branches of branches are."""
    width = min(view.width, LISTS)
    branches = Branches(view.entries, view.thread.leaf, shows_all=shows_all)
    figures = _path_figures(view, branches) if width >= _FIGURES_FROM else {}
    days = {day(entry.created_at, view.now) for entry in view.entries}
    last_day = ""
    for run in branches.runs():
        if depth is not None and run.depth > depth:
            continue
        rows = list(_rows(view, run, branches, is_folded=is_folded))
        is_first = True
        for row in rows:
            if keep is not None and (row.entry is None or not keep(row.entry)):
                continue
            entry = row.entry or row.folded[0]
            if len(days) > 1 and day(entry.created_at, view.now) != last_day:
                last_day = day(entry.created_at, view.now)
                yield rule(last_day, width, view.id_width + 2 + 2 * run.depth)
            lead = _lead(run, is_first=is_first, width=width)
            is_first = False
            yield _line(view, row, run, lead, branches.head, width, figures)


def path_lines(view: ThreadView, width: int) -> Iterator[Line]:
    """Draw a path alone, without ids and times: a preview."""
    branches = Branches(view.entries, view.thread.leaf)
    for run in branches.runs():
        for row in _rows(view, run, branches, is_folded=True):
            if row.entry is None:
                gists = [gist for one in row.folded for gist in view.gists(one)]
                yield Line(("┆ ", DIM)).extend(fold_words(gists, row.folded)).cut(width)
            else:
                line = entry_line(view, row.entry, is_active=True, room=width)
                yield beside(line, notes_line(view, row.entry, branches.head, has_clock=False), width)


def _path_figures(view: ThreadView, branches: Branches) -> dict[str, Figures]:
    """What the turns of the active path took, by their messages of the user."""
    path = [entry for entry in view.entries if entry.id in branches.active]
    return {
        turn.prompt.id: figures_of_turn(turn, branches, view.folder)
        for turn in turns_of(path)
        if turn.prompt is not None and turn.entries
    }


def _lead(run: Run[Entry], *, is_first: bool, width: int) -> str:
    """The lines of the branches to the left; a deep one is cut, so that there is room for the words."""
    depth = min(run.depth, max(2, (width - 24) // 4))
    if not depth:
        return ""
    start = "│ " * (depth - 1) if depth == run.depth else "… " + "│ " * (depth - 2)
    return start + ("├─" if is_first and run.starts else "│ ")


def _line(  # noqa: PLR0917  a row is all of these
    view: ThreadView, row: _Row, run: Run[Entry], lead: str, head: str | None, width: int, figures: dict[str, Figures]
) -> Line:
    entry = row.entry
    if entry is None:
        line = Line(view.id_cell(None), (lead + "┆ ", DIM))
        return line.extend(fold_words([gist for one in row.folded for gist in view.gists(one)], row.folded)).cut(width)
    line = Line(view.id_cell(entry, is_active=run.is_active), (lead, DIM))
    if row.is_cut_off:
        calls = view.gists(entry)
        what = calls[-1].object if calls[-1].kind == "bash" else f"{calls[-1].name} {calls[-1].object}"
        line.add("! ", ATTENTION).add(f"cut off: {what}", "" if run.is_active else DIM)
    else:
        line.extend(entry_line(view, entry, is_active=run.is_active, room=width - line.width - 14))
    right = _figures(figures[entry.id]) if entry.id in figures else Line()
    at_head = row.last.id if row.last is not None and row.last.id == head else None
    notes = notes_line(view, entry, entry.id if at_head else head, has_clock=width >= _CLOCK_FROM)
    return beside(line, right.add("   " if right.spans else "").extend(notes), width)


def _figures(figures: Figures) -> Line:
    """How long a turn of the active path took and what it cost."""
    return Line((f"{duration(figures.seconds):>7} {figures.cost.words:>7}", DIM))


def _rows(view: ThreadView, run: Run[Entry], branches: Branches, *, is_folded: bool) -> Iterator[_Row]:
    hidden: list[Entry] = []
    failures = _failures_at_the_end(run) if is_folded else 0
    entries = run.entries[: len(run.entries) - failures]
    for at, entry in enumerate(entries):
        is_last = at == len(entries) - 1
        is_cut_off = is_last and not branches.children(run.entries[-1].id) and _is_waiting(view, entry)
        following = entries[at + 1] if not is_last else None
        if not is_folded or is_cut_off or entry.id == branches.head or _is_shown(view, entry, following):
            yield from _fold(hidden)
            hidden = []
            yield _Row(entry, (), is_cut_off, run.entries[-1] if is_cut_off else None)
            failures = 0 if is_cut_off else failures
        else:
            hidden.append(entry)
    yield from _fold(hidden)
    if failures:
        yield _Row(run.entries[-failures], (), last=run.entries[-1])


def _failures_at_the_end(run: Run[Entry]) -> int:
    """How many entries at the end of a run say that it failed: together they are one row."""
    number = 0
    while number < len(run.entries) and isinstance(run.entries[-1 - number].payload, RunFailure | TurnMarker):
        number += 1
    return number


def _fold(hidden: Sequence[Entry]) -> Iterator[_Row]:
    if hidden:
        yield _Row(None, tuple(hidden))


def _is_shown(view: ThreadView, entry: Entry, following: Entry | None) -> bool:
    """Whether an entry has a row of its own: what users said, what ends a turn, what has a name."""
    if is_prompt(entry) or entry.id in view.labels or entry.id in view.forks:
        return True
    match entry.payload:
        case Compaction() | RunFailure() | TurnMarker(status="failed" | "aborted"):
            return True
        case AssistantMessage(message=message):
            goes_on = following is not None and following.message is not None and not is_prompt(following)
            return bool(message.text.strip()) and not goes_on
        case _:
            return entry.message is None


def _is_waiting(view: ThreadView, entry: Entry) -> bool:
    calls = entry.message.tool_calls if entry.message is not None else ()
    return any(call.id not in view.results for call in calls)


def fold_words(gists: Sequence[Gist], folded: Sequence[Entry] = ()) -> Line:
    """Return folded steps in words: how many, how many failed, which tools."""
    if not gists:
        return Line((_other_words(folded), DIM))
    failures = sum(gist.is_failed for gist in gists)
    line = Line((plural(len(gists), "step"), DIM))
    if failures:
        line.add(", ", DIM).add(f"{failures} failed", FAILURE)
    return line.add(": " + ", ".join(_tools(gists)), DIM)


def _tools(gists: Sequence[Gist]) -> list[str]:
    counts: dict[str, int] = {}
    for gist in gists:
        files = [change.path.rsplit("/", 1)[-1] for change in gist.changes if change.path]
        name = f"{gist.name} {files[0]}" if files else gist.name
        counts[name] = counts.get(name, 0) + 1
    return [name if count == 1 else f"{name} ×{count}" for name, count in counts.items()]


def _other_words(folded: Sequence[Entry]) -> str:
    roles = {entry.message.role for entry in folded if entry.message is not None}
    return "system prompt" if roles == {"system"} else plural(len(folded), "entry", "entries")
