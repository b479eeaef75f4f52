"""What a manager needs to know to do its work, and the small things that every procedure does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sessiontree.compaction import CompactionPolicy, Summarizer
from sessiontree.errors import SessionNotFoundError, StaleVersionError
from sessiontree.flows import Flow
from sessiontree.ids import Clock, system_clock
from sessiontree.manager.gauge import Gauge
from sessiontree.manager.hooks import EndReason, Fault, HookPhase, Hooks, Report, SessionEnd, log_fault
from sessiontree.manager.keys import format_key, generation_of
from sessiontree.manager.lifetimes import Lifetimes
from sessiontree.manager.states import SessionState, check_move, state_of
from sessiontree.memory import MemoryRefresher
from sessiontree.model import Page, SessionKey, Thread
from sessiontree.model.record import Record
from sessiontree.summarizers import extractive

__all__ = ["Desk", "announce", "current", "existing", "move_state", "update"]

_PAGE = 20


class Desk(Record, frozen=True, kw_only=True):
    """Everything that is chosen once for a manager."""

    policy: CompactionPolicy = CompactionPolicy()
    summarize: Summarizer = extractive
    lifetimes: Lifetimes = Lifetimes()
    refresher: MemoryRefresher | None = None
    extract: Summarizer = extractive
    system_prompt: str = ""
    clock: Clock = system_clock
    report: Report = log_fault
    hooks: Hooks
    gauge: Gauge


def current(key: SessionKey) -> Flow[Thread | None]:
    """The newest conversation under a key, whoever made it."""
    filters: Mapping[str, Any] = {
        "agent": key.agent,
        "channel": key.channel,
        "peer": key.peer,
        "key_thread": key.thread,
        "is_archived": None,
        "order": "created",
        "limit": _PAGE,
    }
    cursor: str | None = None
    while True:
        page: Page = yield lambda journal: journal.list_threads(**filters, cursor=cursor)
        for thread in page:
            if generation_of(thread) is not None:
                return thread
        cursor = page.cursor
        if cursor is None:
            return None


def existing(key: SessionKey) -> Flow[Thread]:
    thread = yield from current(key)
    if thread is None:
        raise SessionNotFoundError(format_key(key))
    return thread


def move_state(thread_id: str, wanted: SessionState, *, only_from: SessionState | None = None) -> Flow[Thread]:
    """Bring a session into a state by an allowed move; with ``only_from`` it is left alone in any other state."""

    def changes(thread: Thread) -> dict[str, Any] | None:
        state = state_of(thread)
        if state == wanted or (only_from is not None and state != only_from):
            return None
        check_move(format_key(thread.key), state, wanted)
        return {"state": wanted, "is_archived": wanted == "archived"}

    return (yield from update(thread_id, changes))


def update(thread_id: str, changes: Any) -> Flow[Thread]:
    """Change metadata by what it is now, again if somebody else was faster; ``None`` changes nothing."""
    while True:
        thread: Thread = yield lambda journal: journal.thread(thread_id)
        fields = changes(thread)
        if fields is None:
            return thread
        version = thread.version
        try:
            changed: Thread = yield lambda journal: journal.update_thread(thread_id, expect_version=version, **fields)
        except StaleVersionError:
            continue
        return changed


def announce(desk: Desk, phase: HookPhase, reason: EndReason, thread: Thread) -> Flow[None]:
    """Tell the hooks; one that fails is reported and keeps nobody from anything."""
    event = SessionEnd(phase=phase, reason=reason, key=thread.key, thread=thread)
    for hook in desk.hooks.matching(phase, reason):
        try:
            yield lambda _: hook(event)
        except Exception as error:  # noqa: BLE001  a hook is somebody else's code
            desk.report(Fault(what=f"a hook {phase} {reason}", thread_id=thread.id, error=error))
