"""Verbs about entries: append and read."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import UNSET, UnsetType

from sessiontree.codec import seal
from sessiontree.commands import Append, Draft
from sessiontree.errors import InvalidInputError
from sessiontree.messages import payload_of
from sessiontree.model import Entry, Label, Lease, Message, Payload
from sessiontree.model.entry import AssistantMessage, ToolCallMessage, ToolResultMessage, UserMessage
from sessiontree.model.record import Record
from sessiontree.operations.inputs import checked_hashes, checked_id, checked_lease, checked_time
from sessiontree.operations.requests import Operation, Sources
from sessiontree.queries import ReadChildren, ReadEntries, ReadEntry, ReadPath
from sessiontree.tokens import estimate_message
from sessiontree.tree import labels_of

__all__ = [
    "NewEntry",
    "append_command",
    "append_many",
    "children",
    "draft_as_given",
    "draft_of",
    "entries",
    "entry",
    "label",
    "labels",
    "path",
    "weight_of",
]

_LARGEST_BODY = 900 * 1024 * 1024
_COUNTED = (UserMessage, AssistantMessage, ToolCallMessage, ToolResultMessage)


class NewEntry(Record, frozen=True, kw_only=True):
    """One entry of an append with its own id, time or turn; what is left out is filled in.

    ``blobs`` names what must be in the store for the entry to go in, else it is MissingBlobsError.
    """

    content: Payload | Message
    id: str | None = None
    created_ns: int | None = None
    turn_id: str = ""
    blobs: tuple[str, ...] = ()


Content = Payload | Message | NewEntry


def append_command(
    sources: Sources,
    thread_id: str,
    new: NewEntry,
    *,
    parent: str | UnsetType | None = UNSET,
    expect_leaf: str | UnsetType | None = UNSET,
    lease: Lease | None = None,
    expect_live: bool = False,
) -> Append:
    """An append is one command and nothing else, so a journal gives it to the store itself: that is faster."""
    turn_id, token = ("", None) if lease is None else _turn_of(lease, thread_id)
    return Append(
        thread_id=thread_id,
        drafts=(draft_of(sources, new, turn_id),),
        parent=parent,
        expect_leaf=expect_leaf,
        token=token,
        expect_live=expect_live,
    )


def append_many(
    sources: Sources,
    thread_id: str,
    contents: Iterable[Content],
    *,
    parent: str | UnsetType | None = UNSET,
    expect_leaf: str | UnsetType | None = UNSET,
    lease: Lease | None = None,
) -> Operation[list[Entry]]:
    turn_id, token = ("", None) if lease is None else _turn_of(lease, thread_id)
    drafts = tuple([draft_of(sources, content, turn_id) for content in contents])
    stored: tuple[Entry, ...] = yield Append(
        thread_id=thread_id,
        drafts=drafts,
        parent=parent,
        expect_leaf=expect_leaf,
        token=token,
    )
    return list(stored)


def entry(thread_id: str, entry_id: str) -> Operation[Entry]:
    found: Entry = yield ReadEntry(thread_id=thread_id, entry_id=entry_id)
    return found


def entries(thread_id: str, after: str | None, limit: int | None) -> Operation[list[Entry]]:
    found: list[Entry] = yield ReadEntries(thread_id=thread_id, after=after, limit=_at_least_zero(limit))
    return found


def path(thread_id: str, leaf: str | UnsetType | None, limit: int | None) -> Operation[list[Entry]]:
    found: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=leaf, limit=_at_least_zero(limit))
    return found


def children(thread_id: str, entry_id: str | None) -> Operation[list[Entry]]:
    found: list[Entry] = yield ReadChildren(thread_id=thread_id, entry_id=entry_id)
    return found


def label(sources: Sources, thread_id: str, entry_id: str, name: str) -> Operation[Entry]:
    yield ReadEntry(thread_id=thread_id, entry_id=entry_id)
    stored = yield from append_many(sources, thread_id, [Label(target=entry_id, label=name)])
    return stored[0]


def labels(thread_id: str) -> Operation[dict[str, str]]:
    found = yield from entries(thread_id, None, None)
    return labels_of(found)


def _turn_of(lease: Lease, thread_id: str) -> tuple[str, int]:
    checked_lease(lease, thread_id)
    return lease.turn_id, lease.token


def draft_of(sources: Sources, content: Content, turn_id: str = "") -> Draft:
    new = content if isinstance(content, NewEntry) else NewEntry(content=content)
    return draft_as_given(
        sources.ids.new() if new.id is None else new.id,
        payload_of(new.content),
        sources.clock() if new.created_ns is None else new.created_ns,
        turn_id if new.turn_id == "" else new.turn_id,
        new.blobs if new.blobs == () else checked_hashes(new.blobs),
        has_new_id=new.id is None,
    )


def draft_as_given(
    entry_id: str,
    content: Payload,
    created_ns: int,
    turn_id: str,
    blobs: tuple[str, ...],
    *,
    has_new_id: bool = False,
) -> Draft:
    """The draft of an entry that has its id and its time, as one from another program brings them along."""
    payload, body = seal(content)
    if len(body) > _LARGEST_BODY:
        raise InvalidInputError(f"an entry of {len(body)} bytes is too big; keep it as an artifact instead")
    messages, tokens = weight_of(payload)
    return Draft(
        id=entry_id if has_new_id else checked_id(entry_id, "entry id"),
        payload=payload,
        body=body,
        created_ns=checked_time(created_ns, "created_ns"),
        turn_id=turn_id if turn_id == "" else checked_id(turn_id, "turn id"),
        messages=messages,
        tokens=tokens,
        has_new_id=has_new_id,
        blobs=blobs,
    )


def weight_of(payload: Payload) -> tuple[int, int]:
    """How many messages and, estimated, tokens a payload adds to a conversation."""
    if isinstance(payload, _COUNTED):
        return 1, estimate_message(payload.message)
    return 0, 0


def _at_least_zero(limit: int | None) -> int | None:
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InvalidInputError(f"limit must be a number that is not negative, not {limit!r}")
    return limit
