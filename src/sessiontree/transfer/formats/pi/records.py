"""Convert pi's entries and messages to ours and back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec.structs import replace

from sessiontree.errors import SessionTreeError
from sessiontree.model import (
    AssistantMessage,
    BranchSummary,
    Compaction,
    Custom,
    Entry,
    ImagePart,
    Label,
    Message,
    ModelChange,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ThreadInfo,
    ToolCallMessage,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    Usage,
    UserMessage,
    decode_payload,
    encode_payload,
)
from sessiontree.model import payload_of as payload_for
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._records import amount, whole_number, with_origin

__all__ = [
    "OURS",
    "content_of",
    "fields_of",
    "parts_of",
    "payload_of",
    "payload_of_message",
    "wire_entry",
    "wire_message",
]


Json = dict[str, Any]

_PROVIDER = "pi"
_DIALECTS = {
    "anthropic-messages": "anthropic",
    "openai-responses": "openai-responses",
    "azure-openai-responses": "openai-responses",
    "openai-codex-responses": "openai-responses",
    "google-generative-ai": "gemini",
    "google-gemini-cli": "gemini",
    "google-vertex": "gemini",
}
"""The dialect of each interface of pi that signs its reasoning."""
_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_tokens",
    "cacheWrite": "cache_write_tokens",
    "totalTokens": "total_tokens",
}


def payload_of_message(wire: Json) -> Payload:
    """The payload for a message of pi; fields that only pi has go into ``extra``."""
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
    parts = parts_of(wire.get("content"))
    dialect = _DIALECTS.get(_str(wire.get("api")))
    if dialect:
        parts = tuple([_of_provider(part, dialect) for part in parts])
    message = Message(role="assistant", parts=parts, extra=extra)
    kind = ToolCallMessage if message.tool_calls else AssistantMessage
    return kind(
        message=message,
        provider=_str(wire.get("provider")),
        model=_str(wire.get("model")),
        stop_reason=_str(wire.get("stopReason")),
        usage=_usage(wire.get("usage")),
    )


def _of_provider(part: Part, dialect: str) -> Part:
    """Reasoning with the provider that signed it: only that one accepts the signature again."""
    if not isinstance(part, ReasoningPart):
        return part
    match dialect:
        case "anthropic" if part.extra.get("redacted") is True:
            return replace(part, provider=dialect, encrypted=part.signature)
        case "openai-responses":
            item = _object(part.signature)
            identity, encrypted = _str(item.get("id")), _str(item.get("encrypted_content"))
            return replace(part, provider=dialect, id=identity, encrypted=encrypted) if identity else part
        case _:
            return replace(part, provider=dialect)


def _object(text: str) -> Json:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _usage(wire: Any) -> Usage | None:
    if not isinstance(wire, dict):
        return None
    found = {ours: whole_number(wire.get(theirs)) for theirs, ours in _COUNTS.items()}
    counts: Json = {name: count for name, count in found.items() if count is not None}
    cost = wire.get("cost")
    total = amount(cost.get("total")) if isinstance(cost, dict) else None
    paid: Json = {"cost": total, "currency": "USD"} if total else {}
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
    """A command that the user ran. The model sees it as a user message unless it was excluded from the context."""
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
    # Match the type first: a pattern for each whole block would take three times as long.
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
    """pi's message for an entry; ``None`` if the entry is not a message."""
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
    """Arguments that are not JSON: Python accepts more, such as NaN; anything else is kept as text."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return {"arguments": arguments}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""


OURS = "sessiontree."
"""Prefix of the custom types in which our own entries are written."""

_FRAME = frozenset({"id", "parentId", "timestamp"})
_MESSAGE = frozenset({"type", "message", *_FRAME})
_MESSAGE_TYPES = frozenset({UserMessage, AssistantMessage, ToolCallMessage, ToolResultMessage})


def payload_of(wire: Json) -> Payload:
    """The payload for an entry of pi. If it would not be exported as the same fields, they are kept in its origin."""
    payload = _meaning(wire)
    if not _is_exported_unchanged(payload, wire):
        payload = with_origin(payload, entry=_body(wire))
    return payload


def _is_exported_unchanged(payload: Payload, wire: Json) -> bool:
    # Nearly every entry is only a message: comparing that alone takes half the time.
    if type(payload) in _MESSAGE_TYPES and wire["type"] == "message" and wire.keys() <= _MESSAGE:
        message: Json = wire["message"]
        return wire_message(payload) == message
    return _canonical(fields_of(payload)) == _canonical(_body(wire))


def _canonical(fields: Json) -> bytes:
    """JSON that tells ``false`` from 0 and 1 from 1.0, which are equal in Python."""
    return msgspec.json.encode(fields, order="sorted")


def _body(wire: Json) -> Json:
    return {name: value for name, value in wire.items() if name not in _FRAME}


def _meaning(wire: Json) -> Payload:
    match wire.get("type"):
        case "message" if isinstance(message := wire.get("message"), dict):
            return payload_of_message(message)
        case "custom_message" if isinstance(name := wire.get("customType"), str):
            said = Message(role="user", kind="custom_message", parts=parts_of(wire.get("content")))
            return UserMessage(message=said, metadata={"customType": name, **_only(wire, "display", "details")})
        case "model_change":
            return ModelChange(provider=_str(wire.get("provider")), model=_str(wire.get("modelId")))
        case "compaction":
            return _compaction(wire)
        case "branch_summary":
            facts = _only(wire, "details", "fromHook")
            summary, source = _str(wire.get("summary")), _str(wire.get("fromId"))
            return BranchSummary(summary=summary, from_entry_id=source, metadata=facts)
        case "custom" if isinstance(name := wire.get("customType"), str):
            return _our_own(wire) if name.startswith(OURS) else Custom(name=name, data=wire.get("data"))
        case "label" if isinstance(target := wire.get("targetId"), str):
            return Label(target=target, label=_str(wire.get("label")))
        case "session_info":
            return ThreadInfo(text=_str(wire.get("name")))
        case kind:
            return Custom(name=_str(kind), data=_body(wire))


def _our_own(wire: Json) -> Payload:
    try:
        return decode_payload(msgspec.json.encode(wire.get("data")))
    except (msgspec.MsgspecError, SessionTreeError):
        return Custom(name=_str(wire.get("customType")), data=wire.get("data"))


def _compaction(wire: Json) -> Compaction:
    facts = _only(wire, "details", "fromHook")
    tokens = whole_number(wire.get("tokensBefore"))
    return Compaction(
        id=_str(wire.get("id")),
        summary=_str(wire.get("summary")),
        first_kept_entry_id=_str(wire.get("firstKeptEntryId")),
        tokens_before=tokens if tokens is not None and 0 <= tokens < 1 << 62 else 0,
        metadata=facts,
    )


def fields_of(payload: Payload) -> Json:
    """The fields of pi's entry for a payload, without id, parent and time."""
    origin: Json = getattr(payload, "origin", {})
    if isinstance(origin.get("entry"), dict):
        return dict(origin["entry"])
    match payload:
        case UserMessage(message=Message(kind="custom_message") as message):
            name = payload.metadata.get("customType", "")
            facts = _only(payload.metadata, "display", "details")
            return {"type": "custom_message", "customType": name, "content": content_of(message.parts), **facts}
        case ModelChange():
            return {"type": "model_change", "provider": payload.provider, "modelId": payload.model}
        case Compaction() if not payload.reverts:
            return {
                "type": "compaction",
                "summary": payload.summary,
                "firstKeptEntryId": payload.first_kept_entry_id,
                "tokensBefore": payload.tokens_before,
                **_only(payload.metadata, "details", "fromHook"),
            }
        case BranchSummary():
            facts = _only(payload.metadata, "details", "fromHook")
            return {"type": "branch_summary", "fromId": payload.from_entry_id, "summary": payload.summary, **facts}
        case Label():
            label = {"label": payload.label} if payload.label else {}
            return {"type": "label", "targetId": payload.target, **label}
        case ThreadInfo():
            return {"type": "session_info", "name": payload.text}
        case Custom() if payload.name not in ("message", "bashExecution") and not isinstance(payload.data, dict):
            return {"type": "custom", "customType": payload.name, "data": payload.data}
        case _:
            return _message_or_ours(payload)


def _message_or_ours(payload: Payload) -> Json:
    if isinstance(payload, Custom) and isinstance(payload.data, dict) and payload.data.get("type") == payload.name:
        return payload.data
    message = wire_message(payload)
    if message is not None:
        return {"type": "message", "message": message}
    if isinstance(payload, Custom):
        return {"type": "custom", "customType": payload.name, "data": payload.data}
    body = msgspec.json.decode(encode_payload(payload))
    return {"type": "custom", "customType": OURS + str(body.get("type", "")), "data": body}


def wire_entry(entry: Entry) -> Json:
    """pi's entry for one of ours."""
    fields = dict(fields_of(entry.payload))
    kind = fields.pop("type")
    return {
        "type": kind,
        "id": entry.id,
        "parentId": entry.parent,
        "timestamp": _timestamp(entry.created_ns),
        **fields,
    }


def _timestamp(time_ns: int) -> str:
    text = _go.text(time_ns)
    head, _, fraction = text.removesuffix("Z").partition(".")
    return f"{head}.{fraction.ljust(3, '0')}Z"


def _only(fields: Json, *names: str) -> Json:
    return {name: fields[name] for name in names if name in fields}
