"""A conversation to be read: what the user said, the steps with their outcomes, the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from sessiontree.cli.output import PROSE
from sessiontree.cli.screen.hints import fitting
from sessiontree.cli.screen.lines import (
    BOLD,
    DIM,
    FAILURE,
    ID,
    NAME,
    THOUGHT,
    USER,
    Line,
    beside,
    paragraph,
)
from sessiontree.cli.screen.prose import plain_lines, prose_lines
from sessiontree.cli.screen.rows import ThreadView
from sessiontree.cli.screen.steps import step_lines
from sessiontree.cli.screen.threads import NARROW
from sessiontree.model import (
    Compaction,
    Entry,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    ReasoningPart,
    Record,
    RunFailure,
    ToolResultPart,
    TurnMarker,
)
from sessiontree.model.sanitize import for_terminal, one_line
from sessiontree.render.branches import Branches
from sessiontree.render.cells import cell_width, fit, pad
from sessiontree.render.entries import compaction_words, role_of, summary_text, without_markup, words_of
from sessiontree.render.figures import plural
from sessiontree.render.outcomes import result_text
from sessiontree.render.steps import Step, figure_words, figures_of_turn, steps_of
from sessiontree.render.times import clock
from sessiontree.render.turns import Turn, turns_of

__all__ = ["Reading", "compaction_rule", "conversation_lines", "summary_lines"]


_WIDEST = 120
_LONGEST_BLOCK = 400
_MARGIN_FROM = 70
_LONGEST_TEXT = 20_000
_LONGEST_SUMMARY = 1200
_TOGETHER = {("steps", "steps"), ("thought", "steps"), ("thought", "text"), ("text", "steps")}
"""Blocks that follow each other without an empty line between them."""


class Reading(Record, frozen=True, kw_only=True):
    """How a conversation is shown: nothing cut, thoughts opened, Markdown rendered, and what takes a compaction back."""

    is_full: bool = False
    has_thinking: bool = False
    is_raw: bool = False
    uncompact: str = ""


def conversation_lines(view: ThreadView, path: Sequence[Entry], reading: Reading) -> Iterator[Line]:
    """Draw a path."""
    page = _Page(view, path, reading)
    for turn in turns_of(path):
        yield from page.turn(turn)


class _Page:
    def __init__(self, view: ThreadView, path: Sequence[Entry], reading: Reading) -> None:
        self._view = view
        self._shown = {entry.id for entry in path}
        self._reading = reading
        self._width = min(view.width, _WIDEST)
        self._branches = Branches(view.entries, view.thread.leaf)
        has_margin = self._width >= _MARGIN_FROM
        self._margin = view.id_width + 9 if has_margin else 0
        self._prose = min(PROSE, self._width - self._margin - 4) if has_margin else self._width - 2

    def turn(self, turn: Turn) -> Iterator[Line]:
        steps = {id(step.call): step for step in steps_of(turn.all_entries, self._view.folder)}
        if turn.prompt is not None:
            yield from self._prompt(turn.prompt)
        last = ""
        for kind, lines in self._blocks(turn, list(steps.values())):
            if last and (last, kind) not in _TOGETHER:
                yield Line()
            yield from lines
            last = kind
        if turn.prompt is not None or steps:
            yield from self._summary(turn, list(steps.values()))
        if last or turn.prompt is not None:
            yield Line()

    def _prompt(self, entry: Entry) -> Iterator[Line]:
        message = entry.message
        assert message is not None
        lines = list(self._text(message.text, BOLD, self._room_beside(entry))) if message.text.strip() else []
        lines += [line for part in message.parts for line in self._attachment(part)]
        yield from self._with_margin(
            entry, lines or [Line((words_of(entry, self._view.folder), BOLD))], lead=("❯ ", USER)
        )
        yield from self._siblings(entry)
        yield Line()

    def _siblings(self, entry: Entry) -> Iterator[Line]:
        """Other answers to a message than the one that is shown, by their labels or ids."""
        below = self._branches.children(entry.id)
        others = [one for one in below if one.id not in self._shown]
        if len(below) < 2 or not others:
            return
        at = "".join(f"{number}/" for number, one in enumerate(below, start=1) if one.id in self._shown)
        line = Line("  ", ("‹ ", DIM), (f"{at}{len(below)}", NAME), (" ›", DIM))
        line.add("  also " if self._width < NARROW else "  other answers: " if at else "  answers: ", DIM)
        for number, other in enumerate(others):
            name, style = self._name_of(other)
            line.add(", " if number else "", DIM).add(name, style)
        yield line.cut(self._width)

    def _name_of(self, start: Entry) -> tuple[str, str]:
        """The first label on a branch, or the id where it starts."""
        entry: Entry | None = start
        while entry is not None:
            if entry.id in self._view.labels:
                return f"[{self._view.labels[entry.id][0]}]", NAME
            below = self._branches.children(entry.id)
            entry = below[-1] if below else None
        return self._view.ids[start.id], ID

    def _blocks(self, turn: Turn, steps: Sequence[Step]) -> Iterator[tuple[str, list[Line]]]:
        by_entry = {key: list(group) for key, group in groupby(steps, key=lambda step: step.entry.id)}
        answered = {step.result.call_id for step in steps if step.result is not None}
        for entry in turn.entries:
            if entry.message is None:
                yield "note", list(self._note(entry))
                continue
            for part in entry.message.parts:
                match part:
                    case ReasoningPart(text=text) if text.strip():
                        yield "thought", list(self._thought(text))
                    case ImagePart() | FilePart() | OpaquePart():
                        yield "text", [Line("  ").extend(line) for line in self._attachment(part)]
            text = entry.message.text.strip()
            if text:
                role = role_of(entry)
                lines = list(self._text(text, room=self._room_beside(entry)))
                if role != "assistant":
                    lines.insert(0, Line((role, DIM)))
                yield "text", list(self._with_margin(entry, lines, lead=("  ", "")))
            if entry.id in by_entry:
                yield "steps", list(step_lines(by_entry[entry.id], self._width, is_full=self._reading.is_full))
            loose = [result for result in entry.message.tool_results if result.call_id not in answered]
            for result in loose:
                yield "steps", list(self._loose_result(result))

    def _with_margin(self, entry: Entry, lines: Sequence[Line], lead: tuple[str, str]) -> Iterator[Line]:
        """Lines with the labels, the time and the id of their entry at the right of the first one."""
        labels = self._view.labels.get(entry.id, ())
        for number, line in enumerate(lines):
            shown = Line(lead if number == 0 else "  ").extend(line)
            if number or not self._margin:
                yield shown.cut(self._width)
                continue
            right = Line()
            for name in labels:
                right.add(f"[{name[:30]}]", NAME).add(" ")
            right.add(
                f"{clock(entry.created_at, self._view.now)}  {pad(self._view.ids[entry.id], self._view.id_width)}", DIM
            )
            yield beside(shown, right, self._width)
        if labels and not self._margin:
            yield Line("  ", (" ".join(f"[{name[:30]}]" for name in labels), NAME)).cut(self._width)

    def _room_beside(self, entry: Entry) -> int:
        """The cells for the text of an entry, whose labels stand in the margin."""
        labels = sum(cell_width(name[:30]) + 3 for name in self._view.labels.get(entry.id, ()))
        return max(20, min(self._prose, self._width - self._margin - labels - 4)) if self._margin else self._prose

    def _text(self, text: str, style: str = "", room: int = 0) -> Iterator[Line]:
        cells = room or self._prose
        shown, note = text, ""
        if not self._reading.is_full and len(text) > _LONGEST_TEXT:
            shown, note = text[:_LONGEST_TEXT], f"… {len(text) - _LONGEST_TEXT:,} more characters; --full shows them"
        if style or self._reading.is_raw:
            for line in plain_lines(shown, cells):
                yield Line(*((span.text, style) for span in line.spans))
        else:
            yield from prose_lines(shown, cells)
        if note:
            yield Line((note, DIM)).cut(self._prose)

    def _loose_result(self, result: ToolResultPart) -> Iterator[Line]:
        """A result whose call is not here: one line, or all of it."""
        style = FAILURE if result.is_error else DIM
        text = result_text(result).strip() or "no output"
        if self._reading.is_full:
            yield Line(("  ─ result", DIM))
            yield from (Line("    ", (line.plain, style)) for line in plain_lines(text, self._prose - 2))
            return
        words = fit(" ".join(for_terminal(text).split()), self._prose - 14)
        yield Line("  ", ("─ result ", DIM), (words, style))

    def _attachment(self, part: Part) -> Iterator[Line]:
        """A part that is neither text nor call: what it is, and the words of a block of an unknown type."""
        match part:
            case ImagePart(mime=mime):
                yield Line((f"[image {mime}]" if mime else "[image]", DIM))
            case FilePart(name=name, mime=mime):
                yield Line((f"[file {name or mime}]", DIM))
            case OpaquePart(provider=provider) if self._reading.is_full:
                yield Line((f"[{provider} block]", DIM))
                for words in part.words:
                    yield from (Line((line.plain, DIM)) for line in plain_lines(words, self._prose - 2))
            case OpaquePart(provider=provider):
                words = one_line(" ".join(part.words), _LONGEST_BLOCK)
                yield Line((f"[{provider} block: {words}]" if words else f"[{provider} block]", DIM))

    def _thought(self, text: str) -> Iterator[Line]:
        words = plural(len(text.split()), "word")
        if self._reading.has_thinking or self._reading.is_full:
            for number, line in enumerate(plain_lines(text, self._prose - 2)):
                yield (
                    Line("  " if number else "  ✻ ", (line.plain, THOUGHT))
                    if not number
                    else Line("    ", (line.plain, THOUGHT))
                )
            return
        first = " ".join(for_terminal(text[:1000]).split())
        room = self._prose - 2 - (cell_width(words) + 2 if self._width >= NARROW else 0)
        line = Line(("  ✻ ", DIM), (fit(first, min(room, 84)), THOUGHT))
        yield (line.add(f"  {words}", DIM) if self._width >= NARROW else line).cut(self._width)

    def _note(self, entry: Entry) -> Iterator[Line]:
        match entry.payload:
            case Compaction() as compaction:
                yield from self._compaction(compaction)
            case RunFailure() | TurnMarker(status="failed" | "aborted"):
                for line in paragraph(f"cut off: {words_of(entry)}", self._prose, FAILURE, lead="! "):
                    yield Line("  ").extend(line).cut(self._width)
            case _:
                yield Line("  ", (f"{role_of(entry)}: {words_of(entry)}", DIM)).cut(self._width)

    def _compaction(self, compaction: Compaction) -> Iterator[Line]:
        yield compaction_rule(compaction_words(compaction), self._width)
        if compaction.reverts:
            return
        yield from summary_lines(compaction.summary, self._prose, is_full=self._reading.is_full)
        if self._reading.uncompact:
            words = "  all entries are still here: "
            yield from fitting(Line((words, DIM), self._reading.uncompact), self._width)

    def _summary(self, turn: Turn, steps: Sequence[Step]) -> Iterator[Line]:
        """The dim line that ends a turn: model, steps, time, tokens, cost, failures."""
        figures = figures_of_turn(turn, self._branches, self._view.folder, steps)
        if not turn.entries or not (figures.steps or figures.models):
            return
        words = figure_words(figures, is_short=self._width < NARROW)
        line = Line(("  " + " · ".join(words), DIM))
        if figures.failures:
            line.add(" · ", DIM).add(f"{figures.failures} failed", FAILURE)
        yield line.cut(self._width)


def compaction_rule(words: str, width: int) -> Line:
    """Draw the rule across the screen where a conversation was compacted."""
    words = words.replace("compacted, ", "compacted: ")
    head = f"≈ {words.removeprefix('compacted: ') if width < NARROW else words} "
    return Line((head + "┄" * max(0, width - cell_width(head)), DIM)).cut(width)


def summary_lines(summary: str, cells: int, *, is_full: bool) -> Iterator[Line]:
    """Draw the summary of a compaction; its beginning, unless ``is_full``."""
    summary = summary_text(summary)
    shown = summary if is_full else summary[:_LONGEST_SUMMARY]
    for text in without_markup(shown).splitlines():
        if text.strip("- "):
            yield from (Line("  ", (line.plain, THOUGHT)) for line in plain_lines(text, cells))
    if len(summary) > len(shown):
        yield Line(("  …", DIM))
