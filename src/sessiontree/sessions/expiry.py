"""What time does to sessions: idle, archived, deleted; and what a crash left behind."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from sessiontree.errors import ActiveTurnError, InvalidTransitionError, ThreadNotFoundError
from sessiontree.journal.flows import Flow
from sessiontree.model import CompactionClaim, Lease, Thread
from sessiontree.model._base import Record
from sessiontree.sessions.config import ManagerConfig
from sessiontree.sessions.info import move_state, threads_in
from sessiontree.sessions.lifecycle import archive_thread, delete_thread, end
from sessiontree.sessions.states import is_over, last_use_ns, state_of

__all__ = ["Recovery", "Sweep", "recover", "sweep"]


_SWEEPER = "session sweep"
_SWEEP_SECONDS = 60.0


class Sweep(Record, frozen=True, kw_only=True):
    """How many sessions changed, and how many were left alone because a turn runs on them."""

    idle: int = 0
    archived: int = 0
    deleted: int = 0
    busy: int = 0


class Recovery(Record, frozen=True, kw_only=True):
    """Thread ids of sessions whose compaction a crash had broken off."""

    mended: tuple[str, ...] = ()


class _Count:
    def __init__(self) -> None:
        self.idle = self.archived = self.deleted = self.busy = 0


def sweep(desk: ManagerConfig) -> Flow[Sweep]:
    """Apply the lifetimes to every session in the store, whoever made it. Several processes may do it at once."""
    count = _Count()
    live = yield from threads_in(is_archived=False)
    put_away = yield from threads_in(is_archived=True)
    for thread in live:
        if _is_to_archive(desk, thread):
            count.archived += yield from _alone(thread.id, count, lambda now: _archive(desk, now))
        elif _is_to_rest(desk, thread):
            count.idle += yield from _alone(thread.id, count, lambda now: _rest(desk, now))
    for thread in put_away:
        if _is_to_delete(desk, thread):
            count.deleted += yield from _alone(thread.id, count, lambda now: _delete(desk, now))
    return Sweep(idle=count.idle, archived=count.archived, deleted=count.deleted, busy=count.busy)


def recover(desk: ManagerConfig) -> Flow[Recovery]:
    """Take away the claims of compactors that crashed. They count for nothing once expired: this only tidies up."""
    mended: list[str] = []
    for thread in (yield from threads_in(is_archived=None)):
        claim = thread.compaction_claim
        if claim is None or not claim.is_expired(desk.clock()):
            continue
        with suppress(ThreadNotFoundError):
            cleared: CompactionClaim | None = yield lambda journal: journal.clear_expired_claim(thread.id)
            if cleared is not None:
                mended.append(thread.id)
    return Recovery(mended=tuple(mended))


def _alone(thread_id: str, count: _Count, act: Callable[[Thread], Flow[bool]]) -> Flow[bool]:
    """Under the lease: a session with a running turn is left alone, and two sweeps do not both tell the hooks."""
    try:
        lease: Lease = yield lambda journal: journal.acquire_lease(
            thread_id, owner=_SWEEPER, ttl_seconds=_SWEEP_SECONDS
        )
    except ActiveTurnError:
        count.busy += 1
        return False
    except ThreadNotFoundError:
        return False
    try:
        thread: Thread = yield lambda journal: journal.thread(thread_id)
        return (yield from act(thread))
    except (InvalidTransitionError, ThreadNotFoundError):
        return False
    finally:
        with suppress(ThreadNotFoundError):
            yield lambda journal: journal.release_lease(lease)


def _rest(desk: ManagerConfig, thread: Thread) -> Flow[bool]:
    if not _is_to_rest(desk, thread):
        return False

    def act() -> Flow[Thread | None]:
        """Somebody may have said something while the hooks ran."""
        now: Thread = yield lambda journal: journal.thread(thread.id)
        if not _is_to_rest(desk, now):
            return None
        return (yield from move_state(desk, thread.id, "idle", only_from="active"))

    return (yield from end(desk, "timeout", thread, act)) is not None


def _archive(desk: ManagerConfig, thread: Thread) -> Flow[bool]:
    if not _is_to_archive(desk, thread):
        return False
    return (yield from archive_thread(desk, thread, "archive", lambda now: _is_to_archive(desk, now))) is not None


def _delete(desk: ManagerConfig, thread: Thread) -> Flow[bool]:
    if not _is_to_delete(desk, thread):
        return False
    return (yield from delete_thread(desk, thread, lambda now: _is_to_delete(desk, now)))


def _is_to_rest(desk: ManagerConfig, thread: Thread) -> bool:
    now = desk.clock()
    return state_of(thread, now) == "active" and is_over(last_use_ns(thread), now, desk.lifetimes.idle_after_seconds)


def _is_to_archive(desk: ManagerConfig, thread: Thread) -> bool:
    """A suspended session waits for whoever suspended it, a compacting one for its compaction."""
    now = desk.clock()
    is_at_rest = state_of(thread, now) in {"active", "idle"}
    return is_at_rest and is_over(last_use_ns(thread), now, desk.lifetimes.archive_after_seconds)


def _is_to_delete(desk: ManagerConfig, thread: Thread) -> bool:
    """By the age of the archiving; what was said afterwards counts too."""
    since = max(thread.archive_changed_ns, thread.updated_ns)
    return thread.is_archived and is_over(since, desk.clock(), desk.lifetimes.delete_after_seconds)
