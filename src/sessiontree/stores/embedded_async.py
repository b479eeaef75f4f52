"""The async interface of an embedded store; a module of its own because asyncio is slow to import."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sessiontree.stores.commands import Command, Result
from sessiontree.stores.embedded import POLL_SECONDS, EmbeddedStore
from sessiontree.stores.erasing import REMOVALS, removes_content
from sessiontree.stores.protocol import Backend
from sessiontree.stores.queries import Finding, Query

__all__ = ["AsyncEmbeddedStore"]


T = TypeVar("T")

_READER_THREADS = 4


class AsyncEmbeddedStore(EmbeddedStore):
    """An ``AsyncStore`` over a ``Backend``. The methods of ``Store`` work too, from other threads."""

    def __init__(self, backend: Backend) -> None:
        super().__init__(backend)
        self._readers = ThreadPoolExecutor(_READER_THREADS, thread_name_prefix=f"reader {self.place}")

    def close(self) -> None:
        """Close the store and stop the reader threads."""
        super().close()
        self._readers.shutdown()

    def acommit(self, command: Command) -> asyncio.Future[Result]:
        """Run a command; the future is done once it is durable. Cancelling it does not cancel the command."""
        written = self.committer.submit(command, asyncio.get_running_loop())
        if isinstance(command, REMOVALS):
            return asyncio.ensure_future(self._erased(written))
        return written

    async def _erased(self, written: asyncio.Future[Result]) -> Result:
        result = await asyncio.shield(written)
        if removes_content(result):
            number = self.eraser.start()
            await asyncio.get_running_loop().run_in_executor(None, self.eraser.wait, number)
        return result

    async def aread(self, query: Query[T]) -> T:
        """Answer a query, in a reader thread if the backend blocks."""
        # In the child of a fork the executor has no threads, so a read there would never return.
        if not self.backend.is_blocking or self.is_closed or not self.committer.is_in_its_process:
            return self.read(query)
        return await asyncio.get_running_loop().run_in_executor(self._readers, self.read, query)

    async def amark(self, thread_id: str) -> object:
        """Return a value for ``await_change``."""
        return self.mark(thread_id)

    async def await_change(self, thread_id: str, mark: object, timeout: float) -> None:
        """Poll until the thread's mark differs from ``mark``, at most for ``timeout`` seconds."""
        end = time.monotonic() + timeout
        while not self.is_closed and self.mark(thread_id) == mark and time.monotonic() < end:
            await asyncio.sleep(POLL_SECONDS)

    async def arepair(self) -> list[Finding]:
        return await asyncio.get_running_loop().run_in_executor(None, self.repair)

    async def areclaim(self) -> int:
        return await asyncio.get_running_loop().run_in_executor(None, self.reclaim)

    async def aclose(self) -> None:
        """Close the store without blocking the event loop."""
        await asyncio.get_running_loop().run_in_executor(None, self.close)
