"""Two branches compared: from 120 columns side by side, below that one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from msgspec.structs import replace

from sessiontree.cli.screen.lines import DIM, FAILURE, GOOD, USER, Line, Span
from sessiontree.cli.screen.prose import plain_lines
from sessiontree.cli.screen.rows import ThreadView, entry_line, gist_line, is_paired_result
from sessiontree.model import Entry, Record
from sessiontree.render.cells import cell_width
from sessiontree.render.entries import without_markup
from sessiontree.render.figures import plural
from sessiontree.render.gists import relative_path
from sessiontree.render.steps import figure_words, figures_of
from sessiontree.render.turns import is_prompt

__all__ = ["Side", "comparison_lines"]


_BESIDE_FROM = 120
_MOST_LINES = 4


class Side(Record, frozen=True, kw_only=True):
    """What only one of two branches has."""

    view: ThreadView
    entries: tuple[Entry, ...]
    name: Line
    sign: str
    active: frozenset[str]
    """The entries on the active path of the thread."""

    @property
    def style(self) -> str:
        """The colour of its sign."""
        return FAILURE if self.sign == "−" else GOOD


def comparison_lines(left: Side, right: Side, width: int, *, is_full: bool) -> Iterator[Line]:
    """Draw both sides."""
    if width < _BESIDE_FROM:
        yield from _side(left, width, is_full=is_full)
        yield Line()
        yield from _side(right, width, is_full=is_full)
        return
    half = (width - 3) // 2
    both = zip_longest(_side(left, half, is_full=is_full), _side(right, half, is_full=is_full), fillvalue=Line())
    for one, other in both:
        line = Line()
        line.spans = [*one.spans, Span(" " * (half - one.width)), Span(" │ ", DIM), *other.spans]
        yield line


def _side(side: Side, width: int, *, is_full: bool) -> Iterator[Line]:
    yield Line((f"{side.sign} ", side.style)).extend(side.name).cut(width)
    yield from _figures(side, width)
    for entry in side.entries:
        if is_paired_result(side.view, entry):
            continue
        for line in _entry(side, entry, width - 2, is_full=is_full):
            yield Line((f"{side.sign} ", side.style)).extend(line).cut(width)


def _figures(side: Side, width: int) -> Iterator[Line]:
    figures = figures_of(side.entries, side.view.folder)
    failures = [f"{figures.failures} failed"] if figures.failures else []
    facts = [plural(len(side.entries), "entry", "entries"), *figure_words(replace(figures, models=())), *failures]
    yield from _packed(facts, width)
    for path, (added, removed) in list(figures.files.items())[:8]:
        line = Line("  ", (relative_path(path, side.view.folder) or "a file", DIM))
        line.add(f" +{added}" if added else "", GOOD).add(f" −{removed}" if removed else "", FAILURE)
        yield line.cut(width)
    if not figures.files:
        yield Line(("  no file changed", DIM))


def _packed(facts: list[str], width: int) -> Iterator[Line]:
    """Facts in as few lines as they need."""
    line = "  "
    for fact in facts:
        joined = f"{line} · {fact}" if line.strip() else f"  {fact}"
        if cell_width(joined) > width and line.strip():
            yield Line((line, DIM))
            joined = f"  {fact}"
        line = joined
    if line.strip():
        yield Line((line, DIM))


def _entry(side: Side, entry: Entry, width: int, *, is_full: bool) -> Iterator[Line]:
    message = entry.message
    if message is None:
        yield entry_line(side.view, entry, is_active=entry.id in side.active)
        return
    text = message.text.strip()
    if text:
        glyph = ("❯ ", USER) if is_prompt(entry) else ("● " if entry.id in side.active else "○ ", "")
        lines = list(plain_lines(" ".join(without_markup(text).split()) if not is_full else text, width - 2))
        shown = lines if is_full else lines[:_MOST_LINES]
        for number, line in enumerate(shown):
            yield Line(glyph if number == 0 else "  ").extend(line)
        if len(lines) > len(shown):
            yield Line((f"  … {plural(len(lines) - len(shown), 'more line', 'more lines')}", DIM))
    for gist in side.view.gists(entry):
        yield Line("  ").extend(gist_line(gist, has_time=False, room=width - 2))
    if not text and not message.tool_calls:
        yield entry_line(side.view, entry, is_active=entry.id in side.active)
