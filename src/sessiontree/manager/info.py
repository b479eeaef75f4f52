"""Sessions in numbers: snapshots, lists, statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict

from sessiontree.flows import Flow
from sessiontree.manager.keys import format_key, generation_of
from sessiontree.manager.lifetimes import last_interaction_ns, without_note
from sessiontree.manager.states import SessionState, state_of
from sessiontree.model import Page, SessionKey, Thread
from sessiontree.model.record import Record

__all__ = ["SessionFilter", "SessionInfo", "SessionPage", "SessionStats", "info_of", "list_sessions", "stats"]

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
