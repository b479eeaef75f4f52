"""Where a conversation may be cut: never between a tool call and its result, never behind an open call.

>>> from sessiontree.messages import assistant, call, tool_result, user
>>> said = [user("a"), assistant(calls=[call("1", "ls")]), tool_result("1", "x"), assistant("b")]
>>> items = [Item(entry_id=str(n), message=payload.message, said=payload.message, tokens=1)
...          for n, payload in enumerate(said)]
>>> cut_points(items)
[0, 1, 3, 4]
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.model import Message
from sessiontree.model.record import Record

__all__ = ["Item", "Span", "cut_points", "is_turn_start", "last_cut", "open_spans"]

Key = tuple[str, str]


class Item(Record, frozen=True, kw_only=True):
    """One message of the view. ``said`` is the entry's own message, where a control signal still is a call."""

    entry_id: str
    message: Message
    said: Message
    tokens: int


class Span(Record, frozen=True, kw_only=True):
    """A stretch that stays in one piece: no cut at ``first + 1`` to ``last``."""

    first: int
    last: int


def cut_points(items: Sequence[Item]) -> list[int]:
    """Every index where the conversation may be cut in two; the item at the index is the first of the second part."""
    closed = [False] * (len(items) + 1)
    for span in open_spans(items):
        closed[span.first + 1 : span.last + 1] = [True] * (span.last - span.first)
    return [index for index, is_closed in enumerate(closed) if not is_closed]


def open_spans(items: Sequence[Item]) -> list[Span]:
    """From each call to the last thing that belongs to it, or past the end while its result may still come."""
    waiting: dict[Key, list[int]] = {}
    early: dict[Key, int] = {}
    spans: list[Span] = []
    for index, item in enumerate(items):
        for call in item.said.tool_calls:
            key = _key(call.id, call.name)
            if key in early:
                spans.append(Span(first=early.pop(key), last=index))
            else:
                waiting.setdefault(key, []).append(index)
        for result in item.said.tool_results:
            key = _key(result.call_id, result.name)
            asked = waiting.get(key) or waiting.get(_by_name(items, waiting, key), [])
            if asked:
                spans.append(Span(first=asked.pop(), last=index))
            else:
                early.setdefault(key, index)
    unanswered = (asked for indexes in waiting.values() for asked in indexes)
    return [*spans, *(Span(first=asked, last=_abandoned(items, asked)) for asked in unanswered)]


def is_turn_start(item: Item) -> bool:
    return item.message.role == "user"


def last_cut(items: Sequence[Item]) -> int:
    """How far a cut may go: what the user said last, and nobody has answered yet, stays as it is."""
    is_unanswered = bool(items) and is_turn_start(items[-1])
    return len(items) - 1 if is_unanswered else len(items)


def _key(call_id: str, name: str) -> Key:
    return (call_id, "" if call_id else name)


def _by_name(items: Sequence[Item], waiting: dict[Key, list[int]], key: Key) -> Key:
    """The waiting call of that name, for a result that came without an id."""
    if key[0]:
        return key
    for held, indexes in waiting.items():
        for index in indexes:
            if any((call.id, call.name) == (held[0], key[1]) for call in items[index].said.tool_calls):
                return held
    return key


def _abandoned(items: Sequence[Item], asked: int) -> int:
    """The end of the batch of a call that the assistant gave up on; past the end while it has not gone on."""
    index = asked
    while index < len(items) and (items[index].said.tool_calls or items[index].message.role == "tool"):
        index += 1
    has_gone_on = any(item.message.role == "assistant" for item in items[index:])
    return index - 1 if has_gone_on else len(items)
