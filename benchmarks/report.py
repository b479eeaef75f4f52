"""Write a run as Markdown and SVG: where it was made, the goals, and a table and a plot for each case."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

from benchmarks.case import Case
from benchmarks.goals import GOALS
from benchmarks.plots import Bar, bars, lines, number
from benchmarks.profiles import GROWTH_PROFILES
from benchmarks.results import Run, spread
from benchmarks.system import System

GROWTH = "growth"
INTRODUCTION = """# Benchmarks

`make bench` measures sessiontree beside raw storage and beside what a user would pick instead, and writes this page.
`make bench-quick` takes less than two minutes and prints its tables only. [How to add a case or a system](how-it-works.md)

In each round every system gives one sample of a case, so that a slow moment of the machine falls on all of them. A cell is
the median over the rounds, with the quartiles in brackets. Ratios of one page can be compared; absolute times of a
shared virtual disk cannot.
"""


class Report:
    """The page about one run, in a folder."""

    def __init__(self, run: Run, cases: dict[str, Case], systems: dict[str, type[System]], folder: Path) -> None:
        self._run = run
        self._cases = cases
        self._systems = systems
        self._folder = folder

    def write(self) -> None:
        """Write the page and its plots."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for name, plot in self._plots():
            (self._folder / f"{name}.svg").write_text(plot)
        (self._folder / "results.md").write_text(self.page())

    def page(self) -> str:
        """The page as Markdown."""
        measured = {found.case for found in self._run.measured}
        parts = [INTRODUCTION, *self._about(), *self.goals(), *self._growth()]
        for case in self._cases.values():
            if case.name in measured and case.name != GROWTH:
                parts += self._case(case)
        return "\n".join(parts).rstrip() + "\n"

    def goals(self) -> Iterator[str]:
        """The table of goals."""
        yield "\n## Goals\n\nRatios of medians within this run.\n\n| case | goal | | ratio | |\n|---|---|---|---|---|"
        for goal in GOALS:
            value, verdict = goal.verdict(self._run)
            if self._run.is_quick and verdict == "not measured":
                continue
            shown = "" if math.isnan(value) else f"{value:.2f}"
            yield f"| {goal.case} | {goal.what} | {goal.bound} {goal.limit:g} | {shown} | {verdict} |"
        missed = [goal for goal in GOALS if goal.verdict(self._run)[1] == "missed"]
        if missed:
            yield "\nWhat profiles show about those that are missed, with the figures of the profile:\n"
        for goal in missed:
            yield f"- **{goal.case}: {goal.what}**, {goal.distance(self._run)} the goal. {goal.profile or 'Not profiled yet.'}"

    def _about(self) -> Iterator[str]:
        run = self._run
        yield f"\n## Where\n\nStarted {run.started}, {run.minutes:.0f} minutes.\n\n| | |\n|---|---|"
        for name, value in run.machine.items():
            yield f"| {name} | {value} |"
        peers = ", ".join(f"{name} {value}" for name, value in run.versions.items())
        yield f"\nPeers: {peers}.\n"
        for name, reason in run.left_out.items():
            yield f"Left out: {name}, {reason}\n"
        yield "## What an acknowledged append survives\n"
        yield "Syncs for each append by one caller, counted by strace, or by the database server. Without a sync an append"
        yield "survives a crash of the process, but not a power cut.\n"
        yield "| system | syncs per append | survives a power cut | how it was found |\n|---|---|---|---|"
        for name, found in run.durability.items():
            syncs = "" if found.syncs is None else f"{found.syncs:.2f}"
            answer = "unknown" if found.syncs is None else "yes" if found.is_durable else "no"
            yield f"| {name} | {syncs} | {answer} | {found.note} |"

    def _growth(self) -> Iterator[str]:
        rows = list(self._growth_rows())
        if not rows:
            return
        yield "\n## Growth\n\nThe exponent b of y = a x size^b, fitted over all sizes: 0 is flat, 1 is linear.\n"
        yield "| verb | system | sizes and figures | exponent | should be |\n|---|---|---|---|---|"
        yield from rows
        for (metric, system), profile in GROWTH_PROFILES.items():
            if self._is_missed(self._cases[GROWTH], metric, system):
                yield f"\n**{metric}, {system}**: {profile}"
        yield from self._failures(self._cases[GROWTH])
        yield from (f"\n![]({name}.svg)\n" for name, _ in self._growth_plots())

    def _growth_rows(self) -> Iterator[str]:
        places = [
            (case, metric, system) for case in self._cases.values() for metric in case.growth for system in self._ours()
        ]
        for case, metric, system in places:
            exponent = self._run.exponent(case.name, system, metric)
            if math.isnan(exponent):
                continue
            unit, scale = ("ms", 1e3) if case.metrics[metric] == "us" else (case.metrics[metric], 1)
            shown = ", ".join(f"{size:,}: {number(y / scale)}" for size, y in self._points(case, system, metric))
            verdict = case.growth[metric] + (" (missed)" if self._is_missed(case, metric, system) else "")
            yield f"| {metric} [{unit}] | {system} | {shown} | {exponent:.2f} | {verdict} |"

    def _is_missed(self, case: Case, metric: str, system: str) -> bool:
        return self._run.exponent(case.name, system, metric) > {"flat": 0.1, "linear": 1.1}[case.growth[metric]]

    def _ours(self) -> list[str]:
        return [name for name, system in self._systems.items() if system.family == "ours"]

    def _sizes(self, case: Case) -> list[int]:
        return sorted({found.size for found in self._run.measured if found.case == case.name})

    def _points(self, case: Case, system: str, metric: str) -> list[tuple[float, float]]:
        found = [(size, self._run.median(case.name, system, size, metric)) for size in self._sizes(case)]
        return [(size, value) for size, value in found if value > 0]

    def _case(self, case: Case) -> Iterator[str]:
        yield f"\n## {case.name}\n\n{case.about}\n"
        sizes = self._sizes(case)
        columns = [(size, metric) for size in sizes for metric in case.metrics]
        heads = [self._head(case, size, metric) for size, metric in columns]
        yield f"| system | {' | '.join(heads)} |\n|---|{'---|' * len(columns)}"
        for system in self._systems:
            cells = [self._cell(case.name, system, size, metric) for size, metric in columns]
            if any(cells):
                yield f"| {system} | {' | '.join(cells)} |"
        yield from self._failures(case)
        if self._rows(case, self._plotted_size(case)):
            yield f"\n![]({slug(case.name)}.svg)"

    def _head(self, case: Case, size: int, metric: str) -> str:
        unit = f" [{case.metrics[metric]}]" if case.metrics[metric] != "x" else ""
        where = f", {size:,} {case.size_means}" if size else ""
        return f"{metric}{unit}{where}"

    def _cell(self, case: str, system: str, size: int, metric: str) -> str:
        values = self._run.values(case, system, size, metric)
        if not values:
            return ""
        low, high = spread(values)
        middle = number(self._run.median(case, system, size, metric))
        return middle if low == high else f"{middle} ({number(low)} to {number(high)})"

    def _failures(self, case: Case) -> Iterator[str]:
        failed = [found for found in self._run.measured if found.case == case.name and found.error]
        if failed:
            yield "\nNot measured: " + "; ".join(f"{f.system} at {f.size:,} ({f.error})" for f in failed) + "."

    def _rows(self, case: Case, size: int) -> list[Bar]:
        metric = next(iter(case.metrics))
        rows: list[Bar] = []
        for name, system in self._systems.items():
            values = [value for value in self._run.values(case.name, name, size, metric) if value > 0]
            if values:
                rows.append((name, system.family, self._run.median(case.name, name, size, metric), spread(values)))
        return sorted(rows, key=lambda row: row[2], reverse=case.is_higher_better)

    def _plotted_size(self, case: Case) -> int:
        """The largest of the sizes at which most systems were measured."""
        return max(self._sizes(case), key=lambda size: (len(self._rows(case, size)), size), default=0)

    def _plots(self) -> Iterator[tuple[str, str]]:
        for case in self._cases.values():
            size = self._plotted_size(case)
            rows = self._rows(case, size) if case.name != GROWTH else []
            if rows:
                metric, unit = next(iter(case.metrics.items()))
                better = "higher" if case.is_higher_better else "lower"
                where = f", {size:,} {case.size_means}" if size else ""
                yield slug(case.name), bars(f"{case.name}: {metric} [{unit}]{where}, {better} is better", rows)
        yield from self._growth_plots()

    def _growth_plots(self) -> Iterator[tuple[str, str]]:
        for name, file in (("sessiontree SQLite", "growth-sqlite"), ("sessiontree JSONL", "growth-jsonl")):
            case = self._cases[GROWTH]
            timed = [metric for metric in case.growth if case.metrics[metric] == "ms"]
            series = {metric: points for metric in timed if (points := self._points(case, name, metric))}
            if series:
                yield file, lines(f"{name}: milliseconds per call", "messages in the conversation", series)


def slug(name: str) -> str:
    """A name for a file.

    >>> slug("1,000 chats")
    '1-000-chats'
    """
    return re.sub(r"\W+", "-", name.lower()).strip("-")
