"""pi's messages and ours, in both directions."""

from __future__ import annotations

import json
from typing import Any

from sessiontree.messages import payload_of as payload_for
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

__all__ = ["content_of", "parts_of", "payload_of_message", "wire_message"]

Json = dict[str, Any]

_PROVIDER = "pi"
_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_tokens",
    "cacheWrite": "cache_write_tokens",
    "totalTokens": "total_tokens",
}


def payload_of_message(wire: Json) -> Payload:
    """Our payload; what pi alone knows of a message travels in ``extra``."""
    extra = {name: value for name, value in wire.items() if name not in ("role", "content")}
    match wire.get("role"):
        case "user":
            return payload_for(Message(role="user", parts=parts_of(wire.get("content")), extra=extra))
        case "assistant":
            return _answer(wire, extra)
        case "toolResult":
            return _result(wire, extra)
        case "bashExecution":
            return _shell(wire)
        case "custom" | "hookMessage":
            parts = parts_of(wire.get("content"))
            return UserMessage(message=Message(role="user", kind="custom", parts=parts, extra=extra))
        case _:
            return Custom(name="message", data=wire)


def _answer(wire: Json, extra: Json) -> Payload:
    message = Message(role="assistant", parts=parts_of(wire.get("content")), extra=extra)
    kind = ToolCallMessage if message.tool_calls else AssistantMessage
    return kind(
        message=message,
        provider=_str(wire.get("provider")),
        model=_str(wire.get("model")),
        stop_reason=_str(wire.get("stopReason")),
        usage=_usage(wire.get("usage")),
    )


def _usage(wire: Any) -> Usage | None:
    if not isinstance(wire, dict):
        return None
    counts = {ours: wire[theirs] for theirs, ours in _COUNTS.items() if isinstance(wire.get(theirs), int)}
    cost = wire.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else None
    paid: Json = {"cost": float(total), "currency": "USD"} if isinstance(total, int | float) and total else {}
    return Usage(**counts, **paid) if counts or paid else None


def _result(wire: Json, extra: Json) -> Payload:
    content: Any = parts_of(wire.get("content"))
    result = ToolResultPart(
        call_id=_str(wire.get("toolCallId")),
        name=_str(wire.get("toolName")),
        parts=content,
        is_error=wire.get("isError") is True,
    )
    return ToolResultMessage(message=Message(role="tool", parts=(result,), extra=extra))


def _shell(wire: Json) -> Payload:
    """A command that the user ran: the model sees it as the user's words, unless the user kept it to himself."""
    if wire.get("excludeFromContext") is True:
        return Custom(name="bashExecution", data=wire)
    text = f"Ran `{_str(wire.get('command'))}`\n```\n{_str(wire.get('output'))}\n```"
    message = Message(role="user", kind="bash", parts=(TextPart(text=text),), extra={"bash": wire})
    return UserMessage(message=message)


def parts_of(content: Any) -> tuple[Part, ...]:
    match content:
        case str():
            return (TextPart(text=content, extra={"plain": True}),)
        case list():
            return tuple(_part(block) for block in content)
        case _:
            return ()


def _part(block: Any) -> Part:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text, extra=_without(block, "text"))
        case {"type": "thinking", "thinking": str(text)} if isinstance(block.get("thinkingSignature", ""), str):
            signature = block.get("thinkingSignature", "")
            extra = _without(block, "thinking", "thinkingSignature")
            return ReasoningPart(provider=_PROVIDER, text=text, signature=signature, extra=extra)
        case {"type": "toolCall", "id": str(call_id), "name": str(name), "arguments": arguments}:
            text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
            return ToolCallPart(id=call_id, name=name, arguments=text, extra=_without(block, "id", "name", "arguments"))
        case {"type": "image", "data": str(data), "mimeType": str(mime)}:
            return ImagePart(data=data, mime=mime, extra=_without(block, "data", "mimeType"))
        case _:
            return OpaquePart(provider=_PROVIDER, block=block)


def _without(block: Json, *names: str) -> Json:
    return {name: value for name, value in block.items() if name not in (*names, "type")}


def wire_message(payload: Payload) -> Json | None:
    """pi's message for an entry; ``None`` for an entry that is none."""
    if isinstance(payload, Custom) and payload.name in ("message", "bashExecution") and isinstance(payload.data, dict):
        return payload.data
    message: Message | None = getattr(payload, "message", None)
    if message is None or isinstance(payload, Custom) or message.role == "system":
        return None
    extra = dict(message.extra)
    if "bash" in extra:
        return dict(extra["bash"])
    if message.role == "tool" or message.tool_results:
        return _wire_result(message, extra)
    role = "custom" if message.kind == "custom" else message.role
    wire: Json = {"role": role, "content": content_of(message.parts)}
    return wire | _facts(payload, extra) | extra


def _wire_result(message: Message, extra: Json) -> Json:
    result = next(iter(message.tool_results), ToolResultPart(call_id=""))
    given: Json = {"toolCallId": result.call_id, "toolName": result.name, "isError": result.is_error}
    return {"role": "toolResult", "content": content_of(result.parts), **given, **extra}


def _facts(payload: Payload, extra: Json) -> Json:
    if not isinstance(payload, AssistantMessage | ToolCallMessage) or extra:
        return {}
    facts: Json = {"provider": payload.provider, "model": payload.model, "stopReason": payload.stop_reason or "stop"}
    if payload.usage is not None:
        facts["usage"] = {theirs: getattr(payload.usage, ours) for theirs, ours in _COUNTS.items()}
    return facts


def content_of(parts: tuple[Any, ...]) -> Any:
    match parts:
        case (TextPart(text=text, extra={"plain": True}),):
            return text
        case _:
            return [_block(part) for part in parts]


def _block(part: Part) -> Json:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text, **part.extra}
        case ReasoningPart():
            signature = {"thinkingSignature": part.signature} if part.signature else {}
            return {"type": "thinking", "thinking": part.text, **signature, **part.extra}
        case ToolCallPart():
            return {"type": "toolCall", "id": part.id, "name": part.name, "arguments": _parsed(part), **part.extra}
        case ImagePart():
            return {"type": "image", "data": part.data, "mimeType": part.mime, **part.extra}
        case OpaquePart() if part.provider == _PROVIDER and isinstance(part.block, dict):
            return part.block
        case _:
            return {"type": "text", "text": str(getattr(part, "url", "") or getattr(part, "block", ""))}


def _parsed(part: ToolCallPart) -> Any:
    try:
        return json.loads(part.arguments) if part.arguments else {}
    except (ValueError, RecursionError):
        return {"arguments": part.arguments}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
