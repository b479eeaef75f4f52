"""Pure rules of SimpleStore (what can be undone) and CheckpointedSessions (marks and user turns).

Truncations and summaries of a SimpleStore are entries, replaced histories are leaf moves. Between two moves, every
entry was appended under the leaf, so their order is known without looking at clocks:

>>> from sessiontree.model.builders import user
>>> said = Entry(id="a", thread_id="t", parent=None, created_ns=0, payload=user("hello"))
>>> cut = Entry(id="b", thread_id="t", parent="a", created_ns=0, payload=Compaction(strategy="truncate"))
>>> steps_of([said, cut], [], "b").undo[-1].id
'b'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import json

from sessiontree.compaction.plan import CutItem, cut_points
from sessiontree.context import window_of
from sessiontree.context.dialects.stored_chat import chat_of
from sessiontree.model import Compaction, Custom, Entry, Move, Thread
from sessiontree.model._base import Record

__all__ = [
    "MARK",
    "STATE",
    "ChatMessage",
    "CheckpointedSession",
    "Steps",
    "chat_messages",
    "is_state",
    "mark_in_force",
    "mark_of",
    "messages_in_force",
    "shared_length",
    "state_entry",
    "steps_of",
    "summary_in_force",
    "truncation",
    "truncation_after",
    "user_turns_of",
]

STATE = "session_state"
"""The name of a custom entry whose data is the number of user turns."""

MARK = "session_checkpoint"
"""The name of a custom entry that a rewind returns to; its data is the id of a user message."""


class Undone(NamedTuple):
    """A step that was undone, and the leaf before the undo."""

    leaf: str | None
    step: Entry | Move


class Steps(Record, frozen=True, kw_only=True):
    """What can be undone and redone; the next one is the last."""

    undo: tuple[Entry | Move, ...] = ()
    redo: tuple[Undone, ...] = ()


def steps_of(entries: Sequence[Entry], moves: Sequence[Move], leaf: str | None) -> Steps:
    """Replay the history of a thread and return what can be undone and redone now.

    Undoing a truncation appends an entry that reverts it, so later messages stay; undoing a move is a move. A redo is
    always a move to the leaf before the undo.
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
        is_return = isinstance(event, Move) and event.reason in {"move", "undo"}
        return is_return and isinstance(event, Move) and event.to_entry == last.from_entry
    return isinstance(event, Entry) and isinstance(event.payload, Compaction) and event.payload.reverts == last.id


def _is_step(event: Entry | Move) -> bool:
    """Whether an event can be undone. A summary without a strategy belongs to the move that replaced the history."""
    if isinstance(event, Move):
        return True
    return isinstance(event.payload, Compaction) and bool(event.payload.strategy) and not event.payload.reverts


def _events(entries: Sequence[Entry], moves: Sequence[Move], leaf: str | None) -> Iterator[Entry | Move]:
    """Yield entries and moves in the order in which they happened."""
    by_id = {entry.id: entry for entry in entries}
    since: str | None = None
    for move in moves:
        yield from _appended(by_id, since, move.from_entry)
        yield move
        since = move.to_entry
    yield from _appended(by_id, since, leaf)


def _appended(by_id: dict[str, Entry], since: str | None, until: str | None) -> list[Entry]:
    """Return what was appended while the leaf went from one entry to another."""
    found: list[Entry] = []
    at = until
    while at is not None and at != since:
        found.append(by_id[at])
        at = by_id[at].parent
    return found[::-1]


def messages_in_force(path: Sequence[Entry]) -> list[CutItem]:
    """Return every message since the last truncation, whatever its role."""
    window = window_of(path)
    messages = ((entry.id, entry.message) for entry in (*window.tail, *window.after))
    return [
        CutItem(entry_id=entry_id, message=message, original=message, tokens=0)
        for entry_id, message in messages
        if message
    ]


def summary_in_force(path: Sequence[Entry]) -> str:
    """Return the current summary, or an empty string."""
    boundary = window_of(path).boundary
    return boundary.payload.summary if boundary and isinstance(boundary.payload, Compaction) else ""


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
    return Compaction(
        summary=summary,
        first_kept_entry_id=first_kept,
        tail_after_entry_id=path[-1].id if path and not first_kept else "",
        generation=earlier.generation + 1 if isinstance(earlier, Compaction) else 1,
        trigger="manual",
        reason="manual",
        strategy="truncate",
    )


class CheckpointedSession(Record, frozen=True, kw_only=True):
    """A session of CheckpointedSessions at one moment; a copy that later changes do not affect."""

    id: str
    created_ns: int
    updated_ns: int
    messages: tuple[dict[str, Any], ...] = ()
    user_turns: int = 0


class ChatMessage(NamedTuple):
    """A message in the chat format, and the entry that holds it."""

    entry_id: str
    message: dict[str, Any]


def chat_messages(path: Iterable[Entry]) -> list[ChatMessage]:
    """Return the messages of a path in the chat format."""
    found = ((entry.id, chat_of(entry.payload)) for entry in path)
    return [ChatMessage(entry_id, message) for entry_id, message in found if message is not None]


def shared_length(stored: Sequence[ChatMessage], wanted: Sequence[dict[str, Any]]) -> int:
    """Return how many messages from the beginning are equal, as JSON text: 1 and 1.0 differ."""
    for number, (old, new) in enumerate(zip(stored, wanted, strict=False)):
        if json.encode(old.message, order="sorted") != json.encode(new, order="sorted"):
            return number
    return min(len(stored), len(wanted))


def mark_of(message_id: str) -> Custom:
    """Return the entry that a rewind to a user message returns to."""
    return Custom(name=MARK, data=message_id)


def mark_in_force(thread: Thread, newest: Entry) -> str:
    """Return the id of the mark to use, given the newest for a message: an import may name an older one."""
    payload = newest.payload
    if not isinstance(payload, Custom) or "is_imported" not in payload.origin:
        return newest.id
    return str(thread.origin.get("marks", {}).get(payload.data, newest.id))


def state_entry(user_turns: int) -> Custom:
    """Return the entry that stores the number of user turns."""
    return Custom(name=STATE, data={"user_turns": user_turns})


def is_state(entry: Entry) -> bool:
    """Whether an entry stores the number of user turns."""
    return isinstance(entry.payload, Custom) and entry.payload.name == STATE


def user_turns_of(thread: Thread, path: Sequence[Entry]) -> int:
    """Return the number of user turns stored last on a path."""
    for entry in reversed(path):
        if isinstance(entry.payload, Custom) and entry.payload.name == STATE:
            return int(entry.payload.data["user_turns"])
    return int(thread.origin.get("user_turns", 0))
