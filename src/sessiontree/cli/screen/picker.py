"""The picker: a query, the rows that fit it, and a preview of the chosen one. Rows are threads, or entries of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sessiontree.cli.screen.lines import BOLD, DIM, ID, USER, Line, Span, beside
from sessiontree.cli.screen.rows import ThreadView, entry_line, is_paired_result, notes_line
from sessiontree.model import Record, Thread
from sessiontree.render.branches import Branches
from sessiontree.render.cells import CUT, cell_width, fit, pad
from sessiontree.render.ids import ShortIds
from sessiontree.render.times import when
from sessiontree.render.turns import is_bookkeeping

__all__ = [
    "PickerRow",
    "PickerState",
    "entry_rows",
    "is_fuzzy_match",
    "matching",
    "picker_lines",
    "preview_width",
    "thread_rows",
]


_BESIDE_FROM = 90
_PREVIEW_BELOW = 7
_FEWEST_ROWS = 3
_FOUND = "1;4"
_BEFORE_A_HIT = 4
"""Of a title that is cut before a hit, a quarter of the room is left to what stands before it."""


class PickerRow(Record, frozen=True, kw_only=True):
    """A thread or an entry in the list: its whole id, its short one, its words, what stands at the right.

    ``found_by`` is what a query is compared with, besides the words.
    """

    id: str
    short: str
    words: str
    right: Line
    found_by: str
    mark: tuple[str, str] = ("", "")


class PickerState(Record, frozen=True, kw_only=True):
    """What the picker shows: the verb that it chooses for, the query, the rows that fit it, the chosen one, the keys."""

    verb: str
    query: str
    rows: tuple[PickerRow, ...]
    total: int
    chosen: int = 0
    keys: tuple[tuple[str, str], ...] = ()


def thread_rows(
    threads: Sequence[tuple[Thread, str]], ids: ShortIds, now: datetime, *, is_narrow: bool
) -> list[PickerRow]:
    """Return threads, each with its title, as rows."""
    return [
        PickerRow(
            id=thread.id,
            short=ids.end_of(thread.id),
            words=title,
            right=Line((when(thread.updated_at, now, is_short=is_narrow), DIM)),
            found_by=f"{thread.id} {thread.workspace}",
        )
        for thread, title in threads
    ]


def entry_rows(view: ThreadView) -> list[PickerRow]:
    """Return the entries of all branches of a thread as rows, the newest first; results stand with their calls."""
    branches = Branches(view.entries, view.thread.leaf)
    rows: list[PickerRow] = []
    for entry in reversed(view.entries):
        if is_bookkeeping(entry) or is_paired_result(view, entry):
            continue
        is_active = entry.id in branches.active
        glyph, *words = entry_line(view, entry, is_active=is_active).spans
        right = notes_line(view, entry, branches.head, has_clock=True)
        text = "".join(span.text for span in words) or glyph.text[2:]
        mark = (glyph.text[:2], glyph.style)
        found_by = f"{entry.id} {right.plain}"
        rows.append(
            PickerRow(id=entry.id, short=view.ids[entry.id], words=text, mark=mark, right=right, found_by=found_by)
        )
    return rows


def matching(query: str, rows: Sequence[PickerRow]) -> list[PickerRow]:
    """Return the rows whose words, id or folder fit a query: those that contain its words first."""
    words = query.casefold().split()
    texts = [(row, f"{row.words} {row.found_by}".casefold()) for row in rows]
    whole = [row for row, text in texts if all(word in text for word in words)]
    known = {row.id for row in whole}
    near = [row for row, text in texts if row.id not in known and is_fuzzy_match(query, text)]
    return [*whole, *near] if len(query) < 3 or not whole else whole


def is_fuzzy_match(letters: str, text: str) -> bool:
    """Whether the text contains the letters in this order, not necessarily next to each other.

    >>> is_fuzzy_match("fxbg", "Fix the bug")
    True
    """
    rest = iter(text.casefold())
    return all(letter in rest for letter in letters.casefold() if not letter.isspace())


def preview_width(width: int) -> int:
    """Return the room of the preview: beside the list, or on a narrow screen below it."""
    return max(20, width - _list_width(width) - 3 if width >= _BESIDE_FROM else width - 1)


def _list_width(width: int) -> int:
    return min(62, width * 48 // 100) if width >= _BESIDE_FROM else width


def picker_lines(state: PickerState, preview: Sequence[Line], width: int, height: int) -> list[Line]:
    """Draw the picker. Of the preview, the head and the end are shown, which says most; below the list only the end."""
    is_beside = width >= _BESIDE_FROM
    left_width = _list_width(width)
    rows = height - 4 if is_beside else max(_FEWEST_ROWS, height - 5 - _PREVIEW_BELOW)
    left = [_query(state, left_width), Line(("─" * left_width, DIM)), *_list(state, left_width, rows)]
    if is_beside:
        ends = [*preview[:3], *preview[3:][-(height - 5) :]]
        body = _side_by_side(left, ends[: rows + 2], left_width, rows + 2)
    else:
        room = max(0, min(_PREVIEW_BELOW, height - 5 - rows))
        end = preview[max(3, len(preview) - room) :]
        shown = [Line(" ").extend(line).cut(width) for line in end]
        body = [*left, Line(("─" * width, DIM)), *shown]
    return [*body, Line(("─" * width, DIM)), _keys(state, width)]


def _query(state: PickerState, width: int) -> Line:
    left = Line((f"{state.verb} › ", DIM), (state.query, BOLD), ("▏", USER))
    return beside(left, Line((f"{len(state.rows)} of {state.total}", DIM)), width)


def _list(state: PickerState, width: int, rows: int) -> list[Line]:
    if not state.rows:
        return [Line(("  nothing fits", DIM))]
    first = max(0, state.chosen - rows + 1)
    shown = state.rows[first : first + rows]
    id_width = max((cell_width(row.short) for row in shown), default=4)
    lines = []
    for number, row in enumerate(shown, start=first):
        is_chosen = number == state.chosen
        line = Line(("▌ ", USER) if is_chosen else "  ", (pad(row.short, id_width), ID), "  ", row.mark)
        right = row.right.cut(max(8, width - line.width - 10))
        words = _fitting(row.words, state.query, max(8, width - line.width - right.width - 2))
        lines.append(beside(line.extend(_marked(words, state.query, BOLD if is_chosen else "")), right, width))
    return lines


def _found_at(query: str, title: str) -> int:
    """Where the query begins in a title, or -1."""
    folded = title.casefold()
    return folded.find(query.casefold()) if query.strip() and len(folded) == len(title) else -1


def _fitting(title: str, query: str, cells: int) -> str:
    """A title cut to its room: at the end, or at both ends if the query would be cut off."""
    shown, at = fit(title, cells), _found_at(query, title)
    if at < 0 or _found_at(query, shown) >= 0:
        return shown
    return fit(CUT + title[max(0, at - cells // _BEFORE_A_HIT) :], cells)


def _marked(title: str, query: str, style: str) -> Line:
    """A title with the words of the query bold and underlined."""
    line, at = Line(), _found_at(query, title)
    if at < 0:
        return line.add(title, style)
    end = at + len(query)
    return line.add(title[:at], style).add(title[at:end], _FOUND).add(title[end:], style)


def _side_by_side(left: Sequence[Line], right: Sequence[Line], width: int, rows: int) -> list[Line]:
    lines = []
    for number in range(rows):
        one = left[number] if number < len(left) else Line()
        other = right[number] if number < len(right) else Line()
        line = Line()
        line.spans = [*one.spans, Span(" " * (width - one.width)), Span(" │ ", DIM), *other.spans]
        lines.append(line)
    return lines


def _keys(state: PickerState, width: int) -> Line:
    """The keys that fit; how to leave is always among them."""
    line, leave = Line(), Line(("esc", BOLD), (" leave", DIM))
    for key, words in (("↵", state.verb.split()[0]), *state.keys, ("↑↓", "move")):
        piece = Line((key, BOLD), (f" {words}   ", DIM))
        if line.width + piece.width + leave.width > width:
            break
        line.extend(piece)
    return line.extend(leave).cut(width)
