"""How full the windows of the live sessions are, remembered for the busiest ones only."""

from __future__ import annotations

import threading
from collections import OrderedDict

__all__ = ["Gauge"]


class Gauge:
    """Thread id to (leaf, tokens), the least recently used ones forgotten. The leaf tells if a value still holds.

    >>> gauge = Gauge(most=1)
    >>> gauge.note("a", "e1", 100)
    >>> gauge.note("b", "e2", 200)
    >>> gauge.tokens("a", "e1"), gauge.tokens("b", "e2"), gauge.tokens("b", "e3")
    (None, 200, None)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, tuple[str | None, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._values)

    def note(self, thread_id: str, leaf: str | None, tokens: int) -> None:
        with self._lock:
            self._values[thread_id] = (leaf, tokens)
            self._values.move_to_end(thread_id)
            while len(self._values) > self._most:
                self._values.popitem(last=False)

    def tokens(self, thread_id: str, leaf: str | None) -> int | None:
        with self._lock:
            held = self._values.get(thread_id)
            if held is None or held[0] != leaf:
                return None
            self._values.move_to_end(thread_id)
            return held[1]
