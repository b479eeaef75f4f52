"""A backend behind the committer: the sync surface of a store."""

from __future__ import annotations

import time
from typing import TypeVar

from sessiontree._engine.committer import Committer
from sessiontree.commands import Command, Result
from sessiontree.errors import StoreClosedError
from sessiontree.queries import Query
from sessiontree.store import Backend

__all__ = ["EmbeddedStore"]

T = TypeVar("T")

POLL_SECONDS = 0.02


class EmbeddedStore:
    """A Store over one Backend."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.place = backend.place
        self.committer = Committer(backend.write, backend.place)
        self.is_closed = False

    def commit(self, command: Command) -> Result:
        return self.committer.commit(command)

    def read(self, query: Query[T]) -> T:
        if self.is_closed:
            raise StoreClosedError(self.place)
        self.committer.check_open()
        return query.run(self.backend)

    def mark(self, thread_id: str) -> object:
        return self.backend.mark(thread_id)

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not self.is_closed and self.backend.mark(thread_id) == mark and time.monotonic() < end:
            time.sleep(POLL_SECONDS)

    def close(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self.committer.close(self.backend.close)
