"""Going on by itself after a lost connection, a restart or a fail-over: bounded, with jitter, and only where safe."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg

from sessiontree.stores.postgres.faults import has_lost_server, in_our_words, is_collision, may_open_later
from sessiontree.stores.postgres.steps import Pause, Steps

__all__ = ["pauses", "persistently", "wait_to_open"]

T = TypeVar("T")

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0
_MOST_COLLISIONS = 100


def pauses(total_seconds: float) -> Iterator[float]:
    """Growing, jittered waits until the time is up."""
    end = time.monotonic() + total_seconds
    pause = _FIRST_PAUSE
    while time.monotonic() < end:
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311  spreads callers out, guards nothing
        pause = min(2 * pause, _LONGEST_PAUSE)


def wait_to_open(error: psycopg.Error, waits: Iterator[float], place: str) -> float:
    """How long to wait before the next try to connect; raises where waiting is no use, or the time is up."""
    wait = next(waits, None) if may_open_later(error) else None
    if wait is None:
        raise in_our_words(error, place) from error
    return wait


def persistently(
    attempt: Callable[[], Steps[T]],
    *,
    place: str,
    retry_seconds: float,
    give_up: Callable[[psycopg.Error], Exception | None] | None = None,
) -> Steps[T]:
    """Run an attempt that may safely run again. ``give_up`` names what is left to say when the time is up."""
    waits = pauses(retry_seconds)
    collisions = 0
    while True:
        try:
            return (yield from attempt())
        except psycopg.Error as error:
            collisions += is_collision(error)
            may_go_on = has_lost_server(error) or (is_collision(error) and collisions < _MOST_COLLISIONS)
            wait = next(waits, None) if may_go_on else None
            if wait is None:
                raise (give_up and give_up(error)) or in_our_words(error, place) from error
            yield Pause(_FIRST_PAUSE * random.random() if is_collision(error) else wait)  # noqa: S311
