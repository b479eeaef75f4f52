"""Sessions in numbers: snapshots, lists, statistics.

What a manager needs to know to do its work, and the small things that every procedure does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypedDict

from sessiontree.errors import SessionNotFoundError, StaleVersionError
from sessiontree.journal.flows import Flow
from sessiontree.model import Page, SessionKey, Thread
from sessiontree.model._base import Record
from sessiontree.sessions.config import ManagerConfig
from sessiontree.sessions.keys import format_key, generation_of
from sessiontree.sessions.states import (
    SessionState,
    WrittenState,
    check_move,
    last_interaction_ns,
    state_of,
    with_note,
    without_note,
)

__all__ = [
    "SessionFilter",
    "SessionInfo",
    "SessionPage",
    "SessionStats",
    "current",
    "existing",
    "generations",
    "info_of",
    "list_sessions",
    "move_state",
    "newest",
    "stats",
    "update",
]


_MOST = 1_000


class SessionInfo(Record, frozen=True, kw_only=True):
    """A session at one moment. ``messages`` and ``tokens`` count the whole conversation, not only the window."""

    id: str
    key: SessionKey
    thread_id: str
    generation: int
    state: SessionState
    title: str
    tags: tuple[str, ...]
    custom: dict[str, Any]
    messages: int
    tokens: int
    created_ns: int
    updated_ns: int
    last_interaction_ns: int

    @property
    def is_active(self) -> bool:
        return self.state == "active"


class SessionFilter(TypedDict, total=False):
    """Conditions of a list; all must hold. Time ranges include their start and leave out their end."""

    agent: str
    channel: str
    peer: str
    thread: str
    state: SessionState
    tags: tuple[str, ...]
    title_contains: str
    created_after_ns: int
    created_before_ns: int
    updated_after_ns: int
    updated_before_ns: int
    cursor: str | None
    limit: int


class SessionPage(Record, frozen=True, kw_only=True):
    """Sessions, the last used ones first; ``cursor`` continues, ``None`` at the end."""

    sessions: tuple[SessionInfo, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter(self.sessions)

    def __len__(self) -> int:
        return len(self.sessions)


class SessionStats(Record, frozen=True, kw_only=True):
    total: int = 0
    active: int = 0
    idle: int = 0
    compacting: int = 0
    suspended: int = 0
    archived: int = 0
    messages: int = 0
    tokens: int = 0


def info_of(thread: Thread, now_ns: int) -> SessionInfo:
    return SessionInfo(
        id=format_key(thread.key),
        key=thread.key,
        thread_id=thread.id,
        generation=generation_of(thread) or 0,
        state=state_of(thread, now_ns),
        title=thread.title,
        tags=thread.tags,
        custom=without_note(thread.custom),
        messages=thread.messages,
        tokens=thread.tokens,
        created_ns=thread.created_ns,
        updated_ns=thread.updated_ns,
        last_interaction_ns=last_interaction_ns(thread),
    )


def list_sessions(wanted: SessionFilter, now_ns: int) -> Flow[SessionPage]:
    """A page of sessions, archived ones too; threads that no manager made are left out."""
    filters: dict[str, Any] = {"limit": 50, **wanted}
    state = filters.pop("state", None)
    filters["is_archived"] = None if state is None else state == "archived"
    if "thread" in filters:
        filters["key_thread"] = filters.pop("thread")
    limit = filters.pop("limit")
    cursor = filters.pop("cursor", None)
    found: list[SessionInfo] = []
    while True:
        page: Page = yield lambda journal: journal.list_threads(cursor=cursor, limit=limit - len(found), **filters)
        infos = [info_of(thread, now_ns) for thread in page if generation_of(thread) is not None]
        found += [info for info in infos if state in {None, info.state}]
        cursor = page.cursor
        if cursor is None or len(found) >= limit:
            return SessionPage(sessions=tuple(found), cursor=cursor)


def threads_in(**filters: Any) -> Flow[list[Thread]]:
    """Every session's thread that fits, page by page."""
    found: list[Thread] = []
    cursor: str | None = None
    while True:
        page: Page = yield lambda journal: journal.list_threads(cursor=cursor, limit=_MOST, **filters)
        found += [thread for thread in page if generation_of(thread) is not None]
        cursor = page.cursor
        if cursor is None:
            return found


def stats(now_ns: int) -> Flow[SessionStats]:
    """Counted in the store, so sessions that this process never touched count too."""
    threads = yield from threads_in(is_archived=None)
    states = [state_of(thread, now_ns) for thread in threads]
    return SessionStats(
        total=len(threads),
        active=states.count("active"),
        idle=states.count("idle"),
        compacting=states.count("compacting"),
        suspended=states.count("suspended"),
        archived=states.count("archived"),
        messages=sum(thread.messages for thread in threads),
        tokens=sum(thread.tokens for thread in threads),
    )


_PAGE = 20


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
    desk: ManagerConfig, thread_id: str, wanted: WrittenState, *, only_from: SessionState | None = None
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
