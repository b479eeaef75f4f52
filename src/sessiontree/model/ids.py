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

__all__ = ["Clock", "IdSource", "RandomSource", "system_clock"]


Clock = Callable[[], int]
"""Returns the current time as nanoseconds since the Unix epoch."""

RandomSource = Callable[[int], bytes]
"""Returns that many random bytes."""

system_clock: Clock = time.time_ns

_NOISE_BYTES = 10
_TAIL_MASK = (1 << 47) - 1
_VARIANT = "89ab"


class IdSource:
    """Makes ids that sort by creation, even within one millisecond and when the clock steps back.

    Each millisecond starts at a random number that counts up, with too many values left to run out.
    """

    def __init__(self, clock: Clock = system_clock, random: RandomSource = os.urandom) -> None:
        self._clock = clock
        self._random = random
        self._lock = threading.Lock()
        self._millisecond = -1
        self._noise = b""
        self._head = ""
        self._tail = 0

    def new(self) -> str:
        """Return a new id."""
        with self._lock:
            now = self._clock() // 1_000_000
            if now > self._millisecond or not self._head:
                self._begin(max(0, now))
            else:
                self._tail += 1
            return self._head + self._tail.to_bytes(6).hex()

    def _begin(self, millisecond: int) -> None:
        """48 bits of time, the version, 12 random bits, the variant, 14 random bits, then 47 bits that count up."""
        noise = self._draw()
        digits = noise.hex()
        time = f"{millisecond:012x}"
        self._millisecond = millisecond
        self._head = f"{time[-12:-4]}-{time[-4:]}-7{digits[:3]}-{_VARIANT[noise[3] & 3]}{digits[3:6]}-"
        self._tail = int.from_bytes(noise[4:]) & _TAIL_MASK

    def _draw(self) -> bytes:
        """Return random bytes from a buffer: a system call for each millisecond would be measurable."""
        if not self._noise:
            self._noise = self._random(_NOISE_BYTES * 64)
        drawn, self._noise = self._noise[:_NOISE_BYTES], self._noise[_NOISE_BYTES:]
        return drawn
