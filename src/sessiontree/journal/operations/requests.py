"""Operations: generators that yield requests, and the requests that a driver answers.

>>> backoff = Backoff()
>>> backoff.note_failure("compaction", "t", now_ns=0)
>>> [backoff.is_waiting("compaction", "t", now_ns=seconds * 10**9) for seconds in (29, 30)]
[True, False]
>>> backoff.is_waiting("memory", "t", now_ns=0), backoff.is_waiting("compaction", "other", now_ns=0)
(False, False)
>>> backoff.note_failure("compaction", "t", now_ns=30 * 10**9)
>>> [backoff.is_waiting("compaction", "t", now_ns=seconds * 10**9) for seconds in (89, 90)]
[True, False]
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from typing import Any, Literal, NamedTuple, TypeVar

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

Retried = Literal["compaction", "memory"]
"""What is attempted automatically, and again after a pause if it fails."""


class _Failures(NamedTuple):
    number: int
    since_ns: int
    until_ns: int


class Backoff:
    """How long automatic compactions and memory refreshes of a thread wait after a failure.

    30 seconds after the first failure, twice as long after each further one, 30 minutes at most; longer than the
    schedule if a model asked for it. Kept in this process only, for the threads that failed last.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[Retried, str], _Failures] = OrderedDict()
        self._lock = threading.Lock()

    def is_waiting(self, kind: Retried, thread_id: str, now_ns: int) -> bool:
        """Whether the pause after the last failure is not over yet."""
        with self._lock:
            failures = self._failures.get((kind, thread_id))
            # A clock that was set back must not prolong the pause.
            return failures is not None and failures.since_ns <= now_ns < failures.until_ns

    def note_failure(
        self, kind: Retried, thread_id: str, now_ns: int, retry_after_seconds: float | None = None
    ) -> None:
        """Start a pause, twice as long as the one before it."""
        with self._lock:
            earlier = self._failures.pop((kind, thread_id), None)
            number = earlier.number if earlier else 0
            scheduled = _FIRST_SECONDS * 2 ** min(number, _MOST_DOUBLINGS)
            seconds = min(max(scheduled, retry_after_seconds or 0.0), _LONGEST_SECONDS)
            self._failures[kind, thread_id] = _Failures(number + 1, now_ns, now_ns + int(seconds * NANOSECONDS))
            while len(self._failures) > _MOST_THREADS:
                self._failures.popitem(last=False)

    def note_success(self, kind: Retried, thread_id: str) -> None:
        """Forget the failures."""
        with self._lock:
            self._failures.pop((kind, thread_id), None)


T = TypeVar("T")


class Runtime(Record, frozen=True, kw_only=True):
    """What operations share within one journal: the clock, new ids, and pauses after failures."""

    clock: Clock
    ids: IdSource
    backoff: Backoff


class Call(Record, frozen=True, kw_only=True):
    """Run a caller's function, which may be sync or, under the async driver, a coroutine function."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Work(Record, frozen=True, kw_only=True):
    """Run a function that blocks on files; the async driver runs it in a thread."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


class Pause(Record, frozen=True, kw_only=True):
    """Wait; under the async driver, other tasks go on."""

    seconds: float


Request = Command | AnyQuery | Call | Work | Pause
Operation = Generator[Request, Any, T]
"""What a verb does, written once for threads and asyncio: it yields requests and returns its answer."""
