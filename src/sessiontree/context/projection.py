"""From a path to the messages that are visible: everything, or what the last compaction left.

Each entry becomes at most one message; tool calls and results are not paired here. A compaction becomes the summary
message, which replaces the head of the conversation:

>>> text = summary_text("We agreed on SQLite.", kept_users=[], has_tail=False)
>>> extract_summary(text)
'We agreed on SQLite.'
>>> extract_summary("any other text")
'any other text'
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.context.control import replace_signals
from sessiontree.context.records import Projected
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
from sessiontree.model._base import Record
from sessiontree.model.tokens import BLANKS

__all__ = [
    "SUMMARY_KIND",
    "SUMMARY_SCHEMA",
    "Window",
    "extract_summary",
    "project",
    "project_window",
    "summary_text",
    "window_of",
]


SUMMARY_KIND = "compaction_summary"
"""The kind of the summary message."""

SUMMARY_SCHEMA = "floret.compaction.summary.v1"

_WITH_TAIL = (
    "The conversation before the retained tail was compacted into this checkpoint.\n"
    "Use it as historical context only. Do not answer this checkpoint directly.\n"
    "The retained tail follows after this message and is the most recent source of truth."
)
_WITHOUT_TAIL = (
    "The compacted conversation is represented by this checkpoint.\n"
    "Use it as the current conversation context.\n"
    "No retained tail follows this checkpoint."
)
_KEPT_USERS = (
    "<preserved_user_inputs>\n"
    "These recent user messages were preserved from before the retained tail because they may contain intent, "
    "constraints, or preferences.\n"
    "Treat them as historical requirements unless the retained tail or the latest user message supersedes them.\n"
    "\n{}\n</preserved_user_inputs>"
)
_OPEN = f'<compaction_summary schema="{SUMMARY_SCHEMA}">'
_CLOSE = "</compaction_summary>"
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


def summary_text(summary: str, kept_users: Sequence[tuple[str, str]], has_tail: bool) -> str:
    """Return the text of the summary message; ``kept_users`` are pairs of entry id and quoted user message."""
    blocks = [_WITH_TAIL if has_tail else _WITHOUT_TAIL]
    if kept_users:
        blocks.append(_KEPT_USERS.format(_listed(kept_users)))
    blocks.append(f"{_OPEN}\n{summary.strip(BLANKS)}\n{_CLOSE}")
    return "\n\n".join(blocks)


def extract_summary(text: str) -> str:
    """Return the summary inside a summary message; any other text is returned unchanged."""
    if not text.startswith((_WITH_TAIL, _WITHOUT_TAIL)):
        return text
    start = text.find(_OPEN)
    end = text.rfind(_CLOSE)
    if start < 0 or end < start + len(_OPEN):
        return text
    return text[start + len(_OPEN) : end].strip(BLANKS)


def _listed(kept_users: Sequence[tuple[str, str]]) -> str:
    items = [{"entry_id": entry_id, "content": content} for entry_id, content in kept_users]
    # Markup characters are escaped, so that a user's text cannot close the block that it is quoted in.
    import json  # noqa: PLC0415  slow to import, and rarely needed

    return json.dumps(items, ensure_ascii=False, indent=2).translate(_ESCAPES)


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
    at = _last_boundary(path)
    if at is None:
        return Window(after=tuple(path))
    first = _first_kept(path, at)
    return Window(head=tuple(path[:first]), tail=tuple(path[first:at]), boundary=path[at], after=tuple(path[at + 1 :]))


def _last_boundary(path: Sequence[Entry]) -> int | None:
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


def project_window(window: Window) -> list[Projected]:
    """Return the visible messages of a window."""
    tail = [*_messages(window.tail), *_messages(window.after)]
    return [*_summary_message(window, bool(tail)), *tail]


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


def _summary_message(window: Window, has_tail: bool) -> list[Projected]:
    entry = window.boundary
    if entry is None or not isinstance(entry.payload, Compaction) or not entry.payload.summary:
        return []
    text = summary_text(entry.payload.summary, _kept_users(window, entry.payload), has_tail)
    message = Message(role="user", kind=SUMMARY_KIND, parts=(TextPart(text=text),))
    return [Projected(entry=entry, message=message)]


def _kept_users(window: Window, compaction: Compaction) -> list[tuple[str, str]]:
    users = {entry.id: entry.payload.message.text for entry in window.head if isinstance(entry.payload, UserMessage)}
    wanted = dict.fromkeys(compaction.kept_user_entry_ids)
    return [(entry_id, users[entry_id]) for entry_id in wanted if entry_id in users]
