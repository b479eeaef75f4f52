"""pi's messages and ours, in both directions."""

from __future__ import annotations

import json
from typing import Any

import msgspec

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
            return tuple([_part(block) for block in content])
        case _:
            return ()


def _part(block: Any) -> Part:
    part = _known_part(block) if isinstance(block, dict) else None
    return OpaquePart(provider=_PROVIDER, block=block) if part is None else part


def _known_part(block: Json) -> Part | None:
    # By the type first: a pattern for each whole block would take three times as long, for every block of a file.
    match block.get("type"):
        case "text" if isinstance(text := block.get("text"), str):
            return TextPart(text=text, extra=_besides(block, _TEXT))
        case "toolCall" if "arguments" in block and _is_text(block, "id") and _is_text(block, "name"):
            arguments, extra = _written(block["arguments"]), _besides(block, _TOOL_CALL)
            return ToolCallPart(id=block["id"], name=block["name"], arguments=arguments, extra=extra)
        case "thinking" if _is_text(block, "thinking") and isinstance(block.get("thinkingSignature", ""), str):
            text, signature = block["thinking"], block.get("thinkingSignature", "")
            return ReasoningPart(provider=_PROVIDER, text=text, signature=signature, extra=_besides(block, _THINKING))
        case "image" if _is_text(block, "data") and _is_text(block, "mimeType"):
            return ImagePart(data=block["data"], mime=block["mimeType"], extra=_besides(block, _IMAGE))
        case _:
            return None


def _is_text(block: Json, name: str) -> bool:
    return isinstance(block.get(name), str)


_TEXT = frozenset({"type", "text"})
_TOOL_CALL = frozenset({"type", "id", "name", "arguments"})
_THINKING = frozenset({"type", "thinking", "thinkingSignature"})
_IMAGE = frozenset({"type", "data", "mimeType"})


def _besides(block: Json, known: frozenset[str]) -> Json:
    return {} if block.keys() <= known else {name: value for name, value in block.items() if name not in known}


def wire_message(payload: Payload) -> Json | None:
    """pi's message for an entry; ``None`` for an entry that is none."""
    if isinstance(payload, Custom):
        is_message = payload.name in ("message", "bashExecution") and isinstance(payload.data, dict)
        return payload.data if is_message else None
    message: Message | None = getattr(payload, "message", None)
    if message is None or message.role == "system":
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
    if extra or not isinstance(payload, AssistantMessage | ToolCallMessage):
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


def _written(arguments: Any) -> str:
    try:
        return msgspec.json.encode(arguments).decode()
    except (ValueError, OverflowError, RecursionError):
        return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _parsed(part: ToolCallPart) -> Any:
    if not part.arguments:
        return {}
    try:
        return msgspec.json.decode(part.arguments)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _parsed_loosely(part.arguments)


def _parsed_loosely(arguments: str) -> Any:
    """Python reads more than JSON allows, such as NaN; what nobody can read is kept as a text."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return {"arguments": arguments}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
