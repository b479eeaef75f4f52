"""The inbox of a thread: messages that wait for a place in the conversation where a model can take them.

A queued message is an entry beside the path. It is placed by an entry on the path, or withdrawn by another one beside it;
both have the same id, made of that of the queued one, so that only one of the two can ever be stored, and only once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import takewhile
from typing import NamedTuple, get_args

from sessiontree.errors import DuplicateEntryError, EntryNotFoundError, InvalidInputError, StaleLeafError
from sessiontree.journal.operations.entries import NewEntry, append_many, entries, entry, find_entries, path
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import Custom, Entry, Lease, Message, Payload, QueuedMessage
from sessiontree.model.builders import message_of, payload_of
from sessiontree.model.entry import AssistantMessage, Queued, QueuedFor, ToolCallMessage, ToolResultMessage
from sessiontree.model.message import ToolResultPart
from sessiontree.stores.queries import ReadThread

__all__ = ["EVERY_MOMENT", "enqueue", "inbox", "place", "withdraw"]

EVERY_MOMENT: frozenset[QueuedFor] = frozenset(get_args(QueuedFor))
_LONGEST_BATCH = 500
"""How far back a call without a result is looked for."""
_PLACED = ":placed"
_SPEAKING = ("assistant_message", "tool_call", "tool_result")


def enqueue(
    runtime: Runtime, thread_id: str, content: Payload | Message, when: QueuedFor, queued_id: str | None
) -> Operation[QueuedMessage]:
    """Queue a message of a user."""
    if not isinstance(when, str) or when not in EVERY_MOMENT:
        raise InvalidInputError(f"when must be 'next_step' or 'next_turn', not {when!r}")
    message = message_of(payload_of(content))
    if message is None or message.role != "user":
        raise InvalidInputError(f"only messages of users can be queued, not {content!r}; append other entries")
    if queued_id is not None and (known := (yield from _known(thread_id, queued_id, message, when))) is not None:
        return known
    new = NewEntry(content=Queued(message=message, when=when, settled=(yield from _settled(thread_id))), id=queued_id)
    try:
        (stored,) = yield from append_many(runtime, thread_id, [new], moves_leaf=False)
    except DuplicateEntryError:
        # Queued by another call in between, perhaps when more was settled.
        known = None if queued_id is None else (yield from _known(thread_id, queued_id, message, when))
        if known is None:
            raise
        return known
    return _queued(stored)


def _known(thread_id: str, queued_id: str, message: Message, when: QueuedFor) -> Operation[QueuedMessage | None]:
    """Return the message that was queued under an id; None if the id is free."""
    found = yield from find_entries([queued_id], thread_id)
    if not found:
        return None
    match found[0].payload:
        case Queued(message=known, when=moment) if (known, moment) == (message, when):
            return _queued(found[0])
        case _:
            raise DuplicateEntryError(thread_id, queued_id)


def inbox(thread_id: str) -> Operation[list[QueuedMessage]]:
    """Return the messages that wait, oldest first."""
    recent = yield from _recent(thread_id)
    return [_queued(one) for one in recent.queued if one.id not in recent.settled]


class _Recent(NamedTuple):
    """The queued messages after ``start``, up to which nothing waits, and the ids of those that are settled."""

    start: str
    queued: list[Entry]
    settled: frozenset[str]


def _recent(thread_id: str) -> Operation[_Recent]:
    newest = yield from entries(thread_id, types=("queued",), newest_first=True, limit=1)
    if not newest:
        return _Recent("", [], frozenset())
    assert isinstance(newest[0].payload, Queued)
    start = newest[0].payload.settled
    try:
        queued = yield from entries(thread_id, types=("queued",), after=start or None)
    except EntryNotFoundError:  # an export left it out
        start, queued = "", (yield from entries(thread_id, types=("queued",)))
    done = yield from find_entries([_placed_id(one.id) for one in queued], thread_id)
    return _Recent(start, queued, frozenset(one.id.removesuffix(_PLACED) for one in done))


def _settled(thread_id: str) -> Operation[str]:
    """Return the last queued message up to which nothing waits; "" if there is none."""
    recent = yield from _recent(thread_id)
    settled = list(takewhile(lambda one: one.id in recent.settled, recent.queued))
    return settled[-1].id if settled else recent.start


def withdraw(runtime: Runtime, thread_id: str, queued_id: str) -> Operation[bool]:
    """Take a message back; return False if it has a place already."""
    queued = yield from entry(thread_id, queued_id)
    if not isinstance(queued.payload, Queued):
        raise InvalidInputError(f"entry {queued_id!r} is not a queued message; inbox() lists them")
    gone = NewEntry(content=Custom(name="withdrawn", data={"queued": queued_id}), id=_placed_id(queued_id))
    try:
        yield from append_many(runtime, thread_id, [gone], moves_leaf=False)
    except DuplicateEntryError:
        return False
    return True


def place(runtime: Runtime, lease: Lease, moments: Collection[QueuedFor]) -> Operation[list[Entry]]:
    """Append the waiting messages to the path, in order, unless a tool call there has no result yet."""
    thread_id = lease.thread_id
    while True:
        waiting = [one for one in (yield from inbox(thread_id)) if one.when in moments]
        if not waiting:
            return []
        leaf = (yield ReadThread(thread_id=thread_id)).leaf
        if _has_open_call((yield from path(thread_id, leaf, _LONGEST_BATCH, _SPEAKING))):
            return []
        new = [NewEntry(content=one.message, id=_placed_id(one.id)) for one in waiting]
        try:
            return (yield from append_many(runtime, thread_id, new, lease=lease, expect_leaf=leaf))
        except (DuplicateEntryError, StaleLeafError):
            # One was withdrawn, or another entry came in between.
            continue


def _has_open_call(path: Sequence[Entry]) -> bool:
    answered: set[str] = set()
    for one in reversed(path):
        match one.payload:
            case ToolResultMessage(message=message):
                answered |= {part.call_id for part in message.parts if isinstance(part, ToolResultPart)}
            case ToolCallMessage(message=message):
                if any(call.id not in answered for call in message.tool_calls):
                    return True
            case AssistantMessage():
                return False
    return False


def _queued(stored: Entry) -> QueuedMessage:
    assert isinstance(stored.payload, Queued)
    return QueuedMessage(
        id=stored.id,
        thread_id=stored.thread_id,
        message=stored.payload.message,
        when=stored.payload.when,
        created_ns=stored.created_ns,
    )


def _placed_id(queued_id: str) -> str:
    return queued_id + _PLACED
