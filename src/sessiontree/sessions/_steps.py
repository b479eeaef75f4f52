"""Pure rules of CheckpointedSessions: marks, states and user turns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import json

from sessiontree.context.dialects.stored_chat import chat_of
from sessiontree.model import Custom, Entry, Thread
from sessiontree.model._base import Record

__all__ = [
    "MARK",
    "STATE",
    "ChatMessage",
    "CheckpointedSession",
    "chat_messages",
    "is_state",
    "mark_in_force",
    "mark_of",
    "shared_length",
    "state_entry",
    "user_turns_of",
]

STATE = "session_state"
"""The name of a custom entry whose data is the number of user turns."""

MARK = "session_checkpoint"
"""The name of a custom entry that a rewind returns to; its data is the id of a user message."""


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
