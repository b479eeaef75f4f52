"""pi's entries and ours, in both directions."""

from __future__ import annotations

from typing import Any

import msgspec

from sessiontree.codec import decode_payload, encode_payload
from sessiontree.errors import SessionTreeError
from sessiontree.formats import gotime
from sessiontree.formats.pi.messages import content_of, parts_of, payload_of_message, wire_message
from sessiontree.formats.session import with_origin
from sessiontree.model import (
    AssistantMessage,
    BranchSummary,
    Compaction,
    Custom,
    Entry,
    Label,
    Message,
    ModelChange,
    Payload,
    ThreadInfo,
    ToolCallMessage,
    ToolResultMessage,
    UserMessage,
)

__all__ = ["OURS", "fields_of", "payload_of", "wire_entry"]

Json = dict[str, Any]

OURS = "sessiontree."
"""Start of the custom types that carry our own entries."""

_FRAME = frozenset({"id", "parentId", "timestamp"})
_MESSAGE = frozenset({"type", "message", *_FRAME})
_MESSAGE_TYPES = frozenset({UserMessage, AssistantMessage, ToolCallMessage, ToolResultMessage})


def payload_of(wire: Json) -> Payload:
    """Our payload; where pi would not get the same fields back, they are kept beside it."""
    payload = _meaning(wire)
    if not _comes_back(payload, wire):
        payload = with_origin(payload, entry=_body(wire))
    return payload


def _comes_back(payload: Payload, wire: Json) -> bool:
    # Nearly every entry is a message and nothing else: looking at that alone takes half the time.
    if type(payload) in _MESSAGE_TYPES and wire["type"] == "message" and wire.keys() <= _MESSAGE:
        message: Json = wire["message"]
        return wire_message(payload) == message
    return fields_of(payload) == _body(wire)


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
    tokens = wire.get("tokensBefore")
    return Compaction(
        id=_str(wire.get("id")),
        summary=_str(wire.get("summary")),
        first_kept_entry_id=_str(wire.get("firstKeptEntryId")),
        tokens_before=tokens if isinstance(tokens, int) and 0 <= tokens < 1 << 62 else 0,
        metadata=facts,
    )


def fields_of(payload: Payload) -> Json:
    """The fields of pi's entry for a payload, without identity, place and time."""
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
    text = gotime.text(time_ns)
    head, _, fraction = text.removesuffix("Z").partition(".")
    return f"{head}.{fraction.ljust(3, '0')}Z"


def _only(fields: Json, *names: str) -> Json:
    return {name: fields[name] for name in names if name in fields}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
