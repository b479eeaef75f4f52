"""Chat-shaped messages as other programs store them: a role, content, tool calls, a call id.

Unlike the dialect ``openai_chat``, which talks to a provider, this reads and writes files, so every message survives
a round trip: what a payload cannot express is kept in its ``origin``.

>>> payload_of_chat({"role": "user", "content": "hello"}).message.text
'hello'
>>> stored = {"role": "user", "content": ["unknown"], "mood": 3}
>>> chat_of(payload_of_chat(stored)) == stored
True
"""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from sessiontree.context.dialects._media import data_url
from sessiontree.context.dialects._shared import text_block
from sessiontree.model import (
    Custom,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    payload_of,
)

__all__ = ["FOREIGN", "chat_of", "payload_of_chat"]


FOREIGN = "message"
"""The name of a custom entry for a message whose role is unknown."""

_PROVIDER = "openai-chat"
_ROLES = frozenset({"user", "assistant", "tool", "system"})
_KNOWN = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "reasoning"})


def payload_of_chat(wire: dict[str, Any]) -> Payload:
    """Return the payload of a stored message; if ``chat_of`` would not restore it exactly, ``origin`` keeps it whole."""
    payload = _payload(wire)
    if chat_of(payload) != wire:
        return replace(payload, origin={"message": wire})
    return payload


def _payload(wire: dict[str, Any]) -> Payload:
    role: Any = wire.get("role")
    if not (isinstance(role, str) and role in _ROLES):
        return Custom(name=FOREIGN, data=wire)
    extra = {name: value for name, value in wire.items() if name not in _KNOWN}
    name = wire.get("name")
    return payload_of(
        Message(
            role=cast(Role, role), parts=tuple(_parts(wire)), name=name if isinstance(name, str) else "", extra=extra
        )
    )


def _parts(wire: dict[str, Any]) -> list[Part]:
    content = _content(wire.get("content"))
    call_id = wire.get("tool_call_id")
    if wire["role"] == "tool":
        parts: Any = tuple(content)
        return [ToolResultPart(call_id=call_id if isinstance(call_id, str) else "", parts=parts)]
    reasoning = wire.get("reasoning")
    thoughts: list[Part] = [ReasoningPart(text=reasoning)] if isinstance(reasoning, str) else []
    calls = wire.get("tool_calls")
    calls_read = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [*thoughts, *content, *map(_call, calls_read)]


def _content(content: Any) -> list[Part]:
    match content:
        case str():
            return [TextPart(text=content)]
        case list():
            return [_block(block) for block in content]
        case _:
            return []


def _block(block: Any) -> Part:
    match block:
        case {"type": "text", "text": str(text), **rest} if not rest:
            return TextPart(text=text, extra={"block": True})
        case {"type": "image_url", "image_url": {"url": str(url), **detail}, **rest} if not rest and not detail:
            return ImagePart(url=url)
        case _:
            return OpaquePart(provider=_PROVIDER, block=block)


def _call(call: dict[str, Any]) -> ToolCallPart:
    match call:
        case {"id": str(call_id), "function": {"name": str(name), "arguments": str(arguments)}}:
            return ToolCallPart(id=call_id, name=name, arguments=arguments)
        case {"id": str(call_id), "name": str(name), "arguments": str(arguments)}:
            return ToolCallPart(id=call_id, name=name, arguments=arguments, extra={"flat": True})
        case _:
            return ToolCallPart(id=str(call.get("id", "")), name=str(call.get("name", "")), arguments="")


def chat_of(payload: Payload) -> dict[str, Any] | None:
    """Return the stored form of a payload; ``None`` if it has no message."""
    origin = getattr(payload, "origin", {})
    if isinstance(origin.get("message"), dict):
        return dict(origin["message"])
    if isinstance(payload, Custom) and payload.name == FOREIGN and isinstance(payload.data, dict):
        return payload.data
    message: Message | None = getattr(payload, "message", None)
    return None if message is None else _chat(message)


def _chat(message: Message) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, **message.extra}
    if message.name:
        wire["name"] = message.name
    content: list[Any] = []
    calls: list[Any] = []
    for part in message.parts:
        match part:
            case ToolResultPart():
                wire["tool_call_id"] = part.call_id
                content += [_wire_block(inner) for inner in part.parts]
            case ToolCallPart():
                calls.append(_chat_call(part))
            case ReasoningPart(text=text):
                wire["reasoning"] = wire.get("reasoning", "") + text
            case _:
                content.append(_wire_block(part))
    wire["content"] = _joined(content)
    return wire | ({"tool_calls": calls} if calls else {})


def _joined(content: list[Any]) -> Any:
    if all(isinstance(block, str) for block in content):
        return "".join(content) if content else None
    return [text_block(block) if isinstance(block, str) else block for block in content]


def _wire_block(part: Part) -> Any:
    match part:
        case TextPart(text=text):
            return text_block(text) if part.extra.get("block") else text
        case ImagePart():
            url = data_url(part.mime, part.data) if part.data else part.url
            return {"type": "image_url", "image_url": {"url": url}}
        case OpaquePart(block=block):
            return block
        case _:
            return ""


def _chat_call(part: ToolCallPart) -> dict[str, Any]:
    if part.extra.get("flat"):
        return {"id": part.id, "name": part.name, "arguments": part.arguments}
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
