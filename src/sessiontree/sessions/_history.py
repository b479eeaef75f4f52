"""Pure rules of SimpleStore: which messages and which summary are in force, and what can be undone.

Truncations and summaries are entries, replaced histories are leaf moves. Between two moves, every entry was appended
under the leaf, so the order of these events is known without looking at clocks:

>>> from sessiontree.model.builders import user
>>> said = Entry(id="a", thread_id="t", parent=None, created_ns=0, payload=user("hello"))
>>> cut = Entry(id="b", thread_id="t", parent="a", created_ns=0, payload=Compaction(strategy="truncate"))
>>> replayed([said, cut], "undo", is_whole=True).undo[-1].id
'b'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from sessiontree.compaction.cuts import CutItem, cut_points
from sessiontree.compaction.result import stored_tokens
from sessiontree.context import window_of
from sessiontree.journal.operations.entries import labels_of
from sessiontree.model import BranchSummary, Compaction, Entry, Message, Move, Payload
from sessiontree.model._base import Record
from sessiontree.model.builders import STORAGE_COMPACTED, message_of
from sessiontree.model.thread import Direction

__all__ = [
    "Step",
    "Steps",
    "is_enough",
    "messages_in_force",
    "messages_of",
    "out_of_force",
    "replayed",
    "summary_in_force",
    "truncation",
    "truncation_after",
]

Step = Entry | Move
"""An event of a session, as an undo sees it: an entry that was appended, or a move of the leaf."""


class Undone(NamedTuple):
    """A step that was undone, and the leaf before the undo."""

    leaf: str | None
    step: Step


class Steps(Record, frozen=True, kw_only=True):
    """What can be undone and redone; the next one is the last."""

    undo: tuple[Step, ...] = ()
    redo: tuple[Undone, ...] = ()


def replayed(events: Sequence[Step], wanted: Direction, *, is_whole: bool) -> Steps | None:
    """Return what can be undone and redone after the last events of a thread; ``is_whole`` if those are all.

    ``None`` if the next step in the ``wanted`` direction depends on earlier events.

    Undoing a truncation appends an entry that reverts it, so later messages stay; undoing a move is a move. A redo is
    always a move to the leaf before the undo.
    """
    undo: list[Step] = []
    redo: list[Undone] = []
    has_earlier_undo = has_earlier_redo = not is_whole
    for event in events:
        if redo and _is_redo(event, redo[-1]):
            undo.append(redo.pop().step)
        elif not redo and has_earlier_redo and _may_be_redo(event):
            return None
        elif undo and _is_undo(event, undo[-1]):
            redo.append(Undone(event.from_entry if isinstance(event, Move) else event.parent, undo.pop()))
        elif not undo and has_earlier_undo and _may_be_undo(event):
            return None
        else:
            redo.clear()
            has_earlier_redo = False
            if _is_end_of_undo(event):
                undo.clear()
                has_earlier_undo = False
            elif _is_step(event):
                undo.append(event)
    is_open = has_earlier_undo and not undo if wanted == "undo" else has_earlier_redo and not redo
    return None if is_open else Steps(undo=tuple(undo), redo=tuple(redo))


def _may_be_redo(event: Step) -> bool:
    return isinstance(event, Move) and event.reason in {"move", "redo"}


def _is_redo(event: Step, undone: Undone) -> bool:
    return _may_be_redo(event) and isinstance(event, Move) and event.to_entry == undone.leaf


def _may_be_undo(event: Step) -> bool:
    if isinstance(event, Move):
        return event.reason in {"move", "undo"}
    return isinstance(event.payload, Compaction) and bool(event.payload.reverts)


def _is_undo(event: Step, last: Step) -> bool:
    if isinstance(last, Move):
        return _may_be_undo(event) and isinstance(event, Move) and event.to_entry == last.from_entry
    return isinstance(event, Entry) and isinstance(event.payload, Compaction) and event.payload.reverts == last.id


def _is_step(event: Step) -> bool:
    """Whether an event can be undone. A summary without a strategy belongs to the move that replaced the history."""
    if isinstance(event, Move):
        return True
    return isinstance(event.payload, Compaction) and bool(event.payload.strategy) and not event.payload.reverts


def _is_end_of_undo(event: Step) -> bool:
    return isinstance(event, Entry) and event.payload == STORAGE_COMPACTED


def is_enough(path: Sequence[Entry]) -> bool:
    """Whether the end of a path shows everything in force: it is the whole path, or has the first message that was kept."""
    if not path or path[0].parent is None:
        return True
    boundary = window_of(path).boundary
    if boundary is None or not isinstance(boundary.payload, Compaction):
        return False
    wanted = boundary.payload.first_kept_entry_id or boundary.payload.tail_after_entry_id
    return any(entry.id == wanted for entry in path)


def messages_of(entries: Sequence[Entry]) -> list[Message]:
    """Return the messages of entries, whatever their roles."""
    found = [message_of(entry.payload) for entry in entries]
    return [message for message in found if message is not None]


def messages_in_force(path: Sequence[Entry]) -> list[CutItem]:
    """Return every message since the last truncation, whatever its role."""
    window = window_of(path)
    messages = ((entry.id, message_of(entry.payload)) for entry in (*window.tail, *window.after))
    return [
        CutItem(entry_id=entry_id, message=message, original=message, tokens=0)
        for entry_id, message in messages
        if message
    ]


def summary_in_force(path: Sequence[Entry]) -> str:
    """Return the current summary, or an empty string."""
    boundary = window_of(path).boundary
    return boundary.payload.summary if boundary and isinstance(boundary.payload, Compaction) else ""


def out_of_force(path: Sequence[Entry], entries: Sequence[Entry]) -> list[str]:
    """Return the ids of the messages and summaries that are out of force and that no label leads to.

    ``entries`` are those of all branches. What the summary in force quotes is in force.
    """
    window = window_of(path)
    boundary = (window.boundary,) if window.boundary else ()
    shown = {entry.id for entry in (*window.tail, *boundary, *window.after)}
    for entry in boundary:
        if isinstance(entry.payload, Compaction):
            shown.update(entry.payload.kept_user_entry_ids)
    parents = {entry.id: entry.parent for entry in entries}
    for target in labels_of(entries).values():
        at: str | None = target
        while at is not None and at in parents:
            shown.add(at)
            at = parents[at]
    return [entry.id for entry in entries if entry.id not in shown and _is_said(entry.payload)]


def _is_said(payload: Payload) -> bool:
    return isinstance(payload, Compaction | BranchSummary) or message_of(payload) is not None


def truncation_after(path: Sequence[Entry], keep_last: int) -> Compaction | None:
    """Return the entry that keeps the last messages, and more if the cut would separate a tool call from its result.

    ``None`` if nothing would be cut off.
    """
    items = messages_in_force(path)
    if keep_last >= len(items):
        return None
    wanted = len(items) - max(0, keep_last)
    at = max(point for point in cut_points(items) if point <= wanted)
    if at == 0:
        return None
    return truncation(path, summary_in_force(path), items[at].entry_id if at < len(items) else "")


def truncation(path: Sequence[Entry], summary: str, first_kept: str) -> Compaction:
    """Return an entry that sets the summary and keeps the messages from ``first_kept`` on, none if it is empty."""
    boundary = window_of(path).boundary
    earlier = boundary.payload if boundary else None
    compaction = Compaction(
        summary=summary,
        first_kept_entry_id=first_kept,
        tail_after_entry_id=path[-1].id if path and not first_kept else "",
        generation=earlier.generation + 1 if isinstance(earlier, Compaction) else 1,
        trigger="manual",
        reason="manual",
        strategy="truncate",
    )
    return replace(compaction, dropped_tokens=stored_tokens(path) - stored_tokens(path, compaction))
