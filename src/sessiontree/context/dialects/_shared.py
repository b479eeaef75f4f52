"""What the dialects share: the Dialect record, unknown fields, contents, tool arguments, names and call ids.

A part that was read from a block of a dialect keeps the fields that the model has no name for in ``extra[dialect]``.
Other dialects never see them, and the block can be written again unchanged. A key that starts with ``$`` is a note of
the dialect to itself and is not written.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Protocol, get_args

import msgspec

from sessiontree.context import Context, pair
from sessiontree.context.dialects._request_types import ECHOED
from sessiontree.context.dialects._streaming import AnswerBuilder
from sessiontree.errors import InvalidInputError
from sessiontree.model import (
    AssistantMessage,
    Message,
    Part,
    Role,
    ToolCallMessage,
    ToolCallPart,
    Usage,
)
from sessiontree.model._base import Record

__all__ = [
    "CONTINUE",
    "OPENING",
    "Answer",
    "CallIds",
    "Dialect",
    "OpenCall",
    "Placeholders",
    "RequestWriter",
    "Wire",
    "answer_of",
    "arguments_of",
    "block_extra",
    "block_note",
    "check_option",
    "content_of",
    "conversation",
    "in_turn",
    "is_blank",
    "is_blank_item",
    "leftover",
    "merged",
    "object_of",
    "object_text",
    "own_fields",
    "text_block",
    "tool_name",
    "was_block",
    "without",
]


Wire = dict[str, Any]

Placeholders = Literal["required", "never"]
"""Whether a request gets the user messages ``OPENING`` and ``CONTINUE``: where its provider requires one, or never."""

OPENING = "(The conversation starts here.)"
"""The text of the user message that is inserted where a provider requires one at the start."""

CONTINUE = "(Continue.)"
"""The text of the user message that is inserted where a provider requires one after an answer."""

_RAW = "_raw"
_NOTE_LIMIT = 64
_PLAIN_ID = re.compile(r"[a-zA-Z0-9_-]+")


Answer = AssistantMessage | ToolCallMessage


class RequestWriter(Protocol):
    """The signature of ``to_request``."""

    def __call__(self, context: Context, *, placeholders: Placeholders = "required") -> Wire:
        """Return the fields of a request that hold the conversation."""


class Dialect(Record, frozen=True, kw_only=True):
    """A provider's format of a conversation, in both directions.

    ``to_request`` returns the fields of a request that hold the conversation; ``from_request`` returns the system
    prompt and the messages of a request; ``from_response`` reads the model's answer: the SDK's object or a dump of it.
    ``answer_builder`` puts the events of a streamed answer together. ``blocks_of`` returns what a request holds of one
    part of a message.
    """

    name: str
    to_request: RequestWriter
    from_request: Callable[[Any], tuple[str, list[Message]]]
    from_response: Callable[[Any], Answer]
    answer_builder: Callable[[], AnswerBuilder]
    blocks_of: Callable[[Part, Role], Sequence[str | Wire]]
    has_error_results: bool


def check_option(name: str, value: str, options: Any) -> None:
    """Raise InvalidInputError if an option of ``to_request`` has a value that its ``Literal`` does not list."""
    if value not in get_args(options):
        raise InvalidInputError(f"{name} must be one of {', '.join(map(repr, get_args(options)))}, not {value!r}")


def answer_of(
    *, message: Message, provider: str, model: str, stop_reason: str, usage: Usage | None, around: Wire
) -> Answer:
    """Return the payload of a model's answer, whose type follows from its tool calls.

    ``around`` is what the response has besides: it is kept in ``origin``, without what only repeats the request.
    """
    kind = ToolCallMessage if message.tool_calls else AssistantMessage
    kept = {key: value for key, value in around.items() if key not in ECHOED and value not in (None, [], {})}
    origin = {"response": kept} if kept else {}
    return kind(message=message, provider=provider, model=model, stop_reason=stop_reason, usage=usage, origin=origin)


def block_note(block: Wire) -> str:
    """Return the text that replaces a block where the dialect does not allow one of its type."""
    kind = block.get("type")
    return f"[{kind[:_NOTE_LIMIT] if isinstance(kind, str) and kind else 'block'}]"


def block_extra(dialect: str, fields: Wire) -> Wire:
    """Return the ``extra`` of a part that was read from a block, with the fields that are left over, if any."""
    return {dialect: fields}


def leftover(dialect: str, fields: Wire) -> Wire:
    """Return the ``extra`` for fields that are left over; empty if there are none."""
    return {dialect: fields} if fields else {}


def own_fields(extra: Wire, dialect: str) -> Wire:
    """Return the leftover fields of a dialect, to be written again."""
    return {key: value for key, value in extra.get(dialect, {}).items() if not key.startswith("$")}


def without(wire: Wire, *keys: str) -> Wire:
    """Return a copy without some keys."""
    return {key: value for key, value in wire.items() if key not in keys}


def was_block(extra: Wire, dialect: str) -> bool:
    """Return whether a part was read from a block of this dialect, so that it has to be written as one."""
    return dialect in extra


def conversation(context: Context) -> list[Message]:
    """Return the messages of a context, with tool calls and results paired and parallel calls in one message."""
    messages: list[Message] = []
    for item in pair(context.messages):
        message = item.message
        if messages and message.tool_calls and messages[-1].tool_calls:
            messages[-1] = merged(messages[-1], message)
        else:
            messages.append(message)
    return messages


def merged(first: Message, second: Message) -> Message:
    """Return two messages as one."""
    extra = {**first.extra, **second.extra}
    return msgspec.structs.replace(first, parts=first.parts + second.parts, extra=extra)


def is_blank(text: str) -> bool:
    """Return whether a text is empty or white space."""
    return not text.strip()


def object_of(arguments: str) -> Wire:
    """Return the arguments of a call as an object; text that is not a JSON object is wrapped, so nothing is lost.

    >>> object_of('{"path": "a"}'), object_of("not json"), object_of("")
    ({'path': 'a'}, {'_raw': 'not json'}, {})
    """
    if is_blank(arguments):
        return {}
    value = _parsed(arguments)
    return value if isinstance(value, dict) else {_RAW: arguments}


def arguments_of(value: Wire) -> str:
    """Return the arguments of a call from an object: the reverse of ``object_of``.

    >>> arguments_of({"path": "a"}), arguments_of({"_raw": "not json"})
    ('{"path":"a"}', 'not json')
    """
    raw = value.get(_RAW)
    if len(value) == 1 and isinstance(raw, str) and not is_blank(raw) and not isinstance(_parsed(raw), dict):
        return raw
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _parsed(text: str) -> Any:
    """Return the JSON value of a text; None if it is not JSON or cannot be sent."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def object_text(arguments: str) -> str:
    """Return the arguments of a call as the text of a JSON object: exactly as written if they are one.

    >>> object_text('{"n":  1.50}'), object_text(""), object_text("not json")
    ('{"n":  1.50}', '{}', '{"_raw":"not json"}')
    """
    if isinstance(_parsed(arguments), dict):
        return arguments
    return json.dumps(object_of(arguments), ensure_ascii=False, separators=(",", ":"))


def tool_name(name: str, allowed: str = "a-zA-Z0-9_-") -> str:
    """Return a tool name that every provider accepts: other characters become underscores.

    >>> tool_name("fs.read file"), tool_name("")
    ('fs_read_file', '_')
    """
    return re.sub(f"[^{allowed}]", "_", name)[:64] or "_"


def content_of(items: Iterable[str | Wire]) -> str | list[Wire]:
    """Return the content of a message: a single text that was not read from a block stays a plain string.

    >>> content_of(["hello"]), content_of(["a", {"type": "text", "text": "b"}]), content_of([" "])
    ('hello', [{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}], '')
    """
    written = [item for item in items if item not in ("", {"type": "text", "text": ""})]
    if all(is_blank_item(item) for item in written):
        return ""
    match written:
        case [str(text)]:
            return text
        case _:
            return [text_block(item) if isinstance(item, str) else item for item in written]


def text_block(text: str) -> Wire:
    """Return a text block."""
    return {"type": "text", "text": text}


def is_blank_item(item: str | Wire) -> bool:
    """Return whether an item of a content is a blank text or a blank text block."""
    if isinstance(item, str):
        return is_blank(item)
    return item.get("type") == "text" and is_blank(item.get("text") or "")


class OpenCall(NamedTuple):
    """A call that was written and whose result comes later."""

    id: str
    call: ToolCallPart


class CallIds:
    """The call ids of one request: unique, of allowed characters and limited length.

    Results follow their batch in the order of the calls, so the next result always belongs to the first open call.

    >>> ids = CallIds(limit=64)
    >>> ids.add(ToolCallPart(id="call_1", name="read")), ids.add(ToolCallPart(id="a b", name="write"))
    ('call_1', 'x1_YSBi')
    >>> ids.pop().id, ids.pop().call.name
    ('call_1', 'write')
    """

    def __init__(self, limit: int, may_repeat: bool = False) -> None:
        self._limit = limit
        self._may_repeat = may_repeat
        self._used: set[str] = set()
        self._open: deque[OpenCall] = deque()

    def add(self, call: ToolCallPart) -> str:
        """Return the id to write for a call, which is open until its result comes."""
        if self._may_repeat and not self._open:
            self._used.clear()
        wire_id = next(name for name in self._candidates(call.id) if name not in self._used)
        self._used.add(wire_id)
        self._open.append(OpenCall(wire_id, call))
        return wire_id

    def pop(self) -> OpenCall:
        """Remove and return the first open call, to which the next result belongs."""
        return self._open.popleft()

    def _candidates(self, raw: str) -> Iterator[str]:
        if _PLAIN_ID.fullmatch(raw) and len(raw) <= self._limit:
            yield raw
        for number in itertools.count(1):
            escaped = f"x{number}_{base64.urlsafe_b64encode(raw.encode()).decode().rstrip('=')}"
            hashed = f"x{number}_{hashlib.sha256(raw.encode()).hexdigest()}"
            yield escaped if len(escaped) <= self._limit else hashed[: self._limit]


def in_turn(messages: Iterable[Wire], field: str, joins: Callable[[Wire, Wire], bool], between: Wire) -> list[Wire]:
    """Return the messages with neighbours of one role joined; ``field`` holds their blocks.

    Two answers that do not join were two requests, and the first of them ended with a placeholder: ``between``.
    """
    turns: list[Wire] = []
    for message in messages:
        if not (turns and turns[-1]["role"] == message["role"]):
            turns.append(message)
        elif joins(turns[-1], message):
            turns[-1] = {**turns[-1], **message, field: [*turns[-1][field], *message[field]]}
        else:
            turns += [message] if message["role"] == between["role"] else [between, message]
    return turns
