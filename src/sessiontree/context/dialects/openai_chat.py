"""OpenAI Chat Completions, which many other servers accept too.

>>> from sessiontree.model.builders import user
>>> to_request(Context(system="Be brief.", messages=(user("hello").message,)))
{'messages': [{'role': 'system', 'content': 'Be brief.'}, {'role': 'user', 'content': 'hello'}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from sessiontree.context import Context
from sessiontree.context.dialects._fitting import fitted, fitting
from sessiontree.context.dialects._media import (
    file_fields,
    file_image,
    image_url,
    is_base64,
    media_text,
    source_of,
)
from sessiontree.context.dialects._plain import (
    a_text,
    an_object,
    counts,
    objects,
    plain_request,
    plain_response,
    without_nulls,
)
from sessiontree.context.dialects._request_types import CHAT, CHAT_ANSWER, CHAT_CONTENT, CHAT_RESULT
from sessiontree.context.dialects._shared import (
    OPENING,
    Answer,
    CallIds,
    Dialect,
    Placeholders,
    Wire,
    answer_of,
    arguments_of,
    block_extra,
    block_note,
    check_option,
    content_of,
    conversation,
    is_blank,
    leftover,
    object_text,
    own_fields,
    text_block,
    tool_name,
    was_block,
    without,
)
from sessiontree.context.dialects.openai_chat_stream import ChatAnswer
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


NAME = "openai-chat"
_ID_LIMIT = 40
_FILE_TYPES = re.compile("application/pdf")
_SAYING = ("content", "tool_calls", "audio", "function_call")
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")

Reasoning = Literal["omit", "send"]
"""Whether a request has the reasoning that a server told. OpenAI, Groq and Mistral refuse it; DeepSeek, Kimi and MiMo
want it back inside a tool loop."""

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def to_request(context: Context, *, placeholders: Placeholders = "required", reasoning: Reasoning = "omit") -> Wire:
    """Return ``messages``, the system prompt first."""
    check_option("placeholders", placeholders, Placeholders)
    check_option("reasoning", reasoning, Reasoning)
    ids = CallIds(_ID_LIMIT, may_repeat=True)
    head = [] if is_blank(context.system) else [{"role": "system", "content": context.system}]
    written = [wire for message in conversation(context) for wire in _wire_messages(message, ids)]
    if reasoning == "omit":
        written = [without(wire, *_REASONING_FIELDS) for wire in written]
    if not written and placeholders == "required":
        written = [{"role": "user", "content": OPENING}]
    return {"messages": [*head, *written]}


def from_request(body: Any) -> tuple[str, list[Message]]:
    """Return the system prompt and the messages of a request.

    >>> from_request({"messages": [{"role": "system", "content": "Be brief."}]})
    ('Be brief.', [])
    """
    wires = objects(plain_request(body, NAME).get("messages"), "messages")
    messages = [_message(wire, f"messages[{index}]") for index, wire in enumerate(wires)]
    match wires:
        case [{"role": "system", "content": str(system), **rest}, *_] if not rest and not is_blank(system):
            return system, messages[1:]
        case _:
            return "", messages


def from_response(body: Any) -> Answer:
    """Return the first choice of a completion; a completion without choices is an answer without content."""
    completion = plain_response(body, NAME, ("choices",))
    choice: Wire = next(iter(objects(completion.get("choices"), "choices")), {})
    message = without_nulls(an_object(choice.get("message"), "choices[0].message"))
    return answer_of(
        message=_message({"content": None, **message, "role": "assistant"}, "choices[0].message"),
        provider="openai",
        model=a_text(completion.get("model"), "model"),
        stop_reason=a_text(choice.get("finish_reason"), "choices[0].finish_reason"),
        usage=_usage(completion.get("usage")),
        around={**without(completion, "choices", "usage", "model"), **without(choice, "message", "finish_reason")},
    )


def _wire_messages(message: Message, ids: CallIds) -> Iterable[Wire]:
    rest = own_fields(message.extra, NAME)
    match message.role:
        case "tool":
            return [_tool_message(result, ids, rest) for result in message.tool_results]
        case "assistant":
            return _assistant_message(message, ids, rest)
        case "user" | "system":
            return _input_message(message, rest)


def _input_message(message: Message, rest: Wire) -> Iterable[Wire]:
    if message.extra.get(NAME, {}).get("$whole"):
        return fitting((part.block for part in message.parts if isinstance(part, OpaquePart)), CHAT)
    content = content_of(block for part in message.parts for block in _input_blocks(part))
    if not content:
        return []
    return fitted({"role": message.role, "content": content, **_named(message), **rest}, CHAT)


def _assistant_message(message: Message, ids: CallIds, rest: Wire) -> Iterable[Wire]:
    content = _told(content_of(block for part in message.parts for block in _output_blocks(part, CHAT_ANSWER)))
    calls = [_wire_call(call, ids) for call in message.tool_calls]
    thoughts = [part.text for part in message.parts if isinstance(part, ReasoningPart) and part.provider == NAME]
    rest.pop("tool_calls", None)
    wire: Wire = {"role": "assistant", "content": _or_none(content, message), **_named(message)}
    if thoughts:
        wire["reasoning_content"] = "".join(thoughts)
    if calls:
        wire["tool_calls"] = calls
    omitted = message.extra.get(NAME, {}).get("$omit", ())
    given = {key: value for key, value in {**wire, **rest}.items() if key not in omitted or value}
    held = map(_with_refusal, fitted(given, CHAT))
    return [answer for answer in held if any(answer.get(key) for key in _SAYING)]


def _with_refusal(answer: Wire) -> Wire:
    """An answer without content and calls must not have null: a refusal takes its place."""
    if any(answer.get(key) for key in _SAYING):
        return answer
    refusal = answer.get("refusal")
    return {**without(answer, "refusal"), "content": [{"type": "refusal", "refusal": refusal}]} if refusal else answer


def _told(content: str | list[Wire]) -> str | list[Wire]:
    """A refusal is the only block of a content; beside others it is a text."""
    if isinstance(content, str) or len(content) == 1:
        return content
    return [text_block(block["refusal"]) if block.get("type") == "refusal" else block for block in content]


def _or_none(content: Any, message: Message) -> Any:
    """Missing content is null; an empty text stays an empty text."""
    if content:
        return content
    return "" if any(isinstance(part, TextPart) for part in message.parts) else None


def _named(message: Message) -> Wire:
    return {"name": tool_name(message.name)} if message.name else {}


def _input_blocks(part: Part) -> list[str | Wire]:
    rest = own_fields(part.extra, NAME)
    match part:
        case TextPart(text=text):
            return fitted({**text_block(text), **rest}, CHAT_CONTENT) if was_block(part.extra, NAME) else [text]
        case ImagePart() if url := image_url(part):
            image = {"url": url, **rest.pop("image_url", {})}
            return fitted({"type": "image_url", "image_url": image, **rest}, CHAT_CONTENT)
        case FilePart() if file := file_fields(part, _FILE_TYPES):
            return fitted({"type": "file", "file": {**file, **rest.pop("file", {})}, **rest}, CHAT_CONTENT)
        case FilePart() if url := file_image(part):
            return [{"type": "image_url", "image_url": {"url": url}}]
        case ImagePart() | FilePart():
            return [media_text(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return [held for held in fitted(block, CHAT_CONTENT) if _has_source(held)] or [block_note(block)]
        case _:
            return []


def _has_source(block: Wire) -> bool:
    """Return whether a file is an uploaded one, and whether a sound can be decoded."""
    match block:
        case {"type": "file", "file": file}:
            return bool(file.get("file_id")) and "file_data" not in file
        case {"type": "input_audio", "input_audio": {"data": str(data)}}:
            return data != "" and is_base64(data)
        case _:
            return True


def _output_blocks(part: Part, shape: Any) -> list[str | Wire]:
    """Only texts and refusals are allowed in an answer, and only texts in a result."""
    match part:
        case ImagePart() | FilePart():
            return [media_text(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return fitted(block, shape) or [block_note(block)]
        case _:
            return _input_blocks(part)


def blocks_of(part: Part, role: Role) -> list[str | Wire]:
    """Return what a request holds of one part of a message."""
    match part:
        case ToolCallPart():
            return [_wire_call(part, CallIds(_ID_LIMIT))]
        case ReasoningPart():
            return []
        case _:
            if role == "user":
                whole = fitted(part.block, CHAT) if isinstance(part, OpaquePart) and part.provider == NAME else []
                return [*whole] or _input_blocks(part)
            return _output_blocks(part, CHAT_ANSWER if role == "assistant" else CHAT_RESULT)


DIALECT = Dialect(
    name=NAME,
    to_request=to_request,
    from_request=from_request,
    from_response=from_response,
    answer_builder=ChatAnswer,
    blocks_of=blocks_of,
    has_error_results=False,
)


def _wire_call(call: ToolCallPart, ids: CallIds) -> Wire:
    rest = own_fields(call.extra, NAME)
    name = tool_name(call.name)
    if call.extra.get(NAME, {}).get("$custom"):
        custom = {"name": name, "input": call.arguments, **rest.pop("custom", {})}
        return {"id": ids.add(call), "type": "custom", "custom": custom, **rest}
    function = {"name": name, "arguments": object_text(call.arguments), **rest.pop("function", {})}
    return {"id": ids.add(call), "type": "function", "function": function, **rest}


def _tool_message(result: ToolResultPart, ids: CallIds, rest: Wire) -> Wire:
    blocks = [block for part in result.parts for block in _output_blocks(part, CHAT_RESULT)]
    wire: Wire = {"role": "tool", "tool_call_id": ids.pop().id, "content": content_of(blocks)}
    return {**wire, **without(rest, *wire)}


def _message(wire: Wire, place: str) -> Message:
    role = a_text(wire.get("role"), f"{place}.role")
    if role == "tool":
        return _read_result(wire, place)
    if role not in _ROLES:
        whole = OpaquePart(provider=NAME, block=wire)
        return Message(role="user", parts=(whole,), extra=block_extra(NAME, {"$whole": True}))
    rest = without(wire, "role", "content", "name")
    if role == "developer":
        rest["role"] = role
    parts: list[Part] = [*_read_content(wire.get("content"), f"{place}.content")]
    if role == "assistant":
        parts = [*_read_thoughts(rest), *parts, *_read_calls(rest, f"{place}.tool_calls")]
        if "content" not in wire:
            rest["$omit"] = ["content"]
    name = a_text(wire.get("name"), f"{place}.name")
    return Message(role=_ROLES[role], parts=tuple(parts), name=name, extra=leftover(NAME, rest))


def _read_thoughts(rest: Wire) -> list[Part]:
    if isinstance(rest.get("reasoning_content"), str) and rest["reasoning_content"]:
        return [ReasoningPart(provider=NAME, text=rest.pop("reasoning_content"))]
    return []


def _read_calls(rest: Wire, place: str) -> list[Part]:
    calls = objects(rest.get("tool_calls"), place)
    if not calls:
        return []
    del rest["tool_calls"]
    return [_read_call(call, f"{place}[{index}]") for index, call in enumerate(calls)]


def _read_call(wire: Wire, place: str) -> ToolCallPart:
    rest = without(wire, "id", "type", "function", "custom")
    is_custom = wire.get("type") == "custom"
    word, text = ("custom", "input") if is_custom else ("function", "arguments")
    body = dict(an_object(wire.get(word), f"{place}.{word}"))
    name, given = a_text(body.pop("name", None), f"{place}.{word}.name"), body.pop(text, None)
    arguments = arguments_of(given) if isinstance(given, dict) else a_text(given, f"{place}.{word}.{text}")
    if body:
        rest[word] = body
    if is_custom:
        rest["$custom"] = True
    call_id = a_text(wire.get("id"), f"{place}.id")
    return ToolCallPart(id=call_id, name=name, arguments=arguments, extra=leftover(NAME, rest))


def _read_result(wire: Wire, place: str) -> Message:
    rest = without(wire, "role", "content", "tool_call_id")
    content = _read_content(wire.get("content"), f"{place}.content")
    call_id = a_text(wire.get("tool_call_id"), f"{place}.tool_call_id")
    return Message(
        role="tool", parts=(ToolResultPart(call_id=call_id, parts=tuple(content)),), extra=leftover(NAME, rest)
    )


def _read_content(content: Any, place: str) -> list[ResultContent]:
    if isinstance(content, str):
        return [TextPart(text=content)]
    return [_read_block(block) for block in objects(content, place)]


def _read_block(block: Wire) -> ResultContent:
    part = _known_block(block)
    if part is None or not (_input_blocks(part) == [block] or isinstance(part, ImagePart | FilePart)):
        return OpaquePart(provider=NAME, block=block)
    return part


def _known_block(block: Wire) -> ResultContent | None:
    rest = without(block, "type", "text", "image_url", "file")
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text, extra=block_extra(NAME, rest))
        case {"type": "image_url", "image_url": {"url": str(url), **more}}:
            extra = {**rest, "image_url": more} if more else rest
            return ImagePart(**source_of(url), extra=block_extra(NAME, extra))
        case {"type": "file", "file": {"file_data": str(url), **more}}:
            name = str(more.pop("filename", None) or "")
            extra = {**rest, "file": more} if more else rest
            return FilePart(**source_of(url), name=name, extra=block_extra(NAME, extra))
        case _:
            return None


def _usage(wire: Any) -> Usage | None:
    if not wire:
        return None
    found = counts(wire, "usage")
    cached = found.get("cached_tokens", 0)
    return Usage(
        input_tokens=found.get("prompt_tokens", 0) - cached,
        output_tokens=found.get("completion_tokens", 0),
        cache_read_tokens=cached,
        reasoning_tokens=found.get("reasoning_tokens", 0),
        total_tokens=found.get("total_tokens", 0),
    )
