"""From a path to the messages that are visible: everything, or what the last compaction left.

Each entry becomes at most one message; tool calls and results are not paired here. A compaction becomes the summary
message, which replaces the head of the conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sessiontree.context.control import replace_signals
from sessiontree.context.records import Projected
from sessiontree.context.result_views import show_cuts
from sessiontree.context.summary_message import SUMMARY_KIND, is_florets, summary_text
from sessiontree.model import (
    AssistantMessage,
    BranchSummary,
    Compaction,
    Entry,
    Message,
    ResultCut,
    TextPart,
    ToolCallMessage,
    ToolResultMessage,
    UserMessage,
)
from sessiontree.model._base import Record

__all__ = [
    "Window",
    "is_visible",
    "last_boundary",
    "project",
    "project_window",
    "window_of",
]


class Window(Record, frozen=True, kw_only=True):
    """A path split at a compaction: the summarised head, the kept tail, the compaction itself, and what follows.

    Without a compaction everything is in ``after``.
    """

    head: tuple[Entry, ...] = ()
    tail: tuple[Entry, ...] = ()
    boundary: Entry | None = None
    after: tuple[Entry, ...] = ()


def window_of(path: Sequence[Entry]) -> Window:
    """Split a path at the compaction in force: the last one that is not reverted."""
    at = last_boundary(path)
    if at is None:
        return Window(after=tuple(path))
    first = _first_kept(path, at)
    return Window(head=tuple(path[:first]), tail=tuple(path[first:at]), boundary=path[at], after=tuple(path[at + 1 :]))


def last_boundary(path: Sequence[Entry]) -> int | None:
    """Return the index of the compaction in force: the last one that is not reverted."""
    reverted: set[str] = set()
    for index in range(len(path) - 1, -1, -1):
        entry = path[index]
        if not isinstance(entry.payload, Compaction) or reverted & {entry.id, entry.payload.id}:
            continue
        if not entry.payload.reverts:
            return index
        reverted.add(entry.payload.reverts)
    return None


def _first_kept(path: Sequence[Entry], at: int) -> int:
    compaction = path[at].payload
    assert isinstance(compaction, Compaction)
    wanted = compaction.first_kept_entry_id
    for index, entry in enumerate(path[: at + 1]):
        if wanted and entry.id == wanted:
            return index
    for index, entry in enumerate(path[:at]):
        if compaction.tail_after_entry_id and entry.id == compaction.tail_after_entry_id:
            return index + 1
    if compaction.kept_user_entry_ids:
        return at
    return _nearest_turn_start(path, at)


def _nearest_turn_start(path: Sequence[Entry], at: int) -> int:
    """Return the index of the last message before the compaction, or of the call if that is a tool result."""
    index = at - 1
    while index >= 0 and not _is_message(path[index]):
        index -= 1
    while index > 0 and isinstance(path[index].payload, ToolResultMessage):
        index -= 1
    return index if index >= 0 else at


def _is_message(entry: Entry) -> bool:
    return isinstance(entry.payload, UserMessage | AssistantMessage | ToolCallMessage | ToolResultMessage)


def project(path: Sequence[Entry]) -> list[Projected]:
    """Return the visible messages of a path: the summary message, what the compaction kept, and what followed.

    >>> from sessiontree.model.builders import user
    >>> entry = Entry(id="e1", thread_id="t", parent=None, created_ns=0, payload=user("hello"))
    >>> [item.message.text for item in project([entry])]
    ['hello']
    """
    return project_window(window_of(path))


def as_finished(path: Sequence[Entry]) -> list[Entry]:
    """Return a path on which interrupted answers count as finished, so that a context holds them."""
    return [
        replace(entry, payload=replace(entry.payload, is_partial=False))
        if isinstance(entry.payload, AssistantMessage) and entry.payload.is_partial
        else entry
        for entry in path
    ]


def project_window(window: Window) -> list[Projected]:
    """Return the visible messages of a window."""
    cuts = _cuts(window)
    kept, newer = _messages(window.tail, cuts), _messages(window.after, cuts)
    return [*_summary_message(window, bool(kept), bool(newer)), *kept, *newer]


def _cuts(window: Window) -> dict[str, list[ResultCut]]:
    """Return how the compaction in force cut large results, by entry."""
    compaction = window.boundary.payload if window.boundary else None
    found: dict[str, list[ResultCut]] = {}
    for cut in compaction.cut_results if isinstance(compaction, Compaction) else ():
        found.setdefault(cut.entry_id, []).append(cut)
    return found


def _messages(entries: Sequence[Entry], cuts: Mapping[str, Sequence[ResultCut]]) -> list[Projected]:
    whole = ((entry, _message(entry)) for entry in entries)
    seen = (
        (entry, show_cuts(message, cuts[entry.id]) if message is not None and entry.id in cuts else message)
        for entry, message in whole
    )
    return [Projected(entry=entry, message=message) for entry, message in seen if message is not None]


def is_visible(entry: Entry) -> bool:
    """Return whether an entry is a message of a context, if no compaction replaces it."""
    return _message(entry) is not None


def _message(entry: Entry) -> Message | None:
    match entry.payload:
        case AssistantMessage(is_partial=True):
            return None
        case UserMessage(message=message) | AssistantMessage(message=message) | ToolResultMessage(message=message):
            return message
        case ToolCallMessage(message=message):
            return replace_signals(message)
        case BranchSummary(summary=summary) if summary:
            return Message(role="assistant", parts=(TextPart(text=summary),))
        case _:
            return None


def _summary_message(window: Window, has_kept: bool, has_newer: bool) -> list[Projected]:
    """Return the summary in force; its words must not change with the next message, as floret's do.

    A summary without messages before it begins the conversation, so messages will follow.
    """
    entry = window.boundary
    if entry is None or not isinstance(entry.payload, Compaction) or not entry.payload.summary:
        return []
    users = _kept_users(window, entry.payload)
    schema = entry.payload.schema_version
    is_first = not any(map(is_visible, window.head))
    will_follow = has_newer if is_florets(schema) else is_first or bool(entry.payload.first_kept_entry_id)
    has_tail = has_kept or will_follow
    text = summary_text(entry.payload.summary, users, has_tail, schema=schema)
    message = Message(role="user", kind=SUMMARY_KIND, parts=(TextPart(text=text),))
    return [Projected(entry=entry, message=message)]


def _kept_users(window: Window, compaction: Compaction) -> list[tuple[str, str]]:
    users = {entry.id: entry.payload.message.text for entry in window.head if isinstance(entry.payload, UserMessage)}
    wanted = dict.fromkeys(compaction.kept_user_entry_ids)
    return [(entry_id, users[entry_id]) for entry_id in wanted if entry_id in users]
