"""Erase what deletes leave in logs and indexes, in a thread of its own.

A delete is committed like any other command. Copies of the deleted content in a log or an index are erased after the
commit: nothing that goes wrong there can change the outcome, and no writer waits for the readers that are in the way.
A store records what is still to be erased, so that the next open does it after a crash.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sessiontree.stores.commands import (
    Committed,
    CommitTogether,
    Deleted,
    DeleteThread,
    EraseContents,
    Erased,
    Result,
)

__all__ = ["ERASE_SECONDS", "REMOVALS", "Eraser", "removes_content"]


REMOVALS = (DeleteThread, EraseContents, CommitTogether)
"""The commands that may remove content."""

ERASE_SECONDS = 2.0
"""How long a delete waits for its content to be erased everywhere; the erasing goes on afterwards."""

_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 2.0


def removes_content(result: Result) -> bool:
    """Return whether a command deleted something, so that there may be copies to erase."""
    match result:
        case Deleted():
            return True
        case Erased(entries=entries):
            return entries > 0
        case Committed(results=results):
            return any(map(removes_content, results))
        case _:
            return False


class Eraser:
    """Calls ``erase`` until it returns True: at once, then at growing intervals, for as long as the store is open."""

    def __init__(self, erase: Callable[[], bool], place: str) -> None:
        self._erase = erase
        self._place = place
        self._changed = threading.Condition()
        self._requested = 0
        self._done = 0
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> int:
        """Ask for an erasure; return its number, for ``wait``."""
        with self._changed:
            self._requested += 1
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._serve, name=f"eraser {self._place}", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            return self._requested

    def wait(self, number: int, timeout: float | None = None) -> None:
        """Return once an erasure is complete, or after ``timeout`` seconds (ERASE_SECONDS if not given)."""
        seconds = ERASE_SECONDS if timeout is None else timeout
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._done >= number, seconds)

    def close(self) -> None:
        """Stop trying. The store tries once more when it is closed."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _serve(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while (number := self._next()) is not None:
            is_erased = self._erase()
            with self._changed:
                if is_erased:
                    self._done = number
                    self._changed.notify_all()
                    pause = _FIRST_PAUSE_SECONDS
                elif not self._is_closed:
                    self._changed.wait_for(lambda: self._is_closed, pause)
                    pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _next(self) -> int | None:
        """Wait for an erasure to do and return its number; None once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._requested > self._done)
            return None if self._is_closed else self._requested
