"""What sessiontree promises about speed, as ratios within one run.

A goal that is missed is printed as missed, with what a profile shows (``profiles.py``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from benchmarks.profiles import PROFILES
from benchmarks.results import Run

SQLITE, ASYNC_SQLITE = "sessiontree SQLite", "sessiontree SQLite, asyncio"
JSONL, ASYNC_JSONL = "sessiontree JSONL", "sessiontree JSONL, asyncio"
POSTGRES = "sessiontree PostgreSQL"
RAW, FILE = "sqlite3 WAL FULL", "write + fdatasync"
RAW_POSTGRES = "psycopg INSERT + commit"


class Goal(Struct, frozen=True, kw_only=True):
    """One promise: ``value`` computes the ratio from a run, NaN if the run does not have what it needs."""

    case: str
    what: str
    bound: Literal["at least", "at most"]
    limit: float
    value: Callable[[Run], float]

    @property
    def profile(self) -> str:
        """What a profile shows, if the goal was ever missed."""
        return PROFILES.get((self.case, self.what), "")

    def distance(self, run: Run) -> str:
        """How far the ratio is from the limit."""
        share = self.value(run) / self.limit - 1
        return f"{abs(share):.0%} {'above' if share > 0 else 'below'}"

    def verdict(self, run: Run) -> tuple[float, str]:
        """The ratio, and whether it is met."""
        found = self.value(run)
        if math.isnan(found):
            return found, "not measured"
        is_met = found >= self.limit if self.bound == "at least" else found <= self.limit
        return found, "met" if is_met else "missed"


def _ratio(case: str, size: int, metric: str, one: str, other: str) -> Callable[[Run], float]:
    return lambda run: run.median(case, one, size, metric) / run.median(case, other, size, metric)


def _best_peer(run: Run, case: str, size: int, metric: str, *, durable_only: bool, is_higher_better: bool) -> float:
    names = run.durable_peers() if durable_only else run.peers()
    values = [value for name in names if not math.isnan(value := run.median(case, name, size, metric))]
    if not values:
        return math.nan
    return max(values) if is_higher_better else min(values)


def _append_to_best_peer(run: Run) -> float:
    ratios = [
        _best_peer(run, "append", size, "append", durable_only=True, is_higher_better=False)
        / run.median("append", SQLITE, size, "append")
        for size in (100, 10_000)
    ]
    return min(ratios)


def _rate_to_best_peer(case: str, size: int, ours: str) -> Callable[[Run], float]:
    return lambda run: (
        run.median(case, ours, size, "rate")
        / _best_peer(run, case, size, "rate", durable_only=True, is_higher_better=True)
    )


def _to_one_caller(ours: str, single: str) -> Callable[[Run], float]:
    return lambda run: run.median("writers", ours, 64, "rate") * run.median("append", single, 100, "append") / 1e6


def _read_to_best_peer(run: Run) -> float:
    best = _best_peer(run, "full read", 10_000, "read", durable_only=False, is_higher_better=False)
    return best / run.median("full read", SQLITE, 10_000, "read")


def _fork_to_copying_peer(run: Run) -> float:
    copying = run.median("fork", "openai-agents AdvancedSQLiteSession", 10_000, "fork")
    return copying / run.median("fork", SQLITE, 10_000, "fork")


def _fork_to_append(run: Run) -> float:
    return run.median("fork", SQLITE, 10_000, "fork") * 1e3 / run.median("append", SQLITE, 10_000, "append")


def _growth(case: str, metric: str, system: str, small: int, large: int) -> Callable[[Run], float]:
    return lambda run: run.median(case, system, large, metric) / run.median(case, system, small, metric)


def _context_to_shorter(run: Run) -> float:
    return _growth("growth", "context after a compaction", SQLITE, 1_000, 1_000_000)(run)


GOALS = [
    Goal(case="append", what="SQLite, one caller, against the best durable peer", bound="at least", limit=2,
         value=_append_to_best_peer),
    Goal(case="append", what="SQLite, one caller, rate against raw WAL FULL", bound="at least", limit=0.6,
         value=_ratio("append", 10_000, "append", RAW, SQLITE)),
    Goal(case="append", what="SQLite at 100,000 entries against 100", bound="at most", limit=1.1,
         value=_growth("append", "append", SQLITE, 100, 100_000)),
    Goal(case="writers", what="SQLite, 64 tasks, against the best durable peer", bound="at least", limit=10,
         value=_rate_to_best_peer("writers", 64, ASYNC_SQLITE)),
    Goal(case="writers", what="SQLite, 64 tasks, against our one caller", bound="at least", limit=8,
         value=_to_one_caller(ASYNC_SQLITE, SQLITE)),
    Goal(case="latency", what="SQLite, 64 tasks, p99 to p50", bound="at most", limit=10,
         value=lambda run: run.median("latency", ASYNC_SQLITE, 64, "p99 : p50")),
    Goal(case="processes", what="SQLite, 8 processes, against raw SQLite with a busy timeout", bound="at least", limit=4,
         value=_ratio("processes", 8, "rate", SQLITE, RAW)),
    Goal(case="processes", what="SQLite, fastest process to slowest", bound="at most", limit=2,
         value=lambda run: run.median("processes", SQLITE, 8, "slowest : fastest")),
    Goal(case="1,000 chats", what="JSONL against SQLite, time", bound="at most", limit=3,
         value=_ratio("1,000 chats", 1_000, "rate", ASYNC_SQLITE, ASYNC_JSONL)),
    Goal(case="1,000 chats", what="SQLite against the best durable peer", bound="at least", limit=5,
         value=_rate_to_best_peer("1,000 chats", 1_000, ASYNC_SQLITE)),
    Goal(case="1,000 chats", what="JSONL against the best durable peer", bound="at least", limit=5,
         value=_rate_to_best_peer("1,000 chats", 1_000, ASYNC_JSONL)),
    Goal(case="append", what="JSONL, one caller, rate against write + fdatasync", bound="at least", limit=0.8,
         value=_ratio("append", 10_000, "append", FILE, JSONL)),
    Goal(case="writers", what="JSONL, 64 tasks, against our one caller", bound="at least", limit=8,
         value=_to_one_caller(ASYNC_JSONL, JSONL)),
    Goal(case="append", what="PostgreSQL, 1 connection, rate against INSERT + commit", bound="at least", limit=0.9,
         value=_ratio("append", 10_000, "append", RAW_POSTGRES, POSTGRES)),
    Goal(case="processes", what="PostgreSQL, 8 connections, against INSERT + commit", bound="at least", limit=0.9,
         value=_ratio("processes", 8, "rate", POSTGRES, RAW_POSTGRES)),
    Goal(case="full read", what="SQLite, against a raw scan and msgspec", bound="at most", limit=1.5,
         value=_ratio("full read", 10_000, "read", SQLITE, RAW)),
    Goal(case="full read", what="SQLite, against the best peer", bound="at least", limit=1,
         value=_read_to_best_peer),
    Goal(case="last 100", what="SQLite, against a raw indexed query", bound="at most", limit=2,
         value=_ratio("last 100", 10_000, "last 100", SQLITE, RAW)),
    Goal(case="growth", what="SQLite, after a compaction, 1,000,000 entries against 1,000", bound="at most",
         limit=1.5, value=_context_to_shorter),
    Goal(case="growth", what="SQLite, peak memory of context and compact, 1,000,000 entries against 1,000", bound="at most",
         limit=1.5, value=_growth("growth", "peak memory", SQLITE, 1_000, 1_000_000)),
    Goal(case="fork", what="SQLite, in appends", bound="at most", limit=1.5, value=_fork_to_append),
    Goal(case="fork", what="SQLite, against the peer that copies", bound="at least", limit=50,
         value=_fork_to_copying_peer),
    Goal(case="list 50", what="SQLite, of 100,000, against a raw query", bound="at most", limit=2,
         value=_ratio("list 50", 100_000, "list 50", SQLITE, RAW)),
    Goal(case="bytes on disk", what="SQLite, against the raw JSON", bound="at most", limit=1.25,
         value=lambda run: run.median("bytes on disk", SQLITE, 10_000, "to raw JSON")),
    Goal(case="event loop", what="SQLite, an append holds the loop, ms", bound="at most", limit=2,
         value=lambda run: max(run.median("event loop", ASYNC_SQLITE, 0, name) for name in ("longest", "first append"))),
    Goal(case="growth", what="SQLite, append + fields against append", bound="at most", limit=1.3,
         value=lambda run: run.median("growth", SQLITE, 10_000, "append + fields")
         / run.median("growth", SQLITE, 10_000, "append")),
    Goal(case="growth", what="memory, append + fields against append", bound="at most", limit=1.3,
         value=lambda run: run.median("growth", "sessiontree memory", 10_000, "append + fields")
         / run.median("growth", "sessiontree memory", 10_000, "append")),
]  # fmt: skip
