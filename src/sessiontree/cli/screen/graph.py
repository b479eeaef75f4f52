"""The log of a thread, newest first: one row for each entry, a call together with its result, branches as in git."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.lines import DIM, Line, beside
from sessiontree.cli.screen.rows import ThreadView, entry_line, is_paired_result, notes_line
from sessiontree.model import Entry
from sessiontree.model.prices import reported_usage
from sessiontree.render.branches import Branches
from sessiontree.render.cells import fit
from sessiontree.render.figures import count
from sessiontree.render.times import clock
from sessiontree.render.turns import cost_of_entries

__all__ = ["graph_lines", "log_lines"]


_CLOCK_FROM = 60
_FIGURES_FROM = 120


def graph_lines(view: ThreadView, *, shows_all: bool = False) -> Iterator[Line]:
    """Draw all branches: the order of the tree, turned round."""
    width = min(view.width, LISTS)
    branches = Branches(view.entries, view.thread.leaf, shows_all=shows_all)
    for run in reversed(list(branches.runs())):
        shown = [
            entry
            for entry in run.entries
            if shows_all or entry.id == branches.head or not is_paired_result(view, entry)
        ]
        for entry in reversed(shown):
            yield _line(view, entry, "│ " * run.depth, branches.head, width, is_active=run.is_active)
        if run.starts and shown:
            yield Line(view.id_cell(None), ("│ " * (run.depth - 1) + "├─╯", DIM)).cut(width)


def log_lines(view: ThreadView, path: Sequence[Entry], *, shows_all: bool = False) -> Iterator[Line]:
    """Draw a path, newest first."""
    width = min(view.width, LISTS)
    head = Branches(view.entries, view.thread.leaf, shows_all=shows_all).head
    for entry in reversed(path):
        if shows_all or entry.id == head or not is_paired_result(view, entry):
            yield _line(view, entry, "", head, width, is_active=True)


def _line(view: ThreadView, entry: Entry, lead: str, head: str | None, width: int, *, is_active: bool) -> Line:
    line = Line(view.id_cell(entry, is_active=is_active), (lead, DIM))
    notes = notes_line(view, entry, head, has_clock=_CLOCK_FROM <= width < _FIGURES_FROM)
    if width >= _FIGURES_FROM:
        figures = f"{_figures(entry)}  {clock(entry.created_at, view.now)}"
        notes.add(" " if notes.spans else "").add(figures, DIM)
    room = width - line.width - notes.width - 2
    return beside(line.extend(entry_line(view, entry, is_active=is_active, room=room)), notes, width)


def _figures(entry: Entry) -> str:
    found = reported_usage(entry.payload)
    if found is None:
        return " " * 34
    usage, model = found
    cost = cost_of_entries([entry])
    amount = cost.words
    tokens = count(usage.context_tokens) if usage.context_tokens else ""
    return f"{fit(model, 18):<18}  {tokens:>6}  {amount:>6}"
