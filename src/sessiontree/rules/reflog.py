"""Undo and redo over the reflog: moves are replayed, nothing is ever taken out of it."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.errors import NothingToRedoError, NothingToUndoError
from sessiontree.model import Move
from sessiontree.model.record import Record

__all__ = ["History", "next_redo", "next_undo", "replay"]


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
