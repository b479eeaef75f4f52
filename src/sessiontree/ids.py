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

_FORMAT = "%08x-%04x-7%03x-%04x-%012x"
_NODE_MASK = (1 << 48) - 1
_LOW_MASK = (1 << 62) - 1
_VARIANT = 0x2 << 62
_START_BYTES = 9


def system_clock() -> int:
    return time.time_ns()


class IdSource:
    """Makes ids that sort by creation, also within one millisecond and when the clock steps back."""

    def __init__(self, clock: Clock = system_clock, random: RandomSource = os.urandom) -> None:
        self._clock = clock
        self._random = random
        self._lock = threading.Lock()
        self._millisecond = -1
        self._entropy = b""
        self._counter = 0

    def new(self) -> str:
        with self._lock:
            self._advance()
            return _format(self._millisecond, self._counter)

    def _advance(self) -> None:
        """A new millisecond starts at a random count with room above it; within one, the count goes up."""
        now = max(0, self._clock() // 1_000_000)
        if now > self._millisecond:
            self._millisecond = now
            self._counter = int.from_bytes(self._start())
        else:
            self._counter += 1

    def _start(self) -> bytes:
        """Random bytes are drawn in store: a system call for each millisecond would be felt."""
        if not self._entropy:
            self._entropy = self._random(_START_BYTES * 64)
        start, self._entropy = self._entropy[:_START_BYTES], self._entropy[_START_BYTES:]
        return start


def _format(millisecond: int, counter: int) -> str:
    """48 bits of time, the version, 12 bits of count, the variant, 62 bits of count."""
    time = f"{millisecond:012x}"
    low = f"{_VARIANT | counter & _LOW_MASK:016x}"
    return f"{time[-12:-4]}-{time[-4:]}-7{counter >> 62:03x}-{low[:4]}-{low[4:]}"
