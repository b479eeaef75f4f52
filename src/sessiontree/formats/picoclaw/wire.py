"""The records of picoclaw's files, field by field in the order in which Go writes them."""

from __future__ import annotations

import msgspec

from sessiontree.formats import gotime

__all__ = ["CacheControl", "Function", "LegacySession", "Message", "Meta", "SystemPart", "ToolCall"]


class CacheControl(msgspec.Struct):
    type: str = ""


class SystemPart(msgspec.Struct, omit_defaults=True, kw_only=True):
    type: str
    text: str
    cache_control: CacheControl | None = None


class Function(msgspec.Struct, omit_defaults=True, kw_only=True):
    name: str
    arguments: str
    thought_signature: str = ""


class Google(msgspec.Struct, omit_defaults=True):
    thought_signature: str = ""


class ExtraContent(msgspec.Struct, omit_defaults=True):
    google: Google | None = None


class ToolCall(msgspec.Struct, omit_defaults=True, kw_only=True):
    id: str
    type: str = ""
    function: Function | None = None
    extra_content: ExtraContent | None = None


class Message(msgspec.Struct, omit_defaults=True, kw_only=True):
    role: str
    content: str
    media: list[str] = []
    reasoning_content: str = ""
    system_parts: list[SystemPart] = []
    tool_calls: list[ToolCall] = []
    tool_call_id: str = ""


class Meta(msgspec.Struct, kw_only=True):
    key: str = ""
    summary: str = ""
    skip: int = 0
    count: int = 0
    created_at: str = gotime.ZERO
    updated_at: str = gotime.ZERO


class LegacySession(msgspec.Struct, omit_defaults=True, kw_only=True):
    key: str
    messages: list[Message] | None
    summary: str = ""
    created: str
    updated: str
