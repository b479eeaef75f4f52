"""Add up the entries of a store or a thread: prompts, steps, tokens, cost, days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date

from sessiontree.cli.context import CliContext
from sessiontree.model import Entry, MessagePayload, Record, Thread
from sessiontree.model.prices import PRICES, Cost, cost_of, reported_usage, sum_of
from sessiontree.render.steps import steps_of
from sessiontree.render.threads import folder_of
from sessiontree.render.times import moment_at
from sessiontree.render.turns import is_bookkeeping, is_prompt

__all__ = ["ToolCount", "Totals", "count_entries"]


class ToolCount(Record, frozen=True, kw_only=True):
    """How often a tool was called, and how often that failed."""

    calls: int
    failures: int


class Totals(Record, frozen=True, kw_only=True):
    """What was counted. Tokens are what providers reported; cost is reported, or estimated from list prices.

    ``estimated_tokens`` is our estimate of what the models see of the threads now. ``tools`` counts calls by the tool's
    own name, ``steps`` by its kind. A system prompt is no message.
    """

    threads: int
    entries: int
    messages: int
    prompts: int
    estimated_tokens: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    cost: dict[str, float]
    estimated_cost: dict[str, float]
    roles: dict[str, int]
    tools: dict[str, int]
    steps: dict[str, ToolCount]
    models: dict[str, int]
    model_costs: dict[str, float]
    folder_costs: dict[str, float]
    days: dict[str, int]

    @property
    def tokens(self) -> int:
        """All tokens that providers counted."""
        return self.input_tokens + self.output_tokens + self.cached_tokens + self.cache_write_tokens


def count_entries(cli: CliContext, threads: Sequence[Thread], start_ns: int, *, is_whole_store: bool) -> Totals:
    """Count the entries of threads since a time."""
    tally = _Tally(cli)
    known = {thread.id for thread in threads}
    orphans: set[tuple[str, str]] = set()
    with cli.progress("counting") as progress:
        for number, thread in enumerate(threads, start=1):
            counted: list[Entry] = []
            for entry in cli.journal.entries(thread.id):
                # Shared entries are counted with the thread they were written to, or once if it has been deleted.
                if is_whole_store and entry.thread_id != thread.id:
                    if entry.thread_id in known or (thread.tree, entry.id) in orphans:
                        continue
                    orphans.add((thread.tree, entry.id))
                if entry.created_ns >= start_ns:
                    counted.append(entry)
            if counted or not start_ns:
                tally.add(thread, counted)
            progress(number, len(threads))
    return tally.totals()


class _Tally:
    def __init__(self, cli: CliContext) -> None:
        self._now = cli.now
        self._threads = self._entries = self._prompts = self._estimated = 0
        self._costs: list[tuple[str, str, Cost]] = []
        self._roles: Counter[str] = Counter()
        self._tools: Counter[str] = Counter()
        self._calls: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._days: Counter[date] = Counter()

    def add(self, thread: Thread, entries: Sequence[Entry]) -> None:
        self._threads += 1
        self._estimated += thread.tokens
        for entry in entries:
            self._add_entry(folder_of(thread), entry)
        for step in steps_of(entries):
            self._tools[step.call.name] += 1
            self._calls[step.gist.name] += 1
            self._failures[step.gist.name] += step.gist.is_failed

    def _add_entry(self, folder: str, entry: Entry) -> None:
        if not is_bookkeeping(entry):
            self._entries += 1
            self._days[moment_at(entry.created_ns, self._now).date()] += 1
        self._prompts += is_prompt(entry)
        if isinstance(entry.payload, MessagePayload):
            self._roles[entry.payload.message.role] += 1
        found = reported_usage(entry.payload)
        model = getattr(entry.payload, "model", "")
        if model:
            self._models[model] += 1
        if found is not None:
            self._costs.append((model, folder, cost_of(found[0], found[1], PRICES)))

    def totals(self) -> Totals:
        total = sum_of(cost for _, _, cost in self._costs)
        names = [name for name, _ in self._calls.most_common()]
        return Totals(
            threads=self._threads,
            entries=self._entries,
            messages=sum(number for role, number in self._roles.items() if role != "system"),
            prompts=self._prompts,
            estimated_tokens=self._estimated,
            input_tokens=total.input_tokens,
            output_tokens=total.output_tokens,
            cached_tokens=total.cache_read_tokens,
            cache_write_tokens=total.cache_write_tokens,
            cost=total.reported,
            estimated_cost=total.estimated,
            roles=dict(self._roles.most_common()),
            tools=dict(self._tools.most_common()),
            steps={name: ToolCount(calls=self._calls[name], failures=self._failures[name]) for name in names},
            models=dict(self._models.most_common()),
            model_costs=self._by(0),
            folder_costs=self._by(1),
            days={f"{day}": count for day, count in sorted(self._days.items())},
        )

    def _by(self, part: int) -> dict[str, float]:
        """The cost of each model or folder, the dearest first; of the main currency."""
        costs: Counter[str] = Counter()
        for row in self._costs:
            costs[str(row[part])] += sum(row[2].total.values())  # type: ignore[assignment]  # amounts, not counts
        return dict(costs.most_common())
