"""The session manager for asyncio: the same verbs with the same signatures; a test compares the two."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from sessiontree.compaction import CompactionResult
from sessiontree.journal.flows import Flow, run_flow_async
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.model import Entry, Message, Payload, SessionKey, Thread
from sessiontree.sessions import expiry, info, lifecycle, messages
from sessiontree.sessions.config import Frame, report_fault
from sessiontree.sessions.expiry import Recovery, Sweep
from sessiontree.sessions.hooks import Fault
from sessiontree.sessions.info import (
    SessionFilter,
    SessionInfo,
    SessionPage,
    SessionStats,
    current,
    existing,
    info_of,
    move_state,
)
from sessiontree.sessions.session import AsyncSession

__all__ = ["AsyncSessionManager"]


T = TypeVar("T")


class AsyncSessionManager(Frame[AsyncJournal]):
    """Sessions of one journal. Any number of managers, in any number of processes, may share a store.

    >>> import sessiontree as st
    >>> async def talk():
    ...     async with st.open_async("memory:") as journal, AsyncSessionManager(journal) as manager:
    ...         key = st.SessionKey(agent="bot", channel="web", peer="ann")
    ...         await manager.add_message(key, st.user("hello"))
    ...         return [message.text for message in await manager.get_messages(key)]
    >>> asyncio.run(talk())
    ['hello']
    """

    def _set_up(self) -> None:
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._is_stopping = False
        self._loop: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def get_or_create(self, key: SessionKey) -> AsyncSession:
        """The session under a key; a fresh one if there is none or if it is archived or has had its day."""
        thread = await self._run(lifecycle.get_or_create(self._desk, key))
        return AsyncSession(self, key, thread.id)

    async def get(self, key: SessionKey) -> AsyncSession | None:
        """The session under a key, wherever it was made; ``None`` if there is none. Creates nothing."""
        thread = await self._run(current(key))
        return None if thread is None else AsyncSession(self, key, thread.id)

    async def add_message(self, key: SessionKey, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Store a message, durably, and let a compaction follow if the window is full."""
        added = await self._run(messages.add_message(self._desk, key, content, id))
        if added.is_compaction_due and self._auto_compact != "off":
            await self._later(added.thread_id, lambda: messages.compact_if_due(self._desk, added.thread_id))
        elif added.is_memory_due:
            await self._later(added.thread_id, lambda: messages.remember(self._desk, added.thread_id))
        return added.entry

    async def get_messages(self, key: SessionKey) -> list[Message]:
        """What the model sees, without the system prompt; an unknown session is SessionNotFoundError."""
        return list((await self._run(messages.get_messages(key)))[1])

    async def get_system_prompt(self, key: SessionKey) -> str:
        """The prompt in force."""
        return (await self._run(messages.get_messages(key)))[0]

    async def set_system_prompt(self, key: SessionKey, text: str) -> None:
        """The prompt from here on."""
        await self._run(lifecycle.set_system_prompt(key, text))

    async def set_title(self, key: SessionKey, title: str) -> SessionInfo:
        """Name a session."""
        return await self._info(lifecycle.set_title(key, title))

    async def add_tag(self, key: SessionKey, tag: str) -> SessionInfo:
        """Tag a session; a tag that it has already is no error."""
        return await self._info(lifecycle.change_tags(key, added=tag))

    async def remove_tag(self, key: SessionKey, tag: str) -> SessionInfo:
        """Take a tag away; one that it does not have is no error."""
        return await self._info(lifecycle.change_tags(key, removed=tag))

    async def set_custom(self, key: SessionKey, name: str, value: Any) -> SessionInfo:
        """Keep a value of your own with a session."""
        return await self._info(lifecycle.set_custom(key, name, value))

    async def new(self, key: SessionKey) -> AsyncSession:
        """A fresh conversation; the old one is archived, not emptied."""
        thread = await self._run(lifecycle.new(self._desk, key))
        return AsyncSession(self, key, thread.id)

    async def reset(self, key: SessionKey) -> SessionInfo:
        """Empty the conversation but for its system prompt; ``journal.undo`` brings it back."""
        return await self._info(lifecycle.reset(self._desk, key))

    async def archive(self, key: SessionKey) -> SessionInfo:
        """Put a session away; it stays readable."""
        return await self._info(lifecycle.archive(self._desk, key))

    async def unarchive(self, key: SessionKey, *, generation: int | None = None) -> SessionInfo:
        """Make an archived session the active one again; ``generation`` names one before the one in use."""
        return await self._info(lifecycle.unarchive(self._desk, key, generation))

    async def suspend(self, key: SessionKey) -> SessionInfo:
        """Messages are still stored, but nothing else happens until ``resume``."""
        thread = await self._run(existing(key))
        return await self._info(move_state(self._desk, thread.id, "suspended"))

    async def resume(self, key: SessionKey) -> SessionInfo:
        """Make a suspended or idle session active."""
        thread = await self._run(existing(key))
        return await self._info(move_state(self._desk, thread.id, "active"))

    async def delete(self, key: SessionKey) -> int:
        """Delete every conversation under a key for good; how many there were."""
        return await self._run(lifecycle.delete(self._desk, key))

    async def info(self, key: SessionKey) -> SessionInfo:
        """A session at this moment."""
        return await self._info(existing(key))

    async def list(self, **wanted: Unpack[SessionFilter]) -> SessionPage:
        """A page of sessions, the last used ones first; archived and past ones too."""
        return await self._run(info.list_sessions(wanted, self._desk.clock()))

    async def compact(self, key: SessionKey, *, instructions: str = "", force: bool = False) -> CompactionResult:
        """Compact a session now, wherever it was made."""
        thread = await self._run(existing(key))
        return await self._run(messages.compact(self._desk, thread.id, instructions=instructions, force=force))

    async def uncompact(self, key: SessionKey) -> Entry:
        """Take the last compaction back."""
        return await self._run(messages.uncompact(key))

    async def token_usage(self, key: SessionKey) -> float:
        """How full the window is; 1.0 is full."""
        thread = await self._run(existing(key))
        return (await self._run(messages.fullness(self._desk, thread))) / self._desk.policy.window_tokens

    async def stats(self) -> SessionStats:
        """All sessions of the store, by state."""
        return await self._run(info.stats(self._desk.clock()))

    async def recover(self) -> Recovery:
        """Tidy up after a crash: compactions that nobody does any more. Without it they are over when their claims expire."""
        return await self._run(expiry.recover(self._desk))

    async def sweep(self) -> Sweep:
        """Apply the lifetimes now: idle, archive, delete."""
        return await self._run(expiry.sweep(self._desk))

    async def start(self, sweep_every_seconds: float = 60.0) -> None:
        """Recover, then sweep from time to time until ``stop``. A second call does nothing."""
        if self._loop is not None:
            return
        await self.recover()
        self._loop = asyncio.create_task(self._sweep_on(sweep_every_seconds), name="session sweep")

    async def stop(self) -> None:
        """Finish what is under way. The journal stays open: it is the caller's. A second call does nothing."""
        self._is_stopping = True
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        await asyncio.gather(*self._busy.values())

    async def _later(self, thread_id: str, flow: Callable[[], Flow[Any]]) -> None:
        """Once at a time per session: what comes while it runs is seen by it, or by the next message."""
        if self._auto_compact == "inline" or self._is_stopping:
            await self._guarded(thread_id, flow)
        elif thread_id not in self._busy:
            self._busy[thread_id] = asyncio.create_task(self._guarded(thread_id, flow))

    async def _guarded(self, thread_id: str, flow: Callable[[], Flow[Any]]) -> None:
        try:
            await self._run(flow())
        except Exception as error:  # noqa: BLE001  the message is stored; the rest is reported
            report_fault(self._desk, Fault(what="an automatic compaction", thread_id=thread_id, error=error))
        finally:
            self._busy.pop(thread_id, None)

    async def _sweep_on(self, every_seconds: float) -> None:
        while True:
            await asyncio.sleep(every_seconds)
            try:
                await self.sweep()
            except Exception as error:  # noqa: BLE001  the next round tries again
                report_fault(self._desk, Fault(what="a sweep", thread_id="", error=error))

    async def _info(self, flow: Flow[Thread]) -> SessionInfo:
        return info_of(await self._run(flow), self._desk.clock())

    async def _run(self, flow: Flow[T]) -> T:
        return await run_flow_async(flow, self.journal)
