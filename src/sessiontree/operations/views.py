"""Verbs that only look: the context, statistics, the check."""

from __future__ import annotations

from msgspec import UnsetType

from sessiontree.context import Context, Purpose, build_context
from sessiontree.model import Entry
from sessiontree.operations.requests import Operation
from sessiontree.progress import Progress
from sessiontree.queries import Finding, Inspect, ReadPath, ReadStats, StoreStats
from sessiontree.tokens import TokenCounter

__all__ = ["check", "context", "stats"]


def context(thread_id: str, leaf: str | UnsetType | None, purpose: Purpose, count: TokenCounter) -> Operation[Context]:
    path: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=leaf)
    return build_context(path, purpose=purpose, count=count)


def stats() -> Operation[StoreStats]:
    found: StoreStats = yield ReadStats()
    return found


def check(progress: Progress | None) -> Operation[list[Finding]]:
    found: list[Finding] = yield Inspect(progress=progress)
    return found
