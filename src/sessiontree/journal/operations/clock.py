"""The time by which leases and claims expire."""

from __future__ import annotations

from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model.ids import system_clock
from sessiontree.stores.queries import ReadClock

__all__ = ["is_store_clock", "time_of_store"]


def is_store_clock(runtime: Runtime) -> bool:
    """Whether the store's clock counts: not if the journal has a clock of its own, as in tests."""
    return runtime.clock is system_clock


def time_of_store(runtime: Runtime) -> Operation[int]:
    """The time now: a server's that many machines share, else that of the journal's clock."""
    now = runtime.clock()
    if not is_store_clock(runtime):
        return now
    read: int = yield ReadClock(now_ns=now)
    return read
