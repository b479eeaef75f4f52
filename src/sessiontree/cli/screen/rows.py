"""What an entry looks like in one row: its glyph, its words, and what stands at the right."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sessiontree.cli.screen.lines import ATTENTION, BOLD, DIM, FAILURE, GOOD, ID, NAME, PLAIN, TOOL, USER, Line
from sessiontree.model import (
    AssistantMessage,
    Compaction,
    Entry,
    Record,
    RunFailure,
    Thread,
    ToolResultPart,
    TurnMarker,
    UserMessage,
)
from sessiontree.render.cells import cut_middle, fit, pad
from sessiontree.render.entries import compaction_words, role_of, words_of
from sessiontree.render.figures import duration
from sessiontree.render.gists import Gist, gist_of
from sessiontree.render.ids import ShortIds
from sessiontree.render.times import clock
from sessiontree.render.turns import is_prompt

__all__ = ["ThreadView", "entry_line", "gist_line", "is_paired_result", "notes_line", "outcome_line"]


_NARROW = 50


class ThreadView(Record, frozen=True, kw_only=True):
    """A thread as it is drawn: its entries, the names in it, the time, and the room."""

    thread: Thread
    entries: tuple[Entry, ...]
    ids: ShortIds
    labels: Mapping[str, tuple[str, ...]]
    forks: Mapping[str, tuple[str, ...]]
    calls: frozenset[str]
    results: Mapping[str, ToolResultPart]
    now: datetime
    width: int
    id_width: int

    @property
    def folder(self) -> str:
        """The folder of the thread."""
        return self.thread.workspace

    def gists(self, entry: Entry) -> list[Gist]:
        """Return the gists of the calls of an entry."""
        calls = entry.message.tool_calls if entry.message is not None else ()
        return [gist_of(call, self.results.get(call.id), self.folder) for call in calls]

    def id_cell(self, entry: Entry | None, *, is_active: bool = True) -> tuple[str, str]:
        """Return the id of an entry, padded to its column."""
        name = "" if entry is None else self.ids[entry.id]
        return pad(name, self.id_width) + "  ", ID if is_active else DIM


def is_paired_result(view: ThreadView, entry: Entry) -> bool:
    """Return whether an entry holds only results of calls that are there: they are told together with the calls."""
    message = entry.message
    if message is None or not message.tool_results or message.text.strip() or entry.id in view.labels:
        return False
    return all(result.call_id in view.calls for result in message.tool_results)


def entry_line(view: ThreadView, entry: Entry, *, is_active: bool, room: int = 0) -> Line:
    """Return an entry as glyph and words. ``room`` are the cells that it has; the outcome of a call is not cut off."""
    quiet = PLAIN if is_active else DIM
    if is_prompt(entry):
        return Line(("❯ ", USER), (words_of(entry, view.folder), BOLD if is_active else DIM))
    match entry.payload:
        case Compaction():
            return Line((f"≈ {compaction_words(entry.payload)}", DIM))
        case RunFailure() | TurnMarker(status="failed" | "aborted"):
            return Line(("! ", ATTENTION), (f"cut off: {words_of(entry, view.folder)}", quiet))
        case AssistantMessage(is_partial=True):
            return Line(("! ", ATTENTION), (f"{role_of(entry)}: {words_of(entry, view.folder)}", quiet))
        case AssistantMessage():
            return Line(("● " if is_active else "○ ", quiet), (words_of(entry, view.folder), quiet))
        case UserMessage():
            return Line(("• ", DIM), (words_of(entry, view.folder), quiet))
        case _ if entry.message is not None and entry.message.tool_calls:
            return _calls_line(view, entry, is_active=is_active, room=room)
        case _ if entry.message is not None:
            return Line((f"• {role_of(entry)}  ", DIM), (words_of(entry, view.folder), quiet))
        case _:
            return Line((f"• {role_of(entry)}: {words_of(entry, view.folder)}", DIM))


def _calls_line(view: ThreadView, entry: Entry, *, is_active: bool, room: int) -> Line:
    gists = view.gists(entry)
    if len(gists) == 1:
        return Line(("• ", DIM)).extend(gist_line(gists[0], is_active=is_active, has_time=False, room=max(0, room - 2)))
    failures = sum(gist.is_failed for gist in gists)
    quiet = PLAIN if is_active else DIM
    line = Line(("• ", DIM), (f"{gists[0].name}", TOOL if is_active else DIM), "  ")
    end = Line((f"  and {len(gists) - 1} more", DIM)).add(f"  {failures} failed" if failures else "", FAILURE)
    if room and room < _NARROW:
        end = Line((f" +{len(gists) - 1}", DIM)).add(" ✗" if failures else "", FAILURE)
    return line.add(_cut_object(gists[0], room, line.width + end.width), quiet).extend(end)


def gist_line(gist: Gist, *, is_active: bool = True, has_time: bool = True, room: int = 0) -> Line:
    """Return a tool call in one line: name, object, outcome, and the time if it took a second or more."""
    quiet = PLAIN if is_active else DIM
    name_style = FAILURE if gist.is_failed else TOOL if is_active else DIM
    line = Line((gist.name, name_style), "  ")
    outcome = outcome_line(gist)
    if room and room < _NARROW:
        outcome = (
            Line(("  ✗", FAILURE)) if gist.is_failed else outcome if line.width + outcome.width + 12 <= room else Line()
        )
    line.add(_cut_object(gist, room, line.width + outcome.width), quiet).extend(outcome)
    if has_time and gist.seconds is not None and gist.seconds >= 1:
        line.add(f"  {duration(gist.seconds)}", DIM)
    return line


def _cut_object(gist: Gist, room: int, taken: int) -> str:
    """The object of a call in what is left of the room; without a room, all of it."""
    if not room:
        return gist.object
    cells = max(10, room - taken)
    return cut_middle(gist.object, cells) if gist.kind in {"read", "edit", "write"} else fit(gist.object, cells)


def outcome_line(gist: Gist, lead: str = "  ") -> Line:
    """Return the outcome of a call: red if it failed, the counts of an edit in their colours."""
    if gist.is_failed:
        return Line(lead, (f"✗ {gist.outcome}", FAILURE))
    if not gist.outcome:
        return Line() if gist.is_answered else Line(lead, ("no result", DIM))
    if not gist.changes:
        return Line(lead, (gist.outcome, DIM))
    line = Line(lead)
    for number, word in enumerate(gist.outcome.split(" ", 2)):
        style = GOOD if word.startswith("+") else FAILURE if word.startswith("−") else DIM
        line.add(" " if number else "").add(word, style)
    return line


def notes_line(view: ThreadView, entry: Entry, head: str | None, *, has_clock: bool) -> Line:
    """Return what stands at the right of an entry: labels, forks, the head, the time."""
    line = Line()
    for name in view.labels.get(entry.id, ()):
        line.add(" " if line.spans else "").add(f"[{name[:30]}]", NAME)
    for fork in view.forks.get(entry.id, ()):
        line.add(" " if line.spans else "").add("fork ", DIM).add(fork, ID)
    if entry.id == head:
        line.add(" " if line.spans else "").add("◀ head", "1;32")
    if has_clock:
        line.add(" " if line.spans else "").add(clock(entry.created_at, view.now), DIM)
    return line
