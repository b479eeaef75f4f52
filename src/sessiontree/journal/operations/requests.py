"""What an operation may ask for while it runs; the drivers answer, sync or async.

Which threads an automatic compaction leaves alone for a while, because the last one came to nothing.

>>> setbacks = Backoff()
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
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeVar

from sessiontree.model import NANOSECONDS
from sessiontree.model._base import Record
from sessiontree.model.ids import Clock, IdSource
from sessiontree.stores.commands import Command
from sessiontree.stores.queries import AnyQuery

__all__ = ["Backoff", "Call", "Operation", "Pause", "Request", "Runtime", "Work"]


_FIRST_SECONDS = 30.0
_LONGEST_SECONDS = 1_800.0
_MOST_THREADS = 10_000
_MOST_DOUBLINGS = 10


class _Setback(NamedTuple):
    failures: int
    since_ns: int
    until_ns: int


class Backoff:
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
            self._held[thread_id] = _Setback(failures + 1, now_ns, now_ns + int(seconds * NANOSECONDS))
            self._held.move_to_end(thread_id)
            while len(self._held) > _MOST_THREADS:
                self._held.popitem(last=False)

    def forget(self, thread_id: str) -> None:
        """It went well again."""
        with self._lock:
            self._held.pop(thread_id, None)


T = TypeVar("T")


class Runtime(Record, frozen=True, kw_only=True):
    """Where time and ids come from, and what automatic compactions have to be patient with."""

    clock: Clock
    ids: IdSource
    setbacks: Backoff


class Call(Record, frozen=True, kw_only=True):
    """Run a caller's function, which may be sync or, under the async driver, a coroutine function."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Work(Record, frozen=True, kw_only=True):
    """Run a function that blocks on files; the async driver does it in a thread."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Pause(Record, frozen=True, kw_only=True):
    """Let time pass without holding anybody up."""

    seconds: float


Request = Command | AnyQuery | Call | Work | Pause
Operation = Generator[Request, Any, T]
"""A verb, written once: it yields requests and returns its answer."""
