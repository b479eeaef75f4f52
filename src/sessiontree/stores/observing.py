"""Measure what a store does, for an observer. A store without an observer runs none of this."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from sessiontree.model.observed import GroupWritten, Observed, Observer, OperationDone
from sessiontree.stores.commands import Command
from sessiontree.stores.protocol import Outcome

__all__ = ["GroupTimes", "Stopwatch", "observed", "tell"]


_MOST_COMMANDS = 10_000
"""Times of commands whose callers were cancelled stay behind."""


def tell(observer: Observer, event: Observed) -> None:
    """Call an observer. What it raises is logged: a commit must not fail because of who watches it."""
    try:
        observer(event)
    except Exception:
        from logging import getLogger  # noqa: PLC0415  most programs have no observer

        getLogger("sessiontree.observe").exception("the observer of %s failed", event.place)


class Stopwatch(AbstractContextManager["Stopwatch"]):
    """Times its block, and calls ``finish`` with the start, the seconds and the name of the error, if one was raised."""

    def __init__(self, finish: Callable[[int, float, str], None]) -> None:
        self._finish = finish

    def __enter__(self) -> Self:
        self._started_ns = time.time_ns()
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        seconds = time.perf_counter() - self._started
        self._finish(self._started_ns, seconds, "" if kind is None else kind.__name__)


def observed(observer: Observer, name: str, place: str) -> Stopwatch:
    """Time an operation and tell an observer."""

    def finish(started_ns: int, seconds: float, error: str) -> None:
        tell(observer, OperationDone(place=place, started_ns=started_ns, seconds=seconds, error=error, name=name))

    return Stopwatch(finish)


class GroupTimes:
    """Writes groups, and remembers when each command was written, so that its wait can be told."""

    def __init__(self, write: Callable[[Sequence[Command]], list[Outcome]], place: str, observer: Observer) -> None:
        self._write = write
        self._place = place
        self._observer = observer
        self._seconds: dict[int, float] = {}

    def write(self, commands: Sequence[Command]) -> list[Outcome]:
        """Write a group and tell the observer."""

        def finish(started_ns: int, seconds: float, error: str) -> None:
            if len(self._seconds) > _MOST_COMMANDS:
                self._seconds.clear()
            self._seconds.update((id(command), seconds) for command in commands)
            size = len(commands)
            event = GroupWritten(place=self._place, started_ns=started_ns, seconds=seconds, error=error, size=size)
            tell(self._observer, event)

        with Stopwatch(finish):
            return self._write(commands)

    def take(self, command: Any) -> float | None:
        """Return how long the group of a command took; None if it was written without one."""
        return self._seconds.pop(id(command), None)
