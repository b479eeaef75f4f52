"""OpenAI Responses.

>>> from sessiontree.model.builders import user
>>> to_request(Context(system="Be brief.", messages=(user("hello").message,)))
{'instructions': 'Be brief.', 'input': [{'role': 'user', 'content': 'hello'}]}
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sessiontree.context import Context
from sessiontree.context.dialects._media import (
    file_fields,
    file_image,
    image_url,
    media_text,
    source_of,
    web_url,
)
from sessiontree.context.dialects._plain import cleaned, cleaned_block, plain, plain_response, without_nulls
from sessiontree.context.dialects._request_fields import AWAITED_CALLS, RESPONSES
from sessiontree.context.dialects._shared import (
    OPENING,
    Answer,
    CallIds,
    Dialect,
    Placeholders,
    Wire,
    answer_of,
    block_extra,
    conversation,
    is_blank,
    leftover,
    object_text,
    own_fields,
    tool_name,
    was_block,
    without,
)
from sessiontree.context.dialects.openai_responses_stream import ResponsesAnswer
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


NAME = "openai-responses"
_ID_LIMIT = 64
_FILE_TYPES = re.compile(r"(?!(?:audio|video|image|font)/|application/(?:zip|octet-stream)$).+/.+")
_REASONING_ID = re.compile(r"rs[A-Za-z0-9_-]{0,62}")
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = ("function_call_output", "custom_tool_call_output")
_NAMELESS = ("message", *_CALLS)
_USER_ITEMS = ("item_reference", "mcp_approval_response", "compaction_trigger", "additional_tools")


def to_request(context: Context, *, placeholders: Placeholders = "required") -> Wire:
    """Return ``instructions`` and ``input``."""
    ids = CallIds(_ID_LIMIT)
    items = [item for message in conversation(context) for item in _items(message, ids)]
    written = _without_loose_thoughts(_without_unanswered_calls(_without_repeated_ids(items)))
    if not written and placeholders == "required":
        written = [{"role": "user", "content": OPENING}]
    system = {} if is_blank(context.system) else {"instructions": context.system}
    return {**system, "input": written}


def from_request(body: Any) -> tuple[str, list[Message]]:
    """Return the instructions and the messages of a request; neighbouring items of the model are one message.

    >>> from_request({"input": "hello"})[1][0].text
    'hello'
    """
    request: Wire = plain(body)
    given = request.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    return request.get("instructions") or "", _messages(items)


def from_response(body: Any) -> Answer:
    """Return all output items as one message."""
    response = plain_response(body, NAME, ("output",))
    incomplete = response.get("incomplete_details") or {}
    parts = tuple(part for item in without_nulls(response.get("output")) or () for part in _output(item))
    return answer_of(
        message=Message(role="assistant", parts=parts),
        provider="openai",
        model=response.get("model") or "",
        stop_reason=incomplete.get("reason") or response.get("status") or "",
        usage=_usage(response.get("usage")),
        around=without(response, "output", "usage", "model"),
    )


def blocks_of(part: Part, role: Role) -> list[str | Wire]:
    """Return what a request holds of one part of a message."""
    if role == "assistant":
        return [*_output_items(part, CallIds(_ID_LIMIT))]
    return _input_blocks(part)


DIALECT = Dialect(
    name=NAME,
    to_request=to_request,
    from_request=from_request,
    from_response=from_response,
    answer_builder=ResponsesAnswer,
    blocks_of=blocks_of,
    has_error_results=False,
)


def _without_repeated_ids(items: list[Wire]) -> list[Wire]:
    """An id stands once in a request: what was stored twice goes without it, or not at all if it needs one."""
    seen: set[str] = set()
    written: list[Wire] = []
    for item in items:
        kind, item_id = str(item.get("type", "message")), item.get("id")
        if not item_id or kind == "item_reference" or kind.endswith("_output") or item_id not in seen:
            written.append(item)
        elif kind in _NAMELESS:
            written.append(without(item, "id"))
        seen.add(item_id or "")
    return written


def _without_unanswered_calls(items: list[Wire]) -> list[Wire]:
    """Drop calls of the provider's own tools without an output, and outputs without a call, which it would reject."""
    found = {(item.get("type"), _call_id(item)) for item in items}

    def is_complete(item: Wire) -> bool:
        kind = str(item.get("type"))
        if kind in AWAITED_CALLS:
            return (f"{kind}_output", _call_id(item)) in found
        return (
            kind.removesuffix("_output") not in AWAITED_CALLS
            or (
                kind.removesuffix("_output"),
                _call_id(item),
            )
            in found
        )

    return [item for item in items if is_complete(item)]


def _call_id(item: Wire) -> Any:
    """The output of a local shell has the id of its call as its own."""
    return item.get("id") if item.get("type") == "local_shell_call_output" else item.get("call_id")


def _without_loose_thoughts(items: list[Wire]) -> list[Wire]:
    """Drop reasoning that is not followed by an output item, which the provider would reject."""
    kept_items: list[Wire] = []
    for item in reversed(items):
        if item.get("type") == "reasoning" and not (kept_items and _is_output(kept_items[-1])):
            continue
        kept_items.append(item)
    return kept_items[::-1]


def _is_output(item: Wire) -> bool:
    if item.get("type", "message") == "message":
        return item.get("role") == "assistant"
    return not item["type"].endswith("_output") and item["type"] not in _USER_ITEMS


def _items(message: Message, ids: CallIds) -> Iterable[Wire]:
    match message.role:
        case "assistant":
            return _joined([item for part in message.parts for item in _output_items(part, ids)])
        case "tool":
            return [_result_item(result, ids) for result in message.tool_results]
        case "user" | "system":
            return _input_items(message)


def _input_items(message: Message) -> Iterable[Wire]:
    if message.extra.get(NAME, {}).get("$whole"):
        return [part.block for part in message.parts if isinstance(part, OpaquePart)]
    content = _content([item for part in message.parts for item in _input_blocks(part)])
    return [{"role": message.role, "content": content, **own_fields(message.extra, NAME)}] if content else []


def _content(items: list[str | Wire]) -> str | list[Wire]:
    written = [item for item in items if item]
    if all(isinstance(item, str) and is_blank(item) for item in written):
        return ""
    match written:
        case [str(text)]:
            return text
        case _:
            return [{"type": "input_text", "text": item} if isinstance(item, str) else item for item in written]


def _input_blocks(part: Part) -> list[str | Wire]:
    rest = own_fields(part.extra, NAME)
    match part:
        case TextPart(text=text):
            return [{"type": "input_text", "text": text, **rest} if was_block(part.extra, NAME) else text]
        case ImagePart() if url := image_url(part):
            detail = {} if was_block(part.extra, NAME) else {"detail": "auto"}
            return [{"type": "input_image", "image_url": url, **detail, **rest}]
        case FilePart() if source := {"file_url": web_url(part)} if web_url(part) else file_fields(part, _FILE_TYPES):
            return [{"type": "input_file", **source, **rest}]
        case FilePart() if url := file_image(part):
            return [{"type": "input_image", "image_url": url, "detail": "auto"}]
        case ImagePart() | FilePart():
            return [media_text(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return [block]
        case _:
            return []


def _output_items(part: Part, ids: CallIds) -> list[Wire]:
    match part:
        case ToolCallPart():
            return [_call_item(part, ids)]
        case TextPart(text=text) if was_block(part.extra, NAME):
            return _output_message(text, part.extra[NAME])
        case TextPart(text=text):
            return [] if is_blank(text) else [{"role": "assistant", "content": text}]
        case ImagePart() | FilePart():
            return [{"role": "assistant", "content": media_text(part)}]
        case ReasoningPart(provider=provider) if provider == NAME and _REASONING_ID.fullmatch(part.id):
            return [_reasoning_item(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return [cleaned_block(block, RESPONSES)]
        case _:
            return []


def _output_message(text: str, extra: Wire) -> list[Wire]:
    """Return the output item of one text; ``$joins`` marks a text that belongs to the item before it."""
    block = {"type": "output_text", "text": text, **extra.get("$block", {})}
    message = {"type": "message", "role": "assistant", "content": [block], **extra.get("$item", {})}
    return [{**cleaned(message, RESPONSES["message"]), **({"$joins": True} if extra.get("$joins") else {})}]


def _joined(items: list[Wire]) -> list[Wire]:
    joined: list[Wire] = []
    for item in items:
        if not item.get("$joins"):
            joined.append(item)
        elif joined and isinstance(joined[-1].get("content"), list):
            joined[-1] = {**joined[-1], "content": [*joined[-1]["content"], *item["content"]]}
        else:
            joined.append(without(item, "$joins"))
    return joined


def _reasoning_item(part: ReasoningPart) -> Wire:
    rest = own_fields(part.extra, NAME)
    summary = rest.pop("summary", None)
    if summary is None:
        summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    encrypted = {"encrypted_content": part.encrypted} if part.encrypted else {}
    item: Wire = {"type": "reasoning", "id": part.id, "summary": summary, **encrypted, **rest}
    return cleaned(item, RESPONSES["reasoning"])


def _call_item(call: ToolCallPart, ids: CallIds) -> Wire:
    kind = _call_type(call)
    text = object_text(call.arguments) if kind == "function_call" else call.arguments
    body = {"name": tool_name(call.name), _CALLS[kind]: text}
    item: Wire = {"type": kind, "call_id": ids.add(call), **body, **own_fields(call.extra, NAME)}
    return cleaned(item, RESPONSES[kind])


def _call_type(call: ToolCallPart) -> str:
    return "custom_tool_call" if call.extra.get(NAME, {}).get("$custom") else "function_call"


def _result_item(result: ToolResultPart, ids: CallIds) -> Wire:
    asked = ids.pop()
    output = _content([item for part in result.parts for item in _input_blocks(part)])
    return {
        "type": f"{_call_type(asked.call)}_output",
        "call_id": asked.id,
        "output": output,
        **own_fields(result.extra, NAME),
    }


def _messages(items: Iterable[Wire]) -> list[Message]:
    messages: list[Message] = []
    answer: list[Part] = []
    for item in items:
        if _is_output(item):
            answer.extend(_output(item))
            continue
        if answer:
            messages.append(Message(role="assistant", parts=tuple(answer)))
            answer = []
        messages.append(_input(item))
    return [*messages, Message(role="assistant", parts=tuple(answer))] if answer else messages


def _input(item: Wire) -> Message:
    match item:
        case {"role": "user" | "system" | "developer" as speaker, "content": content}:
            role: Role = "user" if speaker == "user" else "system"
            extra = leftover(
                NAME, without(item, "content") if speaker == "developer" else without(item, "content", "role")
            )
            return Message(role=role, parts=_read_content(content), extra=extra)
        case {"type": kind, "call_id": str(call_id), "output": output} if kind in _RESULTS:
            extra = leftover(NAME, without(item, "type", "call_id", "output"))
            result = ToolResultPart(call_id=call_id, parts=_read_content(output), extra=extra)
            return Message(role="tool", parts=(result,))
        case _:
            whole = OpaquePart(provider=NAME, block=item)
            return Message(role="user", parts=(whole,), extra=block_extra(NAME, {"$whole": True}))


def _output(item: Wire) -> list[Part]:
    """Return the parts of one output item."""
    match item:
        case {"role": "assistant", "content": str(text)} if item.keys() == {"role", "content"}:
            return [TextPart(text=text)]
        case {"role": "assistant", "content": [_, *_] as blocks} if all(map(_is_output_text, blocks)):
            around = without(item, "content")
            return [_output_text(block, around, is_first=index == 0) for index, block in enumerate(blocks)]
        case {"type": "function_call" | "custom_tool_call" as kind, "call_id": str(call_id), "name": str(name)}:
            return [_read_call(kind, call_id, name, without(item, "type", "call_id", "name"))]
        case {"type": "reasoning", "id": str(item_id), "summary": list(summary)}:
            return [_read_reasoning(item_id, summary, without(item, "type", "id"))]
        case _:
            return [OpaquePart(provider=NAME, block=item)]


def _read_reasoning(item_id: str, summary: list[Wire], rest: Wire) -> ReasoningPart:
    text = "\n\n".join(block.get("text", "") for block in summary)
    encrypted = rest.pop("encrypted_content") if rest.get("encrypted_content") else ""
    return ReasoningPart(provider=NAME, id=item_id, text=text, encrypted=encrypted, extra=block_extra(NAME, rest))


def _is_output_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "output_text" and isinstance(block.get("text"), str)


def _output_text(block: Wire, item: Wire, is_first: bool) -> TextPart:
    rest = without(block, "type", "text")
    place: Wire = {"$item": item} if is_first else {"$joins": True}
    return TextPart(text=block["text"], extra=block_extra(NAME, {**place, "$block": rest}))


def _read_call(kind: str, call_id: str, name: str, rest: Wire) -> ToolCallPart:
    left = without(rest, _CALLS[kind])
    if kind == "custom_tool_call":
        left["$custom"] = True
    arguments = rest.get(_CALLS[kind]) or ""
    return ToolCallPart(id=call_id, name=name, arguments=arguments, extra=leftover(NAME, left))


def _read_content(content: Any) -> tuple[ResultContent, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    return tuple(_read_block(block) for block in content or ())


def _read_block(block: Wire) -> ResultContent:
    part = _known_block(block)
    if part is None or not (_input_blocks(part) == [block] or isinstance(part, ImagePart | FilePart)):
        return OpaquePart(provider=NAME, block=block)
    return part


def _known_block(block: Wire) -> ResultContent | None:
    match block:
        case {"type": "input_text", "text": str(text), **rest}:
            return TextPart(text=text, extra=block_extra(NAME, rest))
        case {"type": "input_image", "image_url": str(url), **rest}:
            return ImagePart(**source_of(url), extra=block_extra(NAME, rest))
        case {"type": "input_file", "file_url": str(url), **rest}:
            return FilePart(url=url, name=rest.pop("filename", ""), extra=block_extra(NAME, rest))
        case {"type": "input_file", "file_data": str(url), **rest}:
            return FilePart(**source_of(url), name=rest.pop("filename", ""), extra=block_extra(NAME, rest))
        case _:
            return None


def _usage(wire: Wire | None) -> Usage | None:
    if not wire:
        return None
    cached = (wire.get("input_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(
        input_tokens=(wire.get("input_tokens") or 0) - cached,
        output_tokens=wire.get("output_tokens") or 0,
        cache_read_tokens=cached,
        reasoning_tokens=(wire.get("output_tokens_details") or {}).get("reasoning_tokens") or 0,
        total_tokens=wire.get("total_tokens") or 0,
    )
