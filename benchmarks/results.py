"""A finished run: what was measured, how durable each system is, and where; kept as one JSON file."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.durability import Durability
from benchmarks.runner import Measured


class Run(Struct, kw_only=True):
    """One run of the benchmarks."""

    started: str
    minutes: float = 0.0
    is_quick: bool = False
    machine: dict[str, str] = {}
    versions: dict[str, str] = {}
    left_out: dict[str, str] = {}
    """Modules of systems that could not be imported, and why."""
    durability: dict[str, Durability] = {}
    measured: list[Measured] = []

    def values(self, case: str, system: str, size: int, metric: str) -> list[float]:
        """All samples of a metric, in the order of their rounds; none if there are none."""
        for found in self.measured:
            if (found.case, found.system, found.size) == (case, system, size):
                return [sample[metric] for sample in found.samples if metric in sample]
        return []

    def median(self, case: str, system: str, size: int, metric: str) -> float:
        """The median of a metric; NaN if it was not measured."""
        values = self.values(case, system, size, metric)
        return statistics.median(values) if values else math.nan

    def exponent(self, case: str, system: str, metric: str) -> float:
        """The slope of log(metric) over log(size): 0 is flat, 1 is linear. NaN with less than three sizes."""
        sizes = sorted({found.size for found in self.measured if found.case == case and found.system == system})
        points = [(math.log(size), self.median(case, system, size, metric)) for size in sizes if size > 0]
        points = [(x, math.log(y)) for x, y in points if y > 0]
        if len(points) < 3:
            return math.nan
        return statistics.linear_regression(*zip(*points, strict=True)).slope

    def peers(self) -> list[str]:
        """What a user would pick instead: neither sessiontree, nor a framework on it, nor raw storage."""
        ours = ("sessiontree", "write +", "sqlite3 ", "psycopg ")
        return [name for name in self.durability if not name.startswith(ours) and not name.endswith(" on sessiontree")]

    def durable_peers(self) -> list[str]:
        """The peers whose appends wait for a sync, as strace saw it."""
        return [name for name in self.peers() if self.durability[name].is_durable]


def spread(values: list[float]) -> tuple[float, float]:
    """The quartiles; both are the value itself if there is only one."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def save(run: Run, path: Path) -> None:
    """Write a run, with numbers of four digits: more is noise."""
    for found in run.measured:
        found.samples = [{name: float(f"{value:.4g}") for name, value in sample.items()} for sample in found.samples]
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [msgspec.json.encode(found).decode() for found in run.measured]
    head = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(run, measured=[]))).decode()
    path.write_text(head.replace('"measured": []', '"measured": [\n' + ",\n".join(lines) + "\n]") + "\n")


def load(path: Path) -> Run:
    """Read a run."""
    return msgspec.json.decode(path.read_bytes(), type=Run)
