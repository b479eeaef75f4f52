"""What conversations cost: for each thread, day and model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import tzinfo
from functools import partial

from sessiontree.errors import ThreadNotFoundError
from sessiontree.journal.operations.reads import all_threads, each_entry
from sessiontree.journal.operations.requests import Operation
from sessiontree.journal.operations.threads import thread
from sessiontree.model import Entry, Thread, ThreadQuery
from sessiontree.model._base import Record
from sessiontree.model.prices import Cost, Prices, cost_of, reported_usage, sum_of

__all__ = ["CostQuery", "CostReport", "costs"]


class CostQuery(Record, frozen=True, kw_only=True):
    """What to add up: one thread or all, requests of a time, at which prices, with days of which time zone."""

    thread_id: str | None
    after_ns: int | None
    before_ns: int | None
    prices: Prices
    zone: tzinfo


class CostReport(Record, frozen=True, kw_only=True):
    """The cost of all requests, and of those of each thread, turn, day (``2026-01-31``) and model.

    A request counts for the thread that it was appended to, so forks do not count it again.
    """

    total: Cost = Cost()
    threads: dict[str, Cost] = {}
    turns: dict[str, Cost] = {}
    days: dict[str, Cost] = {}
    models: dict[str, Cost] = {}


class _Request(Record, frozen=True):
    thread_id: str
    turn_id: str
    day: str
    model: str
    cost: Cost


def costs(query: CostQuery) -> Operation[CostReport]:
    """Add up the costs of a thread, or of all threads, archived ones too."""
    if query.thread_id is None:
        threads = yield from all_threads(ThreadQuery(is_archived=None, limit=None))
    else:
        threads = [(yield from thread(query.thread_id))]
    ledger = _Ledger(query, threads)
    for one in threads:
        try:
            yield from each_entry(one.id, partial(ledger.add, one))
        except ThreadNotFoundError:
            if query.thread_id is not None:
                raise
    return _report(ledger.requests)


class _Ledger:
    """Collects the requests to count."""

    def __init__(self, query: CostQuery, threads: list[Thread]) -> None:
        self.requests: list[_Request] = []
        self._query = query
        self._known = {thread.id for thread in threads}
        self._orphans: set[tuple[str, str]] = set()

    def add(self, thread: Thread, entry: Entry) -> bool:
        """Add an entry if it counts; never enough, so it returns False."""
        found = reported_usage(entry.payload)
        if found is not None and self._is_in_time(entry) and self._belongs_to(thread, entry):
            usage, model = found
            day = f"{entry.created_at.astimezone(self._query.zone).date()}"
            cost = cost_of(usage, model, self._query.prices)
            self.requests.append(_Request(entry.thread_id, entry.turn_id, day, model, cost))
        return False

    def _is_in_time(self, entry: Entry) -> bool:
        query = self._query
        return (query.after_ns is None or entry.created_ns >= query.after_ns) and (
            query.before_ns is None or entry.created_ns < query.before_ns
        )

    def _belongs_to(self, thread: Thread, entry: Entry) -> bool:
        """Whether the entry counts with this thread: its own, or the first of a deleted thread's forks."""
        if entry.thread_id == thread.id:
            return True
        mark = (thread.tree, entry.id)
        if self._query.thread_id is not None or entry.thread_id in self._known or mark in self._orphans:
            return False
        self._orphans.add(mark)
        return True


def _report(requests: list[_Request]) -> CostReport:
    def by(name: Callable[[_Request], str]) -> dict[str, Cost]:
        groups: dict[str, list[Cost]] = defaultdict(list)
        for request in requests:
            groups[name(request)].append(request.cost)
        return {key: sum_of(groups[key]) for key in sorted(groups)}

    turns = by(lambda request: request.turn_id)
    turns.pop("", None)
    return CostReport(
        total=sum_of(request.cost for request in requests),
        threads=by(lambda request: request.thread_id),
        turns=turns,
        days=by(lambda request: request.day),
        models=by(lambda request: request.model),
    )
