# Generated from observed_async.py by tools/async_to_sync.py; do not edit.
"""A store that tells an observer how long everything took."""

from __future__ import annotations

from typing import Any, TypeVar

from sessiontree.model.observed import CommitDone, Observer, ReadDone
from sessiontree.stores.commands import Command, Result
from sessiontree.stores.observing import GroupTimes, Stopwatch, tell
from sessiontree.stores.protocol import Store
from sessiontree.stores.queries import Finding, Query

__all__ = ["ObservedStore"]


T = TypeVar("T")


class ObservedStore:
    """Passes everything on to another store."""

    def __init__(self, store: Store, observer: Observer, groups: GroupTimes | None = None) -> None:
        self.place = store.place
        self._store = store
        self._observer = observer
        self._groups = groups

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, command: Command) -> Result:
        """Run a command and return once it is durable."""

        def finish(started_ns: int, seconds: float, error: str) -> None:
            written = None if self._groups is None else self._groups.take(command)
            event = CommitDone(
                place=self.place,
                started_ns=started_ns,
                seconds=seconds,
                error=error,
                name=type(command).__name__,
                thread_id=getattr(command, "thread_id", ""),
                wait_seconds=0.0 if written is None else max(0.0, seconds - written),
            )
            tell(self._observer, event)

        with Stopwatch(finish):
            return self._store.commit(command)

    def read(self, query: Query[T]) -> T:
        """Answer a query."""

        def finish(started_ns: int, seconds: float, error: str) -> None:
            event = ReadDone(
                place=self.place,
                started_ns=started_ns,
                seconds=seconds,
                error=error,
                name=type(query).__name__,
                thread_id=getattr(query, "thread_id", None) or "",
            )
            tell(self._observer, event)

        with Stopwatch(finish):
            return self._store.read(query)

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        """Return when the thread may have changed since ``mark`` was taken, or after ``timeout`` seconds."""
        self._store.wait(thread_id, mark, timeout)

    def mark(self, thread_id: str) -> object:
        """Return a value for ``wait``."""
        return self._store.mark(thread_id)

    def repair(self) -> list[Finding]:
        """Repair what can be repaired, and return what it was. Writes wait."""
        return self._store.repair()

    def reclaim(self) -> int:
        """Give free room in files back to the disk, and return how many bytes. Writes wait."""
        return self._store.reclaim()

    def close(self) -> None:
        """Finish what is queued and release everything."""
        self._store.close()
