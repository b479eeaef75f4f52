"""The records of ggcode's files, field by field in the order in which Go writes them."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from sessiontree.formats import gotime

__all__ = ["NO_RAW", "Block", "Image", "IndexEntry", "Message", "Record", "TunnelEvent"]

NO_RAW = Raw(b"")
"""A raw field that is not there."""


class Image(msgspec.Struct):
    mime: str = ""
    base64: str = ""


class Block(msgspec.Struct, omit_defaults=True, kw_only=True):
    type: str
    text: str = ""
    image_mime: str = ""
    image_data: str = ""
    tool_name: str = ""
    tool_id: str = ""
    input: Raw = NO_RAW
    output: str = ""
    is_error: bool = False
    images: list[Image] = []
    reasoning_content: str = ""
    thinking_signature: str = ""
    thinking_data: str = ""


class Message(msgspec.Struct):
    role: str = ""
    content: list[Block] | None = None


class TunnelEvent(msgspec.Struct, omit_defaults=True, kw_only=True):
    event_id: str
    stream_id: str = ""
    type: str
    data: Raw = NO_RAW


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    type: str
    session_id: str = ""
    title: str = ""
    workspace: str = ""
    vendor: str = ""
    endpoint: str = ""
    model: str = ""
    created_at: str
    updated_at: str
    tunnel_events_complete: bool = False
    message: Message | None = None
    tunnel_event: TunnelEvent | None = None
    cost: Raw = NO_RAW
    checkpoint_messages: list[Message] = []
    checkpoint_tokens: int = 0


class IndexEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    id: str
    title: str
    created_at: str
    updated_at: str
    msg_count: int
    workspace: str = ""
    vendor: str = ""
    endpoint: str = ""
    model: str = ""


def bare(kind: str, session_id: str) -> Record:
    """A record without a time of its own, as everything but a meta record is."""
    return Record(type=kind, session_id=session_id, created_at=gotime.ZERO, updated_at=gotime.ZERO)
