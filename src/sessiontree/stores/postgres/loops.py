"""The connections of an async store, one pool and one listener for each event loop that uses it.

An asyncio connection belongs to the loop that opened it. A loop that has ended (``asyncio.run`` called again) cannot
close its connections any more, so they are ended from outside when the next loop starts or the store is closed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Self, TypeVar
from weakref import WeakSet

from psycopg_pool import AsyncConnectionPool

from sessiontree.stores.postgres.driver_async import AsyncPlainConnection
from sessiontree.stores.postgres.listen import AsyncListener

__all__ = ["EventLoops", "LoopConnections", "LoopPool"]

T = TypeVar("T")

Configure = Callable[[AsyncPlainConnection], Awaitable[None]]


class LoopPool(AsyncConnectionPool[AsyncPlainConnection]):
    """A pool that a loop may end with, although nobody closed it."""

    def __init__(self, *arguments: Any, configure: Configure, **options: Any) -> None:
        connections: WeakSet[AsyncPlainConnection] = WeakSet()

        class Connection(AsyncPlainConnection):
            def __init__(self, *values: Any, **settings: Any) -> None:
                super().__init__(*values, **settings)
                connections.add(self)

            @classmethod
            async def connect(cls, *values: Any, **settings: Any) -> Self:
                return await _ending_with_loop(super().connect(*values, **settings))

        def configured(connection: AsyncPlainConnection) -> Awaitable[None]:
            return _ending_with_loop(configure(connection))

        super().__init__(*arguments, **{**options, "connection_class": Connection, "configure": configured})
        self._connections = connections

    def abandon(self) -> None:
        """End the connections of a loop that does not run any more."""
        for connection in list(self._connections):
            connection.pgconn.finish()


async def _ending_with_loop(step: Awaitable[T]) -> T:
    """Run a step of a background task of the pool, which takes a cancelled attempt to connect for a failed one and goes on.

    When a loop ends it waits for its tasks, and would wait for ever.
    """
    try:
        return await step
    except asyncio.CancelledError:
        _cancel_until_done(asyncio.current_task())
        raise


def _cancel_until_done(task: asyncio.Task[Any] | None) -> None:
    if task is not None and not task.done():
        task.cancel()
        task.get_loop().call_soon(_cancel_until_done, task)


class LoopConnections:
    """The pool and the listener of one event loop.

    ``open_pool`` opens the pool, at the first use.
    """

    def __init__(self, open_pool: Callable[[], Coroutine[Any, Any, LoopPool]], listener: AsyncListener) -> None:
        self.pool: LoopPool | None = None
        self.listener = listener
        self._open_pool = open_pool
        self._opening: asyncio.Task[LoopPool] | None = None

    async def open(self) -> LoopPool:
        """Return the pool; concurrent callers wait for the same attempt to open it and get the same error."""
        if self._opening is None or (self._opening.done() and not self._has_opened):
            self._opening = asyncio.create_task(self._open_pool(), name="sessiontree opening")
        self.pool = await asyncio.shield(self._opening)
        return self.pool

    async def close(self) -> None:
        """Close everything, on the loop itself."""
        await self.listener.close()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait([self._opening])
            if self._has_opened:
                await self._opening.result().close()

    def abandon(self) -> None:
        """End the connections of a loop that does not run any more."""
        if self.pool is not None:
            self.pool.abandon()

    @property
    def _has_opened(self) -> bool:
        opening = self._opening
        return opening is not None and opening.done() and not opening.cancelled() and opening.exception() is None


class EventLoops:
    """The connections of every loop that uses a store."""

    def __init__(self, connect: Callable[[], LoopConnections]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._loops: dict[asyncio.AbstractEventLoop, LoopConnections] = {}

    def current(self) -> LoopConnections:
        """The connections of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._loops.get(loop)
        if found is None:
            with self._lock:
                self._abandon_closed()
                found = self._loops[loop] = self._connect()
        return found

    async def close(self) -> None:
        """Close the connections of every loop."""
        with self._lock:
            self._abandon_closed()
            loops, self._loops = self._loops, {}
        here = asyncio.get_running_loop()
        for loop, connections in loops.items():
            if loop is here:
                await connections.close()
            elif loop.is_running():
                closing = asyncio.run_coroutine_threadsafe(connections.close(), loop)
                # The loop may end before it gets to it.
                with suppress(asyncio.CancelledError):
                    await asyncio.wrap_future(closing)
            else:
                connections.abandon()

    def _abandon_closed(self) -> None:
        for loop in [loop for loop in self._loops if loop.is_closed()]:
            self._loops.pop(loop).abandon()
