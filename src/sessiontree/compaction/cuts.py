"""Where a conversation may be cut: never between a tool call and its result, nor after an open call.

>>> from sessiontree.model.builders import assistant, call, tool_result, user
>>> payloads = [user("a"), assistant(calls=[call("1", "ls")]), tool_result("1", "x"), assistant("b"), user("c")]
>>> items = [CutItem(entry_id=str(n), message=payload.message, original=payload.message, tokens=1)
...          for n, payload in enumerate(payloads)]
>>> cut_points(items)
[0, 1, 3, 4, 5]

What the model has not answered yet is kept:

>>> unread_from(items), unread_from(items[:3])
(4, 1)
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.context import project, window_of
from sessiontree.context.pairing import CallKey, call_key, result_key
from sessiontree.model import Entry, Message
from sessiontree.model._base import Record
from sessiontree.model.tokens import TokenCounter, estimate_message, estimate_text

__all__ = ["CutItem", "Span", "cut_points", "is_turn_start", "items_of", "last_cut", "open_spans", "unread_from"]


class CutItem(Record, frozen=True, kw_only=True):
    """A visible message. ``original`` is the message of the entry, in which a control signal is still a call."""

    entry_id: str
    message: Message
    original: Message
    tokens: int


def items_of(path: Sequence[Entry], count: TokenCounter = estimate_text) -> list[CutItem]:
    """Return the visible messages of a path, without the summary message of an earlier compaction."""
    boundary = window_of(path).boundary
    visible = [item for item in project(path) if item.entry is not boundary]
    tokens = [estimate_message(item.message, count) for item in visible]
    return [
        CutItem(
            entry_id=item.entry.id,
            message=item.message,
            original=item.entry.message or item.message,
            tokens=size,
        )
        for item, size in zip(visible, tokens, strict=True)
    ]


class Span(Record, frozen=True, kw_only=True):
    """Items that stay together: no cut at ``first + 1`` to ``last``."""

    first: int
    last: int


def cut_points(items: Sequence[CutItem]) -> list[int]:
    """Return the indexes at which the conversation may be cut; the item at the index begins the second part."""
    closed = [False] * (len(items) + 1)
    for span in open_spans(items):
        closed[span.first + 1 : span.last + 1] = [True] * (span.last - span.first)
    return [index for index, is_closed in enumerate(closed) if not is_closed]


def open_spans(items: Sequence[CutItem]) -> list[Span]:
    """Return the spans from each call to its result; past the end if the result may still come."""
    waiting: dict[CallKey, list[int]] = {}
    early: dict[CallKey, int] = {}
    spans: list[Span] = []
    for index, item in enumerate(items):
        for call in item.original.tool_calls:
            key = call_key(call)
            if key in early:
                spans.append(Span(first=early.pop(key), last=index))
            else:
                waiting.setdefault(key, []).append(index)
        for result in item.original.tool_results:
            key = result_key(result)
            calls = waiting.get(key) or waiting.get(_by_name(items, waiting, key), [])
            if calls:
                spans.append(Span(first=calls.pop(), last=index))
            else:
                early.setdefault(key, index)
    without_result = (call for indexes in waiting.values() for call in indexes)
    return [*spans, *(Span(first=call, last=_end_of_open_call(items, call)) for call in without_result)]


def is_turn_start(item: CutItem) -> bool:
    """Return whether a turn begins with this message."""
    return item.message.role == "user"


def unread_from(items: Sequence[CutItem]) -> int:
    """Return the index from which on the model has answered nothing: what it was told, and the results it asked for.

    If the model's last message has calls, it is that message, without which their results have no place.
    """
    spoken = [index for index, item in enumerate(items) if item.message.role == "assistant"]
    if not spoken:
        return 0
    return spoken[-1] if items[spoken[-1]].message.tool_calls else spoken[-1] + 1


def last_cut(items: Sequence[CutItem]) -> int:
    """Return the last place to cut that loses no result that the model has not read, and not its last question."""
    unread = unread_from(items)
    if any(item.original.tool_results for item in items[unread:]):
        return _at_or_before(items, unread)
    is_unanswered = bool(items) and is_turn_start(items[-1])
    return _at_or_before(items, len(items) - 1 if is_unanswered else len(items))


def _at_or_before(items: Sequence[CutItem], index: int) -> int:
    return max(point for point in cut_points(items) if point <= index)


def _by_name(items: Sequence[CutItem], waiting: dict[CallKey, list[int]], key: CallKey) -> CallKey:
    """Return the key of a waiting call of that name, for a result without an id."""
    if key.id:
        return key
    for other, indexes in waiting.items():
        for index in indexes:
            if any((call.id, call.name) == (other.id, key.name) for call in items[index].original.tool_calls):
                return other
    return key


def _end_of_open_call(items: Sequence[CutItem], call: int) -> int:
    """Return the end of the batch of a call without a result; past the end unless the assistant has continued."""
    index = call
    while index < len(items) and (items[index].original.tool_calls or items[index].message.role == "tool"):
        index += 1
    has_continued = any(item.message.role == "assistant" for item in items[index:])
    return index - 1 if has_continued else len(items)
