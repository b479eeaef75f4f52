"""Apply the lifetimes of sessions: idle, archived, deleted; and release what a crash left behind."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Literal

from sessiontree.errors import ActiveTurnError, InvalidTransitionError, ThreadNotFoundError
from sessiontree.journal.operations import compaction, threads, turns
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Thread, ThreadFields
from sessiontree.model._base import Record
from sessiontree.sessions.config import ManagerConfig
from sessiontree.sessions.info import find_threads
from sessiontree.sessions.lifecycle import archive_thread, delete_thread, end
from sessiontree.sessions.states import is_over, last_use_ns, state_of

__all__ = ["Recovery", "Sweep", "recover", "sweep"]

_SWEEPER = "session sweep"
_SWEEP_SECONDS = 60.0

Change = Literal["idle", "archived", "deleted"]


class Sweep(Record, frozen=True, kw_only=True):
    """How many sessions changed, and how many were skipped because a turn is running (``busy``)."""

    idle: int = 0
    archived: int = 0
    deleted: int = 0
    busy: int = 0


class Recovery(Record, frozen=True, kw_only=True):
    """Ids of the threads whose expired compaction claims were released."""

    released: tuple[str, ...] = ()


def sweep(config: ManagerConfig) -> Operation[Sweep]:
    """Apply the lifetimes to every session of the store. Several processes may do so at once."""
    counts: Counter[str] = Counter()
    live = yield from find_threads(is_archived=False)
    archived = yield from find_threads(is_archived=True)
    for thread in (*live, *archived):
        change = _due(config, thread)
        if change is not None:
            outcome = yield from _apply_under_lease(config, thread.id, change)
            counts.update((outcome,) if outcome else ())
    return Sweep(**counts)


def recover(config: ManagerConfig) -> Operation[Recovery]:
    """Release expired compaction claims. Optional: an expired claim does not block anything."""
    released: list[str] = []
    for thread in (yield from find_threads(is_archived=None)):
        if thread.compaction_claim is None:
            continue
        with suppress(ThreadNotFoundError):
            if (yield from compaction.clear_expired_claim(config.runtime, thread.id)) is not None:
                released.append(thread.id)
    return Recovery(released=tuple(released))


def _due(config: ManagerConfig, thread: Thread) -> Change | None:
    """The change that the lifetimes ask for now. A suspended or compacting session is left alone."""
    now, lifetimes = config.runtime.clock(), config.lifetimes
    if thread.is_archived:
        # A message to an archived thread counts as use.
        since = max(thread.archive_changed_ns, thread.updated_ns)
        return "deleted" if is_over(since, now, lifetimes.delete_after_seconds) else None
    state, since = state_of(thread, now), last_use_ns(thread)
    if state in {"active", "idle"} and is_over(since, now, lifetimes.archive_after_seconds):
        return "archived"
    if state == "active" and is_over(since, now, lifetimes.idle_after_seconds):
        return "idle"
    return None


def _apply_under_lease(
    config: ManagerConfig, thread_id: str, change: Change
) -> Operation[Literal["idle", "archived", "deleted", "busy"] | None]:
    """Skip a session with a running turn; the lease also keeps two sweeps from calling the hooks twice."""
    try:
        lease = yield from turns.acquire_lease(config.runtime, thread_id, _SWEEPER, None, _SWEEP_SECONDS)
    except ActiveTurnError:
        return "busy"
    except ThreadNotFoundError:
        return None
    try:
        thread = yield from threads.thread(thread_id)
        is_changed = _due(config, thread) == change and (yield from _apply(config, thread, change))
    except (InvalidTransitionError, ThreadNotFoundError):
        return None
    finally:
        with suppress(ThreadNotFoundError):
            yield from turns.release_lease(lease)
    return change if is_changed else None


def _apply(config: ManagerConfig, thread: Thread, change: Change) -> Operation[bool]:
    """Make a change unless it is not due any more once the hooks have run."""

    def still(now: Thread) -> bool:
        return _due(config, now) == change

    match change:
        case "idle":
            return (yield from end(config, "timeout", thread, _set_idle(config, thread.id))) is not None
        case "archived":
            return (yield from archive_thread(config, thread, still)) is not None
        case "deleted":
            return (yield from delete_thread(config, thread, still))


def _set_idle(config: ManagerConfig, thread_id: str) -> Operation[Thread | None]:
    """Make a session idle unless it was used meanwhile: a message and this change cannot both win."""
    is_changed = False

    def changes(thread: Thread) -> ThreadFields | None:
        nonlocal is_changed
        is_changed = _due(config, thread) == "idle"
        return ThreadFields(state="idle") if is_changed else None

    thread = yield from threads.change_unused_thread(config.runtime, thread_id, changes)
    return thread if is_changed else None
