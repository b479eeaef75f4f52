"""Verbs that move the leaf. None of them deletes anything; each can be undone."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from sessiontree.commands import MoveLeaf, Redo, Undo
from sessiontree.errors import NothingToRetryError
from sessiontree.model import Entry, Lease, Move, MoveReason, Thread
from sessiontree.operations.inputs import checked_lease
from sessiontree.operations.requests import Operation, Sources
from sessiontree.queries import ReadMoves, ReadPath
from sessiontree.tree import retry_target

__all__ = ["move_leaf", "redo", "reflog", "retry", "undo"]


def move_leaf(
    sources: Sources,
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


def undo(sources: Sources, thread_id: str) -> Operation[Thread]:
    moved: Thread = yield Undo(thread_id=thread_id, at_ns=sources.clock())
    return moved


def redo(sources: Sources, thread_id: str) -> Operation[Thread]:
    moved: Thread = yield Redo(thread_id=thread_id, at_ns=sources.clock())
    return moved


def reflog(thread_id: str) -> Operation[list[Move]]:
    moves = yield ReadMoves(thread_id=thread_id)
    return list(moves)


def retry(sources: Sources, thread_id: str) -> Operation[Thread]:
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    target = retry_target(path)
    if target is None:
        raise NothingToRetryError(thread_id)
    return (yield from move_leaf(sources, thread_id, target, "retry", expect_leaf=path[-1].id))
