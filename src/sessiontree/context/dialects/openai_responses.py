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
from sessiontree.context.dialects._fitting import fitted
from sessiontree.context.dialects._media import (
    file_fields,
    file_image,
    image_url,
    media_text,
    source_of,
    web_url,
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
from sessiontree.context.dialects._request_types import AWAITED_CALLS, RESPONSES, RESPONSES_CONTENT
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
_ID = re.compile("[A-Za-z0-9_-]{1,64}")
_ID_PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
}
_SOURCES = {"input_image": ("image_url", "file_id"), "input_file": ("file_url", "file_data", "file_id")}
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = ("function_call_output", "custom_tool_call_output")
_NAMELESS = ("message", *_CALLS)
_USER_ITEMS = ("item_reference", "mcp_approval_response", "compaction_trigger", "additional_tools")


def to_request(context: Context, *, placeholders: Placeholders = "required") -> Wire:
    """Return ``instructions`` and ``input``."""
    check_option("placeholders", placeholders, Placeholders)
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
    request = plain_request(body, NAME)
    given = request.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given, "input")
    return a_text(request.get("instructions"), "instructions"), _messages(items)


def from_response(body: Any) -> Answer:
    """Return all output items as one message."""
    response = plain_response(body, NAME, ("output",))
    incomplete = an_object(response.get("incomplete_details"), "incomplete_details")
    reason = a_text(incomplete.get("reason"), "incomplete_details.reason")
    items = without_nulls(objects(response.get("output"), "output"))
    parts = tuple(part for index, item in enumerate(items) for part in _output(item, f"output[{index}]"))
    return answer_of(
        message=Message(role="assistant", parts=parts),
        provider="openai",
        model=a_text(response.get("model"), "model"),
        stop_reason=reason or a_text(response.get("status"), "status"),
        usage=_usage(response.get("usage")),
        around=without(response, "output", "usage", "model"),
    )


def blocks_of(part: Part, role: Role) -> list[str | Wire]:
    """Return what a request holds of one part of a message."""
    if role == "assistant":
        return [*_output_items(part, CallIds(_ID_LIMIT))]
    whole = _fitted_item(part.block) if isinstance(part, OpaquePart) and part.provider == NAME else []
    return [*whole] or _input_blocks(part)


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


def _is_output(item: Wire, place: str = "") -> bool:
    kind = a_text(item.get("type"), f"{place}.type") or "message"
    if kind == "message":
        return item.get("role") == "assistant"
    return not kind.endswith("_output") and kind not in _USER_ITEMS


def _items(message: Message, ids: CallIds) -> Iterable[Wire]:
    match message.role:
        case "assistant":
            return _joined([item for part in message.parts for item in _output_items(part, ids)])
        case "tool":
            return [item for result in message.tool_results for item in _result_item(result, ids)]
        case "user" | "system":
            return _input_items(message)


def _input_items(message: Message) -> Iterable[Wire]:
    if message.extra.get(NAME, {}).get("$whole"):
        return [item for part in message.parts if isinstance(part, OpaquePart) for item in _fitted_item(part.block)]
    content = _content([item for part in message.parts for item in _input_blocks(part)])
    item: Wire = {"role": message.role, "content": content, **own_fields(message.extra, NAME)}
    return fitted(item, RESPONSES) if content else []


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
            block = {"type": "input_text", "text": text, **rest}
            return fitted(block, RESPONSES_CONTENT) if was_block(part.extra, NAME) else [text]
        case ImagePart() if url := image_url(part):
            detail = {} if was_block(part.extra, NAME) else {"detail": "auto"}
            return fitted({"type": "input_image", "image_url": url, **detail, **rest}, RESPONSES_CONTENT)
        case FilePart() if source := {"file_url": web_url(part)} if web_url(part) else file_fields(part, _FILE_TYPES):
            return fitted({"type": "input_file", **source, **rest}, RESPONSES_CONTENT)
        case FilePart() if url := file_image(part):
            return [{"type": "input_image", "image_url": url, "detail": "auto"}]
        case ImagePart() | FilePart():
            return [media_text(part)]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return [held for held in fitted(block, RESPONSES_CONTENT) if _has_source(held)] or [block_note(block)]
        case _:
            return []


def _has_source(block: Wire) -> bool:
    """Return whether an image or file has one source: data, an address, or the id of an uploaded file."""
    sources = _SOURCES.get(block["type"])
    return sources is None or sum(bool(block.get(name)) for name in sources) == 1


def _fitted_item(item: Wire) -> list[Wire]:
    """Return an item as a request holds it: with an id of its own kind, or without one if it needs none."""
    kind = str(item.get("type") or "message")
    item_id = item.get("id")
    is_named = isinstance(item_id, str) and item_id.startswith(_ID_PREFIXES.get(kind, "")) and _ID.fullmatch(item_id)
    if not (item.get("type") or item.get("role")) or not (is_named or kind in _NAMELESS or "id" not in item):
        return []
    return fitted(item if is_named else without(item, "id"), RESPONSES)


def _output_items(part: Part, ids: CallIds) -> list[Wire]:
    match part:
        case ToolCallPart():
            return _call_item(part, ids)
        case TextPart(text=text) if was_block(part.extra, NAME):
            return _output_message(text, part.extra[NAME])
        case TextPart(text=text):
            return [] if is_blank(text) else [{"role": "assistant", "content": text}]
        case ImagePart() | FilePart():
            return [{"role": "assistant", "content": media_text(part)}]
        case ReasoningPart(provider=provider) if provider == NAME:
            return _reasoning_item(part)
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return _fitted_item(block)
        case _:
            return []


def _output_message(text: str, extra: Wire) -> list[Wire]:
    """Return the output item of one text; ``$joins`` marks a text that belongs to the item before it."""
    block = {"type": "output_text", "text": text, **extra.get("$block", {})}
    message = {"type": "message", "role": "assistant", "content": [block], **extra.get("$item", {})}
    mark = {"$joins": True} if extra.get("$joins") else {}
    return [{**item, **mark} for item in _fitted_item(message)]


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


def _reasoning_item(part: ReasoningPart) -> list[Wire]:
    rest = own_fields(part.extra, NAME)
    summary = rest.pop("summary", None)
    if summary is None:
        summary = [{"type": "summary_text", "text": part.text}] if part.text else []
    encrypted = {"encrypted_content": part.encrypted} if part.encrypted else {}
    item: Wire = {"type": "reasoning", "id": part.id, "summary": summary, **encrypted, **rest}
    return _fitted_item(item)


def _call_item(call: ToolCallPart, ids: CallIds) -> list[Wire]:
    kind = _call_type(call)
    text = object_text(call.arguments) if kind == "function_call" else call.arguments
    body = {"name": tool_name(call.name), _CALLS[kind]: text}
    item: Wire = {"type": kind, "call_id": ids.add(call), **body, **own_fields(call.extra, NAME)}
    return _fitted_item(item)


def _call_type(call: ToolCallPart) -> str:
    return "custom_tool_call" if call.extra.get(NAME, {}).get("$custom") else "function_call"


def _result_item(result: ToolResultPart, ids: CallIds) -> list[Wire]:
    asked = ids.pop()
    output = _content([item for part in result.parts for item in _input_blocks(part)])
    item: Wire = {"type": f"{_call_type(asked.call)}_output", "call_id": asked.id, "output": output}
    return fitted({**item, **own_fields(result.extra, NAME)}, RESPONSES)


def _messages(items: Iterable[Wire]) -> list[Message]:
    messages: list[Message] = []
    answer: list[Part] = []
    for index, item in enumerate(items):
        place = f"input[{index}]"
        if _is_output(item, place):
            answer.extend(_output(item, place))
            continue
        if answer:
            messages.append(Message(role="assistant", parts=tuple(answer)))
            answer = []
        messages.append(_input(item, place))
    return [*messages, Message(role="assistant", parts=tuple(answer))] if answer else messages


def _input(item: Wire, place: str) -> Message:
    match item:
        case {"role": "user" | "system" | "developer" as speaker}:
            role: Role = "user" if speaker == "user" else "system"
            extra = leftover(
                NAME, without(item, "content") if speaker == "developer" else without(item, "content", "role")
            )
            return Message(role=role, parts=_read_content(item.get("content"), f"{place}.content"), extra=extra)
        case {"type": kind, "call_id": str(call_id), "output": output} if kind in _RESULTS:
            extra = leftover(NAME, without(item, "type", "call_id", "output"))
            result = ToolResultPart(call_id=call_id, parts=_read_content(output, f"{place}.output"), extra=extra)
            return Message(role="tool", parts=(result,))
        case _:
            whole = OpaquePart(provider=NAME, block=item)
            return Message(role="user", parts=(whole,), extra=block_extra(NAME, {"$whole": True}))


def _output(item: Wire, place: str) -> list[Part]:
    """Return the parts of one output item."""
    match item:
        case {"role": "assistant", "content": str(text)} if item.keys() == {"role", "content"}:
            return [TextPart(text=text)]
        case {"role": "assistant", "content": [_, *_] as blocks} if _is_spoken(item, blocks):
            around = without(item, "content")
            return [_output_text(block, around, is_first=index == 0) for index, block in enumerate(blocks)]
        case {"type": "function_call" | "custom_tool_call" as kind, "call_id": str(call_id), "name": str(name)}:
            return [_read_call(kind, call_id, name, without(item, "type", "call_id", "name"), place)]
        case {"type": "reasoning", "id": str(item_id), "summary": list(summary)}:
            texts = [
                block["text"] for block in summary if isinstance(block, dict) and isinstance(block.get("text"), str)
            ]
            return [_read_reasoning(item_id, texts, without(item, "type", "id"))]
        case _:
            return [OpaquePart(provider=NAME, block=item)]


def _read_reasoning(item_id: str, texts: list[str], rest: Wire) -> ReasoningPart:
    encrypted = rest.get("encrypted_content")
    rest = without(rest, "encrypted_content") if encrypted and isinstance(encrypted, str) else rest
    return ReasoningPart(
        provider=NAME,
        id=item_id,
        text="\n\n".join(texts),
        encrypted=encrypted if isinstance(encrypted, str) else "",
        extra=block_extra(NAME, rest),
    )


def _is_spoken(item: Wire, blocks: list[Any]) -> bool:
    """Return whether an item is a message of texts alone."""
    return item.get("type", "message") == "message" and all(
        isinstance(block, dict) and block.get("type") == "output_text" and isinstance(block.get("text"), str)
        for block in blocks
    )


def _output_text(block: Wire, item: Wire, is_first: bool) -> TextPart:
    rest = without(block, "type", "text")
    place: Wire = {"$item": item} if is_first else {"$joins": True}
    return TextPart(text=block["text"], extra=block_extra(NAME, {**place, "$block": rest}))


def _read_call(kind: str, call_id: str, name: str, rest: Wire, place: str) -> ToolCallPart:
    left = without(rest, _CALLS[kind])
    if kind == "custom_tool_call":
        left["$custom"] = True
    given = rest.get(_CALLS[kind])
    arguments = arguments_of(given) if isinstance(given, dict) else a_text(given, f"{place}.{_CALLS[kind]}")
    return ToolCallPart(id=call_id, name=name, arguments=arguments, extra=leftover(NAME, left))


def _read_content(content: Any, place: str) -> tuple[ResultContent, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),)
    return tuple(_read_block(block) for block in objects(content, place))


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
            return FilePart(url=url, name=str(rest.pop("filename", None) or ""), extra=block_extra(NAME, rest))
        case {"type": "input_file", "file_data": str(url), **rest}:
            name = str(rest.pop("filename", None) or "")
            return FilePart(**source_of(url), name=name, extra=block_extra(NAME, rest))
        case _:
            return None


def _usage(wire: Any) -> Usage | None:
    if not wire:
        return None
    found = counts(wire, "usage")
    cached = found.get("cached_tokens", 0)
    return Usage(
        input_tokens=found.get("input_tokens", 0) - cached,
        output_tokens=found.get("output_tokens", 0),
        cache_read_tokens=cached,
        reasoning_tokens=found.get("reasoning_tokens", 0),
        total_tokens=found.get("total_tokens", 0),
    )
