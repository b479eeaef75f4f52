"""How sessions begin and end. Nothing here deletes a word except ``delete``.

Small changes of a session: prompt, title, tags, custom data.

How a session's end is told: hooks before, the deed, hooks after.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from sessiontree.errors import (
    InvalidInputError,
    InvalidTransitionError,
    SessionNotArchivedError,
    SessionNotFoundError,
    StaleVersionError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.flows import Flow
from sessiontree.model import Entry, SessionKey, Thread
from sessiontree.model.builders import system
from sessiontree.sessions.config import ManagerConfig, report_fault
from sessiontree.sessions.hooks import EndReason, Fault, HookPhase, SessionEnd
from sessiontree.sessions.info import current, existing, generations, move_state, newest, update
from sessiontree.sessions.keys import format_key, generation_of, thread_id_of
from sessiontree.sessions.states import TRANSITIONS, is_past_daily_reset, taken_up_ns, written_state

__all__ = [
    "archive",
    "archive_thread",
    "change_tags",
    "delete",
    "delete_thread",
    "end",
    "get_or_create",
    "new",
    "reset",
    "set_custom",
    "set_system_prompt",
    "set_title",
    "unarchive",
]


def set_system_prompt(key: SessionKey, text: str) -> Flow[Entry]:
    """The prompt is an entry of its own, so no summary can take its place."""
    thread = yield from existing(key)
    entry: Entry = yield lambda journal: journal.append(thread.id, system(text))
    return entry


def set_title(key: SessionKey, title: str) -> Flow[Thread]:
    return (yield from _changed(key, lambda _: {"title": title, "title_status": "ready", "title_source": "host"}))


def change_tags(key: SessionKey, *, added: str = "", removed: str = "") -> Flow[Thread]:
    """Each tag once, in the order in which they came."""

    def changes(thread: Thread) -> dict[str, Any]:
        tags = dict.fromkeys(tag for tag in (*thread.tags, added) if tag and tag != removed)
        return {"tags": tuple(tags)}

    return (yield from _changed(key, changes))


def set_custom(key: SessionKey, name: str, value: Any) -> Flow[Thread]:
    if name.startswith("_"):
        raise InvalidInputError(f"names with a leading underscore are kept for the manager itself; rename {name!r}")
    return (yield from _changed(key, lambda thread: {"custom": {**thread.custom, name: value}}))


def _changed(key: SessionKey, changes: Any) -> Flow[Thread]:
    thread = yield from existing(key)
    return (yield from update(thread.id, changes))


_under_way: ContextVar[frozenset[tuple[str, EndReason]]] = ContextVar("ends under way", default=frozenset())
"""What the hooks that run here are about: threads and reasons. Tasks that a hook starts inherit it."""


def end(
    desk: ManagerConfig, reason: EndReason, thread: Thread, act: Callable[[], Flow[Thread | None]]
) -> Flow[Thread | None]:
    """Tell the hooks, act, tell them again; ``None`` if there was nothing to do any more, and then no hook hears after.

    A hook that asks for the end which it is being told about would ask for ever: for it there is nothing to do.
    """
    mark = (thread.id, reason)
    outer = _under_way.get()
    if mark in outer:
        return None
    _under_way.set(outer | {mark})
    try:
        yield from _announce(desk, "before", reason, thread)
        ended = yield from act()
        if ended is not None:
            yield from _announce(desk, "after", reason, ended)
        return ended
    finally:
        _under_way.set(outer)


def _announce(desk: ManagerConfig, phase: HookPhase, reason: EndReason, thread: Thread) -> Flow[None]:
    """One hook that fails is reported and keeps nobody from anything."""
    event = SessionEnd(phase=phase, reason=reason, key=thread.key, thread=thread)
    for hook in desk.hooks.matching(phase, reason):
        try:
            yield lambda _: hook(event)
        except Exception as error:  # noqa: BLE001  a hook is somebody else's code
            report_fault(desk, Fault(what=f"a hook {phase} {reason}", thread_id=thread.id, error=error))


def get_or_create(desk: ManagerConfig, key: SessionKey) -> Flow[Thread]:
    """The session under a key; a fresh one if there is none, if it is archived, or if it has had its day."""
    thread = yield from current(key)
    if thread is None or thread.is_archived:
        return (yield from _begin(desk, key, thread))
    if has_ended_its_day(desk, thread):
        return (yield from _succeed(desk, key, thread, "reset"))
    return thread


def has_ended_its_day(desk: ManagerConfig, thread: Thread) -> bool:
    """Whether the next message begins a new conversation; a suspended one waits for whoever suspended it."""
    is_waiting = written_state(thread) == "suspended"
    return not is_waiting and is_past_daily_reset(taken_up_ns(thread), desk.clock(), desk.lifetimes)


def new(desk: ManagerConfig, key: SessionKey) -> Flow[Thread]:
    """A fresh conversation; the old one is archived and can be read, listed and brought back."""
    thread = yield from current(key)
    if thread is None or thread.is_archived:
        return (yield from _begin(desk, key, thread))
    return (yield from _succeed(desk, key, thread, "new"))


def reset(desk: ManagerConfig, key: SessionKey) -> Flow[Thread]:
    """Empty the conversation but for the system prompt, in one commit; ``undo`` on the thread comes back."""
    thread = yield from existing(key)
    if thread.is_archived:
        raise InvalidTransitionError(format_key(key), "archived", "empty", TRANSITIONS["archived"])

    def act() -> Flow[Thread | None]:
        prompt: str = (yield lambda journal: journal.context(thread.id)).system
        if prompt:
            yield lambda journal: journal.append(thread.id, system(prompt), parent=None)
        else:
            yield lambda journal: journal.reset(thread.id)
        return (yield from move_state(desk, thread.id, "active", only_from="idle"))

    with suppress(ThreadNotFoundError):
        yield from end(desk, "reset", thread, act)
    return (yield from _as_it_is(key, thread.id))


def archive(desk: ManagerConfig, key: SessionKey) -> Flow[Thread]:
    thread = yield from existing(key)
    with suppress(ThreadNotFoundError):
        yield from archive_thread(desk, thread, "archive")
    return (yield from _as_it_is(key, thread.id))


def archive_thread(
    desk: ManagerConfig, thread: Thread, reason: EndReason, still: Callable[[Thread], bool] = lambda _: True
) -> Flow[Thread | None]:
    """Put one conversation away; ``None`` if it is already, or if it should not be any more once the hooks are done."""
    if thread.is_archived:
        return None
    return (yield from end(desk, reason, thread, lambda: _put_away(thread.id, still)))


def unarchive(desk: ManagerConfig, key: SessionKey, generation: int | None) -> Flow[Thread]:
    """Make an archived conversation the one in use; another one that is in use is archived for it."""
    thread = yield from existing(key)
    if generation is not None and generation != generation_of(thread):
        return (yield from _bring_back(desk, key, generation))
    if not thread.is_archived and generation is None:
        archived = yield from generations(key, is_archived=True)
        if archived:
            raise SessionNotArchivedError(format_key(key), sorted(generation_of(each) or 0 for each in archived))
    return (yield from move_state(desk, thread.id, "active", only_from="archived"))


def delete(desk: ManagerConfig, key: SessionKey) -> Flow[int]:
    """Delete every conversation that is under a key now, for good; how many there were."""
    deleted = 0
    for thread in (yield from generations(key)):
        deleted += yield from delete_thread(desk, thread)
    return deleted


def delete_thread(desk: ManagerConfig, thread: Thread, still: Callable[[Thread], bool] | None = None) -> Flow[bool]:
    """Delete one conversation; ``False`` if somebody else did meanwhile.

    With ``still`` only if it holds once the hooks are done, and nobody brings the conversation back at that moment.
    """

    def act() -> Flow[Thread | None]:
        try:
            version = None
            if still is not None:
                now: Thread = yield lambda journal: journal.thread(thread.id)
                if not still(now):
                    return None
                version = now.version
            yield lambda journal: journal.delete_thread(thread.id, expect_version=version)
        except (ThreadNotFoundError, StaleVersionError):
            return None
        return thread

    return (yield from end(desk, "delete", thread, act)) is not None


def _bring_back(desk: ManagerConfig, key: SessionKey, generation: int) -> Flow[Thread]:
    """First the old one comes, then the newer ones go: what breaks off in between leaves the newer one in use."""
    threads = yield from generations(key)
    wanted = next((thread for thread in threads if generation_of(thread) == generation), None)
    if wanted is None:
        raise SessionNotFoundError(f"{format_key(key)}#{generation}")
    back = yield from move_state(desk, wanted.id, "active", only_from="archived")
    for thread in threads:
        if thread.id != wanted.id:
            yield from archive_thread(desk, thread, "archive")
    return back


def _succeed(desk: ManagerConfig, key: SessionKey, thread: Thread, reason: EndReason) -> Flow[Thread]:
    """The next conversation. A hook for which this is under way gets this one."""
    fresh: list[Thread] = []

    def act() -> Flow[Thread | None]:
        archived = None
        with suppress(ThreadNotFoundError):
            archived = yield from _put_away(thread.id)
        fresh.append((yield from _begin(desk, key, thread)))
        return archived

    yield from end(desk, reason, thread, act)
    return fresh[0] if fresh else thread


def _begin(desk: ManagerConfig, key: SessionKey, after: Thread | None) -> Flow[Thread]:
    """The next conversation under a key, and in the same commit the prompt of the one that it comes after.

    Two processes that begin it at once name it alike, and one makes it; who comes later finds it in use.
    """
    before = yield from newest(key, is_archived=None)
    if before is not None and not before.is_archived:
        return before
    thread_id = thread_id_of(key, (generation_of(before) or 0) + 1 if before else 1)
    # Later than the one before it whatever the clocks say: the newest one is the current one.
    created = max(desk.clock(), before.created_ns + 1 if before else 0)
    text = (yield from _prompt_of(after)) or desk.system_prompt
    contents = (system(text),) if text else ()
    thread: Thread
    try:
        thread = yield lambda journal: journal.create_thread(
            thread_id, created_ns=created, key=key, state="active", contents=contents
        )
    except ThreadExistsError:
        thread = yield lambda journal: journal.thread(thread_id)
    return thread


def _prompt_of(thread: Thread | None) -> Flow[str]:
    if thread is None:
        return ""
    try:
        prompt: str = (yield lambda journal: journal.context(thread.id)).system
    except ThreadNotFoundError:
        return ""
    return prompt


def _put_away(thread_id: str, still: Callable[[Thread], bool] = lambda _: True) -> Flow[Thread | None]:
    """Archive a thread; ``None`` if somebody else did, or if it should not be archived any more."""
    is_mine = False

    def changes(thread: Thread) -> dict[str, Any] | None:
        nonlocal is_mine
        is_mine = not thread.is_archived and still(thread)
        return {"is_archived": True} if is_mine else None

    thread = yield from update(thread_id, changes)
    return thread if is_mine else None


def _as_it_is(key: SessionKey, thread_id: str) -> Flow[Thread]:
    try:
        thread: Thread = yield lambda journal: journal.thread(thread_id)
    except ThreadNotFoundError as error:
        raise SessionNotFoundError(format_key(key)) from error
    return thread
