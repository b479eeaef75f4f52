"""Find sessions by key, list and describe them, and change their state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, TypedDict, get_args

from sessiontree.context import build_context, window_of
from sessiontree.errors import InvalidInputError, SessionNotFoundError, ThreadNotFoundError
from sessiontree.journal.operations import entries, threads
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import Compaction, SessionKey, Thread, ThreadFields
from sessiontree.model._base import Record
from sessiontree.model.tokens import estimate_tools
from sessiontree.sessions.config import ManagerConfig, WindowState, policy_of
from sessiontree.sessions.keys import format_key, generation_of, key_text
from sessiontree.sessions.states import (
    SessionState,
    StoredState,
    check_transition,
    is_replaced,
    last_interaction_ns,
    state_of,
    with_manager_data,
    without_manager_data,
)

__all__ = [
    "SessionFilter",
    "SessionInfo",
    "SessionPage",
    "SessionStats",
    "current",
    "describe",
    "describe_found",
    "existing",
    "find_threads",
    "generations",
    "list_sessions",
    "newest",
    "set_state",
    "state_change",
    "stats",
    "window_state",
]

_PAGE = 1_000
_PAGE_OF_GENERATIONS = 20


class SessionInfo(Record, frozen=True, kw_only=True):
    """A session at one moment. ``messages`` counts the whole conversation, ``tokens`` what the model sees of it now.

    ``tokens`` is our estimate, with the system prompt and the summary. ``token_usage`` is the share of ``max_tokens`` that
    is in use, and what compactions go by: as the provider reported it, where it did, plus our estimate of what is newer.
    ``summary``, ``compactions`` and ``compacted_ns`` are those of the compaction in force. ``generation`` counts the
    conversations under one key from 1; an imported one is 0.
    """

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
    max_tokens: int
    token_usage: float
    summary: str
    compactions: int
    compacted_ns: int | None
    created_ns: int
    updated_ns: int
    last_interaction_ns: int

    @property
    def is_active(self) -> bool:
        """Whether the state is ``active``."""
        return self.state == "active"


class SessionFilter(TypedDict, total=False):
    """Filters of a list; all must match. Time ranges include their start and exclude their end.

    ``offset`` skips that many sessions of the list.
    """

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
    offset: int
    limit: int


class SessionPage(Record, frozen=True, kw_only=True):
    """Sessions, last used first. Pass ``cursor`` to get the next page; it is ``None`` on the last one."""

    sessions: tuple[SessionInfo, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter(self.sessions)

    def __len__(self) -> int:
        return len(self.sessions)


class SessionStats(Record, frozen=True, kw_only=True):
    """Sessions of a store by state; ``messages`` and ``tokens`` are sums over all of them."""

    total: int = 0
    active: int = 0
    idle: int = 0
    compacting: int = 0
    suspended: int = 0
    archived: int = 0
    messages: int = 0
    tokens: int = 0


def describe(config: ManagerConfig, thread: Thread) -> Operation[SessionInfo]:
    """Describe the session that a thread holds."""
    window = yield from window_state(config, thread)
    max_tokens = policy_of(config, thread).window_tokens
    return SessionInfo(
        id=key_text(thread.key),
        key=thread.key,
        thread_id=thread.id,
        generation=generation_of(thread) or 0,
        state=state_of(thread, config.runtime.clock()),
        title=thread.title,
        tags=thread.tags,
        custom=without_manager_data(thread.custom),
        messages=thread.messages,
        tokens=thread.tokens,
        max_tokens=max_tokens,
        token_usage=window.tokens / max_tokens,
        summary=window.summary,
        compactions=window.compactions,
        compacted_ns=window.compacted_ns or None,
        created_ns=thread.created_ns,
        updated_ns=thread.updated_ns,
        last_interaction_ns=last_interaction_ns(thread),
    )


def describe_found(config: ManagerConfig, find: Operation[Thread]) -> Operation[SessionInfo]:
    """Describe the session that ``find`` returns; SessionNotFoundError if it is deleted meanwhile."""
    thread = yield from find
    try:
        return (yield from describe(config, thread))
    except ThreadNotFoundError as error:
        raise SessionNotFoundError(key_text(thread.key)) from error


def window_state(config: ManagerConfig, thread: Thread) -> Operation[WindowState]:
    """What the model sees of a session: cached, or read if another process went on with the conversation."""
    cached = config.windows.get(thread.id, thread.leaf)
    if cached is not None:
        return cached
    if thread.leaf is None:
        return WindowState(tokens=estimate_tools(config.tools))
    path = yield from entries.path(thread.id, thread.leaf, None)
    boundary = window_of(path).boundary
    compaction = boundary.payload if boundary and isinstance(boundary.payload, Compaction) else Compaction()
    state = WindowState(
        tokens=build_context(path, tools=config.tools).tokens,
        summary=compaction.summary,
        compactions=compaction.generation,
        compacted_ns=boundary.created_ns if boundary else 0,
    )
    config.windows.store(thread.id, thread.leaf, state)
    return state


def list_sessions(config: ManagerConfig, wanted: SessionFilter) -> Operation[SessionPage]:
    """A page of sessions, archived ones included; threads that are no sessions are left out."""
    filters: dict[str, Any] = {"limit": 50, "offset": 0, **wanted}
    state = filters.pop("state", None)
    if state not in (None, *get_args(SessionState)):
        raise InvalidInputError(f"state must be one of {get_args(SessionState)}, not {state!r}")
    filters["is_archived"] = None if state is None else state == "archived"
    if "thread" in filters:
        filters["key_thread"] = filters.pop("thread")
    limit, to_skip = filters.pop("limit"), filters.pop("offset")
    if not isinstance(to_skip, int) or to_skip < 0:
        raise InvalidInputError(f"offset must be a non-negative integer, not {to_skip!r}")
    cursor = filters.pop("cursor", None)
    found: list[SessionInfo] = []
    while True:
        wanted_now = {**filters, "cursor": cursor, "limit": to_skip + limit - len(found)}
        page = yield from threads.list_threads(None, wanted_now)  # type: ignore[arg-type]
        matching = [thread for thread in page.threads if _is_wanted(config, thread, state)]
        skipped = min(to_skip, len(matching))
        to_skip -= skipped
        found += yield from _described(config, matching[skipped:])
        cursor = page.cursor
        if cursor is None or len(found) >= limit:
            return SessionPage(sessions=tuple(found), cursor=cursor)


def _is_wanted(config: ManagerConfig, thread: Thread, state: SessionState | None) -> bool:
    return generation_of(thread) is not None and state in {None, state_of(thread, config.runtime.clock())}


def _described(config: ManagerConfig, found: list[Thread]) -> Operation[list[SessionInfo]]:
    """The sessions that still exist."""
    infos: list[SessionInfo] = []
    for thread in found:
        with suppress(ThreadNotFoundError):
            infos.append((yield from describe(config, thread)))
    return infos


def find_threads(most: int | None = None, limit: int = _PAGE, **filters: Any) -> Operation[list[Thread]]:
    """The threads of sessions that match, read in pages of ``limit``; all, or as soon as there are ``most``."""
    found: list[Thread] = []
    cursor: str | None = None
    while True:
        page = yield from threads.list_threads(None, {**filters, "cursor": cursor, "limit": limit})  # type: ignore[typeddict-item]
        found += [thread for thread in page.threads if generation_of(thread) is not None]
        cursor = page.cursor
        if cursor is None or (most is not None and len(found) >= most):
            return found


def stats(now_ns: int) -> Operation[SessionStats]:
    """Count the sessions of the store, those of other processes included."""
    found = yield from find_threads(is_archived=None)
    states = [state_of(thread, now_ns) for thread in found]
    return SessionStats(
        total=len(found),
        active=states.count("active"),
        idle=states.count("idle"),
        compacting=states.count("compacting"),
        suspended=states.count("suspended"),
        archived=states.count("archived"),
        messages=sum(thread.messages for thread in found),
        tokens=sum(thread.tokens for thread in found),
    )


def current(key: SessionKey) -> Operation[Thread | None]:
    """The conversation in use under a key: the newest that is not archived, else the newest."""
    found = (yield from newest(key, is_archived=False)) or (yield from newest(key, is_archived=None))
    if found is None:
        format_key(key)  # raises InvalidInputError for a key without an agent, a channel or a peer
    return found


def existing(key: SessionKey) -> Operation[Thread]:
    """The conversation in use under a key; SessionNotFoundError if there is none."""
    thread = yield from current(key)
    if thread is None:
        raise SessionNotFoundError(format_key(key))
    return thread


def newest(key: SessionKey, *, is_archived: bool | None) -> Operation[Thread | None]:
    """The newest conversation under a key, or ``None``."""
    found = yield from generations(key, is_archived=is_archived, most=1)
    return found[0] if found else None


def generations(
    key: SessionKey, *, is_archived: bool | None = None, most: int | None = None
) -> Operation[list[Thread]]:
    """The conversations under a key, newest first; all, or at least the ``most`` newest."""
    if not isinstance(key, SessionKey):
        raise InvalidInputError(f"a session is found by its SessionKey, not {key!r}; parse_key makes one from a text")
    return (
        yield from find_threads(
            most,
            _PAGE_OF_GENERATIONS,
            agent=key.agent,
            channel=key.channel,
            peer=key.peer,
            key_thread=key.thread,
            is_archived=is_archived,
            order="created",
        )
    )


def set_state(
    runtime: Runtime, thread_id: str, wanted: StoredState, *, only_from: SessionState | None = None
) -> Operation[Thread]:
    """Change the state of a session; with ``only_from`` it is left unchanged in any other state."""
    return (yield from threads.change_thread(runtime, thread_id, state_change(runtime, wanted, only_from=only_from)))


def state_change(
    runtime: Runtime, wanted: StoredState, *, only_from: SessionState | None = None
) -> Callable[[Thread], ThreadFields | None]:
    """Return what changes the state of a thread; it raises InvalidTransitionError where that is not allowed."""

    def changes(thread: Thread) -> ThreadFields | None:
        state = state_of(thread, runtime.clock())
        if state == wanted or (only_from is not None and state != only_from):
            return None
        check_transition(key_text(thread.key), state, wanted)
        fields = ThreadFields(state=wanted, is_archived=False)
        if state == "suspended":
            fields["custom"] = with_manager_data(thread.custom, resumed_ns=runtime.clock())
        if is_replaced(thread):
            fields["custom"] = with_manager_data(thread.custom, is_replaced=False)
        return fields

    return changes
