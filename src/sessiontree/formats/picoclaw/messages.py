"""picoclaw's messages and ours, in both directions."""

from __future__ import annotations

from typing import Any

import msgspec

from sessiontree.formats.picoclaw import wire
from sessiontree.messages import payload_of as payload_for
from sessiontree.model import (
    Custom,
    FilePart,
    ImagePart,
    Message,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.model.message import ResultContent
from sessiontree.typed import convert

__all__ = ["FOREIGN", "payload_of", "wire_of"]

FOREIGN = "message"
"""Name of a custom entry for a message whose role we do not have."""

_ROLES = frozenset({"user", "assistant", "tool", "system"})


def payload_of(message: wire.Message) -> Payload:
    if message.role not in _ROLES:
        return Custom(name=FOREIGN, data={"role": message.role, "content": message.content})
    role: Any = message.role
    extra = {"system_parts": msgspec.to_builtins(message.system_parts)} if message.system_parts else {}
    return payload_for(Message(role=role, parts=_parts(message), extra=extra))


def _parts(message: wire.Message) -> tuple[Part, ...]:
    if message.role == "tool":
        text = (TextPart(text=message.content),) if message.content else ()
        return (ToolResultPart(call_id=message.tool_call_id, parts=(*text, *map(_media, message.media))),)
    parts: list[Part] = []
    if message.reasoning_content:
        parts.append(ReasoningPart(text=message.reasoning_content))
    if message.content:
        parts.append(TextPart(text=message.content))
    parts += map(_media, message.media)
    parts += map(_call, message.tool_calls)
    return tuple(parts)


def _media(url: str) -> ImagePart | FilePart:
    return ImagePart(url=url) if url.startswith("data:image/") else FilePart(url=url)


def _call(call: wire.ToolCall) -> ToolCallPart:
    extra: dict[str, Any] = {} if call.type == "function" else {"type": call.type}
    if call.extra_content is not None:
        extra["extra_content"] = msgspec.to_builtins(call.extra_content)
    function = call.function or wire.Function(name="", arguments="")
    if call.function is None:
        extra["has_function"] = False
    if function.thought_signature:
        extra["thought_signature"] = function.thought_signature
    return ToolCallPart(id=call.id, name=function.name, arguments=function.arguments, extra=extra)


def wire_of(payload: Payload) -> wire.Message | None:
    """picoclaw's message for one of our entries; ``None`` for what is none."""
    message: Message | None = getattr(payload, "message", None)
    if isinstance(payload, Custom) and payload.name == FOREIGN and isinstance(payload.data, dict):
        return wire.Message(role=str(payload.data.get("role", "")), content=str(payload.data.get("content", "")))
    if message is None:
        return None
    found = wire.Message(role=message.role, content="", system_parts=_system_parts(message))
    for part in message.parts:
        _add(found, part)
    return found


def _add(found: wire.Message, part: Part | ResultContent) -> None:
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


def _wire_call(part: ToolCallPart) -> wire.ToolCall:
    extra = part.extra
    function = wire.Function(
        name=part.name, arguments=part.arguments, thought_signature=extra.get("thought_signature", "")
    )
    content = extra.get("extra_content")
    return wire.ToolCall(
        id=part.id,
        type=extra.get("type", "function"),
        function=function if extra.get("has_function", True) else None,
        extra_content=None if content is None else convert(content, wire.ExtraContent),
    )


def _system_parts(message: Message) -> list[wire.SystemPart]:
    parts = message.extra.get("system_parts")
    return convert(parts, list[wire.SystemPart]) if parts else []
