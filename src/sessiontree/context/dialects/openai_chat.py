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
from sessiontree.context.dialects._media import (
    file_fields,
    file_image,
    image_url,
    media_text,
    source_of,
)
from sessiontree.context.dialects._plain import cleaned, plain, plain_response, without_nulls
from sessiontree.context.dialects._request_fields import CHAT
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

__all__ = ["DIALECT", "from_request", "from_response", "to_request"]


NAME = "openai-chat"
_ID_LIMIT = 40
_FILE_TYPES = re.compile("application/pdf")
_ANSWER_BLOCKS = frozenset({"text", "refusal"})
_RESULT_BLOCKS = frozenset({"text"})
_REASONING_FIELDS = ("reasoning_content", "reasoning", "reasoning_details")

Reasoning = Literal["omit", "send"]
"""Whether a request has the reasoning that a server told. OpenAI, Groq and Mistral refuse it; DeepSeek, Kimi and MiMo
want it back inside a tool loop."""

_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}


def to_request(context: Context, *, placeholders: Placeholders = "required", reasoning: Reasoning = "omit") -> Wire:
    """Return ``messages``, the system prompt first."""
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
    match list(plain(body).get("messages", ())):
        case [{"role": "system", "content": str(system), **rest}, *messages] if not rest and not is_blank(system):
            return system, [_message(wire) for wire in messages]
        case messages:
            return "", [_message(wire) for wire in messages]


def from_response(body: Any) -> Answer:
    """Return the first choice of a completion; a completion without choices is an answer without content."""
    completion = plain_response(body, NAME, ("choices",))
    choice: Wire = next(iter(completion.get("choices") or ()), {})
    return answer_of(
        message=_message({"role": "assistant", "content": None, **without_nulls(choice.get("message") or {})}),
        provider="openai",
        model=completion.get("model") or "",
        stop_reason=choice.get("finish_reason") or "",
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
        return [part.block for part in message.parts if isinstance(part, OpaquePart)]
    content = content_of(block for part in message.parts for block in _input_blocks(part))
    if not content:
        return []
    return [{"role": message.role, "content": content, **_named(message), **rest}]


def _assistant_message(message: Message, ids: CallIds, rest: Wire) -> Iterable[Wire]:
    content = _told(content_of(block for part in message.parts for block in _output_blocks(part, _ANSWER_BLOCKS)))
    calls = [_wire_call(call, ids) for call in message.tool_calls]
    thoughts = [part.text for part in message.parts if isinstance(part, ReasoningPart) and part.provider == NAME]
    if not calls:
        rest.pop("tool_calls", None)
    if not (content or calls or rest.get("refusal") or rest.get("audio") or rest.get("function_call")):
        return []
    wire: Wire = {"role": "assistant", "content": _or_none(content, message), **_named(message)}
    if thoughts:
        wire["reasoning_content"] = "".join(thoughts)
    if calls:
        wire["tool_calls"] = calls
    omitted = message.extra.get(NAME, {}).get("$omit", ())
    given = {key: value for key, value in {**wire, **rest}.items() if key not in omitted or value}
    return [cleaned(_with_refusal(given), CHAT)]


def _with_refusal(answer: Wire) -> Wire:
    """An answer without content and calls must not have null: a refusal takes its place."""
    if answer.get("content") or any(answer.get(key) for key in ("tool_calls", "audio", "function_call")):
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
            return [{**text_block(text), **rest} if was_block(part.extra, NAME) else text]
        case ImagePart() if url := image_url(part):
            image = {"url": url, **rest.pop("image_url", {})}
            return [{"type": "image_url", "image_url": image, **rest}]
        case FilePart() if file := file_fields(part, _FILE_TYPES):
            return [{"type": "file", "file": {**file, **rest.pop("file", {})}, **rest}]
        case FilePart() if url := file_image(part):
            return [{"type": "image_url", "image_url": {"url": url}}]
        case ImagePart() | FilePart():
            return [media_text(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return [block]
        case _:
            return []


def _output_blocks(part: Part, allowed: frozenset[str]) -> list[str | Wire]:
    """Only texts and refusals are allowed in an answer, and only texts in a result."""
    match part:
        case ImagePart() | FilePart():
            return [media_text(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME and block.get("type") not in allowed:
            return [block_note(block)]
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
                return _input_blocks(part)
            return _output_blocks(part, _ANSWER_BLOCKS if role == "assistant" else _RESULT_BLOCKS)


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
    blocks = [block for part in result.parts for block in _output_blocks(part, _RESULT_BLOCKS)]
    return {"role": "tool", "tool_call_id": ids.pop().id, "content": content_of(blocks), **rest}


def _message(wire: Wire) -> Message:
    role = wire.get("role")
    if role == "tool":
        return _read_result(wire)
    if role not in _ROLES:
        whole = OpaquePart(provider=NAME, block=wire)
        return Message(role="user", parts=(whole,), extra=block_extra(NAME, {"$whole": True}))
    rest = without(wire, "role", "content", "name")
    if role == "developer":
        rest["role"] = role
    parts = _read_content(wire.get("content"))
    if role == "assistant":
        parts = [*_read_thoughts(rest), *parts, *_read_calls(rest)]
        if "content" not in wire:
            rest["$omit"] = ["content"]
    extra = leftover(NAME, rest)
    return Message(role=_ROLES[role], parts=tuple(parts), name=wire.get("name") or "", extra=extra)


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
    name, given = body.pop("name", None) or "", body.pop(text, None) or ""
    arguments = given if isinstance(given, str) else arguments_of(given)
    if body:
        rest[word] = body
    if is_custom:
        rest["$custom"] = True
    return ToolCallPart(id=wire.get("id") or "", name=name, arguments=arguments, extra=leftover(NAME, rest))


def _read_result(wire: Wire) -> Message:
    rest = without(wire, "role", "content", "tool_call_id")
    parts = tuple(part for part in _read_content(wire.get("content")) if not isinstance(part, ToolCallPart))
    result = ToolResultPart(call_id=wire["tool_call_id"], parts=parts)  # type: ignore[arg-type]
    return Message(role="tool", parts=(result,), extra=leftover(NAME, rest))


def _read_content(content: Any) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, str):
        return [TextPart(text=content)]
    return [_read_block(block) for block in content]


def _read_block(block: Wire) -> Part:
    part = _known_block(block)
    if part is None or not (_input_blocks(part) == [block] or isinstance(part, ImagePart | FilePart)):
        return OpaquePart(provider=NAME, block=block)
    return part


def _known_block(block: Wire) -> Part | None:
    rest = without(block, "type", "text", "image_url", "file")
    match block:
        case {"type": "text", "text": str(text)}:
            return TextPart(text=text, extra=block_extra(NAME, rest))
        case {"type": "image_url", "image_url": {"url": str(url), **more}}:
            extra = {**rest, "image_url": more} if more else rest
            return ImagePart(**source_of(url), extra=block_extra(NAME, extra))
        case {"type": "file", "file": {"file_data": str(url), **more}}:
            name = str(more.pop("filename", ""))
            extra = {**rest, "file": more} if more else rest
            return FilePart(**source_of(url), name=name, extra=block_extra(NAME, extra))
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
