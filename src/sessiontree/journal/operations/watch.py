"""Following a thread: what was committed since the last look, by any process."""

from __future__ import annotations

import time

from msgspec import UnsetType

from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Entry
from sessiontree.stores.queries import NewEntries, ReadEntries, ReadNewEntries

__all__ = ["Feed"]


_WAIT_SECONDS = 1.0
_NOTHING = NewEntries(entries=(), cursor=0)


class Feed:
    """The state of one ``journal.watch``: which entries are still to be yielded, and how long to wait for more."""

    def __init__(self, thread_id: str, after: str | UnsetType | None, timeout: float | None) -> None:
        self.thread_id = thread_id
        self._after = after
        self._timeout = timeout
        self._quiet_since: float | None = None  # not before the first step: a caller may take its time until then
        self._new = _NOTHING
        self._known: list[Entry] = []
        self._yielded: set[str] = set()

    def start(self) -> Operation[None]:
        """Find the place in the thread where watching begins."""
        self._new = yield ReadNewEntries(thread_id=self.thread_id, cursor=0 if self._after is None else None)
        if isinstance(self._after, str):
            seen: list[Entry] = yield ReadEntries(thread_id=self.thread_id, after=self._after)
            self._known = [entry for entry in seen if entry.thread_id == self.thread_id]
            self._yielded = {entry.id for entry in self._known}

    def read(self) -> Operation[bool]:
        """Read what was committed since the last read; return whether there was anything."""
        self._new = yield ReadNewEntries(thread_id=self.thread_id, cursor=self._new.cursor)
        return bool(self._new.entries)

    def take(self) -> list[Entry]:
        """Return the entries to yield now."""
        taken = self._known + [entry for entry in self._new.entries if entry.id not in self._yielded]
        self._known = []
        if self._new.entries:
            self._yielded = set()
        if taken or self._quiet_since is None:
            self._quiet_since = time.monotonic()
        return taken

    def is_over(self) -> bool:
        """Whether nothing came for as long as the time-out."""
        if self._timeout is None or self._quiet_since is None or self._known or self._new.entries:
            return False
        return time.monotonic() - self._quiet_since > self._timeout

    def wait_seconds(self) -> float:
        """How long to wait for a change before looking again."""
        if self._timeout is None or self._quiet_since is None:
            return _WAIT_SECONDS
        return max(0.0, min(_WAIT_SECONDS, self._quiet_since + self._timeout - time.monotonic()))
