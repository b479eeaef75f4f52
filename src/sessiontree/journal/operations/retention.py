"""Delete threads by age, number, size, tag or workspace, and give the room back."""

from __future__ import annotations

from collections.abc import Mapping

from sessiontree.errors import InvalidInputError, ThreadChangedError, ThreadNotFoundError
from sessiontree.journal.operations.clock import time_of_store
from sessiontree.journal.operations.entries import labels
from sessiontree.journal.operations.reads import all_threads
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import Lease, Thread, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.retention import Expired, Retention, RetentionReport
from sessiontree.stores.commands import DeleteThread
from sessiontree.stores.queries import ReadLease, ReadStats, ReadThreadSizes, StoreStats

__all__ = ["delete_expired", "find_expired"]


_PAGE = 500
_LOOKS = 100
"""How often it is checked during a deletion whether the store is small enough."""


def find_expired(runtime: Runtime, retention: Retention) -> Operation[tuple[Expired, ...]]:
    """Return the threads that a retention does not keep, the oldest first."""
    if retention.keep_newest < 0 or (retention.max_bytes is not None and retention.max_bytes < 0):
        raise InvalidInputError("keep_newest and max_bytes cannot be negative")
    found = yield from all_threads(_query(retention, limit=_PAGE))
    ordered = sorted(found, key=lambda thread: (thread.updated_ns, thread.id))
    candidates = [thread for thread in ordered if not thread.is_register]
    sizes: Mapping[str, int] = yield ReadThreadSizes()
    excess: float = float("inf")
    if retention.max_bytes is not None:
        total: StoreStats = yield ReadStats()
        excess = total.bytes - retention.max_bytes
    expired: list[Expired] = []
    for thread in candidates[: len(candidates) - retention.keep_newest]:
        if excess <= 0:
            break
        if not (yield from _is_kept(runtime, thread, retention)):
            expired.append(Expired(thread=thread, bytes=sizes.get(thread.id, 0)))
            excess -= expired[-1].bytes
    return tuple(expired)


def delete_expired(
    retention: Retention, expired: tuple[Expired, ...], progress: Progress | None
) -> Operation[RetentionReport]:
    """Delete threads that are still as they were found."""
    deleted: list[Expired] = []
    changed: list[str] = []
    step = max(1, len(expired) // _LOOKS)
    for number, one in enumerate(expired, start=1):
        if retention.max_bytes is not None and (number - 1) % step == 0:
            # Files count too, and how much of them goes with a thread is known only afterwards.
            total: StoreStats = yield ReadStats()
            if total.bytes <= retention.max_bytes:
                break
        unchanged = _query(retention, limit=None, updated_before_ns=one.thread.updated_ns + 1)
        try:
            yield DeleteThread(thread_id=one.thread.id, expect_match=unchanged)
            deleted.append(one)
        except (ThreadChangedError, ThreadNotFoundError):
            changed.append(one.thread.id)
        if progress is not None:
            progress(number, len(expired))
    return RetentionReport(expired=tuple(deleted), changed=tuple(changed), bytes=sum(one.bytes for one in deleted))


def _query(retention: Retention, *, limit: int | None, updated_before_ns: int | None = None) -> ThreadQuery:
    return ThreadQuery(
        updated_before_ns=updated_before_ns or retention.updated_before_ns,
        tags=retention.tags,
        workspace=retention.workspace,
        is_archived=retention.is_archived,
        is_empty=retention.is_empty,
        limit=limit,
    )


def _is_kept(runtime: Runtime, thread: Thread, retention: Retention) -> Operation[bool]:
    try:
        lease: Lease | None = yield ReadLease(thread_id=thread.id)
        if lease is not None and not lease.is_expired((yield from time_of_store(runtime))):
            return True
        return not retention.includes_labelled and bool((yield from labels(thread.id)))
    except ThreadNotFoundError:
        return True
