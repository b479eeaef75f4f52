"""Shortcuts that build the payloads of messages.

>>> user("hello").message.text
'hello'
>>> assistant("let me look", calls=[call("c1", "read", '{"path": "a.txt"}')]).message.tool_calls[0].name
'read'
>>> tool_result("c1", "no such file", is_error=True).message.tool_results[0].is_error
True

A role that is none of the four is kept in a custom entry, which no model sees:

>>> kept = payload_of_any_role(Message(role="developer", parts=(TextPart(text="be brief"),)))
>>> type(kept).__name__, message_of(kept).role
('Custom', 'developer')
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar, cast, get_args

from msgspec.structs import replace

from sessiontree.errors import InvalidInputError
from sessiontree.model.entry import (
    AssistantMessage,
    Custom,
    MessagePayload,
    Payload,
    SystemMessage,
    ToolCallMessage,
    ToolResultMessage,
    Usage,
    UserMessage,
)
from sessiontree.model.message import (
    Message,
    Part,
    ReasoningPart,
    ResultContent,
    ResultView,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = [
    "ERASED",
    "FOREIGN_MESSAGE",
    "STORAGE_COMPACTED",
    "assistant",
    "call",
    "message_of",
    "payload_of",
    "payload_of_any_role",
    "system",
    "tool_result",
    "user",
]


FOREIGN_MESSAGE = "message"
"""The name of a custom entry that holds a message with a role of another program, such as ``developer``."""

ERASED = Custom(name="erased")
"""What an entry holds after its content was erased."""

STORAGE_COMPACTED = Custom(name="storage_compacted")
"""What ``SimpleStore.compact_storage`` appends after it has erased something; no undo goes behind it."""

_PAYLOAD_TYPES = frozenset(get_args(Payload))
_ROLES = frozenset(get_args(Role))
_PARTS: tuple[type, ...] = get_args(Part)
_RESULT_PARTS: tuple[type, ...] = get_args(ResultContent)


def system(text: str) -> SystemMessage:
    """Return a system message: the system prompt from this entry on."""
    if not isinstance(text, str):
        raise InvalidInputError(f"a system prompt is a text, not {text!r:.200}")
    return SystemMessage(message=Message(role="system", parts=(TextPart(text=text),)))


def user(content: str | Sequence[Part], *, metadata: dict[str, Any] | None = None) -> UserMessage:
    """Return a user message, from text or from parts."""
    return UserMessage(message=Message(role="user", parts=_parts(content)), metadata=metadata or {})


def assistant(
    content: str | Sequence[Part] = (),
    *,
    calls: Iterable[ToolCallPart] = (),
    reasoning: str = "",
    provider: str = "",
    model: str = "",
    stop_reason: str = "",
    usage: Usage | None = None,
) -> AssistantMessage | ToolCallMessage:
    """Return a model's message; with ``calls``, a request for tools."""
    thought = (ReasoningPart(text=reasoning),) if reasoning else ()
    parts = (*thought, *_parts(content), *calls)
    has_calls = any(isinstance(part, ToolCallPart) for part in parts)
    kind = ToolCallMessage if has_calls else AssistantMessage
    message = Message(role="assistant", parts=parts)
    return kind(message=message, provider=provider, model=model, stop_reason=stop_reason, usage=usage)


def call(call_id: str, name: str, arguments: str = "{}") -> ToolCallPart:
    """Return one tool call of a model; ``arguments`` is the exact string that it produced."""
    return ToolCallPart(id=call_id, name=name, arguments=arguments)


def tool_result(
    call_id: str,
    content: str | Sequence[ResultContent] = (),
    *,
    name: str = "",
    is_error: bool = False,
    view: ResultView | None = None,
) -> ToolResultMessage:
    """Return the result of the tool call ``call_id``."""
    parts = (TextPart(text=content),) if isinstance(content, str) else _checked(content, _RESULT_PARTS)
    result = ToolResultPart(call_id=call_id, name=name, parts=parts, is_error=is_error, view=view)
    return ToolResultMessage(message=Message(role="tool", parts=(result,)))


def payload_of(content: Payload | Message) -> Payload:
    """Return the payload of a message, whose type follows from its role and tool calls; payloads are returned as is."""
    if type(content) in _PAYLOAD_TYPES:
        return cast("Payload", content)
    if isinstance(content, Message):
        return _message_payload(content)
    if not isinstance(content, Payload):
        raise InvalidInputError(
            f"cannot append {type(content).__name__}; use a payload or a message, such as user('…')"
        )
    return content


def payload_of_any_role(message: Message) -> Payload:
    """Return the payload of a message; one whose role is none of the four is kept in a custom entry."""
    if message.role in _ROLES:
        return payload_of(message)
    return Custom(name=FOREIGN_MESSAGE, data={"role": message.role}, message=replace(message, role="user"))


def message_of(payload: Payload) -> Message | None:
    """Return the message of a payload with the role that it was given; ``None`` if it has no message."""
    match payload:
        case Custom(name=name, data={"role": str(role)}, message=Message() as message) if name == FOREIGN_MESSAGE:
            return replace(message, role=cast("Role", role))
        case Custom(message=message):
            return message
        case _:
            return getattr(payload, "message", None)


def _message_payload(message: Message) -> MessagePayload | Custom:
    match message.role:
        case "user":
            return UserMessage(message=message)
        case "tool":
            return ToolResultMessage(message=message)
        case "system":
            return SystemMessage(message=message)
        case "assistant" if message.tool_calls:
            return ToolCallMessage(message=message)
        case "assistant":
            return AssistantMessage(message=message)
        case _:
            raise InvalidInputError(f"unknown message role {message.role!r}; use system, user, assistant or tool")


def _parts(content: str | Sequence[Part]) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    return _checked(content, _PARTS)


P = TypeVar("P", bound=Part)


def _checked(content: Sequence[P], allowed: tuple[type, ...]) -> tuple[P, ...]:
    parts = tuple(content) if isinstance(content, Iterable) else (content,)
    if isinstance(content, Iterable) and all(isinstance(part, allowed) for part in parts):
        return parts
    hint = (
        "; store bytes with put_artifact and show them in an ImagePart or a FilePart"
        if _has_bytes(content, *parts)
        else ""
    )
    names = ", ".join(kind.__name__ for kind in allowed)
    raise InvalidInputError(
        f"a message is made from text or a list of parts ({names}), not from {content!r:.200}{hint}"
    )


def _has_bytes(*items: object) -> bool:
    return any(isinstance(item, bytes | bytearray | memoryview) for item in items)
