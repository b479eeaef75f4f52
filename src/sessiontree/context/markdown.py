"""A conversation as Markdown: messages, tool calls and results; images are left out.

>>> from sessiontree.model.builders import user
>>> thread = Thread(id="t1", tree="t1", created_ns=0, updated_ns=0, title="Demo")
>>> path = [Entry(id="e1", thread_id="t1", parent=None, created_ns=0, payload=user("hello"))]
>>> print(markdown(thread, path))
# Demo
<BLANKLINE>
**Session:** t1
**Created:** 1970-01-01T00:00:00Z
**Updated:** 1970-01-01T00:00:00Z
**Messages:** 1
<BLANKLINE>
---
<BLANKLINE>
## User
<BLANKLINE>
hello
<BLANKLINE>
---
<BLANKLINE>
<BLANKLINE>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from sessiontree.context import window_of
from sessiontree.model import (
    AssistantMessage,
    Compaction,
    Entry,
    Message,
    Part,
    Payload,
    TextPart,
    Thread,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.model._base import Progress, convert, counted

__all__ = ["history", "markdown", "whole_markdown"]


_PARTIAL = "Assistant (partial answer)"
_SUMMARY = "Summary of the conversation so far"
_HEADINGS = {"user": "User", "assistant": "Assistant", "system": "System"}


def markdown(thread: Thread, path: Sequence[Entry], progress: Progress | None = None) -> str:
    """Return a path as Markdown, from its last compaction on."""
    return _document(thread, history(path), progress)


def whole_markdown(thread: Thread, path: Sequence[Entry], progress: Progress | None = None) -> str:
    """Return a path as Markdown from its first message on; the summaries stand where the compactions are."""
    messages = [message for entry in path for message in _said(entry)]
    return _document(thread, messages, progress)


def _document(thread: Thread, messages: Sequence[Message], progress: Progress | None) -> str:
    blocks = (block for message in counted(messages, progress) for block in _message(message))
    return "".join([*_head(thread, len(messages)), *blocks])


def history(path: Sequence[Entry]) -> list[Message]:
    """Return the summary of the last compaction and the messages after it, system messages included."""
    window = window_of(path)
    boundary = window.boundary.payload if window.boundary else None
    head = _summary(boundary) if isinstance(boundary, Compaction) else []
    entries = (*window.tail, *window.after)
    return [*head, *(_marked(entry.payload, entry.message) for entry in entries if entry.message)]


def _said(entry: Entry) -> list[Message]:
    match entry.payload:
        case Compaction(summary=summary) if summary:
            return [Message(role="system", parts=(TextPart(text=summary),), extra={"role": _SUMMARY})]
        case payload if entry.message:
            return [_marked(payload, entry.message)]
        case _:
            return []


def _marked(payload: Payload, message: Message) -> Message:
    if isinstance(payload, AssistantMessage) and payload.is_partial:
        return replace(message, extra={**message.extra, "role": _PARTIAL})
    return message


def _summary(compaction: Compaction) -> list[Message]:
    """Return what replaces the compacted part: the messages that an importer kept, or the summary."""
    if "head" in compaction.origin:
        return [convert(message, Message) for message in compaction.origin["head"]]
    return [Message(role="system", parts=(TextPart(text=compaction.summary),))] if compaction.summary else []


def _head(thread: Thread, count: int) -> Iterator[str]:
    yield f"# {' '.join(thread.title.split())}\n\n**Session:** {thread.origin.get('id', thread.id)}\n"
    yield f"**Created:** {_time(thread, 'created_at', thread.created_ns)}\n"
    yield f"**Updated:** {_time(thread, 'updated_at', thread.updated_ns)}\n"
    if thread.vendor:
        yield f"**Vendor:** {' / '.join(filter(None, (thread.vendor, thread.endpoint, thread.model)))}\n"
    yield f"**Messages:** {count}\n\n---\n\n"


def _time(thread: Thread, name: str, time_ns: int) -> str:
    """Return a time as text, in the time zone of the file it was imported from if that is known."""
    written = thread.origin.get("times", {}).get(name)
    if written and written["ns"] == time_ns:
        return str(written["text"])
    moment = thread.created_at if name == "created_at" else thread.updated_at
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _message(message: Message) -> Iterator[str]:
    role = str(message.extra.get("role", message.role))
    yield f"## {_HEADINGS.get(role, role)}\n\n"
    for part in message.parts:
        yield _part(part)
    yield "---\n\n"


def _part(part: Part) -> str:
    match part:
        case TextPart(text=text):
            return f"{text}\n\n"
        case ToolCallPart(name=name, arguments=arguments):
            return f"**Tool Call:** `{name}`\n" + (f"```json\n{arguments}\n```\n\n" if arguments else "\n")
        case ToolResultPart(parts=parts, is_error=is_error):
            output = "".join(inner.text for inner in parts if isinstance(inner, TextPart))
            return f"**Tool Result** (error={str(is_error).lower()}):\n```\n{output}\n```\n\n"
        case _:
            return ""
