"""Lists of threads, and the head that stands above a thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sessiontree.cli.output import LISTS
from sessiontree.cli.screen.lines import ATTENTION, BOLD, DIM, GOOD, ID, NAME, Line, beside
from sessiontree.model.sanitize import one_line
from sessiontree.render.cells import cell_width, chop, cut_middle, fit, pad
from sessiontree.render.figures import UNKNOWN, count, money_column, plural
from sessiontree.render.ids import ShortIds
from sessiontree.render.threads import ThreadSummary, folder_of, home_path, tool_of
from sessiontree.render.times import ago, when

__all__ = ["NARROW", "branch_mark", "facts_of", "head_lines", "id_column", "id_lines", "list_lines", "mark_of"]


NARROW = 60
"""Below this width there is one column of text."""

_HEADED = 70
_LEAST_TITLE = 36
_LONGEST_ID = 8
_WIDEST_NARROW_ID = 12
_WIDEST_ID = 24
_WIDEST_FOLDER = 14


class _Column(NamedTuple):
    name: str
    cells: list[str]
    is_right: bool = True

    @property
    def width(self) -> int:
        return max(cell_width(text) for text in (self.name, *self.cells))


def list_lines(rows: Sequence[ThreadSummary], ids: ShortIds, now: datetime, width: int) -> Iterator[Line]:
    """Draw a list of threads: as many columns as leave the title its room."""
    width = min(width, LISTS)
    is_narrow = width < NARROW
    names = [_name(row, ids, is_narrow=is_narrow) for row in rows]
    id_width = id_column(names, width)
    room = width - 4 - id_width
    columns = _chosen(rows, now, room, is_narrow=is_narrow)
    title_width = room - sum(column.width + 2 for column in columns)
    has_branches = any(column.name == "branches" for column in columns)
    if width >= _HEADED:
        head = f"  {pad('id', id_width)}  {pad('title', title_width)}"
        yield Line((head + "".join("  " + pad(one.name, one.width, is_right=one.is_right) for one in columns), DIM))
    for number, row in enumerate(rows):
        *above, line = id_lines(row, names[number], id_width, width)
        yield from above
        line.extend(_title(row, title_width, has_mark=not has_branches))
        for column in columns:
            line.add("  ").add(pad(column.cells[number], column.width, is_right=column.is_right), DIM)
        yield line


def id_column(names: Sequence[str], width: int) -> int:
    """Return the width of the column of ids: that of the widest one that leaves the titles their room."""
    most = _WIDEST_NARROW_ID if width < NARROW else _WIDEST_ID
    return max([2, *(cells for cells in map(cell_width, names) if cells <= most)])


def id_lines(row: ThreadSummary, name: str, id_width: int, width: int) -> list[Line]:
    """Return the beginning of a row; an id that is wider than its column stands in lines of its own above it."""
    if cell_width(name) <= id_width:
        return [Line(mark_of(row), " ", (pad(name, id_width), ID), "  ")]
    above = [
        Line(mark_of(row) if number == 0 else " ", " ", (part, ID)) for number, part in enumerate(chop(name, width - 2))
    ]
    return [*above, Line(" " * (id_width + 4))]


def mark_of(row: ThreadSummary) -> tuple[str, str]:
    """Return the mark of a thread in its first cell."""
    if row.is_running:
        return "▶", GOOD
    return ("!", ATTENTION) if row.is_cut_off else (" ", "")


def branch_mark(row: ThreadSummary) -> str:
    """Return the number of branches as a mark; nothing if there is one."""
    return f"‹{row.branches}›" if row.branches is not None and row.branches > 1 else ""


def _title(row: ThreadSummary, cells: int, *, has_mark: bool) -> Line:
    text = row.title + (" (archived)" if row.thread.is_archived else "")
    mark = branch_mark(row) if has_mark else ""
    room = cells - (len(mark) + 1 if mark else 0)
    line = Line(pad(fit(text, room), room))
    return line.add(" ").add(mark, NAME) if mark else line


def _name(row: ThreadSummary, ids: ShortIds, *, is_narrow: bool) -> str:
    name = ids[row.thread.id]
    return ids.end_of(row.thread.id) if is_narrow and cell_width(name) >= _LONGEST_ID else name


def _chosen(rows: Sequence[ThreadSummary], now: datetime, room: int, *, is_narrow: bool) -> list[_Column]:
    """The columns that fit, chosen by what matters most, in the order of the table."""
    changed = _Column("changed", [when(row.thread.updated_at, now, is_short=is_narrow) for row in rows])
    if is_narrow:
        return [_Column("", changed.cells)] if rows else []
    ranked = (changed, *_further(rows))
    chosen: list[_Column] = []
    for column in ranked:
        room -= column.width + 2
        if room < _LEAST_TITLE and column is not changed:
            break
        chosen.append(column)
    order = ("folder", "tool", "entries", "branches", "tokens", "cost", "changed")
    return sorted(chosen, key=lambda column: order.index(column.name))


def _further(rows: Sequence[ThreadSummary]) -> Iterator[_Column]:
    yield _Column("cost", money_column([(row.cost.amount, row.cost.currency, row.cost.is_estimate) for row in rows]))
    yield _Column("folder", [fit(folder_of(row.thread), _WIDEST_FOLDER) or UNKNOWN for row in rows], is_right=False)
    yield _Column("entries", [count(row.entries) for row in rows])
    yield _Column("tool", [fit(tool_of(row.thread), 12) or UNKNOWN for row in rows], is_right=False)
    yield _Column(
        "branches", [f"{row.branches}" if row.branches is not None and row.branches > 1 else UNKNOWN for row in rows]
    )
    yield _Column("tokens", [count(row.tokens.count, is_estimate=row.tokens.is_estimate) for row in rows])


def head_lines(row: ThreadSummary, ids: ShortIds, now: datetime, width: int, home: str) -> Iterator[Line]:
    """Draw what stands above a thread: its title, and a line of facts."""
    yield beside(Line((fit(row.title, width), BOLD)), Line(), width)
    facts = facts_of(row, now, home, is_narrow=width < NARROW)
    line = Line((ids[row.thread.id], ID))
    for fact in facts:
        if line.width + 3 + cell_width(fact) > width:
            break
        line.add(f" · {fact}", DIM)
    yield line.cut(width)
    yield Line()


def facts_of(row: ThreadSummary, now: datetime, home: str, *, is_narrow: bool = False) -> list[str]:
    """Return what is known about a thread, in a few words each."""
    folder = cut_middle(home_path(one_line(row.thread.workspace, 400), home), 32)
    branches = f"{row.branches} branches" if row.branches is not None and row.branches > 1 else ""
    if is_narrow:
        return [fact for fact in (cut_middle(folder, 16), tool_of(row.thread), branches) if fact]
    cost = row.cost.words
    facts = (
        folder,
        tool_of(row.thread),
        plural(row.entries, "entry", "entries"),
        branches,
        cost,
        ago(row.thread.updated_at, now),
    )
    return [fact for fact in facts if fact]
