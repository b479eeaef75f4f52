"""Jobs that run beside their caller, in tasks of its event loop. ``Background`` is the same for threads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

__all__ = ["AsyncBackground"]


class AsyncBackground:
    """Runs jobs in tasks until it is closed. A job handles its own errors."""

    def __init__(self) -> None:
        self._is_closing = False
        self._loops: list[asyncio.Task[None]] = []
        self._jobs: dict[str, asyncio.Future[object]] = {}

    def every(self, seconds: float, job: Callable[[], Awaitable[object]], *, name: str) -> None:
        """Call ``job`` after every ``seconds``, until it returns False or ``close`` is called."""
        self._loops.append(asyncio.create_task(self._repeat(seconds, job), name=name))

    def submit(self, key: str, job: Callable[[], Awaitable[object]]) -> bool:
        """Start ``job``, unless one with the same key is running. Return False after ``close``: nothing starts then."""
        if self._is_closing:
            return False
        if key not in self._jobs:
            self._jobs[key] = asyncio.ensure_future(job())
            self._jobs[key].add_done_callback(lambda _: self._jobs.pop(key))
        return True

    async def close(self) -> None:
        """Cancel the repeated jobs and wait for the others that are running. A second call does nothing."""
        self._is_closing = True
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        await asyncio.gather(*self._jobs.values())

    async def _repeat(self, seconds: float, job: Callable[[], Awaitable[object]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            if await job() is False:
                return
