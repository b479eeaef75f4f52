"""Which moves an undo and a redo take back, kept with each move, so that neither has to read the whole reflog.

What can be undone and redone are two stacks of moves. With each move the reflog keeps the tops of both stacks after it;
what lies below a top is found with the move before it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from sessiontree.model import Move
from sessiontree.model._base import Record
from sessiontree.stores.rules.state import LoggedMove, ThreadState, Tops

__all__ = ["History", "Reflog", "current_tops", "replay", "tops_after"]


class Reflog(Protocol):
    """The part of a ``View`` that is about moves."""

    def moves(self, state: ThreadState) -> Iterable[Move]:
        """The reflog of a thread, oldest first."""
        ...

    def logged(self, state: ThreadState, number: int) -> LoggedMove:
        """A move of a thread by its number, with the tops after it."""
        ...


class History(Record, frozen=True, kw_only=True):
    """The moves that can be undone and the undos that can be redone, newest last; each leads to its ``from_entry``."""

    undo_moves: tuple[Move, ...] = ()
    redo_moves: tuple[Move, ...] = ()
    last: Move | None = None

    @property
    def undo(self) -> tuple[str | None, ...]:
        """The leaves that successive undos lead to, the next one last."""
        return tuple(move.from_entry for move in self.undo_moves)

    @property
    def redo(self) -> tuple[str | None, ...]:
        """The leaves that successive redos lead to, the next one last."""
        return tuple(move.from_entry for move in self.redo_moves)


def replay(moves: Iterable[Move]) -> History:
    """Return what can be undone and redone after these moves.

    An undo leads to where the leaf was before the move, and a redo to where it was before the undo, so that a redo also
    finds the entries that were appended between a move and its undo. Raises IndexError for an undo or a redo that had
    nothing to take back: older releases could write one when two processes undid at the same time.
    """
    undo: list[Move] = []
    redo: list[Move] = []
    last = None
    for move in moves:
        if _ends_redo(last, move):
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


def current_tops(reflog: Reflog, state: ThreadState) -> Tops:
    """Return what an undo and a redo would take back; raise IndexError if the reflog is damaged."""
    found = _tops(reflog, state, state.moves)
    if found is not None:
        return found
    # Moves of an older release, and imported ones, have no tops.
    history = replay(reflog.moves(state))
    return Tops(_number(history.undo_moves), _number(history.redo_moves))


def tops_after(reflog: Reflog, state: ThreadState, move: Move) -> Tops | None:
    """Return the tops after a new move of a thread; None if those below it are not known."""
    last = reflog.logged(state, move.number - 1) if move.number > 1 else LoggedMove(None, Tops(0, 0))
    if last.tops is None:
        return None
    match move.reason:
        case "undo":
            below = _below(reflog, state, last.tops.undo)
            redo_below = 0 if _ends_redo(last.move, move) else last.tops.redo
            return None if below is None else Tops(below.undo, move.number, redo_below)
        case "redo":
            taken = reflog.logged(state, last.tops.redo).tops if last.tops.redo else None
            return None if taken is None else Tops(move.number, taken.redo_below)
        case _:
            return Tops(move.number, 0)


def _ends_redo(last: Move | None, move: Move) -> bool:
    """Whether entries were appended since the last move, which ends what can be redone.

    A redo was checked when it was made, and starts from a checkpoint if it moved files.
    """
    return last is not None and move.from_entry != last.to_entry and move.reason != "redo"


def _below(reflog: Reflog, state: ThreadState, number: int) -> Tops | None:
    return None if number == 0 else _tops(reflog, state, number - 1)


def _tops(reflog: Reflog, state: ThreadState, number: int) -> Tops | None:
    return Tops(0, 0) if number == 0 else reflog.logged(state, number).tops


def _number(moves: tuple[Move, ...]) -> int:
    return moves[-1].number if moves else 0
