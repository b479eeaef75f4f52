"""Plain payloads: messages of words and nothing else, which come back from JSON as they went in.

Most are. Telling it by the types of what is in them spares reading back what was just written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from sessiontree.model.entry import AssistantMessage, SystemMessage, ToolCallMessage, ToolResultMessage, UserMessage
from sessiontree.model.message import Message, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart

__all__ = ["is_plain"]


_SAID = frozenset({SystemMessage, UserMessage, ToolResultMessage})
_ANSWERS = frozenset({AssistantMessage, ToolCallMessage})
_ROLES = frozenset(get_args(Role))
_NOTHING: dict[str, Any] = {}


def is_plain(payload: Any) -> bool:
    """Whether every field holds exactly what its type says, and the fields that are open hold nothing.

    >>> from sessiontree.model.builders import user
    >>> is_plain(user("hi")), is_plain(user("hi", metadata={"by": "me"}))
    (True, False)
    """
    kind = type(payload)
    if not (kind in _SAID or (kind in _ANSWERS and _is_answer(payload))):
        return False
    message = payload.message
    if type(message) is not Message or not payload.metadata == payload.origin == message.extra == _NOTHING:
        return False
    role: object = message.role
    return (
        type(role) is type(message.name) is type(message.kind) is str and role in _ROLES and _are_plain(message.parts)
    )


def _is_answer(payload: AssistantMessage | ToolCallMessage) -> bool:
    return type(payload.provider) is type(payload.model) is type(payload.stop_reason) is str and payload.usage is None


def _are_plain(parts: Any) -> bool:
    if type(parts) is not tuple:
        return False
    for part in parts:
        if type(part) is TextPart:
            if type(part.text) is not str or part.extra != _NOTHING:
                return False
        elif not (type(part) in _PARTS and part.extra == _NOTHING and _PARTS[type(part)](part)):
            return False
    return True


def _is_reasoning(part: ReasoningPart) -> bool:
    return (
        type(part.provider) is type(part.text) is type(part.signature) is type(part.encrypted) is type(part.id) is str
    )


def _is_call(part: ToolCallPart) -> bool:
    return type(part.id) is type(part.name) is type(part.arguments) is str


def _is_result(part: ToolResultPart) -> bool:
    words = type(part.call_id) is type(part.name) is str and type(part.is_error) is bool and part.view is None
    return words and _are_plain(part.parts) and all(type(inner) is TextPart for inner in part.parts)


_PARTS: dict[type, Callable[[Any], bool]] = {
    ReasoningPart: _is_reasoning,
    ToolCallPart: _is_call,
    ToolResultPart: _is_result,
}
