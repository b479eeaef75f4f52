"""OpenAI Chat Completions, and the many servers that speak it.

>>> from sessiontree.model.builders import user
>>> to_request(Context(system="Be brief.", messages=(user("hello").message,)))
{'messages': [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'hello'}]}

Messages in the shape of chat completions, as several programs keep them: a role, content, calls, a call id.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from msgspec.structs import replace

from sessiontree.context import Context
from sessiontree.context.dialects._shared import (
    OPENING,
    Answer,
    CallIds,
    Dialect,
    Wire,
    answer_of,
    content_of,
    conversation,
    data_url,
    has_form,
    is_blank,
    kept,
    media_note,
    own,
    source_of,
    text_block,
    tool_name,
    without,
)
from sessiontree.model import (
    Custom,
    FilePart,
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
    Usage,
)
from sessiontree.model.builders import payload_of as payload_for

__all__ = ["DIALECT", "FOREIGN", "chat_of", "from_request", "from_response", "payload_of_chat", "to_request"]


NAME = "openai-chat"
_ID_LIMIT = 40
_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def to_request(context: Context) -> Wire:
    """``messages`` with the system prompt in front."""
    ids = CallIds(_ID_LIMIT, may_repeat=True)
    head = [] if is_blank(context.system) else [{"role": "system", "content": context.system}]
    said = [wire for message in conversation(context) for wire in _wire_messages(message, ids)]
    return {"messages": [*head, *(said or [{"role": "user", "content": OPENING}])]}


def from_request(body: Wire) -> tuple[str, list[Message]]:
    """The system text and the messages of a request.

    >>> from_request({"messages": [{"role": "system", "content": "Be brief."}]})
    ('Be brief.', [])
    """
    match list(body.get("messages", ())):
        case [{"role": "system", "content": str(system), **rest}, *said] if not rest and not is_blank(system):
            return system, [_message(wire) for wire in said]
        case said:
            return "", [_message(wire) for wire in said]


def from_response(body: Wire) -> Answer:
    """The first choice of a completion."""
    choice = body["choices"][0]
    return answer_of(
        message=_message(choice["message"]),
        provider="openai",
        model=body.get("model", ""),
        stop_reason=choice.get("finish_reason") or "",
        usage=_usage(body.get("usage")),
    )


DIALECT = Dialect(name=NAME, to_request=to_request, from_request=from_request, from_response=from_response)


def _wire_messages(message: Message, ids: CallIds) -> Iterable[Wire]:
    rest = own(message.extra, NAME)
    match message.role:
        case "tool":
            return [_tool_message(result, ids, rest) for result in message.tool_results]
        case "assistant":
            return _assistant_message(message, ids, rest)
        case "user" | "system":
            return _input_message(message, rest)


def _input_message(message: Message, rest: Wire) -> Iterable[Wire]:
    if message.extra.get(NAME, {}).get("$whole"):
        return [part.block for part in message.parts if isinstance(part, OpaquePart)]
    content = content_of(block for part in message.parts for block in _input_blocks(part))
    if not content:
        return []
    return [{"role": message.role, "content": content, **_named(message), **rest}]


def _assistant_message(message: Message, ids: CallIds, rest: Wire) -> Iterable[Wire]:
    content = content_of(block for part in message.parts for block in _output_blocks(part))
    calls = [_wire_call(call, ids) for call in message.tool_calls]
    thoughts = [part.text for part in message.parts if isinstance(part, ReasoningPart) and part.provider == NAME]
    if not (content or calls or rest.get("refusal") or rest.get("audio") or rest.get("function_call")):
        return []
    wire: Wire = {"role": "assistant", "content": _or_none(content, message), **_named(message)}
    if thoughts:
        wire["reasoning_content"] = "".join(thoughts)
    if calls:
        wire["tool_calls"] = calls
    omitted = message.extra.get(NAME, {}).get("$omit", ())
    return [{key: value for key, value in {**wire, **rest}.items() if key not in omitted or value}]


def _or_none(content: Any, message: Message) -> Any:
    """No content is null; an empty text that came as such stays one."""
    if content:
        return content
    return "" if any(isinstance(part, TextPart) for part in message.parts) else None


def _named(message: Message) -> Wire:
    return {"name": message.name} if message.name else {}


def _input_blocks(part: Part) -> list[str | Wire]:
    rest = own(part.extra, NAME)
    match part:
        case TextPart(text=text):
            return [{**text_block(text), **rest} if has_form(part.extra, NAME) else text]
        case ImagePart(url=url, data=data, mime=mime) if url or data:
            image = {"url": url or data_url(mime, data), **rest.pop("image_url", {})}
            return [{"type": "image_url", "image_url": image, **rest}]
        case FilePart(data=data, mime=mime, name=name) if data:
            file = {"file_data": data_url(mime, data), **({"filename": name} if name else {}), **rest.pop("file", {})}
            return [{"type": "file", "file": file, **rest}]
        case ImagePart() | FilePart():
            return [media_note(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return [block]
        case _:
            return []


def _output_blocks(part: Part) -> list[str | Wire]:
    """Only texts and refusals may stand in an answer."""
    if isinstance(part, ImagePart | FilePart):
        return [media_note(part)]
    return _input_blocks(part)


def _wire_call(call: ToolCallPart, ids: CallIds) -> Wire:
    rest = own(call.extra, NAME)
    name = tool_name(call.name)
    if call.extra.get(NAME, {}).get("$custom"):
        custom = {"name": name, "input": call.arguments, **rest.pop("custom", {})}
        return {"id": ids.ask(call), "type": "custom", "custom": custom, **rest}
    function = {"name": name, "arguments": call.arguments, **rest.pop("function", {})}
    return {"id": ids.ask(call), "type": "function", "function": function, **rest}


def _tool_message(result: ToolResultPart, ids: CallIds, rest: Wire) -> Wire:
    blocks = [block for part in result.parts for block in _output_blocks(part)]
    return {"role": "tool", "tool_call_id": ids.answer().id, "content": content_of(blocks), **rest}


def _message(wire: Wire) -> Message:
    role = wire.get("role")
    if role == "tool":
        return _read_result(wire)
    if role not in _ROLES:
        whole = OpaquePart(provider=NAME, block=wire)
        return Message(role="user", parts=(whole,), extra=kept(NAME, {"$whole": True}))
    rest = without(wire, "role", "content", "name")
    if role == "developer":
        rest["role"] = role
    parts = _read_content(wire.get("content"))
    if role == "assistant":
        parts = [*_read_thoughts(rest), *parts, *_read_calls(rest)]
        if "content" not in wire:
            rest["$omit"] = ["content"]
    extra = kept(NAME, rest) if rest else {}
    return Message(role=_ROLES[role], parts=tuple(parts), name=wire.get("name", ""), extra=extra)


def _read_thoughts(rest: Wire) -> list[Part]:
    if isinstance(rest.get("reasoning_content"), str) and rest["reasoning_content"]:
        return [ReasoningPart(provider=NAME, text=rest.pop("reasoning_content"))]
    return []


def _read_calls(rest: Wire) -> list[Part]:
    calls = rest.get("tool_calls")
    if not calls:
        return []
    del rest["tool_calls"]
    return [_read_call(call) for call in calls]


def _read_call(wire: Wire) -> ToolCallPart:
    rest = without(wire, "id", "type", "function", "custom")
    is_custom = wire.get("type") == "custom"
    word, text = ("custom", "input") if is_custom else ("function", "arguments")
    body = dict(wire[word])
    name, arguments = body.pop("name"), body.pop(text, "")
    if body:
        rest[word] = body
    if is_custom:
        rest["$custom"] = True
    return ToolCallPart(id=wire.get("id") or "", name=name, arguments=arguments, extra=kept(NAME, rest) if rest else {})


def _read_result(wire: Wire) -> Message:
    rest = without(wire, "role", "content", "tool_call_id")
    parts = tuple(part for part in _read_content(wire.get("content")) if not isinstance(part, ToolCallPart))
    result = ToolResultPart(call_id=wire["tool_call_id"], parts=parts)  # type: ignore[arg-type]
    return Message(role="tool", parts=(result,), extra=kept(NAME, rest) if rest else {})


def _read_content(content: Any) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(text=content)]
    return [_read_block(block) for block in content]


def _read_block(block: Wire) -> Part:
    part = _known_block(block)
    is_exact = part is not None and _input_blocks(part) == [block]
    return part if part is not None and is_exact else OpaquePart(provider=NAME, block=block)


def _known_block(block: Wire) -> Part | None:
    rest = without(block, "type", "text", "image_url", "file")
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text, extra=kept(NAME, rest))
        case {"type": "image_url", "image_url": {"url": str(url), **more}}:
            extra = {**rest, "image_url": more} if more else rest
            return ImagePart(**source_of(url), extra=kept(NAME, extra))
        case {"type": "file", "file": {"file_data": str(url), **more}}:
            name = str(more.pop("filename", ""))
            extra = {**rest, "file": more} if more else rest
            return FilePart(**source_of(url), name=name, extra=kept(NAME, extra))
        case _:
            return None


def _usage(wire: Wire | None) -> Usage | None:
    if not wire:
        return None
    prompt = wire.get("prompt_tokens_details") or {}
    completion = wire.get("completion_tokens_details") or {}
    cached = prompt.get("cached_tokens") or 0
    return Usage(
        input_tokens=(wire.get("prompt_tokens") or 0) - cached,
        output_tokens=wire.get("completion_tokens") or 0,
        cache_read_tokens=cached,
        reasoning_tokens=completion.get("reasoning_tokens") or 0,
        total_tokens=wire.get("total_tokens") or 0,
    )


FOREIGN = "message"
"""Name of a custom entry for a message that is none of ours."""

_PROVIDER = "openai-chat"
_CHAT_ROLES = frozenset({"user", "assistant", "tool", "system"})
_KNOWN = frozenset({"role", "content", "tool_calls", "tool_call_id", "name", "reasoning"})


def payload_of_chat(wire: dict[str, Any]) -> Payload:
    """Our payload; where ``chat_of`` would not give the same back, the message is kept whole beside it."""
    payload = _payload(wire)
    if chat_of(payload) != wire:
        return replace(payload, origin={"message": wire})
    return payload


def _payload(wire: dict[str, Any]) -> Payload:
    role: Any = wire.get("role")
    if not (isinstance(role, str) and role in _CHAT_ROLES):
        return Custom(name=FOREIGN, data=wire)
    extra = {name: value for name, value in wire.items() if name not in _KNOWN}
    name = wire.get("name")
    return payload_for(
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
    thought: list[Part] = [ReasoningPart(text=reasoning)] if isinstance(reasoning, str) else []
    calls = wire.get("tool_calls")
    asked = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return [*thought, *content, *map(_call, asked)]


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
    """The message of an entry; ``None`` for an entry that has none."""
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
    return [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]


def _wire_block(part: Part) -> Any:
    match part:
        case TextPart(text=text):
            return {"type": "text", "text": text} if part.extra.get("block") else text
        case ImagePart():
            url = f"data:{part.mime};base64,{part.data}" if part.data else part.url
            return {"type": "image_url", "image_url": {"url": url}}
        case OpaquePart(block=block):
            return block
        case _:
            return ""


def _chat_call(part: ToolCallPart) -> dict[str, Any]:
    if part.extra.get("flat"):
        return {"id": part.id, "name": part.name, "arguments": part.arguments}
    return {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
