"""Verbs about leases and turns."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from sessiontree.errors import InvalidInputError, SessionTreeError
from sessiontree.journal.operations.answers import unfinished_answers
from sessiontree.journal.operations.clock import is_store_clock, time_of_store
from sessiontree.journal.operations.entries import NewEntry, append_many, checked_id, checked_lease
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import (
    NANOSECONDS,
    TERMINAL_STATUSES,
    Entry,
    Lease,
    Payload,
    RunFailure,
    Thread,
    TurnMarker,
    TurnStatus,
)
from sessiontree.model._base import Record
from sessiontree.stores.commands import AcquireLease, ClearLease, ReleaseLease, RenewLease
from sessiontree.stores.queries import ReadEntries, ReadLease, ReadPath, ReadThread

__all__ = [
    "DEFAULT_TTL_SECONDS",
    "Resumption",
    "acquire_lease",
    "active_lease",
    "begin_turn",
    "clear_expired_lease",
    "end_turn",
    "ending_for",
    "mark_turn",
    "open_turns",
    "release_lease",
    "renew_lease",
    "resume",
]


def open_turns(path: Iterable[Entry], entries: Iterable[Entry]) -> list[str]:
    """Return the ids of turns that started on the path and have not ended, oldest first.

    ``entries`` are all that the thread sees: a turn that was retried has its end on another branch.
    """
    ended = {entry.turn_id for entry in entries if _is_end(entry)}
    started = dict.fromkeys(
        entry.turn_id
        for entry in path
        if isinstance(entry.payload, TurnMarker) and entry.payload.status == "started" and entry.turn_id not in ended
    )
    return list(started)


def _is_end(entry: Entry) -> bool:
    return isinstance(entry.payload, TurnMarker) and entry.payload.status in TERMINAL_STATUSES


DEFAULT_TTL_SECONDS = 60.0
_LONGEST_SECONDS = 1_000_000_000


class Resumption(Record, frozen=True, kw_only=True):
    """A thread that can go on, and the turns that a crash had left open."""

    thread: Thread
    interrupted: tuple[str, ...] = ()


def acquire_lease(
    runtime: Runtime, thread_id: str, owner: str, turn_id: str | None, ttl_seconds: float
) -> Operation[Lease]:
    """Acquire the lease to run a turn."""
    now = runtime.clock()
    command = AcquireLease(
        thread_id=thread_id,
        turn_id=runtime.ids.new() if turn_id is None else checked_id(turn_id, "turn id"),
        owner=checked_id(owner, "owner"),
        now_ns=now,
        expires_ns=now + _nanoseconds(ttl_seconds),
        by_store_clock=is_store_clock(runtime),
    )
    try:
        lease: Lease = yield command
    except (Exception, GeneratorExit):
        raise
    except BaseException:
        yield from _release_interrupted(command)
        raise
    return lease


def _release_interrupted(command: AcquireLease) -> Operation[None]:
    """Release the lease that an interrupted call may have acquired. The same command returns the same lease again."""
    with suppress(SessionTreeError):  # the interruption is what the caller must see, and a lease expires
        lease: Lease = yield command
        if lease.created_ns == command.now_ns:
            yield from release_lease(lease)


def renew_lease(runtime: Runtime, lease: Lease, ttl_seconds: float) -> Operation[Lease]:
    """Extend a lease."""
    checked_lease(lease)
    now = runtime.clock()
    renewed: Lease = yield RenewLease(
        thread_id=lease.thread_id,
        token=lease.token,
        expires_ns=now + _nanoseconds(ttl_seconds),
        now_ns=now,
        by_store_clock=is_store_clock(runtime),
    )
    return renewed


def release_lease(lease: Lease) -> Operation[None]:
    """Release a lease."""
    checked_lease(lease)
    yield ReleaseLease(thread_id=lease.thread_id, token=lease.token)


def active_lease(runtime: Runtime, thread_id: str) -> Operation[Lease | None]:
    """Return the lease in force, or ``None``."""
    lease: Lease | None = yield ReadLease(thread_id=thread_id)
    if lease is None or lease.is_expired((yield from time_of_store(runtime))):
        return None
    return lease


def clear_expired_lease(runtime: Runtime, thread_id: str, created_before_ns: int | None) -> Operation[Lease | None]:
    """Remove a lease that has expired or began before a cut-off, and return it."""
    cleared: Lease | None = yield ClearLease(
        thread_id=thread_id,
        now_ns=runtime.clock(),
        created_before_ns=created_before_ns,
        by_store_clock=is_store_clock(runtime),
    )
    return cleared


def begin_turn(
    runtime: Runtime, thread_id: str, owner: str | None, turn_id: str | None, ttl_seconds: float
) -> Operation[Lease]:
    """Acquire a lease and append the marker of a turn that starts."""
    lease = yield from acquire_lease(runtime, thread_id, owner or this_process(), turn_id, ttl_seconds)
    try:
        yield from mark_turn(runtime, lease, "started")
    except GeneratorExit:
        raise
    except BaseException:
        yield from release_lease(lease)
        raise
    return lease


def mark_turn(runtime: Runtime, lease: Lease, status: TurnStatus, reason: str = "") -> Operation[Entry]:
    """Append a marker to a turn."""
    stored = yield from append_many(runtime, lease.thread_id, [TurnMarker(status=status, reason=reason)], lease=lease)
    return stored[0]


def end_turn(runtime: Runtime, lease: Lease, marker: TurnMarker, error: str = "") -> Operation[None]:
    """Append the marker of a turn that ends, after its error if it has one, and release the lease."""
    contents: list[Payload] = [RunFailure(error=error)] if error else []
    yield from append_many(runtime, lease.thread_id, [*contents, marker], lease=lease)
    yield from release_lease(lease)


def resume(runtime: Runtime, thread_id: str, owner: str | None) -> Operation[Resumption]:
    """Mark turns that a crash left open as interrupted, with what was saved of their answers. A worker that has the owner's name may take over its lease."""
    held: Lease | None = yield ReadLease(thread_id=thread_id)
    if held is not None and held.owner == owner:
        yield from release_lease(held)
    lease = yield from acquire_lease(runtime, thread_id, owner or this_process(), None, DEFAULT_TTL_SECONDS)
    try:
        interrupted = yield from _close_open_turns(runtime, lease)
    except GeneratorExit:
        raise
    except BaseException:
        yield from release_lease(lease)
        raise
    yield from release_lease(lease)
    thread: Thread = yield ReadThread(thread_id=thread_id)
    return Resumption(thread=thread, interrupted=interrupted)


def ending_for(error: BaseException) -> tuple[TurnMarker, str]:
    """Return the marker and the text of a turn that ends by an exception: failed, or aborted by an interruption."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    status: TurnStatus = "failed" if isinstance(error, Exception) else "aborted"
    return TurnMarker(status=status, reason=type(error).__name__, is_recoverable=status == "aborted"), text


def this_process() -> str:
    """Return the default name of an owner: host and process id."""
    return f"{os.uname().nodename}:{os.getpid()}"


def _close_open_turns(runtime: Runtime, lease: Lease) -> Operation[tuple[str, ...]]:
    path: list[Entry] = yield ReadPath(thread_id=lease.thread_id)
    seen: list[Entry] = yield ReadEntries(thread_id=lease.thread_id)
    interrupted = tuple(open_turns(path, seen))
    yield from append_many(runtime, lease.thread_id, _interruptions(interrupted, seen), lease=lease)
    return interrupted


def _interruptions(turn_ids: tuple[str, ...], seen: list[Entry]) -> list[NewEntry]:
    entries: list[NewEntry] = []
    for turn_id in turn_ids:
        entries += unfinished_answers(seen, turn_id)
        failure = RunFailure(error="the turn was interrupted before it ended")
        marker = TurnMarker(status="aborted", reason="interrupted", is_recoverable=True)
        entries += [NewEntry(content=failure, turn_id=turn_id), NewEntry(content=marker, turn_id=turn_id)]
    return entries


def _nanoseconds(ttl_seconds: float) -> int:
    if not isinstance(ttl_seconds, int | float) or not 0 < ttl_seconds < _LONGEST_SECONDS:
        raise InvalidInputError(
            f"a lease must last more than 0 and less than {_LONGEST_SECONDS} seconds, not {ttl_seconds}"
        )
    return int(ttl_seconds * NANOSECONDS)
