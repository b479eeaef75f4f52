"""How sessions begin and end. Nothing here deletes a word except ``delete``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sessiontree.errors import (
    InvalidMoveError,
    SessionNotArchivedError,
    SessionNotFoundError,
    StaleVersionError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.flows import Flow
from sessiontree.manager.desk import Desk, current, existing, generations, move_state, newest, update
from sessiontree.manager.ending import end
from sessiontree.manager.hooks import EndReason
from sessiontree.manager.keys import format_key, generation_of, thread_id_of
from sessiontree.manager.lifetimes import has_had_its_day, taken_up_ns
from sessiontree.manager.states import MOVES, written_state
from sessiontree.messages import system
from sessiontree.model import SessionKey, Thread

__all__ = ["archive", "archive_thread", "delete", "delete_thread", "get_or_create", "new", "reset", "unarchive"]


def get_or_create(desk: Desk, key: SessionKey) -> Flow[Thread]:
    """The session under a key; a fresh one if there is none, if it is archived, or if it has had its day."""
    thread = yield from current(key)
    if thread is None or thread.is_archived:
        return (yield from _begin(desk, key, thread))
    if has_ended_its_day(desk, thread):
        return (yield from _succeed(desk, key, thread, "reset"))
    return thread


def has_ended_its_day(desk: Desk, thread: Thread) -> bool:
    """Whether the next message begins a new conversation; a suspended one waits for whoever suspended it."""
    is_waiting = written_state(thread) == "suspended"
    return not is_waiting and has_had_its_day(taken_up_ns(thread), desk.clock(), desk.lifetimes)


def new(desk: Desk, key: SessionKey) -> Flow[Thread]:
    """A fresh conversation; the old one is archived and can be read, listed and brought back."""
    thread = yield from current(key)
    if thread is None or thread.is_archived:
        return (yield from _begin(desk, key, thread))
    return (yield from _succeed(desk, key, thread, "new"))


def reset(desk: Desk, key: SessionKey) -> Flow[Thread]:
    """Empty the conversation but for the system prompt, in one commit; ``undo`` on the thread comes back."""
    thread = yield from existing(key)
    if thread.is_archived:
        raise InvalidMoveError(format_key(key), "archived", "empty", MOVES["archived"])

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


def archive(desk: Desk, key: SessionKey) -> Flow[Thread]:
    thread = yield from existing(key)
    with suppress(ThreadNotFoundError):
        yield from archive_thread(desk, thread, "archive")
    return (yield from _as_it_is(key, thread.id))


def archive_thread(
    desk: Desk, thread: Thread, reason: EndReason, still: Callable[[Thread], bool] = lambda _: True
) -> Flow[Thread | None]:
    """Put one conversation away; ``None`` if it is already, or if it should not be any more once the hooks are done."""
    if thread.is_archived:
        return None
    return (yield from end(desk, reason, thread, lambda: _put_away(thread.id, still)))


def unarchive(desk: Desk, key: SessionKey, generation: int | None) -> Flow[Thread]:
    """Make an archived conversation the one in use; another one that is in use is archived for it."""
    thread = yield from existing(key)
    if generation is not None and generation != generation_of(thread):
        return (yield from _bring_back(desk, key, generation))
    if not thread.is_archived and generation is None:
        archived = yield from generations(key, is_archived=True)
        if archived:
            raise SessionNotArchivedError(format_key(key), sorted(generation_of(each) or 0 for each in archived))
    return (yield from move_state(desk, thread.id, "active", only_from="archived"))


def delete(desk: Desk, key: SessionKey) -> Flow[int]:
    """Delete every conversation that is under a key now, for good; how many there were."""
    deleted = 0
    for thread in (yield from generations(key)):
        deleted += yield from delete_thread(desk, thread)
    return deleted


def delete_thread(desk: Desk, thread: Thread, still: Callable[[Thread], bool] | None = None) -> Flow[bool]:
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


def _bring_back(desk: Desk, key: SessionKey, generation: int) -> Flow[Thread]:
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


def _succeed(desk: Desk, key: SessionKey, thread: Thread, reason: EndReason) -> Flow[Thread]:
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


def _begin(desk: Desk, key: SessionKey, after: Thread | None) -> Flow[Thread]:
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
