"""A backend behind the committer, with the sync and the async surface of a store."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sessiontree._engine.committer import Committer
from sessiontree.commands import Command, Result
from sessiontree.errors import StoreClosedError
from sessiontree.queries import Query
from sessiontree.store import Backend

__all__ = ["EmbeddedStore"]

T = TypeVar("T")

_READERS = 4
_POLL_SECONDS = 0.02


class EmbeddedStore:
    """Store and AsyncStore at once, over one Backend."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.place = backend.place
        self._committer = Committer(backend.write, backend.place)
        self._readers: ThreadPoolExecutor | None = None
        self._is_closed = False

    def commit(self, command: Command) -> Result:
        return self._committer.commit(command)

    def read(self, query: Query[T]) -> T:
        if self._is_closed:
            raise StoreClosedError(self.place)
        return query.run(self.backend)

    def mark(self, thread_id: str) -> object:
        return self.backend.mark(thread_id)

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not self._is_closed and self.backend.mark(thread_id) == mark and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._committer.close()
        if self._readers is not None:
            self._readers.shutdown()
        self.backend.close()

    async def acommit(self, command: Command) -> Result:
        return await self._committer.submit(command)

    async def aread(self, query: Query[T]) -> T:
        if not self.backend.is_blocking or self._is_closed:
            return self.read(query)
        return await asyncio.get_running_loop().run_in_executor(self._pool(), self.read, query)

    async def amark(self, thread_id: str) -> object:
        return self.backend.mark(thread_id)

    async def await_change(self, thread_id: str, mark: object, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not self._is_closed and self.backend.mark(thread_id) == mark and time.monotonic() < end:
            await asyncio.sleep(_POLL_SECONDS)

    async def aclose(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def _pool(self) -> ThreadPoolExecutor:
        if self._readers is None:
            self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix=f"reader {self.place}")
        return self._readers
