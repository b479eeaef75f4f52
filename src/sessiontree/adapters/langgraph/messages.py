"""Messages of LangChain as JSON. Decoded with the entry that holds it, a message takes less time than LangGraph's serializer does."""

from __future__ import annotations

from math import isfinite
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from sessiontree.model.sanitize import is_unicode

__all__ = ["Fields", "fields_of", "message_of"]

Fields = dict[str, Any]

_CLASSES: dict[str, type[BaseMessage]] = {
    "ai": AIMessage,
    "human": HumanMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}


def fields_of(value: Any) -> Fields | None:
    """Return the fields of a message; ``None`` if they would not be the same after JSON, or if it is something else.

    >>> fields_of(HumanMessage("hi"))["content"], fields_of(ToolMessage("ok", tool_call_id="a", artifact=b"raw"))
    ('hi', None)
    """
    if not isinstance(value, BaseMessage) or type(value) is not _CLASSES.get(value.type):
        return None
    fields = value.model_dump()
    return fields if _is_json(fields) else None


def message_of(fields: Fields) -> BaseMessage:
    """Return the message with these fields, as LangGraph's serializer does.

    >>> message_of(fields_of(HumanMessage("hi", id="1")))
    HumanMessage(content='hi', additional_kwargs={}, response_metadata={}, id='1')
    """
    kind = _CLASSES[fields["type"]]
    try:
        return kind(**fields)
    except Exception:  # noqa: BLE001  stored by a version of LangChain with other rules
        return kind.model_construct(**fields)


def _is_json(value: Any) -> bool:
    """Whether JSON keeps a value as it is, also its class: a member of an enum of texts would come back as a text."""
    kind = type(value)
    if kind is str:
        return is_unicode(value)
    if kind is dict:
        return all(type(name) is str and is_unicode(name) and _is_json(item) for name, item in value.items())
    if kind is list:
        return all(map(_is_json, value))
    if kind is int:
        return bool(-(1 << 63) <= value < 1 << 63)
    if kind is float:
        return isfinite(value)
    return kind is bool or value is None
