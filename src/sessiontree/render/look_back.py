"""The figures of a span of days out of an activity: totals, series by day and model, models, folders, tools, turn times.

Amounts of money are in the currency with the most of it; those of models without a price are None, never 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date

from sessiontree.model import Record
from sessiontree.model.prices import Cost, sum_of
from sessiontree.render.activity import Activity, Durations, Place

__all__ = [
    "DayFigures",
    "LookBack",
    "ModelDay",
    "Share",
    "Span",
    "ToolFigures",
    "TurnTime",
    "days_of_span",
    "figures_of_span",
    "tokens_in",
]


_TIMES = (5.0, 15.0, 30.0, 60.0, 120.0, 240.0, 480.0, math.inf)


class Span(Record, frozen=True, kw_only=True):
    """Days from the first to the last one, of one folder or one program if they are named."""

    first: date
    last: date
    folder: str = ""
    agent: str = ""

    @property
    def days(self) -> int:
        """How many days it has."""
        return (self.last - self.first).days + 1

    def has(self, day: date, place: Place) -> bool:
        """Return whether something counts."""
        is_here = self.folder in {"", place.folder} and self.agent in {"", place.agent}
        return is_here and self.first <= day <= self.last


class DayFigures(Record, frozen=True, kw_only=True):
    """A day: turns, failed ones, entries, and what it cost."""

    day: date
    turns: int = 0
    failed_turns: int = 0
    entries: int = 0
    tokens: int = 0
    cost: float | None = None


class ModelDay(Record, frozen=True, kw_only=True):
    """What a model did on a day."""

    day: date
    model: str
    tokens: int = 0
    cost: float | None = None


class Share(Record, frozen=True, kw_only=True):
    """The part of a model or a folder in all of it."""

    name: str
    tokens: int = 0
    cost: float | None = None
    is_estimate: bool = False


class ToolFigures(Record, frozen=True, kw_only=True):
    """A kind of tool. ``tokens`` estimates its results; half of the calls took at most ``median_seconds``."""

    name: str
    calls: int = 0
    failures: int = 0
    tokens: int = 0
    median_seconds: float = 0.0
    p95_seconds: float = 0.0


class TurnTime(Record, frozen=True, kw_only=True):
    """How many turns took at most so many seconds, and longer than the row before; None has no limit."""

    up_to_seconds: float | None
    turns: int = 0


class LookBack(Record, frozen=True, kw_only=True):
    """Everything that happened in a span of days."""

    first: date
    last: date
    currency: str = "USD"
    cost: float | None = None
    is_estimate: bool = False
    tokens: int = 0
    cached_tokens: int = 0
    unpriced_tokens: int = 0
    turns: int = 0
    failed_turns: int = 0
    entries: int = 0
    median_seconds: float = 0.0
    p95_seconds: float = 0.0
    calls: int = 0
    failures: int = 0
    compactions: int = 0
    reverted: int = 0
    days: tuple[DayFigures, ...] = ()
    model_days: tuple[ModelDay, ...] = ()
    models: tuple[Share, ...] = ()
    folders: tuple[Share, ...] = ()
    tools: tuple[ToolFigures, ...] = ()
    turn_times: tuple[TurnTime, ...] = ()


def figures_of_span(activity: Activity, span: Span) -> LookBack:
    """Return the figures of a span."""
    usage = [(key, cost) for key, cost in activity.usage.items() if span.has(key[0], key[1])]
    total = sum_of(cost for _, cost in usage)
    currency = max(total.total, key=lambda name: total.total[name], default="USD")
    counts = [(day, count) for (day, place), count in activity.days.items() if span.has(day, place)]
    times = _merged(count.times for _, count in counts)
    tools = _tools(activity, span)
    return LookBack(
        first=span.first,
        last=span.last,
        currency=currency,
        cost=total.total.get(currency),
        is_estimate=bool(total.estimated.get(currency)),
        tokens=tokens_in(total),
        cached_tokens=total.cache_read_tokens,
        unpriced_tokens=total.unpriced_tokens,
        turns=sum(count.turns for _, count in counts),
        failed_turns=sum(count.failed_turns for _, count in counts),
        entries=sum(count.entries for _, count in counts),
        median_seconds=times.quantile(0.5),
        p95_seconds=times.quantile(0.95),
        calls=sum(tool.calls for tool in tools),
        failures=sum(tool.failures for tool in tools),
        compactions=sum(count.compactions for _, count in counts),
        reverted=sum(count.reverted for _, count in counts),
        days=days_of_span(activity, span, currency),
        model_days=_model_days(usage, currency),
        models=_shares(((model, cost) for (_, _, model), cost in usage), currency),
        folders=_shares(((place.folder, cost) for (_, place, _), cost in usage), currency),
        tools=tools,
        turn_times=_turn_times(times),
    )


def tokens_in(cost: Cost) -> int:
    """Return all tokens that providers counted."""
    return cost.input_tokens + cost.output_tokens + cost.cache_read_tokens + cost.cache_write_tokens


def days_of_span(activity: Activity, span: Span, currency: str) -> tuple[DayFigures, ...]:
    """Return the days of a span on which anything happened."""
    turns: Counter[date] = Counter()
    failed: Counter[date] = Counter()
    entries: Counter[date] = Counter()
    costs: dict[date, list[Cost]] = {}
    for (day, place), count in activity.days.items():
        if span.has(day, place):
            turns[day] += count.turns
            failed[day] += count.failed_turns
            entries[day] += count.entries
    for (day, place, _), cost in activity.usage.items():
        if span.has(day, place):
            costs.setdefault(day, []).append(cost)
    return tuple(
        DayFigures(
            day=day,
            turns=turns[day],
            failed_turns=failed[day],
            entries=entries[day],
            tokens=tokens_in(cost),
            cost=cost.total.get(currency),
        )
        for day in sorted({*entries, *costs})
        for cost in [sum_of(costs.get(day, ()))]
    )


def _model_days(usage: Sequence[tuple[tuple[date, Place, str], Cost]], currency: str) -> tuple[ModelDay, ...]:
    groups: dict[tuple[date, str], list[Cost]] = {}
    for (day, _, model), cost in usage:
        groups.setdefault((day, model), []).append(cost)
    return tuple(
        ModelDay(day=day, model=model, tokens=tokens_in(total), cost=total.total.get(currency))
        for day, model in sorted(groups)
        for total in [sum_of(groups[day, model])]
    )


def _shares(costs: Iterable[tuple[str, Cost]], currency: str) -> tuple[Share, ...]:
    """The dearest first, then those with the most tokens."""
    groups: dict[str, list[Cost]] = {}
    for name, cost in costs:
        groups.setdefault(name, []).append(cost)
    totals = {name: sum_of(group) for name, group in groups.items()}
    found = [
        Share(
            name=name,
            tokens=tokens_in(total),
            cost=total.total.get(currency),
            is_estimate=bool(total.estimated.get(currency)),
        )
        for name, total in totals.items()
    ]
    return tuple(sorted(found, key=lambda one: (-(one.cost or 0.0), -one.tokens, one.name)))


def _tools(activity: Activity, span: Span) -> tuple[ToolFigures, ...]:
    groups: dict[str, list[tuple[int, int, int, Durations]]] = {}
    for (day, place, name), tool in activity.tools.items():
        if span.has(day, place):
            groups.setdefault(name, []).append((tool.calls, tool.failures, tool.tokens, tool.times))
    found = [
        ToolFigures(
            name=name,
            calls=sum(row[0] for row in rows),
            failures=sum(row[1] for row in rows),
            tokens=sum(row[2] for row in rows),
            median_seconds=times.quantile(0.5),
            p95_seconds=times.quantile(0.95),
        )
        for name, rows in groups.items()
        for times in [_merged(row[3] for row in rows)]
    ]
    return tuple(sorted(found, key=lambda one: (-one.calls, one.name)))


def _turn_times(times: Durations) -> tuple[TurnTime, ...]:
    counted = [times.up_to(limit) for limit in _TIMES]
    return tuple(
        TurnTime(up_to_seconds=None if limit == math.inf else limit, turns=number - before)
        for limit, number, before in zip(_TIMES, counted, [0, *counted], strict=False)
    )


def _merged(all_times: Iterable[Durations]) -> Durations:
    merged = Durations()
    for times in all_times:
        merged.merge(times)
    return merged
