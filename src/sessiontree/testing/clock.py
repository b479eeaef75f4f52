"""Time and chance that a test decides: the same run twice gives the same ids.

>>> clock = ManualClock(start_ns=0)
>>> clock.advance(seconds=1.5)
>>> clock()
1500000000
>>> seeded_random(7)(4) == seeded_random(7)(4)
True
"""

from __future__ import annotations

import random

from sessiontree.model import NANOSECONDS
from sessiontree.model.ids import RandomSource

__all__ = ["ManualClock", "seeded_random"]


_START_NS = 1_700_000_000_000_000_000


class ManualClock:
    """A clock that stands still until it is told to go on; pass it as ``clock=`` when a journal is opened."""

    def __init__(self, start_ns: int = _START_NS) -> None:
        self.now_ns = start_ns

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, seconds: float) -> None:
        """Let time pass; a negative number steps the clock back."""
        self.now_ns += int(seconds * NANOSECONDS)


def seeded_random(seed: int) -> RandomSource:
    """A random source that repeats itself; pass it as ``random=`` when a journal is opened."""
    return random.Random(seed).randbytes  # noqa: S311  ids in a test need no secrecy
