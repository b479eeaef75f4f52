"""What adapters share: their journal, and closing it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import ParamSpec, Self, TypeVar

import sessiontree as st
from sessiontree.adapters._source import JournalSource, StoreOrJournal

__all__ = ["Adapter", "AsyncAdapter"]

P = ParamSpec("P")
T = TypeVar("T")


class AsyncAdapter:
    """An adapter of an asynchronous framework."""

    def __init__(self, store: StoreOrJournal) -> None:
        self._source = JournalSource(store)

    async def journal(self) -> st.AsyncJournal:
        """Return the journal, which has searches, lists and all other verbs."""
        return await self._source.asynchronous()

    async def close(self) -> None:
        """Close the store, if it was given as a URL. A second call does nothing."""
        await self._source.aclose()

    async def __aenter__(self) -> Self:
        await self._source.asynchronous()  # opened here, so that the first call is not a slow one
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Adapter:
    """An adapter for programs with and without an event loop."""

    def __init__(self, store: StoreOrJournal) -> None:
        self._source = JournalSource(store)
        self._workers = _new_workers()

    @property
    def journal(self) -> st.Journal:
        """The journal, which has searches, forks, rewinds and all other verbs."""
        return self._source.blocking()

    def close(self) -> None:
        """Close the store, if it was given as a URL. A second call does nothing."""
        self._source.close()
        self._end_workers()

    async def aclose(self) -> None:
        """Close the store, if it was given as a URL, without blocking the event loop."""
        await self._source.aclose()
        self._end_workers()

    async def _in_thread(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a blocking function in a thread of this adapter.

        In the default threads of the event loop, tasks of the program would wait for the store.
        """
        call = partial(copy_context().run, function, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self._workers, call)

    def _end_workers(self) -> None:
        self._workers.shutdown(wait=False)
        self._workers = _new_workers()  # has none before it is used; the store says that it is closed

    def __enter__(self) -> Self:
        self._source.blocking()  # opened here, so that the first call is not a slow one
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        await self._in_thread(self._source.blocking)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _new_workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_name_prefix="sessiontree adapter")
