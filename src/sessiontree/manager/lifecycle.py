"""How sessions begin and end. Nothing here deletes a word except ``delete``."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from sessiontree.errors import ThreadExistsError, ThreadNotFoundError
from sessiontree.flows import Flow
from sessiontree.manager.desk import Desk, announce, current, existing, move_state, update
from sessiontree.manager.hooks import EndReason
from sessiontree.manager.keys import generation_of, thread_id_of
from sessiontree.manager.lifetimes import has_had_its_day, with_note
from sessiontree.manager.states import check_move, state_of
from sessiontree.messages import system
from sessiontree.model import Page, SessionKey, Thread

__all__ = ["archive", "archive_thread", "delete", "delete_thread", "get_or_create", "new", "reset", "unarchive"]


def get_or_create(desk: Desk, key: SessionKey) -> Flow[Thread]:
    """The session under a key; a fresh one if there is none, if it is archived, or if it has had its day."""
    thread = yield from current(key)
    if thread is None:
        return (yield from _begin(desk, key, None))
    if state_of(thread) == "archived":
        return (yield from _begin(desk, key, thread))
    if has_had_its_day(thread.created_ns, desk.clock(), desk.lifetimes):
        return (yield from _succeed(desk, key, thread, "reset"))
    return thread


def new(desk: Desk, key: SessionKey) -> Flow[Thread]:
    """A fresh conversation; the old one is archived and can be read, listed and brought back."""
    thread = yield from current(key)
    if thread is None or state_of(thread) == "archived":
        return (yield from _begin(desk, key, thread))
    return (yield from _succeed(desk, key, thread, "new"))


def reset(desk: Desk, key: SessionKey) -> Flow[Thread]:
    """Empty the conversation but for the system prompt; ``undo`` on the thread comes back."""
    thread = yield from existing(key)
    yield from announce(desk, "before", "reset", thread)
    prompt: str = (yield lambda journal: journal.context(thread.id)).system
    yield lambda journal: journal.reset(thread.id)
    if prompt:
        yield lambda journal: journal.append(thread.id, system(prompt))
    cleared = yield from _awake(thread.id)
    yield from announce(desk, "after", "reset", cleared)
    return cleared


def archive(desk: Desk, key: SessionKey) -> Flow[Thread]:
    thread = yield from existing(key)
    return (yield from archive_thread(desk, thread, "archive"))


def archive_thread(desk: Desk, thread: Thread, reason: EndReason) -> Flow[Thread]:
    if state_of(thread) == "archived":
        return thread
    yield from announce(desk, "before", reason, thread)
    archived = yield from _put_away(desk, thread.id)
    yield from announce(desk, "after", reason, archived)
    return archived


def unarchive(key: SessionKey) -> Flow[Thread]:
    """Make an archived session the active one again."""
    thread = yield from existing(key)
    return (yield from move_state(thread.id, "active", only_from="archived"))


def delete(desk: Desk, key: SessionKey) -> Flow[int]:
    """Delete every conversation under a key for good; how many there were."""
    deleted = 0
    while True:
        thread = yield from current(key)
        if thread is None:
            return deleted
        deleted += yield from delete_thread(desk, thread)


def delete_thread(desk: Desk, thread: Thread) -> Flow[bool]:
    """Delete one conversation; ``False`` if somebody else did meanwhile."""
    yield from announce(desk, "before", "delete", thread)
    try:
        yield lambda journal: journal.delete_thread(thread.id)
    except ThreadNotFoundError:
        return False
    yield from announce(desk, "after", "delete", thread)
    return True


def generations(key: SessionKey) -> Flow[list[Thread]]:
    """Every conversation under a key, newest first."""
    found: list[Thread] = []
    cursor: str | None = None
    while True:
        page: Page = yield lambda journal: journal.list_threads(
            agent=key.agent,
            channel=key.channel,
            peer=key.peer,
            key_thread=key.thread,
            is_archived=None,
            order="created",
            cursor=cursor,
        )
        found += [thread for thread in page if generation_of(thread) is not None]
        cursor = page.cursor
        if cursor is None:
            return found


def _succeed(desk: Desk, key: SessionKey, thread: Thread, reason: EndReason) -> Flow[Thread]:
    yield from announce(desk, "before", reason, thread)
    prompt: str = (yield lambda journal: journal.context(thread.id)).system
    archived = yield from _put_away(desk, thread.id)
    fresh = yield from _begin(desk, key, thread, prompt)
    yield from announce(desk, "after", reason, archived)
    return fresh


def _begin(desk: Desk, key: SessionKey, before: Thread | None, prompt: str = "") -> Flow[Thread]:
    """The next conversation under a key. Two processes that begin it at once name it alike, and one makes it."""
    generation = (generation_of(before) or 0) + 1 if before else 1
    thread_id = thread_id_of(key, generation)
    # Later than the one before it whatever the clocks say: the newest one is the current one.
    created = max(desk.clock(), before.created_ns + 1 if before else 0)
    text = prompt or desk.system_prompt
    thread: Thread
    with suppress(ThreadExistsError):
        thread = yield lambda journal: journal.create_thread(thread_id, created_ns=created, key=key, state="active")
        if not text:
            return thread
        yield lambda journal: journal.append(thread_id, system(text))
    thread = yield lambda journal: journal.thread(thread_id)
    return thread


def _put_away(desk: Desk, thread_id: str) -> Flow[Thread]:
    def changes(thread: Thread) -> dict[str, Any] | None:
        if state_of(thread) == "archived":
            return None
        check_move(thread.id, state_of(thread), "archived")
        custom = with_note(thread.custom, archived_ns=desk.clock())
        return {"state": "archived", "is_archived": True, "custom": custom}

    return (yield from update(thread_id, changes))


def _awake(thread_id: str) -> Flow[Thread]:
    """A session that is used again is active; suspended it stays."""
    return (yield from move_state(thread_id, "active", only_from="idle"))
