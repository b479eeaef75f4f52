"""What a simple store can undo and redo, read from its entries and leaf moves. Pure.

Truncations and summaries are entries, replaced histories are moves; between two moves every entry went under the leaf.
So what happened, and in which order, can be told exactly, whatever the clocks said:

>>> from sessiontree.model.builders import user
>>> said = Entry(id="a", thread_id="t", parent=None, created_ns=0, payload=user("hello"))
>>> cut = Entry(id="b", thread_id="t", parent="a", created_ns=0, payload=Compaction(strategy="truncate"))
>>> steps_of([said, cut], [], "b").undo[-1].id
'b'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sessiontree.model import Compaction, Entry, Move
from sessiontree.model._base import Record

__all__ = ["Steps", "steps_of"]


class Undone(NamedTuple):
    """A step that was taken back, and where the leaf was before that."""

    leaf: str | None
    step: Entry | Move


class Steps(Record, frozen=True, kw_only=True):
    """What can be undone and redone, the next one last."""

    undo: tuple[Entry | Move, ...] = ()
    redo: tuple[Undone, ...] = ()


def steps_of(entries: Sequence[Entry], moves: Sequence[Move], leaf: str | None) -> Steps:
    """An undo takes a truncation back by an entry that reverts it, so that later messages stay, and a move by a move.

    A redo is always a move to where the leaf was before the undo.
    """
    undo: list[Entry | Move] = []
    redo: list[Undone] = []
    for event in _events(entries, moves, leaf):
        last = undo[-1] if undo else None
        if redo and _is_redo(event, redo[-1]):
            undo.append(redo.pop().step)
        elif last is not None and _is_undo(event, last):
            redo.append(Undone(event.from_entry if isinstance(event, Move) else event.parent, undo.pop()))
        else:
            redo.clear()
            if _is_step(event):
                undo.append(event)
    return Steps(undo=tuple(undo), redo=tuple(redo))


def _is_redo(event: Entry | Move, undone: Undone) -> bool:
    return isinstance(event, Move) and event.reason in {"move", "redo"} and event.to_entry == undone.leaf


def _is_undo(event: Entry | Move, last: Entry | Move) -> bool:
    if isinstance(last, Move):
        is_way_back = isinstance(event, Move) and event.reason in {"move", "undo"}
        return is_way_back and isinstance(event, Move) and event.to_entry == last.from_entry
    return isinstance(event, Entry) and isinstance(event.payload, Compaction) and event.payload.reverts == last.id


def _is_step(event: Entry | Move) -> bool:
    """The summary that a new history starts with has no strategy: it came with the move."""
    if isinstance(event, Move):
        return True
    return isinstance(event.payload, Compaction) and bool(event.payload.strategy) and not event.payload.reverts


def _events(entries: Sequence[Entry], moves: Sequence[Move], leaf: str | None) -> Iterator[Entry | Move]:
    """Entries and moves in the order in which they happened."""
    known = {entry.id: entry for entry in entries}
    since: str | None = None
    for move in moves:
        yield from _appended(known, since, move.from_entry)
        yield move
        since = move.to_entry
    yield from _appended(known, since, leaf)


def _appended(known: dict[str, Entry], since: str | None, until: str | None) -> list[Entry]:
    """What was appended while the leaf went from one entry to another."""
    found: list[Entry] = []
    at = until
    while at is not None and at != since:
        found.append(known[at])
        at = known[at].parent
    return found[::-1]
