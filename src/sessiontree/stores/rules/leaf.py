"""Leaf moves, and which of them undo and redo take back.

Every move is a line in the reflog. Undo and redo are moves too: they add a line and never remove one, so what can be
undone or redone follows from the reflog alone.
"""

from __future__ import annotations

from msgspec.structs import replace

from sessiontree.errors import (
    DamagedDataError,
    EntryNotFoundError,
    NothingToRedoError,
    NothingToUndoError,
    StaleLeafError,
)
from sessiontree.model import Checkpoint, Move, MoveReason, NextMove
from sessiontree.model.thread import Direction
from sessiontree.stores.commands import MoveLeaf, Redo, Undo
from sessiontree.stores.rules.append import check_fence, check_leaf, check_version, existing, visible, with_update
from sessiontree.stores.rules.reflog import current_tops, tops_after
from sessiontree.stores.rules.state import Decision, Node, PutHead, PutMove, ThreadState, Tops, View

__all__ = ["move_leaf", "next_move", "redo", "undo"]


def next_move(view: View, state: ThreadState, direction: Direction) -> NextMove:
    """Return the move that an undo or a redo takes back; raise NothingToUndoError or NothingToRedoError without one."""
    move = _next_undo(view, state) if direction == "undo" else _next_redo(view, state)
    return NextMove(move=move, checkpoint=_checkpoint_before(view, state, move.from_entry, move.number))


def move_leaf(command: MoveLeaf, view: View) -> Decision:
    """Move the leaf to any entry that the thread sees; a move to where it is already writes nothing."""
    state = existing(view, command.thread_id)
    check_fence(view, state, command.token)
    check_leaf(state, command.expect_leaf)
    target = _target(view, state, command.to_entry)
    if command.update is not None:
        check_version(state, command.update.expect_version)
    if (target.key if target else None) == (state.leaf.key if state.leaf else None):
        return with_update(Decision(state.public()), command.update, state)
    moved = _moved(state, target, command.at_ns)
    return with_update(_move(view, state, moved, command.reason, command.at_ns), command.update, moved)


def undo(command: Undo, view: View) -> Decision:
    """Take back the last move that was not undone."""
    state = existing(view, command.thread_id)
    return _take_back(command, view, state, _next_undo(view, state), "undo")


def redo(command: Redo, view: View) -> Decision:
    """Take back the last undo, unless something was appended after it."""
    state = existing(view, command.thread_id)
    return _take_back(command, view, state, _next_redo(view, state), "redo")


def _tops(view: View, state: ThreadState) -> Tops:
    try:
        return current_tops(view, state)
    except IndexError as error:
        place = f"the reflog of thread {state.meta.id!r}"
        raise DamagedDataError(place, 0, "an undo or redo has nothing to go back to") from error


def _next_undo(view: View, state: ThreadState) -> Move:
    move = _move_numbered(view, state, _tops(view, state).undo)
    if move is None:
        raise NothingToUndoError(state.meta.id)
    return move


def _next_redo(view: View, state: ThreadState) -> Move:
    last = _move_numbered(view, state, state.moves)
    move = _move_numbered(view, state, _tops(view, state).redo)
    if move is None or last is None or not _is_leaf(view, state, last.to_entry):
        raise NothingToRedoError(state.meta.id)
    return move


def _move_numbered(view: View, state: ThreadState, number: int) -> Move | None:
    return view.logged(state, number).move if 0 < number <= state.moves else None


def _is_leaf(view: View, state: ThreadState, entry_id: str | None) -> bool:
    """Whether an entry is the leaf, not counting the checkpoints that the next move takes of the files it moves."""
    leaf = state.leaf
    while leaf is not None and leaf.id != entry_id and _checkpoint_before(view, state, leaf.id, state.moves + 1):
        leaf = view.parent(leaf)
    return (leaf.id if leaf else None) == entry_id


def _checkpoint_before(view: View, state: ThreadState, entry_id: str | None, number: int) -> Checkpoint | None:
    """Return the checkpoint in an entry if it was taken by the move with this number."""
    node = _target(view, state, entry_id)
    payload = view.draft(node).payload if node else None
    return payload if isinstance(payload, Checkpoint) and payload.before_move == number else None


def _take_back(command: Undo | Redo, view: View, state: ThreadState, move: Move, reason: Direction) -> Decision:
    check_fence(view, state, command.token)
    check_leaf(state, command.expect_leaf)
    if command.expect_move not in {None, move.number}:
        expected = _move_numbered(view, state, command.expect_move or 0)
        raise StaleLeafError(
            state.meta.id, expected.to_entry if expected else None, state.leaf.id if state.leaf else None
        )
    moved = _moved(state, _target(view, state, move.from_entry), command.at_ns)
    return _move(view, state, moved, reason, command.at_ns)


def _target(view: View, state: ThreadState, entry_id: str | None) -> Node | None:
    if entry_id is None:
        return None
    node = visible(view, state, entry_id)
    if node is None:
        raise EntryNotFoundError(state.meta.id, entry_id)
    return node


def _moved(state: ThreadState, target: Node | None, at_ns: int) -> ThreadState:
    return replace(state, leaf=target, moves=state.moves + 1, updated_ns=max(state.updated_ns, at_ns))


def _move(view: View, state: ThreadState, moved: ThreadState, reason: MoveReason, at_ns: int) -> Decision:
    move = Move(
        number=moved.moves,
        thread_id=state.meta.id,
        from_entry=state.leaf.id if state.leaf else None,
        to_entry=moved.leaf.id if moved.leaf else None,
        reason=reason,
        at_ns=at_ns,
    )
    return Decision(moved.public(), (PutMove(moved, move, tops_after(view, state, move)), PutHead(moved)))
