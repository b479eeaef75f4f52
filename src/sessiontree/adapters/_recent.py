"""What an adapter remembers of the threads that it used last, so that it does not read it again for every call."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Recent"]

T = TypeVar("T")


class Recent(Generic[T]):
    """The last values by key, from any thread. What was not used for the longest time is forgotten first.

    >>> recent = Recent[int](most=1)
    >>> recent.put("a", 1)
    >>> recent.put("b", 2)
    >>> recent.get("a"), recent.get("b")
    (None, 2)
    """

    def __init__(self, *, most: int = 16) -> None:
        self._most = most
        self._values: OrderedDict[str, T] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> T | None:
        """Return a value; ``None`` if it is not remembered."""
        with self._lock:
            return self._values.get(key)

    def put(self, key: str, value: T) -> None:
        """Remember a value."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            if len(self._values) > self._most:
                self._values.popitem(last=False)

    def forget(self, key: str) -> None:
        """Remember nothing for a key."""
        with self._lock:
            self._values.pop(key, None)
