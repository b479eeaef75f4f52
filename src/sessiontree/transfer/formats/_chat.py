"""Messages in the shape of OpenAI's chat completions, in our terms."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from sessiontree.model import (
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    UserMessage,
)
from sessiontree.transfer.formats._blocks import arguments_text, parts_of, result_content
from sessiontree.transfer.formats._messages import by_role
from sessiontree.transfer.formats._wire import Json, first_text, mapping, objects, text, usage

__all__ = ["chat_payloads"]


_COUNTS = {
    "prompt_tokens": "input_tokens",
    "input_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cache_read_tokens",
    "cache_creation_tokens": "cache_write_tokens",
    "total_tokens": "total_tokens",
}


def chat_payloads(wire: Json, model: str = "") -> list[Payload]:
    """What a message says; a tool's result before anything that stands beside it."""
    role = text(wire.get("role")) or "user"
    if role in ("tool", "function") and ("tool_call_id" in wire or role == "function"):
        call = first_text(wire, "tool_call_id", "name")
        content = wire.get("content")
        result = ToolResultPart(call_id=call, name=text(wire.get("name")), parts=result_content(_plain(content)))
        return by_role("tool", [result])
    parts = list(_content(wire.get("content")))
    if role != "assistant":
        found = by_role(role, parts)
        return [_named(payload, text(wire.get("name"))) for payload in found]
    thought = first_text(wire, "reasoning_content", "reasoning", "thinking")
    head: list[Part] = [ReasoningPart(provider="openai-chat", text=thought)] if thought else []
    calls = [_call(call) for call in objects(wire.get("tool_calls"))]
    if isinstance(wire.get("function_call"), dict):
        calls.append(_call({"id": text(wire["function_call"].get("name")), "function": wire["function_call"]}))
    facts = mapping(wire.get("metadata"))
    used = text(wire.get("model")) or text(facts.get("model")) or model
    spent = usage(wire.get("usage") or facts.get("usage"), _COUNTS, facts.get("cost"))
    return by_role(role, [*head, *parts, *calls], model=used, usage=spent)


def _named(payload: Payload, name: str) -> Payload:
    if not name or not isinstance(payload, UserMessage):
        return payload
    return replace(payload, message=replace(payload.message, name=name))


def _call(call: Json) -> ToolCallPart:
    function = mapping(call.get("function")) or call
    arguments = arguments_text(function.get("arguments"))
    return ToolCallPart(id=first_text(call, "id", "call_id"), name=text(function.get("name")), arguments=arguments)


def _content(content: Any) -> tuple[Part, ...]:
    return tuple(_fitted(part) for part in parts_of(_plain(content)))


def _plain(content: Any) -> Any:
    """The content with OpenAI's block types under the names of the others."""
    if not isinstance(content, list):
        return content
    found = []
    for block in content:
        kind = mapping(block).get("type")
        if kind in ("input_text", "output_text", "refusal"):
            found.append({"type": "text", "text": text(block.get("text") or block.get("refusal"))})
        elif kind in ("image_url", "input_image"):
            address = block.get("image_url")
            found.append({"type": "image", "url": text(mapping(address).get("url")) or text(address)})
        else:
            found.append(block)
    return found


def _fitted(part: Part) -> Part:
    if isinstance(part, OpaquePart) and isinstance(mapping(part.block).get("text"), str):
        return TextPart(text=part.block["text"])
    return part
