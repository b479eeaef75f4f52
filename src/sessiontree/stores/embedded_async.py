"""The async surface of an embedded store; a module of its own, because asyncio is slow to import."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sessiontree.stores.commands import Command, Result
from sessiontree.stores.embedded import POLL_SECONDS, EmbeddedStore
from sessiontree.stores.protocol import Backend
from sessiontree.stores.queries import Query

__all__ = ["AsyncEmbeddedStore"]


T = TypeVar("T")

_READERS = 4


class AsyncEmbeddedStore(EmbeddedStore):
    """An AsyncStore over one Backend; its sync surface works too, from other threads."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix=f"reader {self.place}")

    def close(self) -> None:
        super().close()
        self._readers.shutdown()

    def acommit(self, command: Command) -> asyncio.Future[Result]:
        return self.committer.submit(command, asyncio.get_running_loop())

    async def aread(self, query: Query[T]) -> T:
        # In the child of a fork the readers have no threads: nobody would ever answer.
        if not self.backend.is_blocking or self.is_closed or not self.committer.is_in_its_process:
            return self.read(query)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.read, query)

    async def amark(self, thread_id: str) -> object:
        return self.backend.mark(thread_id)

    async def await_change(self, thread_id: str, mark: object, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not self.is_closed and self.backend.mark(thread_id) == mark and time.monotonic() < end:
            await asyncio.sleep(POLL_SECONDS)

    async def aclose(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)
