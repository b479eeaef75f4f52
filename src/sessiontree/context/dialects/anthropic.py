"""Anthropic Messages.

>>> from sessiontree.model.builders import user
>>> to_request(Context(system="Be brief.", messages=(user("hello").message,)))
{'system': 'Be brief.', 'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'hello'}]}]}
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

from sessiontree.context import Context
from sessiontree.context.dialects._fitting import fitted
from sessiontree.context.dialects._media import IMAGE_TYPES, media_note, media_notes, media_source, media_text, web_url
from sessiontree.context.dialects._plain import a_text, counts, objects, plain_request, plain_response, without_nulls
from sessiontree.context.dialects._request_types import ANTHROPIC, ANTHROPIC_RESULT
from sessiontree.context.dialects._shared import (
    CONTINUE,
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
    in_turn,
    is_blank,
    is_blank_item,
    leftover,
    object_of,
    own_fields,
    text_block,
    tool_name,
    was_block,
    without,
)
from sessiontree.context.dialects.anthropic_stream import AnthropicAnswer
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
_CACHE_MARKS = 4
_SERVER_CALL = "server_tool_use"
_ID_LIMIT = 64
_THOUGHTS = ("thinking", "redacted_thinking")
_DOCUMENT_TYPES = frozenset({"application/pdf"})


def to_request(context: Context, *, placeholders: Placeholders = "required") -> Wire:
    """Return ``system`` and ``messages``: the user first and last, alternating roles, no empty block."""
    check_option("placeholders", placeholders, Placeholders)
    ids = CallIds(_ID_LIMIT)
    written = [_wire_message(message, ids) for message in conversation(context)]
    messages = _in_turn([message for message in written if message["content"]], placeholders)
    if placeholders == "required" and (not messages or messages[0]["role"] != "user"):
        messages = _in_turn([_said(OPENING), *messages], placeholders)
    if placeholders == "required" and messages[-1]["role"] != "user" and not _is_paused(messages[-1]):
        messages.append(_said(CONTINUE))
    system = {} if is_blank(context.system) else {"system": context.system}
    return {**system, "messages": _with_few_cache_marks(messages)}


def from_request(body: Any) -> tuple[str, list[Message]]:
    """Return the system prompt and the messages of a request."""
    request = plain_request(body, NAME)
    system = request.get("system")
    if not isinstance(system, str):
        blocks = enumerate(objects(system, "system"))
        texts = [a_text(block.get("text"), f"system[{at}].text") for at, block in blocks if block.get("type") == "text"]
        system = "\n\n".join(texts)
    wires = enumerate(objects(request.get("messages"), "messages"))
    return system, [message for at, wire in wires for message in _messages(wire, f"messages[{at}]")]


def from_response(body: Any) -> Answer:
    """Return the message of a response."""
    response = plain_response(body, NAME, ("content",))
    return answer_of(
        message=Message(
            role="assistant", parts=tuple(_read_content(without_nulls(response.get("content")), "content"))
        ),
        provider=NAME,
        model=a_text(response.get("model"), "model"),
        stop_reason=a_text(response.get("stop_reason"), "stop_reason"),
        usage=_usage(response.get("usage")),
        around=without(response, "content", "usage", "model", "stop_reason"),
    )


def blocks_of(part: Part, role: Role) -> list[str | Wire]:
    """Return what a request holds of one part of a message."""
    return [*_items(part, role, CallIds(_ID_LIMIT))]


DIALECT = Dialect(
    name=NAME,
    to_request=to_request,
    from_request=from_request,
    from_response=from_response,
    answer_builder=AnthropicAnswer,
    blocks_of=blocks_of,
    has_error_results=True,
)


def _said(text: str) -> Wire:
    return {"role": "user", "content": [text_block(text)]}


def _in_turn(messages: Sequence[Wire], placeholders: Placeholders) -> list[Wire]:
    """Return alternating messages, without the blocks that the provider would reject."""

    def joins(first: Wire, _second: Wire) -> bool:
        return first["role"] == "user" or placeholders == "never" or _is_unfinished(first)

    turns = in_turn(_resumed(messages), "content", joins, between=_said(CONTINUE))
    held = [turn for turn in _acceptable(turns) if turn["content"]]
    return in_turn(held, "content", joins, between=_said(CONTINUE))


def _resumed(messages: Iterable[Wire]) -> list[Wire]:
    """Return the messages with an answer that goes on behind the one that paused.

    What the user said in between was not in the request that it answers, so it comes behind both.
    """
    placed: list[Wire] = []
    for message in messages:
        at = next((at for at in range(len(placed) - 1, -1, -1) if placed[at]["role"] == "assistant"), None)
        if at is not None and message["role"] == "assistant" and _goes_on(placed[at], message):
            placed.insert(at + 1, message)
        else:
            placed.append(message)
    return placed


def _goes_on(paused: Wire, answer: Wire) -> bool:
    """Return whether an answer has the result of the provider's tool that an earlier one waits for."""
    results = {block.get("tool_use_id") for block in answer["content"] if isinstance(block, dict)}
    return _is_paused(paused) and paused["content"][-1]["id"] in results


def _is_unfinished(answer: Wire) -> bool:
    """Return whether an answer goes on in the next one: it was paused, or it is reasoning only."""
    return _is_paused(answer) or all(_kind(block) in _THOUGHTS for block in answer["content"])


def _is_paused(answer: Wire) -> bool:
    """Return whether an answer waits for a tool of the provider. It is sent back as it is, and the model goes on."""
    return _kind(answer["content"][-1]) == _SERVER_CALL


def _acceptable(turns: Sequence[Wire]) -> Iterable[Wire]:
    """Drop calls of the provider's tools without a result, results without a call, and reasoning at the end."""
    used: set[str] = set()
    calling: set[str] = set()
    for turn in turns:
        if turn["role"] == "user":
            yield turn
            continue
        is_waiting = turn is turns[-1] and _is_paused(turn)
        content = _paired(turn["content"], used, calling, is_waiting)
        while content and _kind(content[-1]) in _THOUGHTS:
            content.pop()
        yield {**turn, "content": content}


def _paired(content: list[str | Wire], used: set[str], calling: set[str], is_waiting: bool) -> list[str | Wire]:
    """Return an answer in which calls of the provider's tools and their results are paired, the call first.

    ``calling`` are calls whose code calls tools of the client: their results come in a later answer.
    """
    blocks = [block for block in content if isinstance(block, dict)]
    answered = {block.get("tool_use_id") for block in blocks}
    calling |= {str((block.get("caller") or {}).get("tool_id")) for block in blocks}
    asked: set[str] = set()
    kept: list[str | Wire] = []
    for block in content:
        name = str(block.get("id")) if isinstance(block, dict) else ""
        if _kind(block) == _SERVER_CALL:
            if name in used or not (is_waiting or name in answered or name in calling):
                continue
            used.add(name)
        elif isinstance(block, dict) and "tool_use_id" in block and block["tool_use_id"] not in asked | calling:
            continue
        kept.append(block)
        asked.add(name)
    return kept


def _with_few_cache_marks(messages: list[Wire]) -> list[Wire]:
    """Return the messages with their contents; of the cache marks, the first four stay: no more are allowed."""
    marks = itertools.count()

    def marked(block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        inner = block.get("content")
        block = {**block, "content": [marked(item) for item in inner]} if isinstance(inner, list) else block
        is_over = block.get("cache_control") and next(marks) >= _CACHE_MARKS
        return without(block, "cache_control") if is_over else block

    return [{**turn, "content": content_of(marked(block) for block in turn["content"])} for turn in messages]


def _kind(item: str | Wire) -> str:
    return "text" if isinstance(item, str) else str(item.get("type"))


def _wire_message(message: Message, ids: CallIds) -> Wire:
    """Return a message with its blocks; a text is a string only if it was read as one, so that its form is for good."""
    role: Role = "assistant" if message.role == "assistant" else "user"
    items = [item for part in message.parts for item in _items(part, role, ids) if not is_blank_item(item)]
    is_string = bool(message.extra.get(NAME, {}).get("$string"))
    content = [item if is_string or isinstance(item, dict) else text_block(item) for item in items]
    return {"role": role, "content": content}


def _items(part: Part, role: Role, ids: CallIds) -> Iterable[str | Wire]:
    match part:
        case ToolCallPart():
            return _tool_use(part, ids)
        case ToolResultPart():
            return _tool_result(part, ids)
        case ReasoningPart():
            return _thought(part)
        case ImagePart() | FilePart() if role == "assistant":
            return [media_text(part)]
        case OpaquePart(block={"type": "thinking", "signature": ""}):
            return []
        case OpaquePart(block={"type": "document", "source": {"type": "text", "data": str(text)}}) if is_blank(text):
            return []
        case _:
            return _blocks(part)


def _blocks(part: Part) -> list[str | Wire]:
    rest = own_fields(part.extra, NAME)
    match part:
        case TextPart(text=text):
            return fitted({**text_block(text), **rest}, ANTHROPIC) if was_block(part.extra, NAME) else [text]
        case ImagePart():
            source = _source(part, IMAGE_TYPES)
            return fitted({"type": "image", "source": source, **rest}, ANTHROPIC) if source else [media_note(part)]
        case FilePart():
            source = _source(part, _DOCUMENT_TYPES)
            block = {"type": "document", "source": source, **({"title": part.name} if part.name else {}), **rest}
            return fitted(block, ANTHROPIC) if source else [media_text(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return fitted(block, ANTHROPIC)
        case _:
            return []


def _source(part: ImagePart | FilePart, types: frozenset[str]) -> Wire | None:
    source = media_source(part)
    if source.get("data") and source["mime"] in types:
        return {"type": "base64", "media_type": source["mime"], "data": source["data"]}
    return {"type": "url", "url": part.url} if web_url(part) else None


def _thought(part: ReasoningPart) -> list[str | Wire]:
    if part.provider != NAME:
        return []
    rest = own_fields(part.extra, NAME)
    if part.encrypted:
        return fitted({"type": "redacted_thinking", "data": part.encrypted, **rest}, ANTHROPIC)
    if part.signature:
        block = {"type": "thinking", "thinking": part.text, "signature": part.signature, **rest}
        return fitted(block, ANTHROPIC)
    return []


def _tool_use(call: ToolCallPart, ids: CallIds) -> list[Wire]:
    body = {"name": tool_name(call.name), "input": object_of(call.arguments)}
    return fitted({"type": "tool_use", "id": ids.add(call), **body, **own_fields(call.extra, NAME)}, ANTHROPIC)


def _tool_result(result: ToolResultPart, ids: CallIds) -> list[Wire]:
    parts: Iterable[Part] = _texts(result.parts) if result.is_error else result.parts
    items = [item for part in parts for item in _result_blocks(part) if not is_blank_item(item)]
    content = content_of(items) or ("The tool failed." if result.is_error else "")
    wire: Wire = {"type": "tool_result", "tool_use_id": ids.pop().id}
    if content:
        wire["content"] = content
    if result.is_error:
        wire["is_error"] = True
    return fitted({**wire, **own_fields(result.extra, NAME)}, ANTHROPIC)


def _result_blocks(part: Part) -> list[str | Wire]:
    match part:
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return fitted(block, ANTHROPIC_RESULT) or [block_note(block)]
        case _:
            return _blocks(part)


def _texts(parts: Iterable[Part]) -> list[Part]:
    """An error result may have texts only."""
    return [part for part in media_notes(parts) if isinstance(part, TextPart)]


def _messages(wire: Wire, place: str) -> list[Message]:
    """Return one message; a user message with tool results becomes two, the results first."""
    speaker = a_text(wire.get("role"), f"{place}.role")
    rest = without(wire, "role", "content")
    if isinstance(wire.get("content"), str):
        rest["$string"] = True
    extra = leftover(NAME, rest)
    parts = _read_content(wire.get("content"), f"{place}.content")
    if speaker == "assistant":
        return [Message(role="assistant", parts=tuple(parts), extra=extra)]
    results = tuple(part for part in parts if isinstance(part, ToolResultPart))
    others = tuple(part for part in parts if not isinstance(part, ToolResultPart))
    role: Role = "system" if speaker == "system" else "user"
    read = [Message(role="tool", parts=results, extra=extra)] if results else []
    return [*read, Message(role=role, parts=others, extra=extra)] if others or not results else read


def _read_content(content: Any, place: str) -> list[Part]:
    if isinstance(content, str):
        return [TextPart(text=content)]
    return [_read_block(block, f"{place}[{index}]") for index, block in enumerate(objects(content, place))]


def _read_block(block: Wire, place: str) -> Part:
    rest = without(block, "type")
    match block:
        case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": dict(value)}:
            extra = leftover(NAME, without(rest, "id", "name", "input"))
            return ToolCallPart(id=call_id, name=name, arguments=arguments_of(value), extra=extra)
        case {"type": "tool_use", "id": str(call_id), "name": str(name)}:
            extra = leftover(NAME, without(rest, "id", "name", "input"))
            return ToolCallPart(id=call_id, name=name, arguments=_arguments(block.get("input")), extra=extra)
        case {"type": "tool_result", "tool_use_id": str(call_id)}:
            return _read_result(call_id, rest, place)
        case {"type": "thinking", "thinking": str(text), "signature": str(signature)}:
            extra = leftover(NAME, without(rest, "thinking", "signature"))
            return ReasoningPart(provider=NAME, text=text, signature=signature, extra=extra)
        case {"type": "redacted_thinking", "data": str(data)} if data:
            return ReasoningPart(provider=NAME, encrypted=data, extra=leftover(NAME, without(rest, "data")))
        case _:
            return _read_content_block(block, rest)


def _read_content_block(block: Wire, rest: Wire) -> ResultContent:
    part = _known_block(block, rest)
    match part, _blocks(part) if part else []:
        case (ImagePart() | FilePart()) as media, [str()]:
            return media
        case TextPart() | ImagePart() | FilePart() as exact, [written] if [written] == fitted(block, ANTHROPIC):
            return exact
        case _:
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
            name = str(rest.get("title") or "")
            return FilePart(mime=mime, data=data, name=name, extra=leftover(NAME, without(rest, "source", "title")))
        case {"type": "document", "source": {"type": "url", "url": str(url)}}:
            name = str(rest.get("title") or "")
            return FilePart(url=url, name=name, extra=leftover(NAME, without(rest, "source", "title")))
        case _:
            return None


def _arguments(given: Any) -> str:
    """An input that is no object: a text that was cut, as a stream leaves it, or something odd as JSON."""
    return given if isinstance(given, str) else "" if given is None else json.dumps(given, ensure_ascii=False)


def _read_result(call_id: str, rest: Wire, place: str) -> ToolResultPart:
    content = rest.get("content")
    known = ["tool_use_id"]
    parts: tuple[ResultContent, ...] = ()
    if isinstance(content, str):
        parts = (TextPart(text=content),) if content else ()
    else:
        blocks = objects(content, f"{place}.content")
        parts = tuple(_read_content_block(block, without(block, "type")) for block in blocks)
    if content and not (isinstance(content, str) and is_blank(content)):
        known.append("content")
    if rest.get("is_error") is True:
        known.append("is_error")
    return ToolResultPart(
        call_id=call_id, parts=parts, is_error=bool(rest.get("is_error")), extra=leftover(NAME, without(rest, *known))
    )


def _usage(wire: Any) -> Usage | None:
    if not wire:
        return None
    found = counts(wire, "usage")
    return Usage(
        input_tokens=found.get("input_tokens", 0),
        output_tokens=found.get("output_tokens", 0),
        cache_read_tokens=found.get("cache_read_input_tokens", 0),
        cache_write_tokens=found.get("cache_creation_input_tokens", 0),
    )
