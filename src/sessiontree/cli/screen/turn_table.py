"""A large thread as a table: one row for each message of the user, with what it took."""

from __future__ import annotations

from collections.abc import Iterator

from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.lines import BOLD, DIM, FAILURE, GOOD, USER, Line, beside, rule
from sessiontree.cli.screen.rows import ThreadView, entry_line, notes_line
from sessiontree.model import Compaction, Entry, Record
from sessiontree.model.titles import is_title_text
from sessiontree.render.branches import Branches, Run
from sessiontree.render.cells import pad
from sessiontree.render.entries import compaction_words, words_of
from sessiontree.render.figures import count, duration
from sessiontree.render.steps import Figures, figures_of_turn
from sessiontree.render.times import clock, day
from sessiontree.render.turns import Turn, is_prompt, turns_of

__all__ = ["turn_table_lines"]


_NARROW = 60
_WIDE = 120
_SHORT_WORDS = frozenset({"continue", "ok", "go on", "yes", "go", "proceed", "weiter", "next"})


class _Row(Record, frozen=True, kw_only=True):
    """A message and what it took; a compaction; or the beginning of a branch without a message."""

    entry: Entry
    run: Run[Entry]
    figures: Figures | None = None
    is_first: bool = False
    last: Entry | None = None


def turn_table_lines(view: ThreadView) -> Iterator[Line]:
    """Draw the table, with a rule for each day."""
    width = min(view.width, LISTS)
    branches = Branches(view.entries, view.thread.leaf)
    if width >= _NARROW:
        yield _header(view, width)
    today = ""
    for row in _rows(view, branches):
        if day(row.entry.created_at, view.now) != today:
            today = day(row.entry.created_at, view.now)
            yield rule(today, width, view.id_width + 2)
        yield _line(view, row, branches, width)


def _rows(view: ThreadView, branches: Branches) -> Iterator[_Row]:
    path = [entry for entry in view.entries if entry.id in branches.active]
    turns: dict[str, Turn] = {turn.prompt.id: turn for turn in turns_of(path) if turn.prompt is not None}
    for run in branches.runs():
        is_first = run.starts
        for turn in turns_of(run.entries):
            whole = turns.get(turn.prompt.id, turn) if turn.prompt is not None else turn
            start = turn.prompt or (turn.entries[0] if is_first else None)
            if start is not None:
                figures = figures_of_turn(whole, branches, view.folder)
                yield _Row(entry=start, run=run, figures=figures, is_first=is_first, last=whole.all_entries[-1])
                is_first = False
            yield from (_Row(entry=one, run=run) for one in turn.entries if isinstance(one.payload, Compaction))


def _columns(width: int) -> list[tuple[str, int]]:
    if width < _NARROW:
        return [("", 6)]
    wide = [("tokens", 6), ("cost", 6)] if width >= _WIDE else []
    edits = [("edits", 9)] if width >= 80 else []
    return [("steps", 5), ("✗", 2), *edits, ("time", 6), *wide, ("at", 5)]


def _header(view: ThreadView, width: int) -> Line:
    right = "  ".join(pad(name, cells, is_right=True) for name, cells in _columns(width))
    return beside(Line((" " * (view.id_width + 2) + "turn", DIM)), Line((right, DIM)), width)


def _line(view: ThreadView, row: _Row, branches: Branches, width: int) -> Line:
    run, entry = row.run, row.entry
    if row.figures is None:
        assert isinstance(entry.payload, Compaction)
        lead = "│ " * run.depth
        return Line(view.id_cell(None), (lead + "≈ " + compaction_words(entry.payload), DIM)).cut(width)
    lead = "│ " * (run.depth - 1) + ("├─" if row.is_first else "│ ") if run.depth else ""
    line = Line(view.id_cell(entry, is_active=run.is_active), (lead, DIM))
    if is_prompt(entry):
        words = words_of(entry, view.folder)
        is_quiet = not run.is_active or words.casefold().strip(" .!") in _SHORT_WORDS or not is_title_text(words)
        line.add("❯ ", USER).add(words, DIM if is_quiet else BOLD)
    else:
        line.extend(entry_line(view, entry, is_active=run.is_active))
    figures = _cells(view, row, width)
    notes = _notes(view, row, branches)
    room = max(8, width - figures.width - 2)
    left = line.cut(max(8, room - notes.width - 2)) if notes.spans else line.cut(room)
    return beside(left.add("  ").extend(notes) if notes.spans else left, figures, width)


def _notes(view: ThreadView, row: _Row, branches: Branches) -> Line:
    """The labels of all entries of a turn, and the head if it is in there."""
    notes = notes_line(view, row.entry, branches.head, has_clock=False)
    if row.last is not None and row.last.id != row.entry.id:
        below = notes_line(view, row.last, branches.head, has_clock=False)
        notes.add(" " if notes.spans and below.spans else "").extend(below)
    return notes


def _cells(view: ThreadView, row: _Row, width: int) -> Line:
    figures = row.figures
    assert figures is not None
    steps, failures = count(figures.steps) if figures.steps else "", figures.failures
    if width < _NARROW:
        line = Line((f"{steps:>3}" if not failures else steps, DIM))
        return line.add(f" ✗{failures}", FAILURE) if failures else line
    line = Line((f"{steps:>5}", DIM), ("  " + (f"{failures:>2}" if failures else "  "), FAILURE))
    if width >= 80:
        line.extend(_edits(figures))
    seconds = duration(figures.seconds) if figures.seconds else ""
    line.add(f"  {seconds:>6}", DIM)
    if width >= _WIDE:
        tokens = "" if figures.tokens.count is None else count(figures.tokens.count)
        cost = figures.cost
        amount = cost.words
        line.add(f"  {tokens:>6}  {amount:>6}", DIM)
    return line.add(f"  {clock(row.entry.created_at, view.now)}", DIM)


def _edits(figures: Figures) -> Line:
    added = f"+{figures.added}" if figures.added else ""
    removed = f"−{figures.removed}" if figures.removed else ""
    both = f"{added} {removed}".strip()
    line = Line("  " + " " * max(0, 9 - len(both)))
    return line.add(added, GOOD).add(" " if added and removed else "").add(removed, FAILURE)
