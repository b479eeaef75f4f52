"""Add up the entries of a store or a thread: prompts, steps, tokens, cost, days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date

from sessiontree.cli.context import CliContext
from sessiontree.model import Entry, Record, Thread
from sessiontree.model.prices import Cost, sum_of
from sessiontree.render.activity import Activity, Unfinished

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
    activity = Activity(cli.now)
    counted_threads: list[Thread] = []
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
                counted_threads.append(thread)
                activity.add(thread, counted, Unfinished())
            progress(number, len(threads))
    return _totals(activity, counted_threads)


def _totals(activity: Activity, threads: Sequence[Thread]) -> Totals:
    total = sum_of(activity.usage.values())
    steps: dict[str, ToolCount] = {}
    for (_, _, name), tool in activity.tools.items():
        before = steps.get(name, ToolCount(calls=0, failures=0))
        steps[name] = ToolCount(calls=before.calls + tool.calls, failures=before.failures + tool.failures)
    days: Counter[date] = Counter()
    for (day, _), one in activity.days.items():
        days[day] += one.entries
    return Totals(
        threads=len(threads),
        entries=days.total(),
        messages=sum(number for role, number in activity.roles.items() if role != "system"),
        prompts=sum(one.turns for one in activity.days.values()),
        estimated_tokens=sum(thread.tokens for thread in threads),
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        cached_tokens=total.cache_read_tokens,
        cache_write_tokens=total.cache_write_tokens,
        cost=total.reported,
        estimated_cost=total.estimated,
        roles=dict(activity.roles.most_common()),
        tools=dict(activity.tool_names.most_common()),
        steps=dict(sorted(steps.items(), key=lambda step: -step[1].calls)),
        models=dict(activity.models.most_common()),
        model_costs=_amounts((model, cost) for (_, _, model), cost in activity.usage.items()),
        folder_costs=_amounts((place.folder, cost) for (_, place, _), cost in activity.usage.items()),
        days={f"{day}": number for day, number in sorted(days.items()) if number},
    )


def _amounts(costs: Iterable[tuple[str, Cost]]) -> dict[str, float]:
    """The cost of each model or folder, the dearest first; of all currencies."""
    amounts: dict[str, float] = {}
    for name, cost in costs:
        amounts[name] = amounts.get(name, 0.0) + sum(cost.total.values())
    return dict(sorted(amounts.items(), key=lambda one: -one[1]))
