"""The records of ggcode's files, with fields in the order in which Go writes them, and their conversion.

A checkpoint record of ggcode contains the whole new history. Most of it repeats the latest messages: for that part the
compaction refers to the first of those entries. Only the rest, as a rule one summary, is kept in it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
from msgspec import Raw

from sessiontree.model import (
    Compaction,
    Custom,
    Event,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ThreadInfo,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    Usage,
    UsageReport,
    convert,
)
from sessiontree.model import payload_of as payload_for
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._records import amount

__all__ = [
    "FOREIGN",
    "META_FIELDS",
    "NO_RAW",
    "RECORD",
    "Block",
    "GgcodeMessage",
    "GgcodeRecord",
    "Image",
    "IndexEntry",
    "Recent",
    "TunnelEvent",
    "head_of",
    "message_of",
    "payload_of",
    "payload_of_record",
    "wire_message",
    "wire_record",
]


NO_RAW = Raw(b"")
"""The value of a raw field that is missing."""


class Image(msgspec.Struct):
    mime: str = ""
    base64: str = ""


class Block(msgspec.Struct, omit_defaults=True, kw_only=True):
    type: str
    text: str = ""
    image_mime: str = ""
    image_data: str = ""
    tool_name: str = ""
    tool_id: str = ""
    input: Raw = NO_RAW
    output: str = ""
    is_error: bool = False
    images: list[Image] = []
    reasoning_content: str = ""
    thinking_signature: str = ""
    thinking_data: str = ""


class GgcodeMessage(msgspec.Struct):
    role: str = ""
    content: list[Block] | None = None


class TunnelEvent(msgspec.Struct, omit_defaults=True, kw_only=True):
    event_id: str
    stream_id: str = ""
    type: str
    data: Raw = NO_RAW


class GgcodeRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    type: str
    session_id: str = ""
    title: str = ""
    workspace: str = ""
    vendor: str = ""
    endpoint: str = ""
    model: str = ""
    created_at: str
    updated_at: str
    tunnel_events_complete: bool = False
    message: GgcodeMessage | None = None
    tunnel_event: TunnelEvent | None = None
    cost: Raw = NO_RAW
    checkpoint_messages: list[GgcodeMessage] = []
    checkpoint_tokens: int = 0


class IndexEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    id: str
    title: str
    created_at: str
    updated_at: str
    msg_count: int
    workspace: str = ""
    vendor: str = ""
    endpoint: str = ""
    model: str = ""


def bare(kind: str, session_id: str) -> GgcodeRecord:
    """A record without times: only meta records have them."""
    return GgcodeRecord(type=kind, session_id=session_id, created_at=_go.ZERO, updated_at=_go.ZERO)


_ROLES = frozenset({"user", "assistant", "tool", "system"})
_PROVIDER = "ggcode"

FOREIGN = "message"
"""Name of the custom entry for a message with an unknown role."""


def payload_of(message: GgcodeMessage) -> Payload:
    """The payload for a message. Tool results have the role ``user`` in ggcode, but are not user messages here."""
    ours = message_of(message)
    if "role" in ours.extra:
        return Custom(name=FOREIGN, message=ours)
    if _has_result(message) and not ours.text:
        return ToolResultMessage(message=ours)
    return payload_for(ours)


def _has_result(message: GgcodeMessage) -> bool:
    return "tool_result" in [block.type for block in message.content or ()]


def message_of(message: GgcodeMessage) -> Message:
    extra: dict[str, Any] = {"content": None} if message.content is None else {}
    role: Any = message.role
    if role not in _ROLES:
        extra["role"], role = role, "system"
    parts: list[Part] = []
    for block in message.content or ():
        parts += _parts(block)
    return Message(role=role, parts=tuple(parts), extra=extra)


def _parts(block: Block) -> list[Part]:
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
            return [OpaquePart(provider=_PROVIDER, block=msgspec.json.decode(_go.encode_plain(block)))]


def _thought(block: Block) -> list[Part]:
    """The reasoning that ggcode keeps inside the block that followed it."""
    if not (block.reasoning_content or block.thinking_signature or block.thinking_data):
        return []
    return [_reasoning(block, {"joined": True})]


def _reasoning(block: Block, extra: dict[str, Any]) -> ReasoningPart:
    return ReasoningPart(
        provider="anthropic" if block.thinking_signature or block.thinking_data else "",
        text=block.reasoning_content,
        signature=block.thinking_signature,
        encrypted=block.thinking_data,
        extra=extra,
    )


def _result(block: Block) -> ToolResultPart:
    output = (TextPart(text=block.output),) if block.output else ()
    images = tuple(ImagePart(mime=image.mime, data=image.base64) for image in block.images)
    return ToolResultPart(
        call_id=block.tool_id, name=block.tool_name, parts=(*output, *images), is_error=block.is_error
    )


def wire_message(message: Message) -> GgcodeMessage:
    role = message.extra.get("role", message.role)
    if not message.parts and "content" in message.extra:
        return GgcodeMessage(role=role, content=None)
    blocks: list[Block] = []
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
    return GgcodeMessage(role=role, content=blocks)


def _block(part: Part) -> Block:
    match part:
        case TextPart():
            return Block(type="text", text=part.text)
        case ToolCallPart():
            return Block(type="tool_use", tool_name=part.name, tool_id=part.id, input=_json(part.arguments))
        case ToolResultPart():
            return _result_block(part)
        case ImagePart():
            return Block(type="image", image_mime=part.mime, image_data=part.data, text=part.url)
        case FilePart():
            return Block(type="text", text=part.url or part.name)
        case ReasoningPart():
            block = Block(type="thinking")
            _think(block, part)
            return block
        case OpaquePart(block=block) if part.provider == _PROVIDER:
            return convert(block, Block)
        case OpaquePart():
            return Block(type="text", text=msgspec.json.encode(part.block).decode())


def _think(block: Block, thought: ReasoningPart) -> None:
    block.reasoning_content = thought.text
    block.thinking_signature = thought.signature
    block.thinking_data = thought.encrypted


def _result_block(part: ToolResultPart) -> Block:
    images = [Image(mime=inner.mime, base64=inner.data) for inner in part.parts if isinstance(inner, ImagePart)]
    output = "".join([inner.text for inner in part.parts if isinstance(inner, TextPart)])
    return Block(
        type="tool_result",
        tool_name=part.name,
        tool_id=part.call_id,
        output=output,
        is_error=part.is_error,
        images=images,
    )


def _json(arguments: str) -> Raw:
    """Arguments as JSON; if the model did not write JSON, as a JSON string."""
    if not arguments:
        return NO_RAW
    body = arguments.encode()
    try:
        msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        body = _go.encode_plain(arguments)
    return Raw(body)


RECORD = "ggcode.record"
"""Name of the custom entry for a record of an unknown type."""

META_FIELDS = ("workspace", "vendor", "endpoint", "model", "tunnel_events_complete")


def payload_of_record(record: GgcodeRecord) -> Payload:
    """The payload for a record of any type but ``checkpoint``, which depends on the messages before it."""
    match record.type:
        case "message" if record.message is not None:
            return payload_of(record.message)
        case "tunnel_event" if record.tunnel_event is not None:
            return _event(record.tunnel_event)
        case "cost" if bytes(record.cost):
            return _usage(record.cost)
        case "meta":
            return _info(record)
        case _:
            return Custom(name=RECORD, data={"type": record.type})


def _event(event: TunnelEvent) -> Event:
    data = msgspec.json.decode(event.data) if bytes(event.data) else None
    return Event(name=event.type, stream=event.stream_id, event_id=event.event_id, data=data)


def _usage(cost: Raw) -> UsageReport:
    """The usage for a cost record, which may have any fields; ``usd`` is the cost."""
    facts = msgspec.json.decode(cost)
    dollars = amount(facts.get("usd")) if isinstance(facts, dict) else None
    usage = Usage() if dollars is None else Usage(cost=dollars, currency="USD")
    return UsageReport(usage=usage, metadata={"cost": facts})


def _info(record: GgcodeRecord) -> ThreadInfo:
    given: dict[str, Any] = {name: value for name in META_FIELDS if (value := getattr(record, name))}
    times = {"created_at": record.created_at, "updated_at": record.updated_at}
    return ThreadInfo(text=record.title, metadata={**given, **times})


def wire_record(payload: Payload, session_id: str) -> GgcodeRecord | None:
    """ggcode's record for an entry; ``None`` if ggcode has no such record."""
    message: Message | None = getattr(payload, "message", None)
    if message is not None:
        record = bare("message", session_id)
        record.message = wire_message(message)
        return record
    match payload:
        case ThreadInfo() if "created_at" in payload.metadata:
            given = {name: payload.metadata[name] for name in META_FIELDS if name in payload.metadata}
            return GgcodeRecord(
                type="meta",
                session_id=session_id,
                title=payload.text,
                created_at=payload.metadata["created_at"],
                updated_at=payload.metadata["updated_at"],
                **given,
            )
        case Event():
            record = bare("tunnel_event", session_id)
            data = NO_RAW if payload.data is None else Raw(_go.encode_plain(payload.data))
            record.tunnel_event = TunnelEvent(
                event_id=payload.event_id, stream_id=payload.stream, type=payload.name, data=data
            )
            return record
        case UsageReport():
            record = bare("cost", session_id)
            record.cost = Raw(_go.encode_plain(payload.metadata.get("cost") or {"usd": payload.usage.cost}))
            return record
        case _:
            return None


_MOST = 512


class Recent:
    """The latest messages, to which a checkpoint can refer."""

    def __init__(self) -> None:
        self._messages: deque[tuple[str, GgcodeMessage]] = deque(maxlen=_MOST)

    def add(self, entry_id: str, message: GgcodeMessage) -> None:
        self._messages.append((entry_id, message))

    def checkpoint(self, entry_id: str, record: GgcodeRecord) -> Compaction:
        """The compaction for a checkpoint: a summary of the new messages and a reference to the kept ones."""
        messages = record.checkpoint_messages
        kept = self._kept(messages)
        head = messages[: len(messages) - kept]
        ours = [message_of(message) for message in head]
        first = self._messages[-kept][0] if kept else entry_id
        for _ in range(len(self._messages) - kept):
            self._messages.popleft()
        return Compaction(
            id=entry_id,
            summary="\n\n".join(filter(None, (message.text for message in ours))),
            first_kept_entry_id=first,
            tokens_after=record.checkpoint_tokens,
            strategy="summarize",
            origin={"head": msgspec.to_builtins(ours)},
        )

    def _kept(self, messages: list[GgcodeMessage]) -> int:
        """How many messages at the end of a checkpoint repeat the latest ones."""
        count = 0
        for message, (_, recent) in zip(reversed(messages), reversed(self._messages), strict=False):
            if _go.encode_plain(message) != _go.encode_plain(recent):
                break
            count += 1
        return count


def head_of(compaction: Compaction) -> list[GgcodeMessage]:
    """The messages of a checkpoint that do not repeat earlier ones."""
    if "head" in compaction.origin:
        return [wire_message(convert(message, Message)) for message in compaction.origin["head"]]
    if not compaction.summary:
        return []
    return [GgcodeMessage(role="system", content=[Block(type="text", text=compaction.summary)])]


def is_said_by_user(message: Message | None) -> bool:
    """Whether it is a user message with text."""
    return message is not None and message.role == "user" and bool(message.text.strip())
