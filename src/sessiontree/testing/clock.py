"""A clock and a random source under the control of a test, so that two runs give the same ids.

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
    """A clock that changes only by ``advance``; pass it to ``open`` as ``clock=``."""

    def __init__(self, start_ns: int = _START_NS) -> None:
        self.now_ns = start_ns

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, seconds: float) -> None:
        """Move the clock forward, or back by a negative number."""
        self.now_ns += int(seconds * NANOSECONDS)


def seeded_random(seed: int) -> RandomSource:
    """A repeatable random source; pass it to ``open`` as ``random=``."""
    return random.Random(seed).randbytes  # noqa: S311  ids in a test need no secrecy
