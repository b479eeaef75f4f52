"""Anthropic Messages.

>>> from sessiontree.model.builders import user
>>> to_request(Context(system="Be brief.", messages=(user("hello").message,)))
{'system': 'Be brief.', 'messages': [{'role': 'user', 'content': 'hello'}]}
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sessiontree.context import Context
from sessiontree.context.dialects._shared import (
    CONTINUE,
    OPENING,
    Answer,
    CallIds,
    Dialect,
    Wire,
    answer_of,
    arguments_of,
    block_extra,
    content_of,
    conversation,
    is_blank,
    is_blank_item,
    leftover,
    media_note,
    media_source,
    object_of,
    own_fields,
    same_role_runs,
    text_block,
    tool_name,
    was_block,
    without,
)
from sessiontree.model import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from sessiontree.model.message import ResultContent

__all__ = ["DIALECT", "from_request", "from_response", "to_request"]


NAME = "anthropic"
_ID_LIMIT = 64
_ROLES = frozenset({"user", "assistant"})
_THOUGHTS = ("thinking", "redacted_thinking")
_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_DOCUMENT_TYPES = frozenset({"application/pdf"})


def to_request(context: Context) -> Wire:
    """Return ``system`` and ``messages``: the user first and last, alternating roles, no empty block."""
    ids = CallIds(_ID_LIMIT)
    written = [_wire_message(message, ids) for message in conversation(context)]
    messages = _in_turn([message for message in written if message["content"]])
    if not messages or messages[0]["role"] != "user":
        messages.insert(0, {"role": "user", "content": [OPENING]})
    if messages[-1]["role"] != "user":
        messages.append({"role": "user", "content": [CONTINUE]})
    system = {} if is_blank(context.system) else {"system": context.system}
    return {**system, "messages": [{**message, "content": content_of(message["content"])} for message in messages]}


def from_request(body: Wire) -> tuple[str, list[Message]]:
    """Return the system prompt and the messages of a request."""
    system = body.get("system") or ""
    if not isinstance(system, str):
        system = "\n\n".join(block["text"] for block in system if block.get("type") == "text")
    return system, [message for wire in body.get("messages", ()) for message in _messages(wire)]


def from_response(body: Wire) -> Answer:
    """Return the message of a response."""
    return answer_of(
        message=Message(role="assistant", parts=tuple(_read_content(body.get("content")))),
        provider=NAME,
        model=body.get("model", ""),
        stop_reason=body.get("stop_reason") or "",
        usage=_usage(body.get("usage")),
    )


DIALECT = Dialect(name=NAME, to_request=to_request, from_request=from_request, from_response=from_response)


def _in_turn(messages: Sequence[Wire]) -> list[Wire]:
    """Merge neighbours of one role, and drop reasoning at the end of a message, which the provider would reject."""
    merged = same_role_runs(messages, "content", _ROLES)
    led = [{**message, "content": _without_last_thoughts(message["content"])} for message in merged]
    return same_role_runs([message for message in led if message["content"]], "content", _ROLES)


def _without_last_thoughts(content: list[str | Wire]) -> list[str | Wire]:
    end = len(content)
    while end and _kind(content[end - 1]) in _THOUGHTS:
        end -= 1
    return content[:end]


def _kind(item: str | Wire) -> str:
    return "text" if isinstance(item, str) else str(item.get("type"))


def _wire_message(message: Message, ids: CallIds) -> Wire:
    role = "assistant" if message.role == "assistant" else "user"
    items = [item for part in message.parts for item in _items(part, role, ids)]
    content = [item for item in items if not is_blank_item(item)]
    return {"role": role, "content": content, **own_fields(message.extra, NAME)}


def _items(part: Part, role: str, ids: CallIds) -> Iterable[str | Wire]:
    match part:
        case ToolCallPart():
            return [_tool_use(part, ids)]
        case ToolResultPart():
            return [_tool_result(part, ids)]
        case ReasoningPart():
            return _thought(part)
        case ImagePart() | FilePart() if role == "assistant":
            return [media_note(part)]
        case _:
            return _blocks(part)


def _blocks(part: Part) -> list[str | Wire]:
    rest = own_fields(part.extra, NAME)
    match part:
        case TextPart(text=text):
            return [{**text_block(text), **rest} if was_block(part.extra, NAME) else text]
        case ImagePart():
            source = _source(part, _IMAGE_TYPES)
            return [{"type": "image", "source": source, **rest} if source else media_note(part)]
        case FilePart():
            source = _source(part, _DOCUMENT_TYPES)
            title = {"title": part.name} if part.name else {}
            return [{"type": "document", "source": source, **title, **rest} if source else media_note(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return [block]
        case _:
            return []


def _source(part: ImagePart | FilePart, types: frozenset[str]) -> Wire | None:
    source = media_source(part)
    if source.get("data") and source["mime"] in types:
        return {"type": "base64", "media_type": source["mime"], "data": source["data"]}
    if part.url.startswith(("http://", "https://")):
        return {"type": "url", "url": part.url}
    return None


def _thought(part: ReasoningPart) -> list[str | Wire]:
    if part.provider != NAME:
        return []
    rest = own_fields(part.extra, NAME)
    if part.encrypted:
        return [{"type": "redacted_thinking", "data": part.encrypted, **rest}]
    if part.signature:
        return [{"type": "thinking", "thinking": part.text, "signature": part.signature, **rest}]
    return []


def _tool_use(call: ToolCallPart, ids: CallIds) -> Wire:
    body = {"name": tool_name(call.name), "input": object_of(call.arguments)}
    return {"type": "tool_use", "id": ids.add(call), **body, **own_fields(call.extra, NAME)}


def _tool_result(result: ToolResultPart, ids: CallIds) -> Wire:
    items = [item for part in result.parts for item in _blocks(part) if not is_blank_item(item)]
    content = content_of(items) or ("The tool failed." if result.is_error else "")
    wire: Wire = {"type": "tool_result", "tool_use_id": ids.pop().id}
    if content:
        wire["content"] = content
    if result.is_error:
        wire["is_error"] = True
    return {**wire, **own_fields(result.extra, NAME)}


def _messages(wire: Wire) -> list[Message]:
    """Return one message; a user message with tool results becomes two, the results first."""
    rest = without(wire, "role", "content")
    extra = leftover(NAME, rest)
    parts = _read_content(wire.get("content"))
    if wire["role"] == "assistant":
        return [Message(role="assistant", parts=tuple(parts), extra=extra)]
    results = tuple(part for part in parts if isinstance(part, ToolResultPart))
    others = tuple(part for part in parts if not isinstance(part, ToolResultPart))
    role: Role = "system" if wire["role"] == "system" else "user"
    read = [Message(role="tool", parts=results, extra=extra)] if results else []
    return [*read, Message(role=role, parts=others, extra=extra)] if others or not results else read


def _read_content(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [TextPart(text=content)]
    return [_read_block(block) for block in content or ()]


def _read_block(block: Wire) -> Part:
    rest = without(block, "type")
    match block:
        case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": dict(value)}:
            extra = leftover(NAME, without(rest, "id", "name", "input"))
            return ToolCallPart(id=call_id, name=name, arguments=arguments_of(value), extra=extra)
        case {"type": "tool_result", "tool_use_id": str(call_id)}:
            return _read_result(call_id, rest)
        case {"type": "thinking", "thinking": str(text), "signature": str(signature)} if signature:
            extra = leftover(NAME, without(rest, "thinking", "signature"))
            return ReasoningPart(provider=NAME, text=text, signature=signature, extra=extra)
        case {"type": "redacted_thinking", "data": str(data)} if data:
            return ReasoningPart(provider=NAME, encrypted=data, extra=leftover(NAME, without(rest, "data")))
        case _:
            return _read_content_block(block, rest)


def _read_content_block(block: Wire, rest: Wire) -> ResultContent:
    part = _known_block(block, rest)
    if part is not None and _blocks(part) == [block]:
        return part
    return OpaquePart(provider=NAME, block=block)


def _known_block(block: Wire, rest: Wire) -> ResultContent | None:
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text, extra=block_extra(NAME, without(rest, "text")))
        case {"type": "image", "source": {"type": "base64", "media_type": str(mime), "data": str(data)}}:
            return ImagePart(mime=mime, data=data, extra=leftover(NAME, without(rest, "source")))
        case {"type": "image", "source": {"type": "url", "url": str(url)}}:
            return ImagePart(url=url, extra=leftover(NAME, without(rest, "source")))
        case {"type": "document", "source": {"type": "base64", "media_type": str(mime), "data": str(data)}}:
            name = rest.get("title") or ""
            return FilePart(mime=mime, data=data, name=name, extra=leftover(NAME, without(rest, "source", "title")))
        case {"type": "document", "source": {"type": "url", "url": str(url)}}:
            return FilePart(
                url=url, name=rest.get("title") or "", extra=leftover(NAME, without(rest, "source", "title"))
            )
        case _:
            return None


def _read_result(call_id: str, rest: Wire) -> ToolResultPart:
    content = rest.get("content")
    known = ["tool_use_id"]
    parts: tuple[ResultContent, ...] = ()
    if isinstance(content, str) and content:
        parts = (TextPart(text=content),)
    elif content:
        parts = tuple(_read_content_block(block, without(block, "type")) for block in content)
    if content and not (isinstance(content, str) and is_blank(content)):
        known.append("content")
    if rest.get("is_error") is True:
        known.append("is_error")
    return ToolResultPart(
        call_id=call_id, parts=parts, is_error=bool(rest.get("is_error")), extra=leftover(NAME, without(rest, *known))
    )


def _usage(wire: Wire | None) -> Usage | None:
    if not wire:
        return None
    return Usage(
        input_tokens=wire.get("input_tokens") or 0,
        output_tokens=wire.get("output_tokens") or 0,
        cache_read_tokens=wire.get("cache_read_input_tokens") or 0,
        cache_write_tokens=wire.get("cache_creation_input_tokens") or 0,
    )
