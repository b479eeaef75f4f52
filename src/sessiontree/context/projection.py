"""From a path to messages, one entry a message, exactly as it happened: tool pairs are not repaired here."""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.context.checkpoint import CHECKPOINT_KIND, checkpoint_text
from sessiontree.context.control import replace_signals
from sessiontree.context.records import Projected
from sessiontree.context.window import Window, window_of
from sessiontree.model import (
    AssistantMessage,
    BranchSummary,
    Compaction,
    Entry,
    Message,
    TextPart,
    ToolCallMessage,
    ToolResultMessage,
    UserMessage,
)

__all__ = ["project", "project_window"]


def project(path: Sequence[Entry]) -> list[Projected]:
    """The messages of a path: the checkpoint of the last compaction, what it kept, and what came after.

    >>> from sessiontree.messages import user
    >>> entry = Entry(id="e1", thread_id="t", parent=None, created_ns=0, payload=user("hello"))
    >>> [item.message.text for item in project([entry])]
    ['hello']
    """
    return project_window(window_of(path))


def project_window(window: Window) -> list[Projected]:
    tail = [*_messages(window.tail), *_messages(window.after)]
    return [*_checkpoint(window, bool(tail)), *tail]


def _messages(entries: Sequence[Entry]) -> list[Projected]:
    seen = ((entry, _message(entry)) for entry in entries)
    return [Projected(entry=entry, message=message) for entry, message in seen if message is not None]


def _message(entry: Entry) -> Message | None:
    match entry.payload:
        case UserMessage(message=message) | AssistantMessage(message=message) | ToolResultMessage(message=message):
            return message
        case ToolCallMessage(message=message):
            return replace_signals(message)
        case BranchSummary(summary=summary) if summary:
            return Message(role="assistant", parts=(TextPart(text=summary),))
        case _:
            return None


def _checkpoint(window: Window, has_tail: bool) -> list[Projected]:
    entry = window.boundary
    if entry is None or not isinstance(entry.payload, Compaction) or not entry.payload.summary:
        return []
    text = checkpoint_text(entry.payload.summary, _kept_users(window, entry.payload), has_tail)
    message = Message(role="user", kind=CHECKPOINT_KIND, parts=(TextPart(text=text),))
    return [Projected(entry=entry, message=message)]


def _kept_users(window: Window, compaction: Compaction) -> list[tuple[str, str]]:
    users = {entry.id: entry.payload.message.text for entry in window.head if isinstance(entry.payload, UserMessage)}
    wanted = dict.fromkeys(compaction.kept_user_entry_ids)
    return [(entry_id, users[entry_id]) for entry_id in wanted if entry_id in users]
