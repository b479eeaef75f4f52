"""Tool calls to be read: calls made at once are joined by a bracket; edits are diffs, failures say why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sessiontree.cli.screen.lines import DIM, FAILURE, GOOD, TOOL, Line
from sessiontree.cli.screen.prose import plain_lines
from sessiontree.cli.screen.rows import outcome_line
from sessiontree.cli.screen.threads import NARROW
from sessiontree.render.cells import cell_width, cut_middle, fit, pad
from sessiontree.render.changes import Change
from sessiontree.render.figures import UNKNOWN, duration, plural
from sessiontree.render.outcomes import result_text, telling_lines
from sessiontree.render.steps import Step

__all__ = ["step_lines"]


_MOST_DIFF_LINES = 14
_OUTCOME = 28
_SHORT_OUTCOME = 12
_TIME = 6


def step_lines(steps: Sequence[Step], width: int, *, is_full: bool) -> Iterator[Line]:
    """Draw calls made at once, with objects and outcomes aligned; ``is_full`` cuts nothing."""
    name_width = max(5, *(cell_width(step.gist.name) for step in steps))
    object_width = _object_width(steps, width - 6 - name_width, is_narrow=width < NARROW)
    last = len(steps) - 1
    for number, step in enumerate(steps):
        glyph = "─" if last == 0 else "╭" if number == 0 else "╰" if number == last else "├"
        beside = "│" if number < last else " "
        line = _line(step, glyph, name_width, object_width)
        if width >= NARROW and step.seconds is not None and step.seconds >= 1:
            line.add(f"  {duration(step.seconds)}", DIM)
        yield line.cut(width)
        yield from _below(step, f"  {beside}   ", width, is_full=is_full)


def _object_width(steps: Sequence[Step], room: int, *, is_narrow: bool) -> int:
    """The cells of the widest object, as far as they leave room for outcome and time."""
    outcomes = max(cell_width(step.gist.outcome) + (2 if step.gist.is_failed else 0) for step in steps)
    reserved = min(outcomes, _SHORT_OUTCOME) if is_narrow else min(outcomes, _OUTCOME) + _TIME
    widest = max(cell_width(step.gist.object or UNKNOWN) for step in steps)
    return min(widest, max(10, room - reserved - 2))


def _line(step: Step, glyph: str, name_width: int, object_width: int) -> Line:
    gist = step.gist
    text = gist.object or UNKNOWN
    shown = cut_middle(text, object_width) if gist.kind in {"read", "edit", "write"} else fit(text, object_width)
    style = FAILURE if gist.is_failed else DIM
    line = Line("  ", (glyph, style), " ", (pad(gist.name, name_width), FAILURE if gist.is_failed else TOOL), "  ")
    return line.add(pad(shown, object_width)).extend(outcome_line(gist))


def _below(step: Step, indent: str, width: int, *, is_full: bool) -> Iterator[Line]:
    """What a step shows below its line: why it failed, what it changed, or all of it."""
    if is_full:
        yield from _everything(step, indent, width)
    elif step.gist.is_failed and step.result is not None:
        lines, more = telling_lines(step.result)
        for line in lines:
            yield Line((indent, DIM), (line, FAILURE)).cut(width)
        if more:
            yield Line((f"{indent}… {plural(more, 'more line', 'more lines')}", DIM)).cut(width)
    elif step.gist.kind == "edit":
        for change in step.gist.changes:
            yield from _diff(change, indent, width, _MOST_DIFF_LINES)


def _diff(change: Change, indent: str, width: int, limit: int) -> Iterator[Line]:
    for sign, text in change.lines[:limit]:
        style = {"+": GOOD, "-": FAILURE}.get(sign, DIM)
        yield Line((indent, DIM), (f"{sign.replace('-', '−')} {text}", style)).cut(width)
    if len(change.lines) > limit:
        more = plural(len(change.lines) - limit, "more line", "more lines")
        yield Line((f"{indent}… {more}", DIM)).cut(width)


def _everything(step: Step, indent: str, width: int) -> Iterator[Line]:
    room = width - cell_width(indent)
    for change in step.gist.changes:
        yield from _diff(change, indent, width, len(change.lines))
    if not step.gist.changes:
        yield from (Line((indent, DIM), (line.plain, DIM)) for line in plain_lines(step.call.arguments, room))
    if step.result is None:
        return
    text = result_text(step.result)
    is_diff = "\n@@ " in "\n" + text[:5000] or text.startswith("diff --git")
    for line in plain_lines(text, room):
        style = {"+": GOOD, "-": FAILURE}.get(line.plain[:1], DIM) if is_diff else DIM
        yield Line((indent, DIM), (line.plain, FAILURE if step.gist.is_failed else style))
