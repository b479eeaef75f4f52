"""An ``AsyncJournal`` with the methods of a ``Journal``, so that one suite tests both.

>>> import sessiontree as st
>>> with SyncOverAsync(st.open_async("memory:")) as journal:
...     journal.create_thread("t", title="demo").title
'demo'
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable, Iterator
from functools import cached_property
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, cast

from msgspec import UNSET, UnsetType

from sessiontree.context.dialects import Dialect
from sessiontree.journal import Journal
from sessiontree.journal.documents import Documents
from sessiontree.journal.documents_async import AsyncDocuments
from sessiontree.journal.handle import ThreadHandle
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.operations.entries import Content
from sessiontree.journal.operations.turns import DEFAULT_TTL_SECONDS
from sessiontree.journal.stream import AnswerStream
from sessiontree.journal.stream_async import AsyncAnswerStream
from sessiontree.journal.thread_ids import ThreadLike
from sessiontree.journal.turn import Turn
from sessiontree.journal.turn_async import AsyncTurn
from sessiontree.journal.workspace import Workspace
from sessiontree.journal.workspace_async import AsyncWorkspace
from sessiontree.model import (
    Entry,
    Lease,
    Message,
    Payload,
    SessionKey,
    Thread,
    ThreadFields,
    ThreadFilters,
    ThreadQuery,
)
from sessiontree.stores.protocol import AsyncStore, Store

__all__ = ["SyncOverAsync"]


T = TypeVar("T")
C = TypeVar("C", bound=Payload | Message)


class SyncOverAsync(Journal):
    """A ``Journal`` that runs an ``AsyncJournal`` on an event loop of its own.

    The loop runs only during a call, and with it a heartbeat or a watcher.
    """

    def __init__(self, journal: AsyncJournal) -> None:
        self._journal = journal
        self.runtime = journal.runtime
        self._store = _WaitDetector(journal.store)
        self.store = cast("Store", _StoreOverAsync(journal.store, self))
        journal.store = cast("AsyncStore", self._store)
        self._loop = asyncio.new_event_loop()

    @cached_property
    def workspace(self) -> Workspace:
        """The methods of an ``AsyncWorkspace``, blocking."""
        return cast("Workspace", _WorkspaceOverAsync(self._journal.workspace, self))

    @cached_property
    def documents(self) -> Documents:
        """The methods of ``AsyncDocuments``, blocking."""
        return cast("Documents", _WorkspaceOverAsync(self._journal.documents, self))

    def wait_for(self, verb: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine on the journal's loop."""
        return self._loop.run_until_complete(verb)

    def turn(
        self,
        thread_id: ThreadLike,
        *,
        owner: str | None = None,
        turn_id: str | None = None,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
        files: str | os.PathLike[str] | None = None,
    ) -> Turn:
        """``AsyncJournal.turn``, blocking."""
        turn = self._journal.turn(thread_id, owner=owner, turn_id=turn_id, ttl_seconds=ttl_seconds, files=files)
        return cast("Turn", _TurnOverAsync(turn, self))

    def open_thread(
        self, id_or_key: ThreadLike | SessionKey | None = None, *, create: bool = False, **fields: Unpack[ThreadFields]
    ) -> ThreadHandle:
        """``AsyncJournal.open_thread``, blocking, as is everything that the handle does."""
        opened = self.wait_for(self._journal.open_thread(id_or_key, create=create, **fields))
        return ThreadHandle(self, opened.id)

    def watch(
        self, thread_id: ThreadLike, *, after: str | UnsetType | None = UNSET, timeout: float | None = None
    ) -> Iterator[Entry]:
        """``AsyncJournal.watch``, blocking. It starts at the call, like that of a ``Journal``."""
        steps = self._journal.watch(thread_id, after=after, timeout=timeout)
        first = self.wait_for(self._store.until_waiting(_next(steps)))
        return self._steps(first, steps)

    def iter_threads(self, query: ThreadQuery | None = None, **filters: Unpack[ThreadFilters]) -> Iterator[Thread]:
        """``AsyncJournal.iter_threads``, blocking."""
        threads = self._journal.iter_threads(query, **filters)
        while (thread := self.wait_for(_next(threads))) is not None:
            yield thread

    def close(self) -> None:
        """Close the journal and its event loop."""
        if self._loop.is_closed():
            return
        self.wait_for(self._journal.close())
        self.wait_for(_cancel_rest())
        self.wait_for(self._loop.shutdown_default_executor())
        self._loop.close()

    def _steps(self, first: asyncio.Task[Entry | None], steps: AsyncIterator[Entry]) -> Iterator[Entry]:
        entry = self._loop.run_until_complete(first)
        while entry is not None:
            yield entry
            entry = self.wait_for(_next(steps))


class _StoreOverAsync:
    """An async store that can be closed from outside the loop."""

    def __init__(self, store: AsyncStore, journal: SyncOverAsync) -> None:
        self._store = store
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        self._journal.wait_for(self._store.aclose())


class _WorkspaceOverAsync:
    """A workspace that runs an ``AsyncWorkspace``, or documents that run ``AsyncDocuments``."""

    def __init__(self, workspace: AsyncWorkspace | AsyncDocuments, journal: SyncOverAsync) -> None:
        self._workspace = workspace
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._workspace, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *arguments, **options: self._journal.wait_for(found(*arguments, **options))


class _TurnOverAsync:
    """A ``Turn`` that runs an ``AsyncTurn``."""

    def __init__(self, turn: AsyncTurn, journal: SyncOverAsync) -> None:
        self._turn = turn
        self._journal = journal
        self.wait = turn.wait
        self.abort = turn.abort

    @property
    def lease(self) -> Lease:
        return self._turn.lease

    @property
    def id(self) -> str:
        return self._turn.id

    def append(self, content: C, *, id: str | None = None) -> Entry[C]:
        return self._journal.wait_for(self._turn.append(content, id=id))

    def append_many(self, contents: Iterable[Content]) -> list[Entry]:
        return self._journal.wait_for(self._turn.append_many(contents))

    def stream(
        self,
        dialect: str | Dialect,
        events: Iterable[Any] | None = None,
        *,
        durable_every_seconds: float | None = None,
    ) -> AnswerStream:
        given = None if events is None else _each(events)
        answer = self._turn.stream(dialect, given, durable_every_seconds=durable_every_seconds)
        return cast("AnswerStream", _AnswerOverAsync(answer, self._journal))

    def take_inbox(self) -> list[Entry]:
        return self._journal.wait_for(self._turn.take_inbox())

    def save_point(self, reason: str = "") -> Entry:
        return self._journal.wait_for(self._turn.save_point(reason))

    def __enter__(self) -> Self:
        self._journal.wait_for(self._turn.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.wait_for(self._turn.__aexit__(kind, error, trace))


class _AnswerOverAsync:
    """An ``AnswerStream`` that runs an ``AsyncAnswerStream``."""

    def __init__(self, answer: AsyncAnswerStream, journal: SyncOverAsync) -> None:
        self._answer = answer
        self._journal = journal

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._answer, name)
        if not inspect.iscoroutinefunction(found):
            return found
        return lambda *arguments: self._journal.wait_for(found(*arguments))

    def __iter__(self) -> Iterator[str]:
        texts = aiter(self._answer)
        try:
            while (text := self._journal.wait_for(_next(texts))) is not None:
                yield text
        finally:
            self._journal.wait_for(cast("AsyncGenerator[str]", texts).aclose())


class _WaitDetector:
    """An async store that notices when a watcher has nothing left to read and starts to wait."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store
        self._waiting = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def await_change(self, thread_id: str, mark: object, timeout: float) -> None:
        self._waiting.set()
        await self._store.await_change(thread_id, mark, timeout)

    async def until_waiting(self, step: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a step until it is done or waits for a change."""
        self._waiting.clear()
        task = asyncio.create_task(step)
        waiting = asyncio.create_task(self._waiting.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        return task


async def _each(items: Iterable[T]) -> AsyncIterator[T]:
    for item in items:
        yield item


async def _next(steps: AsyncIterator[T]) -> T | None:
    return await anext(steps, None)


async def _cancel_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


def _blocking(name: str) -> Callable[..., Any]:
    def verb(self: SyncOverAsync, *arguments: Any, **options: Any) -> Any:
        return self.wait_for(getattr(self._journal, name)(*arguments, **options))

    return verb


for _name, _verb in inspect.getmembers(AsyncJournal, inspect.iscoroutinefunction):
    if not _name.startswith("_") and _name not in vars(SyncOverAsync):
        setattr(SyncOverAsync, _name, _blocking(_name))
