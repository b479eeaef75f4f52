"""Which threads an automatic compaction leaves alone for a while, because the last one came to nothing.

>>> setbacks = Setbacks()
>>> setbacks.note("t", now_ns=0)
>>> setbacks.is_resting("t", now_ns=29 * 10**9), setbacks.is_resting("t", now_ns=30 * 10**9)
(True, False)
>>> setbacks.note("t", now_ns=30 * 10**9)
>>> setbacks.is_resting("t", now_ns=89 * 10**9), setbacks.is_resting("t", now_ns=90 * 10**9)
(True, False)
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

__all__ = ["Setbacks"]

_FIRST_SECONDS = 30.0
_LONGEST_SECONDS = 1_800.0
_MOST_THREADS = 10_000
_MOST_DOUBLINGS = 10
_NANOSECONDS = 1_000_000_000


class _Setback(NamedTuple):
    failures: int
    since_ns: int
    until_ns: int


class Setbacks:
    """Half a minute after the first failure, twice as long after each further one, half an hour at most.

    A model that names a time to wait is heeded. It is kept in this process alone, for the last threads that failed.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[str, _Setback] = OrderedDict()
        self._lock = threading.Lock()

    def is_resting(self, thread_id: str, now_ns: int) -> bool:
        with self._lock:
            held = self._held.get(thread_id)
            # A clock that was set back must not make a rest longer.
            return held is not None and held.since_ns <= now_ns < held.until_ns

    def note(self, thread_id: str, now_ns: int, retry_after_seconds: float | None = None) -> None:
        """One more failure."""
        with self._lock:
            held = self._held.get(thread_id)
            failures = held.failures if held else 0
            grown = _FIRST_SECONDS * 2 ** min(failures, _MOST_DOUBLINGS)
            seconds = min(max(grown, retry_after_seconds or 0.0), _LONGEST_SECONDS)
            self._held[thread_id] = _Setback(failures + 1, now_ns, now_ns + int(seconds * _NANOSECONDS))
            self._held.move_to_end(thread_id)
            while len(self._held) > _MOST_THREADS:
                self._held.popitem(last=False)

    def forget(self, thread_id: str) -> None:
        """It went well again."""
        with self._lock:
            self._held.pop(thread_id, None)
