"""The picker: a query, the threads that fit it, and a preview of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sessiontree.cli.screen.lines import BOLD, DIM, ID, USER, Line, Span, beside
from sessiontree.cli.screen.threads import NARROW
from sessiontree.model import Record, Thread
from sessiontree.render.cells import fit, pad
from sessiontree.render.ids import ShortIds
from sessiontree.render.threads import title_of
from sessiontree.render.times import when

__all__ = ["PickerState", "is_fuzzy_match", "matching", "picker_lines"]


_BESIDE_FROM = 90
_PREVIEW_BELOW = 7
_FOUND = "1;4"


class PickerState(Record, frozen=True, kw_only=True):
    """What the picker shows: the verb that it chooses for, the query, the threads that fit it, the chosen row."""

    verb: str
    query: str
    threads: tuple[Thread, ...]
    total: int
    chosen: int = 0


def matching(query: str, threads: Sequence[Thread], now: datetime) -> list[Thread]:
    """Return the threads whose title, id or folder fits a query: those that contain its words first."""
    words = query.casefold().split()
    texts = [(thread, f"{title_of(thread, now)} {thread.id} {thread.workspace}".casefold()) for thread in threads]
    whole = [thread for thread, text in texts if all(word in text for word in words)]
    known = {thread.id for thread in whole}
    near = [thread for thread, text in texts if thread.id not in known and is_fuzzy_match(query, text)]
    return [*whole, *near] if len(query) < 3 or not whole else whole


def is_fuzzy_match(letters: str, text: str) -> bool:
    """Whether the text contains the letters in this order, not necessarily next to each other.

    >>> is_fuzzy_match("fxbg", "Fix the bug")
    True
    """
    rest = iter(text.casefold())
    return all(letter in rest for letter in letters.casefold() if not letter.isspace())


def picker_lines(  # noqa: PLR0917  a screen is all of these
    state: PickerState, preview: Sequence[Line], ids: ShortIds, now: datetime, width: int, height: int
) -> list[Line]:
    """Draw the picker: the preview beside the list, or on a narrow screen below it."""
    is_beside = width >= _BESIDE_FROM
    left_width = min(62, width * 48 // 100) if is_beside else width
    rows = height - 4 if is_beside else max(3, height - 5 - _PREVIEW_BELOW)
    left = [_query(state, left_width), Line(("─" * left_width, DIM)), *_list(state, ids, now, left_width, rows)]
    if is_beside:
        body = _side_by_side(left, list(preview)[: rows + 2], left_width, rows + 2)
    else:
        shown = [Line(" ").extend(line).cut(width) for line in list(preview)[:_PREVIEW_BELOW]]
        body = [*left, Line(("─" * width, DIM)), *shown]
    return [*body, Line(("─" * width, DIM)), _keys(state, width)]


def _query(state: PickerState, width: int) -> Line:
    left = Line((f"{state.verb} › ", DIM), (state.query, BOLD), ("▏", USER))
    return beside(left, Line((f"{len(state.threads)} of {state.total}", DIM)), width)


def _list(state: PickerState, ids: ShortIds, now: datetime, width: int, rows: int) -> list[Line]:
    first = max(0, state.chosen - rows + 1)
    shown = state.threads[first : first + rows]
    names = [ids.end_of(thread.id) for thread in shown]
    id_width = max(map(len, names), default=4)
    lines = []
    for number, (thread, name) in enumerate(zip(shown, names, strict=True), start=first):
        is_chosen = number == state.chosen
        line = Line(("▌ ", USER) if is_chosen else "  ", (pad(name, id_width), ID), "  ")
        right = Line((when(thread.updated_at, now, is_short=width < NARROW), DIM))
        title = fit(title_of(thread, now), max(8, width - line.width - right.width - 2))
        lines.append(beside(line.extend(_marked(title, state.query, BOLD if is_chosen else "")), right, width))
    return lines


def _marked(title: str, query: str, style: str) -> Line:
    """A title with the words of the query bold and underlined."""
    line = Line()
    at = title.casefold().find(query.casefold()) if query.strip() else -1
    if at < 0 or len(title.casefold()) != len(title):
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
    line = Line()
    for key, words in (
        ("↵", state.verb),
        ("tab", "tree"),
        ("^f", "fork"),
        ("^y", "copy id"),
        ("↑↓", "move"),
        ("esc", "leave"),
    ):
        piece = Line((key, BOLD), (f" {words}   ", DIM))
        if line.width + piece.width - 3 > width:
            break
        line.extend(piece)
    return line.cut(width)
