"""The table of ZimaOS-Blue, and how it writes metadata and messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from sessiontree.context.dialects.stored_chat import FOREIGN, chat_of
from sessiontree.context.records import joined_text
from sessiontree.model import Custom, Message, Part, Payload, TextPart
from sessiontree.transfer.formats import _go

__all__ = ["COLUMNS", "FIRST_KEPT", "SCHEMA", "STATES", "Metadata", "messages_text", "metadata_text", "written"]


STATES = ("active", "idle", "compacting", "suspended", "archived")
"""Names of the states, by number."""

COLUMNS = (
    "id", "agent_id", "channel_id", "peer_id", "thread_id", "state", "metadata", "messages", "system_prompt",
    "created_at", "updated_at", "last_active_at", "compacted_at",
)  # fmt: skip

SCHEMA = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    peer_id TEXT NOT NULL,
    thread_id TEXT,
    state INTEGER NOT NULL DEFAULT 0,
    metadata TEXT,
    messages TEXT,
    system_prompt TEXT,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    last_active_at DATETIME NOT NULL,
    compacted_at DATETIME
);
CREATE INDEX idx_sessions_agent ON sessions(agent_id);
CREATE INDEX idx_sessions_channel ON sessions(channel_id);
CREATE INDEX idx_sessions_peer ON sessions(peer_id);
CREATE INDEX idx_sessions_state ON sessions(state);
CREATE INDEX idx_sessions_last_active ON sessions(last_active_at);
"""

FIRST_KEPT = "first_kept"
"""Key beside the messages: the index of the first one after those that a summary replaces. ZimaOS-Blue ignores it."""


class Metadata(msgspec.Struct, omit_defaults=True, kw_only=True):
    title: str = ""
    summary: str = ""
    tags: list[str] = []
    custom_data: dict[str, str] = {}
    message_count: int
    token_count: int
    compaction_count: int


def metadata_text(metadata: Metadata, rest: dict[str, Any]) -> str:
    """The text of the column ``metadata``; ``rest`` are keys that ZimaOS-Blue does not know."""
    return _go.encode({**msgspec.to_builtins(metadata), **rest}).decode()


def messages_text(messages: Sequence[bytes], rest: dict[str, Any]) -> str:
    """The text of the column ``messages``; ``rest`` are keys beside the list."""
    after = b"".join(b"," + _go.encode(name) + b":" + _go.encode(value) for name, value in rest.items())
    return (b'{"messages":[' + b",".join(messages) + b"]" + after + b"}").decode()


def written(payload: Payload) -> list[bytes]:
    """A message as ZimaOS-Blue stores it: the text that was imported, or one object for each tool result.

    Content is always a text there, so a message with parts of other kinds keeps only its text.
    """
    origin = getattr(payload, "origin", {})
    if isinstance(origin.get("raw"), str):
        return [origin["raw"].encode()]
    is_foreign = isinstance(payload, Custom) and payload.name == FOREIGN
    if is_foreign or isinstance(origin.get("message"), dict):
        chat = chat_of(payload)
        return [] if chat is None else [_go.encode(_ordered(chat))]
    message: Message | None = getattr(payload, "message", None)
    return [] if message is None else [_go.encode(one) for one in _chat(message)]


def _chat(message: Message) -> list[dict[str, Any]]:
    if message.tool_results:
        return [
            {"role": message.role, "content": _text(result.parts)}
            | ({"tool_call_id": result.call_id} if result.call_id else {})
            | message.extra
            for result in message.tool_results
        ]
    calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return [{"role": message.role, "content": message.text} | ({"tool_calls": calls} if calls else {}) | message.extra]


def _text(parts: Sequence[Part]) -> str:
    return joined_text(part for part in parts if isinstance(part, TextPart))


def _ordered(message: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = {
        name: message[name] for name in ("role", "content", "tool_calls", "tool_call_id") if name in message
    }
    return {**first, **{name: value for name, value in message.items() if name not in first}}
