"""Embedded stores: a ``Backend`` behind group commit."""

from __future__ import annotations

import time
from typing import TypeVar

from sessiontree.errors import StoreClosedError
from sessiontree.stores.commands import Command, Result
from sessiontree.stores.group_commit import Committer
from sessiontree.stores.protocol import Backend
from sessiontree.stores.queries import Finding, Query

__all__ = ["EmbeddedStore"]

T = TypeVar("T")

POLL_SECONDS = 0.02


class EmbeddedStore:
    """A ``Store`` over a ``Backend``."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.place = backend.place
        self.committer = Committer(backend.write, backend.place)
        self.is_closed = False

    def commit(self, command: Command) -> Result:
        """Run a command and return once it is durable."""
        return self.committer.commit(command)

    def read(self, query: Query[T]) -> T:
        """Answer a query."""
        if self.is_closed:
            raise StoreClosedError(self.place)
        self.committer.check_open()
        return query.run(self.backend)

    def mark(self, thread_id: str) -> object:
        """Return a value for ``wait``."""
        return self.backend.mark(thread_id)

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        """Poll until the thread's mark differs from ``mark``, at most for ``timeout`` seconds."""
        end = time.monotonic() + timeout
        while not self.is_closed and self.backend.mark(thread_id) == mark and time.monotonic() < end:
            time.sleep(POLL_SECONDS)

    def repair(self) -> list[Finding]:
        """Repair what can be repaired while nothing is being written, and return what it was."""
        return self.committer.run_alone(self.backend.repair)

    def close(self) -> None:
        """Write what is queued and close the backend; the second call is a no-op."""
        if self.is_closed:
            return
        self.is_closed = True
        self.committer.close(self.backend.close)
