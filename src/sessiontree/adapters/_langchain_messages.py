"""Messages of LangChain as the journal's own, and back.

The way back is for entries that LangChain did not write; adapters keep the original of those that it did.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from sessiontree.model import (
    AssistantMessage,
    Custom,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolCallMessage,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    Usage,
    UserMessage,
)
from sessiontree.model import SystemMessage as SystemPayload

__all__ = ["MESSAGE_TYPES", "from_payload", "to_payload"]

MESSAGE_TYPES = ("user_message", "assistant_message", "tool_call", "tool_result", "system_message")

_PROVIDER = "langchain"


def to_payload(message: BaseMessage, origin: dict[str, Any]) -> Payload:
    """Return a message as the journal stores it. Kinds of messages that no model knows become custom entries."""
    name = message.name or ""
    match message:
        case HumanMessage():
            return UserMessage(message=Message(role="user", parts=_parts(message), name=name), origin=origin)
        case SystemMessage():
            return SystemPayload(message=Message(role="system", parts=_parts(message), name=name), origin=origin)
        case AIMessage():
            return _answer(message, origin)
        case ToolMessage():
            result = ToolResultPart(
                call_id=message.tool_call_id,
                name=name,
                parts=tuple(part for part in _parts(message) if isinstance(part, TextPart | ImagePart | OpaquePart)),
                is_error=message.status == "error",
            )
            return ToolResultMessage(message=Message(role="tool", parts=(result,)), origin=origin)
        case _:
            shown = Message(role="user", parts=_parts(message), name=name)
            return Custom(name=f"langchain.{message.type}", message=shown, origin=origin)


def from_payload(payload: Payload) -> list[BaseMessage]:
    """Return the messages of LangChain that say what an entry says: one, or one for each result of a tool."""
    match payload:
        case UserMessage(message=message):
            return [HumanMessage(content=_content(message.parts), name=message.name or None)]
        case SystemPayload(message=message):
            return [SystemMessage(content=_content(message.parts), name=message.name or None)]
        case AssistantMessage(message=message) | ToolCallMessage(message=message):
            calls = [
                {"type": "tool_call", "id": call.id, "name": call.name, "args": _arguments(call)}
                for call in message.tool_calls
            ]
            return [AIMessage(content=_content(message.parts), tool_calls=calls, name=message.name or None)]
        case ToolResultMessage(message=message):
            return [
                ToolMessage(
                    content=_content(result.parts),
                    tool_call_id=result.call_id,
                    name=result.name or None,
                    status="error" if result.is_error else "success",
                )
                for result in message.tool_results
            ]
        case _:
            return []


def _answer(message: AIMessage, origin: dict[str, Any]) -> Payload:
    calls = [
        ToolCallPart(id=call["id"] or "", name=call["name"], arguments=json.dumps(call["args"]))
        for call in message.tool_calls
    ]
    facts = message.response_metadata
    kind = ToolCallMessage if calls else AssistantMessage
    return kind(
        message=Message(role="assistant", parts=(*_parts(message), *calls), name=message.name or ""),
        model=str(facts.get("model_name") or facts.get("model") or ""),
        stop_reason=str(facts.get("finish_reason") or facts.get("stop_reason") or ""),
        usage=_usage(message),
        origin=origin,
    )


def _usage(message: AIMessage) -> Usage | None:
    reported = message.usage_metadata
    if reported is None:
        return None
    read = reported.get("input_token_details", {}).get("cache_read") or 0
    return Usage(
        input_tokens=reported["input_tokens"] - read,
        cache_read_tokens=read,
        output_tokens=reported["output_tokens"],
        total_tokens=reported["total_tokens"],
    )


def _parts(message: BaseMessage) -> tuple[Part, ...]:
    content = message.content
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    return tuple(_part(block) for block in content if not _is_call(block))


def _is_call(block: str | dict[str, Any]) -> bool:
    return isinstance(block, dict) and block.get("type") in {"tool_use", "tool_call", "function_call"}


def _part(block: str | dict[str, Any]) -> Part:
    match block:
        case str(text) | {"type": "text", "text": str(text)}:
            return TextPart(text=text)
        case {"type": "image_url", "image_url": {"url": str(url)} | str(url)} | {"type": "image", "url": str(url)}:
            return ImagePart(url=url)
        case {"type": "reasoning", "reasoning": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return ReasoningPart(provider=_PROVIDER, text=text)
        case _:
            return OpaquePart(provider=_PROVIDER, block=block)


def _content(parts: Iterable[Part]) -> str | list[str | dict[str, Any]]:
    blocks = [block for part in parts if (block := _block(part)) is not None]
    if all(isinstance(block, str) for block in blocks):
        return "".join(map(str, blocks))
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]


def _block(part: Part) -> str | dict[str, Any] | None:
    match part:
        case TextPart(text=text):
            return text
        case ImagePart(url=url, data=data, mime=mime) if url or data:
            return {"type": "image_url", "image_url": {"url": url or f"data:{mime};base64,{data}"}}
        case OpaquePart(provider=provider, block=block) if provider == _PROVIDER:
            kept: dict[str, Any] = block
            return kept
        case _:
            return None


def _arguments(call: ToolCallPart) -> dict[str, Any]:
    try:
        arguments = json.loads(call.arguments)
    except ValueError:
        return {"arguments": call.arguments}
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}
