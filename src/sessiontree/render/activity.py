"""What happened in conversations, added up by day and place: usage by model, tools, turns, failures, compactions.

Entries are added page by page, in the order of their commits, and only once: what is not over at the end of a page (a
turn without its answer, a call without its result) waits in ``Unfinished``. So a reader that remembers the last entry of
each thread adds what is new at the cost of what is new.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime

from sessiontree.model import (
    Compaction,
    Entry,
    MessagePayload,
    Record,
    RunFailure,
    Thread,
    ToolCallPart,
    ToolResultPart,
    TurnMarker,
)
from sessiontree.model.prices import PRICES, Cost, cost_of, reported_usage, sum_of
from sessiontree.model.tokens import estimate_text
from sessiontree.render.gists import gist_of
from sessiontree.render.outcomes import result_text
from sessiontree.render.threads import folder_of, tool_of
from sessiontree.render.times import moment_at
from sessiontree.render.turns import answers_turn, is_bookkeeping, is_prompt

__all__ = ["Activity", "DayTally", "Durations", "Place", "ToolTally", "Unfinished", "place_of"]


_STEP = math.log(1.05)
_MOST_OPEN = 1000
"""How many calls of a thread may wait for their results; older ones are counted without a time."""


class Place(Record, frozen=True, kw_only=True):
    """Where threads belong: the name of a folder, and the program that wrote them."""

    folder: str = ""
    agent: str = ""


def place_of(thread: Thread) -> Place:
    """Return where a thread belongs."""
    return Place(folder=folder_of(thread), agent=tool_of(thread))


class Durations:
    """How long things took, in steps of five percent: any number of them takes little room.

    >>> times = Durations()
    >>> for seconds in (1, 2, 4, 60, 61):
    ...     times.add(seconds)
    >>> len(times), round(times.quantile(0.5)), round(times.quantile(1.0))
    (5, 4, 60)
    """

    def __init__(self) -> None:
        self._steps: Counter[int] = Counter()

    def __len__(self) -> int:
        return self._steps.total()

    def add(self, seconds: float) -> None:
        """Count one."""
        self._steps[round(math.log(max(seconds, 0.001)) / _STEP)] += 1

    def merge(self, other: Durations) -> None:
        """Count those of another one, too."""
        self._steps.update(other._steps)

    def quantile(self, share: float) -> float:
        """Return the length that this share of them does not exceed, in seconds; 0 if there is none."""
        wanted = max(1, math.ceil(share * len(self)))
        for step in sorted(self._steps):
            wanted -= self._steps[step]
            if wanted <= 0:
                return math.exp(step * _STEP)
        return 0.0

    def up_to(self, seconds: float) -> int:
        """Return how many took at most so long."""
        last = math.log(seconds) / _STEP if seconds < math.inf else math.inf
        return sum(number for step, number in self._steps.items() if step <= last)


@dataclass(slots=True)
class DayTally:
    """What happened on a day in one place."""

    entries: int = 0
    turns: int = 0
    failed_turns: int = 0
    compactions: int = 0
    reverted: int = 0
    times: Durations = field(default_factory=Durations)


@dataclass(slots=True)
class ToolTally:
    """The calls of one kind of tool. ``tokens`` estimates what their results added to contexts."""

    calls: int = 0
    failures: int = 0
    tokens: int = 0
    times: Durations = field(default_factory=Durations)


@dataclass(slots=True)
class Unfinished:
    """What is not over yet in a thread: when its turn began, and the calls without a result."""

    prompt_ns: int = 0
    calls: dict[str, tuple[Entry, ToolCallPart]] = field(default_factory=dict)


class Activity:
    """The counters. Days are those of the zone of ``now``."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self.days: dict[tuple[date, Place], DayTally] = {}
        self.usage: dict[tuple[date, Place, str], Cost] = {}
        self.tools: dict[tuple[date, Place, str], ToolTally] = {}
        self.tool_names: Counter[str] = Counter()
        self.roles: Counter[str] = Counter()
        self.models: Counter[str] = Counter()

    def add(self, thread: Thread, entries: Iterable[Entry], unfinished: Unfinished) -> None:
        """Add entries of a thread, in the order of their commits."""
        place = place_of(thread)
        for entry in entries:
            day = moment_at(entry.created_ns, self._now).date()
            self._add_entry(self._day(day, place), entry, unfinished)
            self._add_usage(day, place, entry)
            if entry.message is not None:
                for call in entry.message.tool_calls:
                    self._add_call(day, place, entry, call, unfinished)
                for result in entry.message.tool_results:
                    self._add_result(place, thread, entry, result, unfinished)

    def _day(self, day: date, place: Place) -> DayTally:
        return self.days.setdefault((day, place), DayTally())

    def _add_entry(self, count: DayTally, entry: Entry, unfinished: Unfinished) -> None:
        count.entries += not is_bookkeeping(entry)
        if isinstance(entry.payload, MessagePayload):
            self.roles[entry.payload.message.role] += 1
        if is_prompt(entry):
            count.turns += 1
            unfinished.prompt_ns = entry.created_ns
        elif unfinished.prompt_ns and answers_turn(entry):
            count.times.add((entry.created_ns - unfinished.prompt_ns) / 1e9)
            unfinished.prompt_ns = 0
        match entry.payload:
            case Compaction(reverts=reverts):
                count.compactions += not reverts
                count.reverted += bool(reverts)
            case TurnMarker(status="failed" | "aborted") | RunFailure() if unfinished.prompt_ns:
                count.failed_turns += 1
                unfinished.prompt_ns = 0
            case _:
                pass

    def _add_usage(self, day: date, place: Place, entry: Entry) -> None:
        model = getattr(entry.payload, "model", "")
        if model:
            self.models[model] += 1
        found = reported_usage(entry.payload)
        if found is not None:
            key = (day, place, model)
            self.usage[key] = sum_of((self.usage.get(key, Cost()), cost_of(found[0], found[1], PRICES)))

    def _add_call(self, day: date, place: Place, entry: Entry, call: ToolCallPart, unfinished: Unfinished) -> None:
        self.tool_names[call.name] += 1
        self._tool(day, place, gist_of(call).name).calls += 1
        unfinished.calls[call.id] = (entry, call)
        if len(unfinished.calls) > _MOST_OPEN:
            del unfinished.calls[next(iter(unfinished.calls))]

    def _add_result(
        self, place: Place, thread: Thread, entry: Entry, result: ToolResultPart, unfinished: Unfinished
    ) -> None:
        at, call = unfinished.calls.pop(result.call_id, (None, None))
        if at is None or call is None:
            return
        gist = gist_of(call, result, thread.workspace)
        tool = self._tool(moment_at(at.created_ns, self._now).date(), place, gist.name)
        tool.failures += gist.is_failed
        tool.tokens += estimate_text(result_text(result))
        tool.times.add(gist.seconds or (entry.created_ns - at.created_ns) / 1e9)

    def _tool(self, day: date, place: Place, name: str) -> ToolTally:
        return self.tools.setdefault((day, place, name), ToolTally())
