"""Undo and redo over the reflog: moves are replayed, nothing is ever taken out of it."""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.model import Move
from sessiontree.model.record import Record

__all__ = ["History", "replay"]


class History(Record, frozen=True, kw_only=True):
    """The moves that can be taken back, newest last, and the undos above them: each goes to its ``from_entry``."""

    undo: tuple[Move, ...] = ()
    redo: tuple[Move, ...] = ()
    last: Move | None = None


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
            # Something was appended in between: what had been undone is not the next step any more. A redo that took
            # files along did append something, the checkpoint of what was there.
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
    return History(undo=tuple(undo), redo=tuple(redo), last=last)
