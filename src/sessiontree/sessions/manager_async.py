"""The session manager: conversations by key, with states, timeouts, hooks and automatic compaction."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Any, Self, Unpack

from sessiontree.compaction import CompactionResult
from sessiontree.journal._background_async import AsyncBackground
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Entry, Message, Payload, SessionKey, Thread
from sessiontree.sessions import expiry, info, lifecycle, messages
from sessiontree.sessions.config import ManagerOptions, build_config, changed_config, report_fault
from sessiontree.sessions.expiry import Recovery, Sweep
from sessiontree.sessions.hooks import AsyncHooks, EndReason, Fault, HookPhase
from sessiontree.sessions.info import SessionFilter, SessionInfo, SessionPage, SessionStats
from sessiontree.sessions.keys import key_text
from sessiontree.sessions.states import SessionState

__all__ = ["AsyncSession", "AsyncSessionManager"]


class AsyncSessionManager:
    """The sessions of a journal. Any number of managers, in any number of processes, can share a store.

    Takes the keyword arguments of :class:`ManagerOptions`. The time is that of the journal's clock.
    """

    def __init__(self, journal: AsyncJournal, **options: Unpack[ManagerOptions]) -> None:
        self.journal = journal
        self.hooks = AsyncHooks()
        self._config = build_config(journal.runtime, self.hooks, **options)
        self._background = AsyncBackground()
        self._is_started = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def get_or_create(self, key: SessionKey) -> AsyncSession:
        """Return the session for a key; a new one if there is none, if it is archived, or past its daily reset."""
        thread = await self.journal.run(lifecycle.get_or_create(self._config, key))
        return AsyncSession(self, key, thread.id)

    async def get(self, key: SessionKey) -> AsyncSession | None:
        """Return the session for a key, or ``None``."""
        thread = await self.journal.run(info.current(key))
        return None if thread is None else AsyncSession(self, key, thread.id)

    async def add_message(self, key: SessionKey, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Store a message durably, and compact the session afterwards if its window is full.

        With an ``id``, a repeated call returns the entry of the first one.
        """
        added = await self.journal.run(messages.add_message(self._config, key, content, id))
        if added.is_compaction_due:
            await self._follow_up(added.thread_id, messages.compact_if_needed(self._config, added.thread_id))
        elif added.is_memory_due:
            await self._follow_up(added.thread_id, messages.refresh_memory(self._config, added.thread_id))
        return added.entry

    async def get_messages(self, key: SessionKey) -> list[Message]:
        """Return what the model sees, without the system prompt."""
        return list((await self.journal.run(messages.context(key))).messages)

    async def get_system_prompt(self, key: SessionKey) -> str:
        """Return the system prompt."""
        return (await self.journal.run(messages.context(key))).system

    async def set_system_prompt(self, key: SessionKey, text: str) -> None:
        """Set the system prompt."""
        await self.journal.run(lifecycle.set_system_prompt(self._config, key, text))

    async def get_summary(self, key: SessionKey) -> str:
        """Return the summary in force, or an empty string."""
        return (await self.info(key)).summary

    async def set_summary(self, key: SessionKey, summary: str) -> SessionInfo:
        """Set the summary; the messages that the model sees stay. It counts as a compaction; ``uncompact`` reverts it."""
        await self.journal.run(messages.set_summary(self._config, key, summary))
        return await self.info(key)

    async def set_max_tokens(self, key: SessionKey, tokens: int | None) -> SessionInfo:
        """Give a session a window of its own; ``None`` is that of the manager's policy. Later conversations keep it."""
        return await self._info(lifecycle.set_max_tokens(self._config, key, tokens))

    async def set_state(self, key: SessionKey, state: SessionState) -> SessionInfo:
        """Set the state: active, idle, suspended or archived; InvalidTransitionError if that does not follow."""
        return await self._info(lifecycle.enter_state(self._config, key, state))

    async def trigger_hooks(self, key: SessionKey, reason: EndReason, phase: HookPhase = "before") -> int:
        """Call the hooks for a reason by hand and return how many there are; the session stays as it is."""
        return await self.journal.run(lifecycle.trigger(self._config, key, reason, phase))

    async def configure(self, **options: Unpack[ManagerOptions]) -> None:
        """Change options from now on, such as ``summarize``, ``policy`` or ``refresher``; the others stay."""
        self._config = changed_config(self._config, **options)

    async def set_title(self, key: SessionKey, title: str) -> SessionInfo:
        """Set the title of a session."""
        return await self._info(lifecycle.set_title(self._config, key, title))

    async def add_tag(self, key: SessionKey, tag: str) -> SessionInfo:
        """Add a tag, unless the session has it."""
        return await self._info(lifecycle.change_tags(self._config, key, added=tag))

    async def remove_tag(self, key: SessionKey, tag: str) -> SessionInfo:
        """Remove a tag, if the session has it."""
        return await self._info(lifecycle.change_tags(self._config, key, removed=tag))

    async def set_custom(self, key: SessionKey, name: str, value: Any) -> SessionInfo:
        """Store a JSON value with a session. Names with a leading underscore are reserved."""
        return await self._info(lifecycle.set_custom(self._config, key, name, value))

    async def new(self, key: SessionKey) -> AsyncSession:
        """Start a new conversation; the current one is archived and stays readable."""
        thread = await self.journal.run(lifecycle.new(self._config, key))
        return AsyncSession(self, key, thread.id)

    async def reset(self, key: SessionKey) -> SessionInfo:
        """Empty the conversation except for its system prompt; ``journal.undo`` reverts it."""
        return await self._info(lifecycle.reset(self._config, key))

    async def archive(self, key: SessionKey) -> SessionInfo:
        """Archive a session; it stays readable."""
        return await self._info(lifecycle.archive(self._config, key))

    async def unarchive(self, key: SessionKey, *, generation: int | None = None) -> SessionInfo:
        """Make an archived session active again; ``generation`` selects an earlier conversation of the key."""
        return await self._info(lifecycle.unarchive(self._config, key, generation))

    async def suspend(self, key: SessionKey) -> SessionInfo:
        """Stop compactions, timeouts and resets until ``resume``; messages are still stored."""
        return await self._info(lifecycle.change_state(self._config, key, "suspended"))

    async def resume(self, key: SessionKey) -> SessionInfo:
        """Make a suspended or idle session active."""
        return await self._info(lifecycle.change_state(self._config, key, "active"))

    async def delete(self, key: SessionKey) -> int:
        """Delete every conversation under a key for good; returns how many there were."""
        return await self.journal.run(lifecycle.delete(self._config, key))

    async def info(self, key: SessionKey) -> SessionInfo:
        """Describe a session."""
        return await self._info(info.existing(key))

    async def list(self, **wanted: Unpack[SessionFilter]) -> SessionPage:
        """Return a page of sessions, last used first, archived ones included."""
        return await self.journal.run(info.list_sessions(self._config, wanted))

    async def compact(self, key: SessionKey, *, instructions: str = "", force: bool = False) -> CompactionResult:
        """Compact a session now. ``force`` also installs a summary that saves no tokens."""
        return await self.journal.run(messages.compact(self._config, key, instructions=instructions, force=force))

    async def uncompact(self, key: SessionKey) -> Entry:
        """Revert the last compaction."""
        return await self.journal.run(messages.uncompact(self._config, key))

    async def token_usage(self, key: SessionKey) -> float:
        """Return the share of the window that is in use; 1.0 is full."""
        return await self.journal.run(messages.window_usage(self._config, key))

    async def stats(self) -> SessionStats:
        """Count the sessions of the store by state."""
        return await self.journal.run(info.stats(self._config.runtime.clock()))

    async def recover(self) -> Recovery:
        """Release expired compaction claims. Optional: an expired claim does not block anything."""
        return await self.journal.run(expiry.recover(self._config))

    async def sweep(self) -> Sweep:
        """Apply the lifetimes now: idle, archive, delete."""
        return await self.journal.run(expiry.sweep(self._config))

    async def start(self, sweep_every_seconds: float = 60.0) -> None:
        """Recover, then sweep at an interval until ``stop``. A second call does nothing."""
        if self._is_started:
            return
        self._is_started = True
        await self.recover()
        self._background.every(sweep_every_seconds, self._sweep_or_report, name="session sweep")

    async def stop(self) -> None:
        """Stop sweeping and wait for compactions in progress. The journal stays open. A second call does nothing."""
        await self._background.close()

    async def _follow_up(self, thread_id: str, operation: Operation[object]) -> None:
        """Run what follows from a message, in the background if configured, once at a time per session."""
        job = partial(self._run_or_report, thread_id, operation)
        if self._config.auto_compact == "inline" or not self._background.submit(thread_id, job):
            await job()

    async def _run_or_report(self, thread_id: str, operation: Operation[object]) -> None:
        try:
            await self.journal.run(operation)
        except Exception as error:  # noqa: BLE001  the message is stored, so add_message does not fail
            report_fault(self._config, Fault(what="an automatic compaction", thread_id=thread_id, error=error))

    async def _sweep_or_report(self) -> None:
        try:
            await self.sweep()
        except Exception as error:  # noqa: BLE001  the next sweep tries again
            report_fault(self._config, Fault(what="a sweep", thread_id="", error=error))

    async def _info(self, operation: Operation[Thread]) -> SessionInfo:
        return await self.journal.run(info.describe_found(self._config, operation))


class AsyncSession:
    """A handle on the session for one key. It holds no messages: every method calls the manager."""

    def __init__(self, manager: AsyncSessionManager, key: SessionKey, thread_id: str) -> None:
        self.manager = manager
        self.key = key
        self.thread_id = thread_id

    def __str__(self) -> str:
        return key_text(self.key)

    async def add_message(self, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Store a message durably."""
        return await self.manager.add_message(self.key, content, id=id)

    async def get_messages(self) -> list[Message]:
        """Return what the model sees, without the system prompt."""
        return await self.manager.get_messages(self.key)

    async def system_prompt(self) -> str:
        """Return the system prompt."""
        return await self.manager.get_system_prompt(self.key)

    async def set_system_prompt(self, text: str) -> None:
        """Set the system prompt."""
        await self.manager.set_system_prompt(self.key, text)

    async def get_summary(self) -> str:
        """Return the summary in force, or an empty string."""
        return await self.manager.get_summary(self.key)

    async def set_summary(self, summary: str) -> SessionInfo:
        """Set the summary; the messages stay."""
        return await self.manager.set_summary(self.key, summary)

    async def set_max_tokens(self, tokens: int | None) -> SessionInfo:
        """Give the session a window of its own."""
        return await self.manager.set_max_tokens(self.key, tokens)

    async def set_state(self, state: SessionState) -> SessionInfo:
        """Set the state."""
        return await self.manager.set_state(self.key, state)

    async def set_title(self, title: str) -> SessionInfo:
        """Set the title."""
        return await self.manager.set_title(self.key, title)

    async def add_tag(self, tag: str) -> SessionInfo:
        """Add a tag."""
        return await self.manager.add_tag(self.key, tag)

    async def remove_tag(self, tag: str) -> SessionInfo:
        """Remove a tag."""
        return await self.manager.remove_tag(self.key, tag)

    async def set_custom(self, name: str, value: Any) -> SessionInfo:
        """Store a JSON value with the session."""
        return await self.manager.set_custom(self.key, name, value)

    async def info(self) -> SessionInfo:
        """Describe the session."""
        return await self.manager.info(self.key)

    async def token_usage(self) -> float:
        """Return the share of the window that is in use; 1.0 is full."""
        return await self.manager.token_usage(self.key)

    async def compact(self, *, instructions: str = "", force: bool = False) -> CompactionResult:
        """Compact the session now."""
        return await self.manager.compact(self.key, instructions=instructions, force=force)

    async def uncompact(self) -> Entry:
        """Revert the last compaction."""
        return await self.manager.uncompact(self.key)

    async def reset(self) -> SessionInfo:
        """Empty the conversation except for its system prompt."""
        return await self.manager.reset(self.key)

    async def archive(self) -> SessionInfo:
        """Archive the session."""
        return await self.manager.archive(self.key)
