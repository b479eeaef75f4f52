"""Time-ordered ids (RFC 9562 UUID version 7) from a clock and a random source that are passed in.

>>> ids = IdSource(clock=lambda: 1_700_000_000_000_000_000, random=lambda n: bytes(n))
>>> ids.new()
'018bcfe5-6800-7000-8000-000000000000'
>>> ids.new() > '018bcfe5-6800-7000-8000-000000000000'
True
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns the present as nanoseconds since the Unix epoch."""

RandomSource = Callable[[int], bytes]
"""Returns that many random bytes."""

__all__ = ["Clock", "IdSource", "RandomSource", "system_clock"]

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62
_COUNTER_BITS = 74
_COUNTER_LIMIT = 1 << _COUNTER_BITS


def system_clock() -> int:
    return time.time_ns()


class IdSource:
    """Makes ids that sort by creation, also within one millisecond and when the clock steps back."""

    def __init__(self, clock: Clock = system_clock, random: RandomSource = os.urandom) -> None:
        self._clock = clock
        self._random = random
        self._lock = threading.Lock()
        self._millisecond = -1
        self._counter = 0

    def new(self) -> str:
        with self._lock:
            self._advance()
            return _format(self._millisecond, self._counter)

    def _advance(self) -> None:
        now = self._clock() // 1_000_000
        if now > self._millisecond:
            self._millisecond = now
            self._counter = int.from_bytes(self._random(9)) >> 1 & ((1 << 72) - 1) >> 1
            return
        self._counter += 1 + int.from_bytes(self._random(4))
        if self._counter >= _COUNTER_LIMIT:
            self._millisecond += 1
            self._counter = 0


def _format(millisecond: int, counter: int) -> str:
    high, low = divmod(counter, 1 << 62)
    value = (millisecond & (1 << 48) - 1) << 80 | _VERSION_7 | high << 64 | _VARIANT | low
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
