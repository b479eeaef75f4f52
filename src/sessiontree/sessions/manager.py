"""The session manager: conversations by key, with states, time-outs, hooks and automatic compaction."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from sessiontree.compaction import CompactionResult
from sessiontree.journal import Journal
from sessiontree.journal.flows import Flow, run_flow
from sessiontree.model import Entry, Message, Payload, SessionKey, Thread
from sessiontree.sessions import expiry, info, lifecycle, messages
from sessiontree.sessions.config import AutoCompact, Frame, report_fault
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
from sessiontree.sessions.session import Session

__all__ = ["AutoCompact", "SessionManager"]


T = TypeVar("T")

_WORKERS = 2


class SessionManager(Frame[Journal]):
    """Sessions of one journal. Any number of managers, in any number of processes, may share a store.

    >>> import sessiontree as st
    >>> with st.open("memory:") as journal, SessionManager(journal) as manager:
    ...     key = st.SessionKey(agent="bot", channel="web", peer="ann")
    ...     _ = manager.add_message(key, st.user("hello"))
    ...     [message.text for message in manager.get_messages(key)], manager.get_or_create(key).info().state
    (['hello'], 'active')
    """

    def _set_up(self) -> None:
        self._workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="session compaction")
        self._busy: set[str] = set()
        self._stopping = threading.Event()
        self._loop: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def get_or_create(self, key: SessionKey) -> Session:
        """The session under a key; a fresh one if there is none or if it is archived or has had its day."""
        thread = self._run(lifecycle.get_or_create(self._desk, key))
        return Session(self, key, thread.id)

    def get(self, key: SessionKey) -> Session | None:
        """The session under a key, wherever it was made; ``None`` if there is none. Creates nothing."""
        thread = self._run(current(key))
        return None if thread is None else Session(self, key, thread.id)

    def add_message(self, key: SessionKey, content: Payload | Message, *, id: str | None = None) -> Entry:
        """Store a message, durably, and let a compaction follow if the window is full."""
        added = self._run(messages.add_message(self._desk, key, content, id))
        if added.is_compaction_due and self._auto_compact != "off":
            self._later(added.thread_id, lambda: messages.compact_if_due(self._desk, added.thread_id))
        elif added.is_memory_due:
            self._later(added.thread_id, lambda: messages.remember(self._desk, added.thread_id))
        return added.entry

    def get_messages(self, key: SessionKey) -> list[Message]:
        """What the model sees, without the system prompt; an unknown session is SessionNotFoundError."""
        return list(self._run(messages.get_messages(key))[1])

    def get_system_prompt(self, key: SessionKey) -> str:
        """The prompt in force."""
        return self._run(messages.get_messages(key))[0]

    def set_system_prompt(self, key: SessionKey, text: str) -> None:
        """The prompt from here on."""
        self._run(lifecycle.set_system_prompt(key, text))

    def set_title(self, key: SessionKey, title: str) -> SessionInfo:
        """Name a session."""
        return self._info(lifecycle.set_title(key, title))

    def add_tag(self, key: SessionKey, tag: str) -> SessionInfo:
        """Tag a session; a tag that it has already is no error."""
        return self._info(lifecycle.change_tags(key, added=tag))

    def remove_tag(self, key: SessionKey, tag: str) -> SessionInfo:
        """Take a tag away; one that it does not have is no error."""
        return self._info(lifecycle.change_tags(key, removed=tag))

    def set_custom(self, key: SessionKey, name: str, value: Any) -> SessionInfo:
        """Keep a value of your own with a session."""
        return self._info(lifecycle.set_custom(key, name, value))

    def new(self, key: SessionKey) -> Session:
        """A fresh conversation; the old one is archived, not emptied."""
        thread = self._run(lifecycle.new(self._desk, key))
        return Session(self, key, thread.id)

    def reset(self, key: SessionKey) -> SessionInfo:
        """Empty the conversation but for its system prompt; ``journal.undo`` brings it back."""
        return self._info(lifecycle.reset(self._desk, key))

    def archive(self, key: SessionKey) -> SessionInfo:
        """Put a session away; it stays readable."""
        return self._info(lifecycle.archive(self._desk, key))

    def unarchive(self, key: SessionKey, *, generation: int | None = None) -> SessionInfo:
        """Make an archived session the active one again; ``generation`` names one before the one in use."""
        return self._info(lifecycle.unarchive(self._desk, key, generation))

    def suspend(self, key: SessionKey) -> SessionInfo:
        """Messages are still stored, but nothing else happens until ``resume``."""
        thread = self._run(existing(key))
        return self._info(move_state(self._desk, thread.id, "suspended"))

    def resume(self, key: SessionKey) -> SessionInfo:
        """Make a suspended or idle session active."""
        thread = self._run(existing(key))
        return self._info(move_state(self._desk, thread.id, "active"))

    def delete(self, key: SessionKey) -> int:
        """Delete every conversation under a key for good; how many there were."""
        return self._run(lifecycle.delete(self._desk, key))

    def info(self, key: SessionKey) -> SessionInfo:
        """A session at this moment."""
        return self._info(existing(key))

    def list(self, **wanted: Unpack[SessionFilter]) -> SessionPage:
        """A page of sessions, the last used ones first; archived and past ones too."""
        return self._run(info.list_sessions(wanted, self._desk.clock()))

    def compact(self, key: SessionKey, *, instructions: str = "", force: bool = False) -> CompactionResult:
        """Compact a session now, wherever it was made."""
        thread = self._run(existing(key))
        return self._run(messages.compact(self._desk, thread.id, instructions=instructions, force=force))

    def uncompact(self, key: SessionKey) -> Entry:
        """Take the last compaction back."""
        return self._run(messages.uncompact(key))

    def token_usage(self, key: SessionKey) -> float:
        """How full the window is; 1.0 is full."""
        thread = self._run(existing(key))
        return self._run(messages.fullness(self._desk, thread)) / self._desk.policy.window_tokens

    def stats(self) -> SessionStats:
        """All sessions of the store, by state."""
        return self._run(info.stats(self._desk.clock()))

    def recover(self) -> Recovery:
        """Tidy up after a crash: compactions that nobody does any more. Without it they are over when their claims expire."""
        return self._run(expiry.recover(self._desk))

    def sweep(self) -> Sweep:
        """Apply the lifetimes now: idle, archive, delete."""
        return self._run(expiry.sweep(self._desk))

    def start(self, sweep_every_seconds: float = 60.0) -> None:
        """Recover, then sweep from time to time until ``stop``. A second call does nothing."""
        if self._loop is not None:
            return
        self.recover()
        self._loop = threading.Thread(
            target=self._sweep_on, args=(sweep_every_seconds,), name="session sweep", daemon=True
        )
        self._loop.start()

    def stop(self) -> None:
        """Finish what is under way. The journal stays open: it is the caller's. A second call does nothing."""
        self._stopping.set()
        if self._loop is not None:
            self._loop.join()
        self._workers.shutdown(wait=True)

    def _later(self, thread_id: str, flow: Callable[[], Flow[Any]]) -> None:
        """Once at a time per session: what comes while it runs is seen by it, or by the next message."""
        if self._auto_compact == "inline" or self._stopping.is_set():
            self._guarded(thread_id, flow)
        elif thread_id not in self._busy:
            self._busy.add(thread_id)
            try:
                self._workers.submit(self._guarded, thread_id, flow)
            except RuntimeError:
                # Stopped between the question and the answer: the message is stored, and the rest is done here.
                self._guarded(thread_id, flow)

    def _guarded(self, thread_id: str, flow: Callable[[], Flow[Any]]) -> None:
        try:
            self._run(flow())
        except Exception as error:  # noqa: BLE001  the message is stored; the rest is reported
            report_fault(self._desk, Fault(what="an automatic compaction", thread_id=thread_id, error=error))
        finally:
            self._busy.discard(thread_id)

    def _sweep_on(self, every_seconds: float) -> None:
        while not self._stopping.wait(every_seconds):
            try:
                self.sweep()
            except Exception as error:  # noqa: BLE001  the next round tries again
                report_fault(self._desk, Fault(what="a sweep", thread_id="", error=error))

    def _info(self, flow: Flow[Thread]) -> SessionInfo:
        return info_of(self._run(flow), self._desk.clock())

    def _run(self, flow: Flow[T]) -> T:
        return run_flow(flow, self.journal)
