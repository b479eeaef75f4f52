"""The records of picoclaw's files, with fields in the order in which Go writes them, and their conversion."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from sessiontree.model import (
    FilePart,
    ImagePart,
    Message,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    Thread,
    ToolCallPart,
    ToolResultPart,
    convert,
)
from sessiontree.model.builders import message_of, payload_of_any_role
from sessiontree.model.message import ResultContent
from sessiontree.transfer.formats import _go

__all__ = [
    "CacheControl",
    "Function",
    "LegacySession",
    "Meta",
    "PicoclawMessage",
    "SystemPart",
    "ToolCall",
    "legacy_of",
    "meta_of",
    "payload_of",
    "wire_of",
]


_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


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


class PicoclawMessage(msgspec.Struct, omit_defaults=True, kw_only=True):
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
    created_at: str = _go.ZERO
    updated_at: str = _go.ZERO


class LegacySession(msgspec.Struct, omit_defaults=True, kw_only=True):
    key: str
    messages: list[PicoclawMessage] | None
    summary: str = ""
    created: str
    updated: str


def payload_of(message: PicoclawMessage) -> Payload:
    """The payload for a message of picoclaw."""
    role: Any = message.role
    extra = {"system_parts": msgspec.to_builtins(message.system_parts)} if message.system_parts else {}
    return payload_of_any_role(Message(role=role, parts=_parts(message), extra=extra))


def _parts(message: PicoclawMessage) -> tuple[Part, ...]:
    if message.role == "tool" or (message.role == "function" and message.tool_call_id):
        text = (TextPart(text=message.content),) if message.content else ()
        return (ToolResultPart(call_id=message.tool_call_id, parts=(*text, *map(_media, message.media))),)
    parts: list[Part] = []
    if message.reasoning_content:
        parts.append(ReasoningPart(provider="openai-chat", text=message.reasoning_content))
    if message.content:
        parts.append(TextPart(text=message.content))
    parts += map(_media, message.media)
    parts += map(_call, message.tool_calls)
    return tuple(parts)


def _media(url: str) -> ImagePart | FilePart:
    return ImagePart(url=url) if url.startswith("data:image/") else FilePart(url=url)


def _call(call: ToolCall) -> ToolCallPart:
    extra: dict[str, Any] = {} if call.type == "function" else {"type": call.type}
    if call.extra_content is not None:
        extra["extra_content"] = msgspec.to_builtins(call.extra_content)
    function = call.function or Function(name="", arguments="")
    if call.function is None:
        extra["has_function"] = False
    if function.thought_signature:
        extra["thought_signature"] = function.thought_signature
    signature = function.thought_signature or _google_signature(call)
    if _BASE64.fullmatch(signature):
        extra["gemini"] = {"thoughtSignature": signature}
    return ToolCallPart(id=call.id, name=function.name, arguments=function.arguments, extra=extra)


def _google_signature(call: ToolCall) -> str:
    google = call.extra_content.google if call.extra_content else None
    return google.thought_signature if google else ""


def wire_of(payload: Payload) -> PicoclawMessage | None:
    """picoclaw's message for an entry; ``None`` if the entry is not a message."""
    message = message_of(payload)
    if message is None:
        return None
    found = PicoclawMessage(role=message.role, content="", system_parts=_system_parts(message))
    for part in message.parts:
        _add(found, part)
    return found


def _add(found: PicoclawMessage, part: Part | ResultContent) -> None:
    match part:
        case TextPart():
            found.content += part.text
        case ToolCallPart():
            found.tool_calls = [*found.tool_calls, _wire_call(part)]
        case ToolResultPart():
            found.tool_call_id = part.call_id
            for inner in part.parts:
                _add(found, inner)
        case ReasoningPart():
            found.reasoning_content += part.text
        case ImagePart() | FilePart():
            url = f"data:{part.mime};base64,{part.data}" if part.data else part.url
            found.media = [*found.media, url]
        case _:
            pass


def _wire_call(part: ToolCallPart) -> ToolCall:
    extra = part.extra
    function = Function(name=part.name, arguments=part.arguments, thought_signature=extra.get("thought_signature", ""))
    content = extra.get("extra_content")
    return ToolCall(
        id=part.id,
        type=extra.get("type", "function"),
        function=function if extra.get("has_function", True) else None,
        extra_content=None if content is None else convert(content, ExtraContent),
    )


def _system_parts(message: Message) -> list[SystemPart]:
    parts = message.extra.get("system_parts")
    return convert(parts, list[SystemPart]) if parts else []


def meta_of(thread: Thread, skip: int, count: int, summary: str) -> bytes:
    """The contents of the meta file."""
    meta = Meta(
        key=thread.origin.get("key", thread.id),
        summary=summary,
        skip=skip,
        count=count,
        created_at=_go.text(thread.created_ns),
        updated_at=_go.text(thread.updated_ns),
    )
    return _go.indented(_go.encode(meta))


def legacy_of(thread: Thread, messages: list[PicoclawMessage] | None, summary: str) -> bytes:
    """The contents of a session file of the older version."""
    session = LegacySession(
        key=thread.origin.get("key", thread.id),
        messages=messages,
        summary=summary,
        created=_go.text(thread.created_ns),
        updated=_go.text(thread.updated_ns),
    )
    return _go.indented(_go.encode(session))
