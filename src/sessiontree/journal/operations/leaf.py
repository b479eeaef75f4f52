"""Verbs that move the leaf. None of them deletes anything; each can be undone.

Pure questions about paths: which turns are open, how the last one ended, where a retry starts.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from sessiontree.errors import NothingToRetryError
from sessiontree.journal.operations.entries import checked_lease
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import (
    Entry,
    Lease,
    Move,
    MoveReason,
    RunFailure,
    Thread,
    TurnMarker,
    UserMessage,
)
from sessiontree.stores.commands import MoveLeaf, Redo, Undo
from sessiontree.stores.queries import ReadMoves, ReadPath

__all__ = ["move_leaf", "redo", "reflog", "retry", "retry_target", "undo"]


def retry_target(path: Sequence[Entry]) -> str | None:
    """Where to go on after a failure: the entry before the failed turn's last save point, or the last user message."""
    failed_turn = next((entry.turn_id for entry in reversed(path) if isinstance(entry.payload, RunFailure)), None)
    for entry in reversed(path):
        match entry.payload:
            case TurnMarker(status="save_point") if failed_turn and entry.turn_id == failed_turn:
                return entry.parent
            case TurnMarker(status="started") if entry.turn_id == failed_turn:
                break
    return next((entry.id for entry in reversed(path) if isinstance(entry.payload, UserMessage)), None)


def move_leaf(
    sources: Runtime,
    thread_id: str,
    entry_id: str | None,
    reason: MoveReason,
    *,
    expect_leaf: str | UnsetType | None = UNSET,
    lease: Lease | None = None,
    at_ns: int | None = None,
) -> Operation[Thread]:
    if lease is not None:
        checked_lease(lease, thread_id)
    moved: Thread = yield MoveLeaf(
        thread_id=thread_id,
        to_entry=entry_id,
        reason=reason,
        at_ns=sources.clock() if at_ns is None else at_ns,
        expect_leaf=expect_leaf,
        token=lease.token if lease else None,
    )
    return moved


def undo(sources: Runtime, thread_id: str) -> Operation[Thread]:
    moved: Thread = yield Undo(thread_id=thread_id, at_ns=sources.clock())
    return moved


def redo(sources: Runtime, thread_id: str) -> Operation[Thread]:
    moved: Thread = yield Redo(thread_id=thread_id, at_ns=sources.clock())
    return moved


def reflog(thread_id: str) -> Operation[list[Move]]:
    moves = yield ReadMoves(thread_id=thread_id)
    return list(moves)


def retry(sources: Runtime, thread_id: str) -> Operation[Thread]:
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    target = retry_target(path)
    if target is None:
        raise NothingToRetryError(thread_id)
    return (yield from move_leaf(sources, thread_id, target, "retry", expect_leaf=path[-1].id))
