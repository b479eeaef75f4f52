"""ggcode's messages and ours, in both directions."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from sessiontree.formats import gojson
from sessiontree.formats.ggcode import wire
from sessiontree.messages import payload_of as payload_for
from sessiontree.model import (
    Custom,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
)
from sessiontree.typed import convert

__all__ = ["FOREIGN", "message_of", "payload_of", "wire_message"]

_ROLES = frozenset({"user", "assistant", "tool", "system"})
_PROVIDER = "ggcode"

FOREIGN = "message"
"""Name of a custom entry for a message whose role we do not have."""


def payload_of(message: wire.Message) -> Payload:
    """Our payload; the results of tools are no words of the user, although ggcode gives them that role."""
    ours = message_of(message)
    if "role" in ours.extra:
        return Custom(name=FOREIGN, message=ours)
    if _has_result(message) and not ours.text:
        return ToolResultMessage(message=ours)
    return payload_for(ours)


def _has_result(message: wire.Message) -> bool:
    return "tool_result" in [block.type for block in message.content or ()]


def message_of(message: wire.Message) -> Message:
    extra: dict[str, Any] = {"content": None} if message.content is None else {}
    role: Any = message.role
    if role not in _ROLES:
        extra["role"], role = role, "system"
    parts: list[Part] = []
    for block in message.content or ():
        parts += _parts(block)
    return Message(role=role, parts=tuple(parts), extra=extra)


def _parts(block: wire.Block) -> list[Part]:
    match block.type:
        case "text":
            return [*_thought(block), TextPart(text=block.text)]
        case "image":
            return [ImagePart(mime=block.image_mime, data=block.image_data)]
        case "tool_use":
            arguments = bytes(block.input).decode()
            return [*_thought(block), ToolCallPart(id=block.tool_id, name=block.tool_name, arguments=arguments)]
        case "tool_result":
            return [_result(block)]
        case "thinking":
            return [_reasoning(block, {})]
        case _:
            return [OpaquePart(provider=_PROVIDER, block=msgspec.json.decode(gojson.encode_plain(block)))]


def _thought(block: wire.Block) -> list[Part]:
    """The thinking that ggcode keeps inside of the block that came after it."""
    if not (block.reasoning_content or block.thinking_signature or block.thinking_data):
        return []
    return [_reasoning(block, {"joined": True})]


def _reasoning(block: wire.Block, extra: dict[str, Any]) -> ReasoningPart:
    return ReasoningPart(
        provider="anthropic" if block.thinking_signature or block.thinking_data else "",
        text=block.reasoning_content,
        signature=block.thinking_signature,
        encrypted=block.thinking_data,
        extra=extra,
    )


def _result(block: wire.Block) -> ToolResultPart:
    output = (TextPart(text=block.output),) if block.output else ()
    images = tuple(ImagePart(mime=image.mime, data=image.base64) for image in block.images)
    return ToolResultPart(
        call_id=block.tool_id, name=block.tool_name, parts=(*output, *images), is_error=block.is_error
    )


def wire_message(message: Message) -> wire.Message:
    role = message.extra.get("role", message.role)
    if not message.parts and "content" in message.extra:
        return wire.Message(role=role, content=None)
    blocks: list[wire.Block] = []
    thought: ReasoningPart | None = None
    for part in message.parts:
        if type(part) is ReasoningPart and part.extra.get("joined"):
            thought = part
            continue
        block = _block(part)
        if thought is not None:
            _think(block, thought)
            thought = None
        blocks.append(block)
    return wire.Message(role=role, content=blocks)


def _block(part: Part) -> wire.Block:
    match part:
        case TextPart():
            return wire.Block(type="text", text=part.text)
        case ToolCallPart():
            return wire.Block(type="tool_use", tool_name=part.name, tool_id=part.id, input=_json(part.arguments))
        case ToolResultPart():
            return _result_block(part)
        case ImagePart():
            return wire.Block(type="image", image_mime=part.mime, image_data=part.data, text=part.url)
        case FilePart():
            return wire.Block(type="text", text=part.url or part.name)
        case ReasoningPart():
            block = wire.Block(type="thinking")
            _think(block, part)
            return block
        case OpaquePart(block=block) if part.provider == _PROVIDER:
            return convert(block, wire.Block)
        case OpaquePart():
            return wire.Block(type="text", text=msgspec.json.encode(part.block).decode())


def _think(block: wire.Block, thought: ReasoningPart) -> None:
    block.reasoning_content = thought.text
    block.thinking_signature = thought.signature
    block.thinking_data = thought.encrypted


def _result_block(part: ToolResultPart) -> wire.Block:
    images = [wire.Image(mime=inner.mime, base64=inner.data) for inner in part.parts if isinstance(inner, ImagePart)]
    output = "".join([inner.text for inner in part.parts if isinstance(inner, TextPart)])
    return wire.Block(
        type="tool_result",
        tool_name=part.name,
        tool_id=part.call_id,
        output=output,
        is_error=part.is_error,
        images=images,
    )


def _json(arguments: str) -> Raw:
    """Arguments as JSON; what a model wrote that is none becomes a JSON string."""
    if not arguments:
        return wire.NO_RAW
    body = arguments.encode()
    try:
        msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        body = gojson.encode_plain(arguments)
    return Raw(body)
