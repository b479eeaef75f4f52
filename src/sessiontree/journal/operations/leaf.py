"""Verbs that move the leaf: move, rewind, reset, retry, undo, redo. None deletes anything, and each can be undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from sessiontree.errors import NothingToRetryError, StaleLeafError
from sessiontree.journal.operations.entries import checked_lease
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import (
    Entry,
    Lease,
    Move,
    MoveReason,
    NextMove,
    RunFailure,
    Thread,
    TurnMarker,
    UserMessage,
)
from sessiontree.model.thread import Direction
from sessiontree.stores.commands import MoveLeaf, Redo, Undo, UpdateThread
from sessiontree.stores.queries import ReadMoves, ReadNextMove, ReadPath
from sessiontree.workspace import Conflicts

if TYPE_CHECKING:
    from sessiontree.workspace.open_workspace import WorkspaceCache

__all__ = ["move_leaf", "next_move", "reflog", "retry", "retry_target", "take_back"]

_ATTEMPTS = 10


def retry_target(path: Sequence[Entry]) -> str | None:
    """Return where a retry starts: before the last save point of the failed turn, or at the last user message."""
    failed_turn = next((entry.turn_id for entry in reversed(path) if isinstance(entry.payload, RunFailure)), None)
    for entry in reversed(path):
        match entry.payload:
            case TurnMarker(status="save_point") if failed_turn and entry.turn_id == failed_turn:
                return entry.parent
            case TurnMarker(status="started") if entry.turn_id == failed_turn:
                break
    return next((entry.id for entry in reversed(path) if isinstance(entry.payload, UserMessage)), None)


def move_leaf(
    runtime: Runtime,
    thread_id: str,
    entry_id: str | None,
    reason: MoveReason,
    *,
    expect_leaf: str | UnsetType | None = UNSET,
    lease: Lease | None = None,
    at_ns: int | None = None,
    update: UpdateThread | None = None,
) -> Operation[Thread]:
    """Move the leaf to an entry; ``None`` is before the first one. ``update`` changes metadata in the same commit."""
    if lease is not None:
        checked_lease(lease, thread_id)
    moved: Thread = yield MoveLeaf(
        thread_id=thread_id,
        to_entry=entry_id,
        reason=reason,
        at_ns=runtime.clock() if at_ns is None else at_ns,
        expect_leaf=expect_leaf,
        token=lease.token if lease else None,
        update=update,
    )
    return moved


def next_move(thread_id: str, direction: Direction) -> Operation[NextMove]:
    """Return the move that an undo or a redo would take back."""
    found: NextMove = yield ReadNextMove(thread_id=thread_id, direction=direction)
    return found


def take_back(
    runtime: Runtime,
    workspace_cache: Callable[[], WorkspaceCache],
    thread_id: str,
    direction: Direction,
    conflicts: Conflicts,
) -> Operation[Thread]:
    """Undo the last move or redo the last undo, and move the files that it moved.

    The move is looked up first, because one that moved files takes more than a command. If another move comes in
    between, the command is refused, and the lookup starts again.
    """
    attempts = 0
    while True:
        attempts += 1
        found = yield from next_move(thread_id, direction)
        try:
            if found.checkpoint is not None:
                from sessiontree.journal.operations import restore  # noqa: PLC0415  only a move with files loads it

                return (yield from restore.take_back(runtime, workspace_cache(), found, direction, conflicts))
            command = Undo if direction == "undo" else Redo
            moved: Thread = yield command(thread_id=thread_id, at_ns=runtime.clock(), expect_move=found.move.number)
        except StaleLeafError:
            if attempts == _ATTEMPTS:
                raise
        else:
            return moved


def reflog(thread_id: str) -> Operation[list[Move]]:
    """Return every move of a thread, oldest first."""
    moves = yield ReadMoves(thread_id=thread_id)
    return list(moves)


def retry(runtime: Runtime, thread_id: str) -> Operation[Thread]:
    """Move the leaf to where the failed turn can start again; raise NothingToRetryError if there is no such place."""
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    target = retry_target(path)
    if target is None:
        raise NothingToRetryError(thread_id)
    return (yield from move_leaf(runtime, thread_id, target, "retry", expect_leaf=path[-1].id))
