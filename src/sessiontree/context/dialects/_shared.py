"""What the dialects share: fields that only one provider knows, arguments, names, ids, images as data URLs.

A part that came as a block of a dialect keeps the fields we have no word for in ``extra[dialect]``; so other dialects
never see them, and the block can be written again as it was.

What a dialect can do.

A model's answer as the payload of an entry.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from sessiontree.context import Context, pair
from sessiontree.model import AssistantMessage, FilePart, ImagePart, Message, ToolCallMessage, ToolCallPart, Usage
from sessiontree.model._base import Record

__all__ = [
    "CONTINUE",
    "OPENING",
    "Answer",
    "Asked",
    "CallIds",
    "Dialect",
    "Wire",
    "answer_of",
    "arguments_of",
    "content_of",
    "conversation",
    "data_url",
    "has_form",
    "is_blank",
    "kept",
    "media_note",
    "merged",
    "object_of",
    "own",
    "same_role_runs",
    "source_of",
    "text_block",
    "tool_name",
    "without",
]


Wire = dict[str, Any]

OPENING = "(The conversation starts here.)"
"""Stands for the user where a provider wants the user to speak first."""

CONTINUE = "(Continue.)"
"""Stands for the user where a provider wants the user to speak last."""

_RAW = "_raw"
_PLAIN_ID = re.compile(r"[a-zA-Z0-9_-]+")
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


def kept(dialect: str, rest: Wire) -> Wire:
    """The ``extra`` of something that came in a dialect, with the fields that are left over."""
    return {dialect: rest}


def own(extra: Wire, dialect: str) -> Wire:
    """The left-over fields of a dialect, ready to be written again."""
    return {key: value for key, value in extra.get(dialect, {}).items() if not key.startswith("$")}


def without(wire: Wire, *keys: str) -> Wire:
    return {key: value for key, value in wire.items() if key not in keys}


def has_form(extra: Wire, dialect: str) -> bool:
    """True when the part came as a block of this dialect, so that it must be written as one."""
    return dialect in extra


def conversation(context: Context) -> list[Message]:
    """The messages of a context with tool pairs in order and each parallel batch in one message."""
    messages: list[Message] = []
    for item in pair(context.messages):
        message = item.message
        if messages and message.tool_calls and messages[-1].tool_calls:
            messages[-1] = merged(messages[-1], message)
        else:
            messages.append(message)
    return messages


def merged(first: Message, second: Message) -> Message:
    extra = {**first.extra, **second.extra}
    return msgspec.structs.replace(first, parts=first.parts + second.parts, extra=extra)


def is_blank(text: str) -> bool:
    return not text.strip()


def object_of(arguments: str) -> Wire:
    """The arguments of a call as an object; anything else is wrapped, so that no dialect loses what the model said.

    >>> object_of('{"path": "a"}'), object_of("not json"), object_of("")
    ({'path': 'a'}, {'_raw': 'not json'}, {})
    """
    if is_blank(arguments):
        return {}
    value = _parsed(arguments)
    return value if isinstance(value, dict) else {_RAW: arguments}


def arguments_of(value: Wire) -> str:
    """The reverse of ``object_of``.

    >>> arguments_of({"path": "a"}), arguments_of({"_raw": "not json"})
    ('{"path":"a"}', 'not json')
    """
    raw = value.get(_RAW)
    if len(value) == 1 and isinstance(raw, str) and not is_blank(raw) and not isinstance(_parsed(raw), dict):
        return raw
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _parsed(text: str) -> Any:
    """The JSON value of a text, or None when it is none that can be sent."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def tool_name(name: str, allowed: str = "a-zA-Z0-9_-") -> str:
    """A name that every provider takes: odd characters become underscores.

    >>> tool_name("fs.read file"), tool_name("")
    ('fs_read_file', '_')
    """
    return re.sub(f"[^{allowed}]", "_", name)[:64] or "_"


def data_url(mime: str, data: str) -> str:
    return f"data:{mime};base64,{data}"


def source_of(url: str) -> Wire:
    """The fields of an image or file part for a URL: data URLs are taken apart.

    >>> source_of("data:image/png;base64,AAAA")
    {'mime': 'image/png', 'data': 'AAAA'}
    """
    match = _DATA_URL.fullmatch(url)
    return {"mime": match[1], "data": match[2]} if match else {"url": url}


def content_of(items: Iterable[str | Wire]) -> str | list[Wire]:
    """Content as a provider takes it: a lone text that did not come as a block is a plain string.

    >>> content_of(["hello"]), content_of(["a", {"type": "text", "text": "b"}]), content_of([" "])
    ('hello', [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}], '')
    """
    written = [item for item in items if item not in ("", {"type": "text", "text": ""})]
    if all(_is_blank_item(item) for item in written):
        return ""
    match written:
        case [str(text)]:
            return text
        case _:
            return [text_block(item) if isinstance(item, str) else item for item in written]


def text_block(text: str) -> Wire:
    return {"type": "text", "text": text}


def _is_blank_item(item: str | Wire) -> bool:
    if isinstance(item, str):
        return is_blank(item)
    return item.get("type") == "text" and is_blank(item["text"])


def media_note(part: ImagePart | FilePart) -> str:
    """What a model reads in the place of an image or file that the dialect cannot carry there."""
    kind = "image" if isinstance(part, ImagePart) else "file"
    label = part.artifact.label or part.artifact.sha256 if part.artifact else ""
    words = [kind, getattr(part, "name", ""), label, part.mime, part.url]
    return f"[{' '.join(word for word in words if word)}]"


class Asked(NamedTuple):
    """A call that was written and waits for its result."""

    id: str
    call: ToolCallPart


class CallIds:
    """The ids of calls in one request: allowed characters only, not too long, and each one once.

    Results follow their batch in the order of the calls, so the next result always answers the first open call.

    >>> ids = CallIds(limit=64)
    >>> ids.ask(ToolCallPart(id="call_1", name="read")), ids.ask(ToolCallPart(id="a b", name="write"))
    ('call_1', 'x1_YSBi')
    >>> ids.answer().id, ids.answer().call.name
    ('call_1', 'write')
    """

    def __init__(self, limit: int, may_repeat: bool = False) -> None:
        self._limit = limit
        self._may_repeat = may_repeat
        self._used: set[str] = set()
        self._open: deque[Asked] = deque()

    def ask(self, call: ToolCallPart) -> str:
        """The id to write for a call."""
        if self._may_repeat and not self._open:
            self._used.clear()
        wire_id = next(name for name in self._candidates(call.id) if name not in self._used)
        self._used.add(wire_id)
        self._open.append(Asked(wire_id, call))
        return wire_id

    def answer(self) -> Asked:
        """The call that the next result answers."""
        return self._open.popleft()

    def _candidates(self, raw: str) -> Iterator[str]:
        if _PLAIN_ID.fullmatch(raw) and len(raw) <= self._limit:
            yield raw
        for number in itertools.count(1):
            escaped = f"x{number}_{base64.urlsafe_b64encode(raw.encode()).decode().rstrip('=')}"
            hashed = f"x{number}_{hashlib.sha256(raw.encode()).hexdigest()}"
            yield escaped if len(escaped) <= self._limit else hashed[: self._limit]


def same_role_runs(messages: Sequence[Wire], field: str, roles: frozenset[str]) -> list[Wire]:
    """Neighbours of the same role as one, their blocks one after the other."""
    merged: list[Wire] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"] and message["role"] in roles:
            merged[-1] = {**merged[-1], **message, field: [*merged[-1][field], *message[field]]}
        else:
            merged.append(message)
    return merged


Answer = AssistantMessage | ToolCallMessage


class Dialect(Record, frozen=True, kw_only=True):
    """A provider's way to write a conversation down, in both directions.

    ``to_request`` gives the fields of a request that carry the conversation; ``from_request`` takes them apart into the
    system text and the messages; ``from_response`` reads the model's answer.
    """

    name: str
    to_request: Callable[[Context], Wire]
    from_request: Callable[[Wire], tuple[str, list[Message]]]
    from_response: Callable[[Wire], Answer]


def answer_of(*, message: Message, provider: str, model: str, stop_reason: str, usage: Usage | None) -> Answer:
    """The payload for an answer: with calls it is a request for tools."""
    kind = ToolCallMessage if message.tool_calls else AssistantMessage
    return kind(message=message, provider=provider, model=model, stop_reason=stop_reason, usage=usage)
