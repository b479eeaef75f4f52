"""How sessions begin, change and end. Only ``delete`` deletes entries.

Hooks are called before and after a session ends, see :func:`end`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, get_args

from msgspec import UNSET, UnsetType

from sessiontree.errors import (
    InvalidInputError,
    InvalidTransitionError,
    SessionNotArchivedError,
    SessionNotFoundError,
    StaleLeafError,
    StaleVersionError,
    ThreadArchivedError,
    ThreadChangedError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.operations import entries, leaf, reads, threads
from sessiontree.journal.operations.requests import Call, Operation
from sessiontree.model import Entry, SessionKey, Thread, ThreadFields, ThreadQuery
from sessiontree.model.builders import system
from sessiontree.model.tokens import estimate_text
from sessiontree.sessions.config import ManagerConfig, report_fault
from sessiontree.sessions.hooks import ALL_REASONS, EndReason, Fault, HookPhase, SessionEnd
from sessiontree.sessions.info import current, existing, generations, newest, set_state, state_change
from sessiontree.sessions.keys import format_key, generation_of, key_text, thread_id_of
from sessiontree.sessions.states import (
    TRANSITIONS,
    SessionState,
    StoredState,
    is_past_daily_reset,
    is_replaced,
    keeping_interaction,
    last_start_ns,
    session_window,
    stored_state,
    with_manager_data,
)

__all__ = [
    "archive",
    "archive_thread",
    "change_state",
    "change_tags",
    "delete",
    "delete_thread",
    "end",
    "enter_state",
    "get_or_create",
    "new",
    "reset",
    "set_custom",
    "set_max_tokens",
    "set_system_prompt",
    "set_title",
    "trigger",
    "unarchive",
]

_ends_in_progress: ContextVar[frozenset[tuple[str, EndReason]]] = ContextVar("ends in progress", default=frozenset())
"""Threads and reasons for which hooks are running. Tasks started by a hook inherit it."""


def get_or_create(config: ManagerConfig, key: SessionKey) -> Operation[Thread]:
    """The session for a key; a new one if there is none, if it is archived, or past its daily reset."""
    thread = yield from current(key)
    if thread is None or thread.is_archived:
        return (yield from _begin(config, key, thread))
    if _needs_daily_reset(config, thread):
        return (yield from _replace(config, key, thread, "reset"))
    return thread


def new(config: ManagerConfig, key: SessionKey) -> Operation[Thread]:
    """Start a new conversation; the current one is archived and stays readable."""
    thread = yield from current(key)
    if thread is None or thread.is_archived:
        return (yield from _begin(config, key, thread))
    return (yield from _replace(config, key, thread, "new"))


def set_system_prompt(config: ManagerConfig, key: SessionKey, text: str) -> Operation[Entry]:
    """Append a system prompt. It is an entry of its own, so a summary never replaces it."""
    while True:
        thread = yield from _in_use(config, key)
        entry_id = config.runtime.ids.new()
        fields = keeping_interaction(thread, entry_id)
        update = threads.update_command(config.runtime, thread.id, thread.version, fields)
        with suppress(StaleLeafError, StaleVersionError, ThreadNotFoundError):
            return (
                yield from entries.append(
                    config.runtime, thread.id, system(text), id=entry_id, expect_leaf=thread.leaf, update=update
                )
            )


def set_max_tokens(config: ManagerConfig, key: SessionKey, tokens: int | None) -> Operation[Thread]:
    """Give a session a window of its own; ``None`` is the window of the manager's policy."""
    if tokens is not None and (type(tokens) is not int or tokens < 1):
        raise InvalidInputError(f"max_tokens must be a positive integer or None, not {tokens!r}")

    def changes(thread: Thread) -> ThreadFields:
        return ThreadFields(custom=with_manager_data(thread.custom, window_tokens=tokens))

    return (yield from _update(config, key, changes))


def trigger(config: ManagerConfig, key: SessionKey, reason: EndReason, phase: HookPhase) -> Operation[int]:
    """Call the hooks as if the session ended, and return how many there are; the session stays as it is."""
    if reason not in ALL_REASONS or phase not in get_args(HookPhase):
        raise InvalidInputError(
            f"reason must be one of {sorted(ALL_REASONS)} and phase one of {get_args(HookPhase)};"
            f" got {reason!r} and {phase!r}"
        )
    thread = yield from existing(key)
    yield from _call_hooks(config, phase, reason, thread)
    return len(config.hooks.matching(phase, reason))


def set_title(config: ManagerConfig, key: SessionKey, title: str) -> Operation[Thread]:
    """Set the title."""
    fields = ThreadFields(title=title, title_status="ready", title_source="host")
    return (yield from _update(config, key, lambda _: fields))


def change_tags(config: ManagerConfig, key: SessionKey, *, added: str = "", removed: str = "") -> Operation[Thread]:
    """Add and remove a tag; tags are unique and keep their order."""

    def changes(thread: Thread) -> ThreadFields:
        tags = dict.fromkeys(tag for tag in (*thread.tags, added) if tag and tag != removed)
        return ThreadFields(tags=tuple(tags))

    return (yield from _update(config, key, changes))


def set_custom(config: ManagerConfig, key: SessionKey, name: str, value: Any) -> Operation[Thread]:
    """Store a value of the caller; names with a leading underscore are reserved."""
    if name.startswith("_"):
        raise InvalidInputError(f"names with a leading underscore are reserved for the manager; rename {name!r}")
    return (yield from _update(config, key, lambda thread: ThreadFields(custom={**thread.custom, name: value})))


def change_state(config: ManagerConfig, key: SessionKey, wanted: StoredState) -> Operation[Thread]:
    """Make a session active, idle or suspended; InvalidTransitionError if its state does not allow it."""
    return (yield from _update(config, key, state_change(config.runtime, wanted)))


def enter_state(config: ManagerConfig, key: SessionKey, wanted: SessionState) -> Operation[Thread]:
    """Set any state but ``compacting``, which a session has while it is compacted."""
    match wanted:
        case "archived":
            return (yield from archive(config, key))
        case "active" | "idle" | "suspended":
            return (yield from change_state(config, key, wanted))
        case _:
            raise InvalidInputError(f"a session can be set to active, idle, suspended or archived, not to {wanted!r}")


def reset(config: ManagerConfig, key: SessionKey) -> Operation[Thread]:
    """Empty the conversation except for its system prompt, in one commit that ``undo`` reverts."""
    thread = yield from existing(key)
    if thread.is_archived:
        raise InvalidTransitionError(key_text(key), "archived", "empty", TRANSITIONS["archived"])
    with suppress(ThreadNotFoundError):
        yield from end(config, "reset", thread, _empty(config, thread.id))
    return (yield from _reread(key, thread.id))


def archive(config: ManagerConfig, key: SessionKey) -> Operation[Thread]:
    """Archive the conversation in use."""
    thread = yield from existing(key)
    with suppress(ThreadNotFoundError):
        yield from archive_thread(config, thread)
    return (yield from _reread(key, thread.id))


def archive_thread(
    config: ManagerConfig, thread: Thread, still: Callable[[Thread], bool] = lambda _: True
) -> Operation[Thread | None]:
    """Archive one conversation; ``None`` if it is archived already, or if ``still`` is false after the hooks."""
    if thread.is_archived:
        return None
    return (yield from end(config, "archive", thread, _set_archived(config, thread.id, still)))


def unarchive(config: ManagerConfig, key: SessionKey, generation: int | None) -> Operation[Thread]:
    """Make an archived conversation the one in use; the one in use until now is archived."""
    thread = yield from existing(key)
    if generation is not None and generation != generation_of(thread):
        return (yield from _unarchive_generation(config, key, generation))
    if not thread.is_archived and generation is None:
        archived = yield from generations(key, is_archived=True)
        if archived:
            raise SessionNotArchivedError(key_text(key), sorted(generation_of(each) or 0 for each in archived))
    return (yield from set_state(config.runtime, thread.id, "active", only_from="archived"))


def delete(config: ManagerConfig, key: SessionKey) -> Operation[int]:
    """Delete every conversation under a key for good; returns how many there were."""
    deleted = 0
    found = yield from generations(key)
    if not found:
        format_key(key)  # raises InvalidInputError for a key without an agent, a channel or a peer
    for thread in found:
        deleted += yield from delete_thread(config, thread)
    return deleted


def delete_thread(
    config: ManagerConfig, thread: Thread, still: Callable[[Thread], bool] | None = None
) -> Operation[bool]:
    """Delete one conversation; ``False`` if it is gone already, or if ``still`` is false after the hooks.

    With ``still`` it is also kept if its metadata changes at the same moment.
    """
    return (yield from end(config, "delete", thread, _delete(thread, still))) is not None


def end(
    config: ManagerConfig, reason: EndReason, thread: Thread, act: Operation[Thread | None]
) -> Operation[Thread | None]:
    """Call the hooks, run ``act``, call the hooks again; ``None``, and no second call, if ``act`` had nothing to do.

    A hook that asks for the very end it is called for would never return: for it, there is nothing to do.
    """
    mark = (thread.id, reason)
    outer = _ends_in_progress.get()
    if mark in outer:
        return None
    _ends_in_progress.set(outer | {mark})
    try:
        yield from _call_hooks(config, "before", reason, thread)
        ended = yield from act
        if ended is not None:
            yield from _call_hooks(config, "after", reason, ended)
        return ended
    finally:
        _ends_in_progress.set(outer)


def _call_hooks(config: ManagerConfig, phase: HookPhase, reason: EndReason, thread: Thread) -> Operation[None]:
    event = SessionEnd(phase=phase, reason=reason, key=thread.key, thread=thread)
    for hook in config.hooks.matching(phase, reason):
        try:
            yield Call(function=hook, arguments=(event,))
        except Exception as error:  # noqa: BLE001  a caller's function can raise anything
            report_fault(config, Fault(what=f"a hook {phase} {reason}", thread_id=thread.id, error=error))


def _needs_daily_reset(config: ManagerConfig, thread: Thread) -> bool:
    """Whether the next message starts a new conversation; a suspended session waits until it is resumed."""
    is_suspended = stored_state(thread) == "suspended"
    return not is_suspended and is_past_daily_reset(last_start_ns(thread), config.runtime.clock(), config.lifetimes)


def _in_use(config: ManagerConfig, key: SessionKey) -> Operation[Thread]:
    """The conversation in use; the next one if another writer is about to create it."""
    thread = yield from existing(key)
    return (yield from _begin(config, key, thread)) if is_replaced(thread) else thread


def _begin(config: ManagerConfig, key: SessionKey, after: Thread | None) -> Operation[Thread]:
    """Create the next conversation under a key, with the system prompt of the previous one in the same commit.

    Two processes that do so at once choose the same id, and both get the thread that one of them creates. The previous
    conversation is marked as replaced before it is read, so that nobody changes what the next one inherits.
    """
    before = yield from _newest_replaced(config, key)
    if before is not None and not before.is_archived:
        return before
    thread_id = thread_id_of(key, (generation_of(before) or 0) + 1 if before else 1)
    # Later than the previous one even if the clock was set back: the newest conversation is the current one.
    created = max(config.runtime.clock(), before.created_ns + 1 if before else 0)
    after = yield from _reread_if_there(after)
    prompt = (yield from _prompt_of(after)) or config.system_prompt
    contents = (system(prompt),) if prompt else ()
    fields = ThreadFields(key=key, state="active")
    window_tokens = session_window(after) if after else None
    if window_tokens is not None:
        fields["custom"] = with_manager_data({}, window_tokens=window_tokens)
    try:
        return (yield from threads.create_thread(config.runtime, thread_id, created, fields, contents=contents))
    except ThreadExistsError:
        return (yield from threads.thread(thread_id))


def _replace(config: ManagerConfig, key: SessionKey, thread: Thread, reason: EndReason) -> Operation[Thread]:
    """Archive a conversation and create the next one; a hook that does so meanwhile gets the archived one."""
    created: list[Thread] = []

    def act() -> Operation[Thread | None]:
        archived = None
        with suppress(ThreadNotFoundError):
            archived = yield from _set_archived(config, thread.id)
        created.append((yield from _begin(config, key, thread)))
        return archived

    yield from end(config, reason, thread, act())
    return created[0] if created else thread


def _newest_replaced(config: ManagerConfig, key: SessionKey) -> Operation[Thread | None]:
    """The newest conversation under a key, marked as replaced if it is archived."""
    while True:
        thread = yield from newest(key, is_archived=None)
        if thread is None or is_replaced(thread):
            return thread
        with suppress(ThreadNotFoundError):
            return (yield from threads.change_thread(config.runtime, thread.id, _replaced_if_archived))


def _replaced_if_archived(thread: Thread) -> ThreadFields | None:
    return {"custom": with_manager_data(thread.custom, is_replaced=True)} if thread.is_archived else None


def _empty(config: ManagerConfig, thread_id: str) -> Operation[Thread | None]:
    """Move to an empty conversation with the same prompt, and wake an idle session, in one commit."""
    while True:
        thread = yield from threads.thread(thread_id)
        prompt = yield from _prompt(thread_id, thread.leaf)
        fields = ThreadFields(state="active") if stored_state(thread) == "idle" else ThreadFields()
        update = threads.update_command(config.runtime, thread_id, thread.version, fields)
        with suppress(StaleLeafError, StaleVersionError):
            if prompt:
                yield from entries.append(
                    config.runtime, thread_id, system(prompt), parent=None, expect_leaf=thread.leaf, update=update
                )
            else:
                yield from leaf.move_leaf(
                    config.runtime, thread_id, None, "reset", expect_leaf=thread.leaf, update=update
                )
            return (yield from threads.thread(thread_id))


def _set_archived(
    config: ManagerConfig, thread_id: str, still: Callable[[Thread], bool] = lambda _: True
) -> Operation[Thread | None]:
    """Archive a thread; ``None`` if another writer did, or if ``still`` is false."""
    is_changed = False

    def changes(thread: Thread) -> ThreadFields | None:
        nonlocal is_changed
        is_changed = not thread.is_archived and still(thread)
        return ThreadFields(is_archived=True) if is_changed else None

    thread = yield from threads.change_unused_thread(config.runtime, thread_id, changes)
    return thread if is_changed else None


def _delete(thread: Thread, still: Callable[[Thread], bool] | None) -> Operation[Thread | None]:
    version = match = None
    try:
        if still is not None:
            now = yield from threads.thread(thread.id)
            if not still(now):
                return None
            # The version counts changes of metadata, the time shows new entries.
            version = now.version
            match = ThreadQuery(is_archived=None, updated_before_ns=now.updated_ns + 1)
        yield from threads.delete_thread(thread.id, version, match)
    except (ThreadNotFoundError, StaleVersionError, ThreadChangedError):
        return None
    return thread


def _unarchive_generation(config: ManagerConfig, key: SessionKey, generation: int) -> Operation[Thread]:
    """Unarchive first, then archive the others: an interruption in between leaves the newer one in use."""
    found = yield from generations(key)
    wanted = next((thread for thread in found if generation_of(thread) == generation), None)
    if wanted is None:
        raise SessionNotFoundError(f"{key_text(key)}#{generation}")
    unarchived = yield from set_state(config.runtime, wanted.id, "active", only_from="archived")
    for thread in found:
        if thread.id != wanted.id:
            yield from archive_thread(config, thread)
    return unarchived


def _reread_if_there(thread: Thread | None) -> Operation[Thread | None]:
    if thread is None:
        return None
    try:
        return (yield from threads.thread(thread.id))
    except ThreadNotFoundError:
        return None


def _prompt_of(thread: Thread | None) -> Operation[str]:
    """The system prompt of a thread, if there is one."""
    if thread is None:
        return ""
    try:
        return (yield from _prompt(thread.id, UNSET))
    except ThreadNotFoundError:
        return ""


def _prompt(thread_id: str, at: str | UnsetType | None) -> Operation[str]:
    context = yield from reads.context(thread_id, at, "provider_request", estimate_text)
    return context.system


def _update(
    config: ManagerConfig, key: SessionKey, changes: Callable[[Thread], ThreadFields | None]
) -> Operation[Thread]:
    """Change the metadata of the conversation in use; of the next one if it is archived or deleted meanwhile."""
    while True:
        found = yield from _in_use(config, key)

        def changes_in_use(thread: Thread, found: Thread = found) -> ThreadFields | None:
            if is_replaced(thread) or (thread.is_archived and not found.is_archived):
                raise ThreadArchivedError(thread.id)
            return changes(thread)

        with suppress(ThreadArchivedError, ThreadNotFoundError):
            return (yield from threads.change_thread(config.runtime, found.id, changes_in_use))


def _reread(key: SessionKey, thread_id: str) -> Operation[Thread]:
    try:
        return (yield from threads.thread(thread_id))
    except ThreadNotFoundError as error:
        raise SessionNotFoundError(key_text(key)) from error
