"""A call of a framework's own interface, made with our class and with the framework's."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

__all__ = ["LAST", "TEXT", "Call", "Calls", "Cost", "alternate", "is_answer", "new_database"]

T = TypeVar("T")

TEXT = "It is a long message about leeks, potatoes and cream, as a cook would write it. " * 6
LAST = 20


class Call(NamedTuple):
    """The same call on conversations of the same messages."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]

    @classmethod
    def on(cls, sides: tuple[T, T], name: str, act: Callable[[T], object]) -> Self:
        """Return the call that does the same to ours and to theirs."""
        ours, theirs = sides
        return cls(name, partial(act, ours), partial(act, theirs))


Calls = Callable[[Path, int], AbstractContextManager[list[Call]]]
"""Writes conversations of so many messages into a folder, and returns what is measured with them."""


class Cost(NamedTuple):
    """Medians in milliseconds. CPU is that of all threads of this process, not of a database server."""

    cpu: float
    elapsed: float


def is_answer(number: int) -> bool:
    """Whether the message with this number is one of the model."""
    return number % 2 == 1


def new_database() -> str:
    """Return the URL of an empty database on the PostgreSQL server of the tests, which it starts."""
    sys.path.append(str(Path(__file__).parents[2] / "tests"))
    from postgres_server import new_database as made  # noqa: PLC0415

    return made()


def alternate(call: Call, rounds: int) -> tuple[Cost, Cost]:
    """Return what a call costs with our class and with theirs, each first in every other round."""
    times: tuple[list[Cost], list[Cost]] = ([], [])
    sides = (call.ours, call.theirs)
    for number in range(rounds):
        for side in (0, 1) if number % 2 else (1, 0):
            times[side].append(_timed(sides[side]))
    ours, theirs = (Cost(*map(statistics.median, zip(*side, strict=True))) for side in times)
    return ours, theirs


def _timed(function: Callable[[], object]) -> Cost:
    cpu, start = time.process_time(), time.perf_counter()
    function()
    return Cost(cpu=1_000 * (time.process_time() - cpu), elapsed=1_000 * (time.perf_counter() - start))
