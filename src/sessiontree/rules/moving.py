"""Leaf moves: every one is journalled, none deletes anything."""

from __future__ import annotations

from msgspec.structs import replace

from sessiontree.commands import MoveLeaf, Redo, Undo
from sessiontree.errors import EntryNotFoundError
from sessiontree.model import Move, MoveReason
from sessiontree.rules.appending import check_fence, check_leaf, existing, visible
from sessiontree.rules.reflog import next_redo, next_undo
from sessiontree.rules.state import Decision, Node, PutHead, PutMove, ThreadState, View

__all__ = ["move_leaf", "redo", "undo"]


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
