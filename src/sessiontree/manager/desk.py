"""What a manager needs to know to do its work, and the small things that every procedure does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sessiontree.compaction import CompactionPolicy, Summarizer
from sessiontree.errors import SessionNotFoundError, StaleVersionError
from sessiontree.flows import Flow
from sessiontree.ids import Clock
from sessiontree.manager.gauge import Gauge
from sessiontree.manager.hooks import Fault, Hooks, Report, log_fault
from sessiontree.manager.keys import format_key, generation_of
from sessiontree.manager.lifetimes import Lifetimes, with_note
from sessiontree.manager.states import SessionState, WrittenState, check_move, state_of
from sessiontree.memory import MemoryRefresher
from sessiontree.model import Page, SessionKey, Thread
from sessiontree.model.record import Record
from sessiontree.operations.setbacks import Setbacks

__all__ = ["Desk", "current", "existing", "generations", "move_state", "newest", "report_fault", "update"]

_PAGE = 20


class Desk(Record, frozen=True, kw_only=True):
    """Everything that is chosen once for a manager, and what it keeps in mind."""

    policy: CompactionPolicy
    summarize: Summarizer
    lifetimes: Lifetimes
    refresher: MemoryRefresher | None
    extract: Summarizer
    system_prompt: str
    clock: Clock
    report: Report
    hooks: Hooks
    gauge: Gauge
    setbacks: Setbacks
    memory_setbacks: Setbacks


def current(key: SessionKey) -> Flow[Thread | None]:
    """The conversation in use under a key, whoever made it: the newest that is not archived, else the newest."""
    live = yield from newest(key, is_archived=False)
    return live or (yield from newest(key, is_archived=None))


def existing(key: SessionKey) -> Flow[Thread]:
    thread = yield from current(key)
    if thread is None:
        raise SessionNotFoundError(format_key(key))
    return thread


def generations(key: SessionKey, *, is_archived: bool | None = None, most: int | None = None) -> Flow[list[Thread]]:
    """The conversations under a key, newest first; all of them, or about the ``most`` newest."""
    found: list[Thread] = []
    cursor: str | None = None
    while True:
        page = yield from _page(key, is_archived, cursor)
        found += [thread for thread in page if generation_of(thread) is not None]
        cursor = page.cursor
        if cursor is None or (most is not None and len(found) >= most):
            return found


def move_state(
    desk: Desk, thread_id: str, wanted: WrittenState, *, only_from: SessionState | None = None
) -> Flow[Thread]:
    """Bring a session into a state by an allowed move; with ``only_from`` it is left alone in any other state."""

    def changes(thread: Thread) -> dict[str, Any] | None:
        state = state_of(thread, desk.clock())
        if state == wanted or (only_from is not None and state != only_from):
            return None
        check_move(format_key(thread.key), state, wanted)
        fields: dict[str, Any] = {"state": wanted, "is_archived": False}
        if state == "suspended":
            fields["custom"] = with_note(thread.custom, resumed_ns=desk.clock())
        return fields

    return (yield from update(thread_id, changes))


def update(thread_id: str, changes: Callable[[Thread], dict[str, Any] | None]) -> Flow[Thread]:
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


def report_fault(desk: Desk, fault: Fault) -> None:
    """Tell whoever wants to know; one who fails at that keeps nobody from anything, and both faults are in the log."""
    try:
        desk.report(fault)
    except Exception as error:  # noqa: BLE001  a report is somebody else's code
        log_fault(fault)
        log_fault(Fault(what="the report of a fault", thread_id=fault.thread_id, error=error))


def newest(key: SessionKey, *, is_archived: bool | None) -> Flow[Thread | None]:
    cursor: str | None = None
    while True:
        page = yield from _page(key, is_archived, cursor)
        for thread in page:
            if generation_of(thread) is not None:
                return thread
        cursor = page.cursor
        if cursor is None:
            return None


def _page(key: SessionKey, is_archived: bool | None, cursor: str | None) -> Flow[Page]:
    format_key(key)  # refuses a key without an agent, a channel or a peer
    page: Page = yield lambda journal: journal.list_threads(
        agent=key.agent,
        channel=key.channel,
        peer=key.peer,
        key_thread=key.thread,
        is_archived=is_archived,
        order="created",
        limit=_PAGE,
        cursor=cursor,
    )
    return page
