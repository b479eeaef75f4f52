"""A store in its other form: a blocking one for asyncio, and one of asyncio for blocking callers.

For programs that get an open journal of one form and need the other. The store behind it stays the same one, so both
forms see each other's writes at once, and whoever opened the store closes it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from concurrent.futures import Future
from typing import TypeVar

from sessiontree.stores.commands import Command, Result
from sessiontree.stores.protocol import AsyncStore, Store
from sessiontree.stores.queries import Finding, Query

__all__ = ["BlockingForm", "ThreadedForm"]

T = TypeVar("T")


class ThreadedForm:
    """An ``AsyncStore`` that calls a ``Store`` in worker threads."""

    def __init__(self, store: Store) -> None:
        self.place = store.place
        self.store = store

    async def acommit(self, command: Command) -> Result:
        return await asyncio.to_thread(self.store.commit, command)

    async def aread(self, query: Query[T]) -> T:
        return await asyncio.to_thread(self.store.read, query)

    async def await_change(self, thread_id: str, mark: object, timeout: float) -> None:
        await asyncio.to_thread(self.store.wait, thread_id, mark, timeout)

    async def amark(self, thread_id: str) -> object:
        return await asyncio.to_thread(self.store.mark, thread_id)

    async def arepair(self) -> list[Finding]:
        return await asyncio.to_thread(self.store.repair)

    async def areclaim(self) -> int:
        return await asyncio.to_thread(self.store.reclaim)

    async def aclose(self) -> None:
        """Do nothing: the store belongs to its blocking form."""


class BlockingForm:
    """A ``Store`` that runs an ``AsyncStore`` on an event loop in a thread of its own."""

    def __init__(self, store: AsyncStore) -> None:
        self.place = store.place
        self.store = store
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(
            target=asyncio.run, args=(self._serve(started),), name=f"loop {store.place}", daemon=True
        )
        self._thread.start()
        self._loop = started.result()

    def commit(self, command: Command) -> Result:
        return self._result(self.store.acommit(command))

    def read(self, query: Query[T]) -> T:
        return self._result(self.store.aread(query))

    def wait(self, thread_id: str, mark: object, timeout: float) -> None:
        self._result(self.store.await_change(thread_id, mark, timeout))

    def mark(self, thread_id: str) -> object:
        return self._result(self.store.amark(thread_id))

    def repair(self) -> list[Finding]:
        return self._result(self.store.arepair())

    def reclaim(self) -> int:
        return self._result(self.store.areclaim())

    def close(self) -> None:
        """Stop the loop; the store belongs to its async form, which ends the connections of this loop."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        self._stop = asyncio.Event()
        started.set_result(asyncio.get_running_loop())
        await self._stop.wait()

    def _result(self, step: Awaitable[T]) -> T:
        async def run() -> T:
            return await step

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()
