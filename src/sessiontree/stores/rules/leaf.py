"""Leaf moves: every one is journalled, none deletes anything.

Undo and redo over the reflog: moves are replayed, nothing is ever taken out of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from sessiontree.errors import EntryNotFoundError, NothingToRedoError, NothingToUndoError
from sessiontree.model import Move, MoveReason
from sessiontree.model._base import Record
from sessiontree.stores.commands import MoveLeaf, Redo, Undo
from sessiontree.stores.rules.append import check_fence, check_leaf, existing, visible
from sessiontree.stores.rules.state import Decision, Node, PutHead, PutMove, ThreadState, View

__all__ = ["History", "move_leaf", "next_redo", "next_undo", "redo", "replay", "undo"]


class History(Record, frozen=True, kw_only=True):
    """The moves that can be taken back, newest last, and the undos above them: each goes to its ``from_entry``."""

    undo_moves: tuple[Move, ...] = ()
    redo_moves: tuple[Move, ...] = ()
    last: Move | None = None

    @property
    def undo(self) -> tuple[str | None, ...]:
        """Where undos would go, the next one last."""
        return tuple(move.from_entry for move in self.undo_moves)

    @property
    def redo(self) -> tuple[str | None, ...]:
        """Where redos would go, the next one last."""
        return tuple(move.from_entry for move in self.redo_moves)


def replay(moves: Iterable[Move]) -> History:
    """What can be undone and redone after these moves.

    An undo goes back to where the leaf was before the move; a redo goes to where the leaf was before the undo, so
    entries that were appended between a move and its undo are found again.
    """
    undo: list[Move] = []
    redo: list[Move] = []
    last = None
    for move in moves:
        if last is not None and move.from_entry != last.to_entry and move.reason != "redo":
            # Something was appended in between: what had been undone is not the next step any more. A redo was checked
            # when it was made; one that moves files leaves a checkpoint behind it.
            redo.clear()
        last = move
        match move.reason:
            case "undo":
                undo.pop()
                redo.append(move)
            case "redo":
                redo.pop()
                undo.append(move)
            case _:
                undo.append(move)
                redo.clear()
    return History(undo_moves=tuple(undo), redo_moves=tuple(redo), last=last)


def next_undo(thread_id: str, moves: Iterable[Move]) -> Move:
    """The move that an undo takes back: the leaf goes to its ``from_entry``."""
    history = replay(moves)
    if not history.undo_moves:
        raise NothingToUndoError(thread_id)
    return history.undo_moves[-1]


def next_redo(thread_id: str, moves: Iterable[Move], leaf: str | None) -> Move:
    """The undo that a redo takes back; there is none once something was appended."""
    history = replay(moves)
    if not history.redo_moves or history.last is None or history.last.to_entry != leaf:
        raise NothingToRedoError(thread_id)
    return history.redo_moves[-1]


def move_leaf(command: MoveLeaf, view: View) -> Decision:
    state = existing(view, command.thread_id)
    check_fence(view, state, command.token)
    check_leaf(state, command.expect_leaf)
    target = _target(view, state, command.to_entry)
    if (target.key if target else None) == (state.leaf.key if state.leaf else None):
        return Decision(state.public())
    return _move(state, target, command.reason, command.at_ns)


def undo(command: Undo, view: View) -> Decision:
    state = existing(view, command.thread_id)
    taken_back = next_undo(command.thread_id, view.moves(state))
    return _move(state, _target(view, state, taken_back.from_entry), "undo", command.at_ns)


def redo(command: Redo, view: View) -> Decision:
    state = existing(view, command.thread_id)
    taken_back = next_redo(command.thread_id, view.moves(state), state.leaf.id if state.leaf else None)
    return _move(state, _target(view, state, taken_back.from_entry), "redo", command.at_ns)


def _target(view: View, state: ThreadState, entry_id: str | None) -> Node | None:
    if entry_id is None:
        return None
    node = visible(view, state, entry_id)
    if node is None:
        raise EntryNotFoundError(state.meta.id, entry_id)
    return node


def _move(state: ThreadState, target: Node | None, reason: MoveReason, at_ns: int) -> Decision:
    move = Move(
        number=state.moves + 1,
        thread_id=state.meta.id,
        from_entry=state.leaf.id if state.leaf else None,
        to_entry=target.id if target else None,
        reason=reason,
        at_ns=at_ns,
    )
    moved = replace(state, leaf=target, moves=move.number, updated_ns=max(state.updated_ns, at_ns))
    return Decision(moved.public(), (PutMove(moved, move), PutHead(moved)))
