"""What of an entry can be found: its text, and the facts that filters ask for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from sessiontree.model import (
    BranchSummary,
    Compaction,
    Custom,
    FilePart,
    Label,
    Memory,
    Message,
    Payload,
    ReasoningPart,
    RunFailure,
    TextPart,
    ThreadInfo,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.model.entry import AssistantMessage, ToolCallMessage
from sessiontree.model.record import Record

__all__ = ["Searchable", "searchable"]

_PATH_KEYS = frozenset({"path", "file", "file_path", "filepath", "filename", "notebook_path", "paths", "files"})


class Searchable(Record, frozen=True, kw_only=True):
    """``tools``, ``model`` and ``files`` are case-folded, one line for each value."""

    text: str
    role: str = ""
    tools: str = ""
    model: str = ""
    files: str = ""


def searchable(payload: Payload) -> Searchable | None:
    """None for entries without words: turn markers, usage, events and whatever a newer version wrote."""
    match payload:
        case Custom(name=name, message=None, data=data):
            return Searchable(text="\n".join([name, *_strings(data)]))
        case Custom(message=message) if message is not None:
            return _of_message(message, "")
        case Compaction(summary=summary, files_read=read, files_modified=modified):
            return Searchable(text=summary, files=_lines((*read, *modified))) if summary else None
        case BranchSummary(summary=text) | ThreadInfo(text=text) | Memory(text=text) | RunFailure(error=text):
            return Searchable(text=text)
        case Label(label=text):
            return Searchable(text=text) if text else None
        case AssistantMessage(message=message, model=model) | ToolCallMessage(message=message, model=model):
            return _of_message(message, model)
        case _:
            message = getattr(payload, "message", None)
            return _of_message(message, "") if isinstance(message, Message) else None


def _of_message(message: Message, model: str) -> Searchable:
    texts: list[str] = []
    tools: list[str] = []
    files: list[str] = []
    for part in message.parts:
        match part:
            case TextPart(text=text) | ReasoningPart(text=text):
                texts.append(text)
            case ToolCallPart(name=name, arguments=arguments):
                values = _decoded(arguments)
                tools.append(name)
                texts += [name, *(_strings(values) if values is not None else [arguments])]
                files += _paths(values)
            case ToolResultPart(name=name, parts=parts):
                tools.append(name)
                texts += [inner.text for inner in parts if isinstance(inner, TextPart)]
                files += [inner.name for inner in parts if isinstance(inner, FilePart)]
            case FilePart(name=name):
                texts.append(name)
                files.append(name)
    return Searchable(
        text="\n".join(filter(None, texts)),
        role=message.role,
        tools=_lines(tools),
        model=model.casefold(),
        files=_lines(files),
    )


def _decoded(arguments: str) -> Any:
    try:
        return msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


def _strings(value: Any, key: str = "") -> Iterator[str]:
    """Every name and every text inside a JSON value, in order."""
    match value:
        case str():
            yield value
        case dict():
            for name, item in value.items():
                yield str(name)
                yield from _strings(item, str(name))
        case list():
            for item in value:
                yield from _strings(item, key)
        case bool() | None:
            return
        case int() | float():
            yield str(value)


def _paths(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    for name, item in value.items():
        if name in _PATH_KEYS:
            yield from (text for text in (item if isinstance(item, list) else [item]) if isinstance(text, str))


def _lines(values: Iterable[str]) -> str:
    return "\n".join(dict.fromkeys(value.casefold() for value in values if value))
