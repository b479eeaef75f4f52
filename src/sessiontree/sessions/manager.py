# Generated from manager_async.py by tools/async_to_sync.py; do not edit.
"""The session manager: conversations by key, with states, timeouts, hooks and automatic compaction."""

from __future__ import annotations

from functools import partial
from types import TracebackType
from typing import Any, Self, Unpack

from sessiontree.compaction import CompactionResult
from sessiontree.journal._background import Background
from sessiontree.journal.journal import Journal
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Entry, Message, Payload, SessionKey, Thread
from sessiontree.sessions import expiry, info, lifecycle, messages
from sessiontree.sessions.config import ManagerOptions, build_config, changed_config, report_fault
from sessiontree.sessions.expiry import Recovery, Sweep
from sessiontree.sessions.hooks import EndReason, Fault, HookPhase, Hooks
from sessiontree.sessions.info import SessionFilter, SessionInfo, SessionPage, SessionStats
from sessiontree.sessions.keys import key_text
from sessiontree.sessions.states import SessionState

__all__ = ["Session", "SessionManager"]


class SessionManager:
    """The sessions of a journal. Any number of managers, in any number of processes, can share a store.

    Takes the keyword arguments of :class:`ManagerOptions`. The time is that of the journal's clock.
    """

    def __init__(self, journal: Journal, **options: Unpack[ManagerOptions]) -> None:
        self.journal = journal
        self.hooks = Hooks()
        self._config = build_config(journal.runtime, self.hooks, **options)
        self._background = Background()
        self._is_started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def get_or_create(self, key: SessionKey) -> Session:
        """Return the session for a key; a new one if there is none, if it is archived, or past its daily reset."""
        thread = self.journal.run(lifecycle.get_or_create(self._config, key))
        return Session(self, key, thread.id)

    def get(self, key: SessionKey) -> Session | None:
        """Return the session for a key, or ``None``."""
        thread = self.journal.run(info.current(key))
        return None if thread is None else Session(self, key, thread.id)

    def add_message(self, key: SessionKey, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Store a message durably, and compact the session afterwards if its window is full.

        With an ``id``, a repeated call returns the entry of the first one.
        """
        added = self.journal.run(messages.add_message(self._config, key, content, id))
        if added.is_compaction_due:
            self._follow_up(added.thread_id, messages.compact_if_needed(self._config, added.thread_id))
        elif added.is_memory_due:
            self._follow_up(added.thread_id, messages.refresh_memory(self._config, added.thread_id))
        return added.entry

    def get_messages(self, key: SessionKey) -> list[Message]:
        """Return what the model sees, without the system prompt."""
        return list((self.journal.run(messages.context(key))).messages)

    def get_system_prompt(self, key: SessionKey) -> str:
        """Return the system prompt."""
        return (self.journal.run(messages.context(key))).system

    def set_system_prompt(self, key: SessionKey, text: str) -> None:
        """Set the system prompt."""
        self.journal.run(lifecycle.set_system_prompt(self._config, key, text))

    def get_summary(self, key: SessionKey) -> str:
        """Return the summary in force, or an empty string."""
        return (self.info(key)).summary

    def set_summary(self, key: SessionKey, summary: str) -> SessionInfo:
        """Set the summary; the messages that the model sees stay. It counts as a compaction; ``uncompact`` reverts it."""
        self.journal.run(messages.set_summary(self._config, key, summary))
        return self.info(key)

    def set_max_tokens(self, key: SessionKey, tokens: int | None) -> SessionInfo:
        """Give a session a window of its own; ``None`` is that of the manager's policy. Later conversations keep it."""
        return self._info(lifecycle.set_max_tokens(self._config, key, tokens))

    def set_state(self, key: SessionKey, state: SessionState) -> SessionInfo:
        """Set the state: active, idle, suspended or archived; InvalidTransitionError if that does not follow."""
        return self._info(lifecycle.enter_state(self._config, key, state))

    def trigger_hooks(self, key: SessionKey, reason: EndReason, phase: HookPhase = "before") -> int:
        """Call the hooks for a reason by hand and return how many there are; the session stays as it is."""
        return self.journal.run(lifecycle.trigger(self._config, key, reason, phase))

    def configure(self, **options: Unpack[ManagerOptions]) -> None:
        """Change options from now on, such as ``summarize``, ``policy`` or ``refresher``; the others stay."""
        self._config = changed_config(self._config, **options)

    def set_title(self, key: SessionKey, title: str) -> SessionInfo:
        """Set the title of a session."""
        return self._info(lifecycle.set_title(self._config, key, title))

    def add_tag(self, key: SessionKey, tag: str) -> SessionInfo:
        """Add a tag, unless the session has it."""
        return self._info(lifecycle.change_tags(self._config, key, added=tag))

    def remove_tag(self, key: SessionKey, tag: str) -> SessionInfo:
        """Remove a tag, if the session has it."""
        return self._info(lifecycle.change_tags(self._config, key, removed=tag))

    def set_custom(self, key: SessionKey, name: str, value: Any) -> SessionInfo:
        """Store a JSON value with a session. Names with a leading underscore are reserved."""
        return self._info(lifecycle.set_custom(self._config, key, name, value))

    def new(self, key: SessionKey) -> Session:
        """Start a new conversation; the current one is archived and stays readable."""
        thread = self.journal.run(lifecycle.new(self._config, key))
        return Session(self, key, thread.id)

    def reset(self, key: SessionKey) -> SessionInfo:
        """Empty the conversation except for its system prompt; ``journal.undo`` reverts it."""
        return self._info(lifecycle.reset(self._config, key))

    def archive(self, key: SessionKey) -> SessionInfo:
        """Archive a session; it stays readable."""
        return self._info(lifecycle.archive(self._config, key))

    def unarchive(self, key: SessionKey, *, generation: int | None = None) -> SessionInfo:
        """Make an archived session active again; ``generation`` selects an earlier conversation of the key."""
        return self._info(lifecycle.unarchive(self._config, key, generation))

    def suspend(self, key: SessionKey) -> SessionInfo:
        """Stop compactions, timeouts and resets until ``resume``; messages are still stored."""
        return self._info(lifecycle.change_state(self._config, key, "suspended"))

    def resume(self, key: SessionKey) -> SessionInfo:
        """Make a suspended or idle session active."""
        return self._info(lifecycle.change_state(self._config, key, "active"))

    def delete(self, key: SessionKey) -> int:
        """Delete every conversation under a key for good; returns how many there were."""
        return self.journal.run(lifecycle.delete(self._config, key))

    def info(self, key: SessionKey) -> SessionInfo:
        """Describe a session."""
        return self._info(info.existing(key))

    def list(self, **wanted: Unpack[SessionFilter]) -> SessionPage:
        """Return a page of sessions, last used first, archived ones included."""
        return self.journal.run(info.list_sessions(self._config, wanted))

    def compact(self, key: SessionKey, *, instructions: str = "", force: bool = False) -> CompactionResult:
        """Compact a session now. ``force`` also installs a summary that saves no tokens."""
        return self.journal.run(messages.compact(self._config, key, instructions=instructions, force=force))

    def uncompact(self, key: SessionKey) -> Entry:
        """Revert the last compaction."""
        return self.journal.run(messages.uncompact(self._config, key))

    def token_usage(self, key: SessionKey) -> float:
        """Return the share of the window that is in use; 1.0 is full."""
        return self.journal.run(messages.window_usage(self._config, key))

    def stats(self) -> SessionStats:
        """Count the sessions of the store by state."""
        return self.journal.run(info.stats(self._config.runtime.clock()))

    def recover(self) -> Recovery:
        """Release expired compaction claims. Optional: an expired claim does not block anything."""
        return self.journal.run(expiry.recover(self._config))

    def sweep(self) -> Sweep:
        """Apply the lifetimes now: idle, archive, delete."""
        return self.journal.run(expiry.sweep(self._config))

    def start(self, sweep_every_seconds: float = 60.0) -> None:
        """Recover, then sweep at an interval until ``stop``. A second call does nothing."""
        if self._is_started:
            return
        self._is_started = True
        self.recover()
        self._background.every(sweep_every_seconds, self._sweep_or_report, name="session sweep")

    def stop(self) -> None:
        """Stop sweeping and wait for compactions in progress. The journal stays open. A second call does nothing."""
        self._background.close()

    def _follow_up(self, thread_id: str, operation: Operation[object]) -> None:
        """Run what follows from a message, in the background if configured, once at a time per session."""
        job = partial(self._run_or_report, thread_id, operation)
        if self._config.auto_compact == "inline" or not self._background.submit(thread_id, job):
            job()

    def _run_or_report(self, thread_id: str, operation: Operation[object]) -> None:
        try:
            self.journal.run(operation)
        except Exception as error:  # noqa: BLE001  the message is stored, so add_message does not fail
            report_fault(self._config, Fault(what="an automatic compaction", thread_id=thread_id, error=error))

    def _sweep_or_report(self) -> None:
        try:
            self.sweep()
        except Exception as error:  # noqa: BLE001  the next sweep tries again
            report_fault(self._config, Fault(what="a sweep", thread_id="", error=error))

    def _info(self, operation: Operation[Thread]) -> SessionInfo:
        return self.journal.run(info.describe_found(self._config, operation))


class Session:
    """A handle on the session for one key. It holds no messages: every method calls the manager."""

    def __init__(self, manager: SessionManager, key: SessionKey, thread_id: str) -> None:
        self.manager = manager
        self.key = key
        self.thread_id = thread_id

    def __str__(self) -> str:
        return key_text(self.key)

    def add_message(self, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Store a message durably."""
        return self.manager.add_message(self.key, content, id=id)

    def get_messages(self) -> list[Message]:
        """Return what the model sees, without the system prompt."""
        return self.manager.get_messages(self.key)

    def system_prompt(self) -> str:
        """Return the system prompt."""
        return self.manager.get_system_prompt(self.key)

    def set_system_prompt(self, text: str) -> None:
        """Set the system prompt."""
        self.manager.set_system_prompt(self.key, text)

    def get_summary(self) -> str:
        """Return the summary in force, or an empty string."""
        return self.manager.get_summary(self.key)

    def set_summary(self, summary: str) -> SessionInfo:
        """Set the summary; the messages stay."""
        return self.manager.set_summary(self.key, summary)

    def set_max_tokens(self, tokens: int | None) -> SessionInfo:
        """Give the session a window of its own."""
        return self.manager.set_max_tokens(self.key, tokens)

    def set_state(self, state: SessionState) -> SessionInfo:
        """Set the state."""
        return self.manager.set_state(self.key, state)

    def set_title(self, title: str) -> SessionInfo:
        """Set the title."""
        return self.manager.set_title(self.key, title)

    def add_tag(self, tag: str) -> SessionInfo:
        """Add a tag."""
        return self.manager.add_tag(self.key, tag)

    def remove_tag(self, tag: str) -> SessionInfo:
        """Remove a tag."""
        return self.manager.remove_tag(self.key, tag)

    def set_custom(self, name: str, value: Any) -> SessionInfo:
        """Store a JSON value with the session."""
        return self.manager.set_custom(self.key, name, value)

    def info(self) -> SessionInfo:
        """Describe the session."""
        return self.manager.info(self.key)

    def token_usage(self) -> float:
        """Return the share of the window that is in use; 1.0 is full."""
        return self.manager.token_usage(self.key)

    def compact(self, *, instructions: str = "", force: bool = False) -> CompactionResult:
        """Compact the session now."""
        return self.manager.compact(self.key, instructions=instructions, force=force)

    def uncompact(self) -> Entry:
        """Revert the last compaction."""
        return self.manager.uncompact(self.key)

    def reset(self) -> SessionInfo:
        """Empty the conversation except for its system prompt."""
        return self.manager.reset(self.key)

    def archive(self) -> SessionInfo:
        """Archive the session."""
        return self.manager.archive(self.key)
