"""Verbs about entries: append, read, label; and the checks of what callers pass, before anything is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from msgspec import UNSET, UnsetType

from sessiontree.context.control import replace_signals
from sessiontree.errors import InvalidInputError
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import (
    Entry,
    Label,
    Lease,
    Message,
    Payload,
    Thread,
    ThreadFields,
    UserMessage,
)
from sessiontree.model._base import Record, json_decoder
from sessiontree.model.artifacts import MAY_HAVE_ARTIFACTS, artifacts_of, is_hash, named_artifacts
from sessiontree.model.builders import payload_of, user
from sessiontree.model.codec import EntryBody, encode_record, validate_and_encode
from sessiontree.model.entry import (
    AssistantMessage,
    BranchSummary,
    Compaction,
    SystemMessage,
    ToolCallMessage,
    ToolResultMessage,
)
from sessiontree.model.message import TextPart
from sessiontree.model.sanitize import is_unicode
from sessiontree.model.tokens import estimate_message, estimate_prompt
from sessiontree.stores.commands import Append, Draft, OnDuplicate, UpdateThread
from sessiontree.stores.queries import (
    ReadChildren,
    ReadEntries,
    ReadEntriesById,
    ReadEntry,
    ReadLastEntries,
    ReadPath,
    ReadPathBodies,
)

__all__ = [
    "NewEntry",
    "append",
    "append_command",
    "append_many",
    "checked_hashes",
    "checked_id",
    "checked_lease",
    "checked_time",
    "children",
    "commit_append",
    "draft_as_given",
    "draft_of",
    "entries",
    "entry",
    "has_replacement",
    "is_uncounted",
    "label",
    "labels",
    "labels_of",
    "make_draft",
    "path",
    "path_bodies",
    "prepare_append",
    "texts_of",
    "weight_of",
]


_LATEST_NS = 2**63 - 1
_ON_DUPLICATE = get_args(OnDuplicate)


def checked_id(text: str, what: str) -> str:
    """Return an id that every store can hold: any string but the empty one."""
    if not isinstance(text, str) or not text:
        raise InvalidInputError(f"{what} must be a non-empty string, not {text!r}")
    if not text.isascii():
        encode_record(text, what)
    return text


def checked_hashes(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return hashes of blobs: each is a SHA-256 in lower-case hexadecimal digits."""
    if not isinstance(names, tuple):
        raise InvalidInputError(f"blobs must be a tuple of hashes, not {names!r}")
    for name in names:
        if not is_hash(name):
            raise InvalidInputError(f"the hash of a blob must have 64 lower-case hexadecimal digits, not {name!r}")
    return names


def checked_time(nanoseconds: int, what: str) -> int:
    """Return a time that fits into 64 bits: from the year 1677 to 2262."""
    if type(nanoseconds) is not int or not -_LATEST_NS <= nanoseconds <= _LATEST_NS:
        raise InvalidInputError(f"{what} must be an integer of nanoseconds that fits into 64 bits, not {nanoseconds!r}")
    return nanoseconds


def checked_lease(lease: Lease, thread_id: str | None = None) -> Lease:
    """Return a lease; with ``thread_id``, one of that thread."""
    if not isinstance(lease, Lease):
        raise InvalidInputError(f"lease must be what acquire_lease() returned, not {lease!r}")
    if thread_id is not None and lease.thread_id != thread_id:
        raise InvalidInputError(f"the lease is for thread {lease.thread_id!r}, not for {thread_id!r}")
    return lease


def labels_of(entries: Iterable[Entry]) -> dict[str, str]:
    """Return each label with the id of its entry. An entry has one label, and a label one entry: the last one counts."""
    named: dict[str, str] = {}
    for entry in entries:
        match entry.payload:
            case Label(target=target, label=label):
                named = {name: place for name, place in named.items() if place != target}
                if label:
                    named[label] = target
    return named


_LARGEST_BODY = 900 * 1024 * 1024
_COUNTED = (UserMessage, AssistantMessage, ToolResultMessage)


class NewEntry(Record, frozen=True, kw_only=True):
    """An entry to append with an id, time, turn or parent of its own; what is left out is filled in.

    The parent of an entry is the one before it in its batch, unless ``parent`` names an earlier one, of the batch or of
    the thread; ``None`` makes it a root. ``blobs`` are hashes that the store must have, as it must have the artifacts that the content refers to; or else the
    append raises MissingBlobsError.
    """

    content: Payload | Message
    id: str | None = None
    created_ns: int | None = None
    turn_id: str = ""
    parent: str | UnsetType | None = UNSET
    blobs: tuple[str, ...] = ()


Content = Payload | Message | NewEntry | Draft


def append_command(
    runtime: Runtime,
    thread_id: str,
    new: NewEntry,
    *,
    parent: str | UnsetType | None = UNSET,
    expect_leaf: str | UnsetType | None = UNSET,
    lease: Lease | None = None,
    expect_live: bool = False,
    update: UpdateThread | None = None,
) -> Append:
    """Return the command that appends one entry. ``Journal.append`` commits it without an operation, which is faster."""
    turn_id, token = ("", None) if lease is None else _turn_of(lease, thread_id)
    return Append(
        thread_id=thread_id,
        drafts=(draft_of(runtime, new, turn_id),),
        parent=parent,
        expect_leaf=expect_leaf,
        token=token,
        expect_live=expect_live,
        update=update,
    )


def prepare_append() -> None:
    """Analyse the types that an append uses. It takes milliseconds once, which an event loop should not wait for."""
    validate_and_encode(user(""))
    json_decoder(ThreadFields)
    Append(thread_id="", drafts=())


def append(
    runtime: Runtime,
    thread_id: str,
    content: Payload | Message,
    *,
    id: str | None = None,
    parent: str | UnsetType | None = UNSET,
    expect_leaf: str | UnsetType | None = UNSET,
    expect_live: bool = False,
    update: UpdateThread | None = None,
) -> Operation[Entry]:
    """Append one entry, as a step of a longer operation; ``update`` changes metadata in the same commit."""
    new = NewEntry(content=content, id=id)
    command = append_command(
        runtime, thread_id, new, parent=parent, expect_leaf=expect_leaf, expect_live=expect_live, update=update
    )
    return (yield from commit_append(command))[0]


def has_replacement(drafts: Iterable[Draft]) -> bool:
    """Whether a prompt or a compaction without a count is among them: ``commit_append`` reads what it replaces."""
    # A plain loop: this is on the path of every append, and a generator costs more than the loop.
    for draft in drafts:
        payload = draft.payload
        if type(payload) is SystemMessage or (type(payload) is Compaction and is_uncounted(payload)):
            return True
    return False


def is_uncounted(compaction: Compaction) -> bool:
    """Whether a compaction was put together by hand or imported; what compacts here counts what it drops."""
    return not (compaction.dropped_tokens or compaction.reverts)


def commit_append(command: Append) -> Operation[tuple[Entry, ...]]:
    """Commit an append, with the tokens that its prompts and compactions take from the count of the thread."""
    if not has_replacement(command.drafts):
        stored: tuple[Entry, ...] = yield command
        return stored
    from sessiontree.journal.operations.replacements import append_replacements  # noqa: PLC0415  only these need a context

    return (yield from append_replacements(command))


def append_many(
    runtime: Runtime,
    thread_id: str,
    contents: Iterable[Content],
    *,
    parent: str | UnsetType | None = UNSET,
    expect_leaf: str | UnsetType | None = UNSET,
    lease: Lease | None = None,
    expect_live: bool = False,
    update: UpdateThread | None = None,
    create: Thread | None = None,
    on_duplicate: OnDuplicate = "fail",
    moves_leaf: bool = True,
) -> Operation[list[Entry]]:
    """Append several entries, each under the one before it, all or none; ``update`` as in ``append``."""
    turn_id, token = ("", None) if lease is None else _turn_of(lease, thread_id)
    if on_duplicate not in _ON_DUPLICATE:
        raise InvalidInputError(f"on_duplicate must be 'fail' or 'skip', not {on_duplicate!r}")
    drafts = tuple([draft_of(runtime, content, turn_id) for content in contents])
    command = Append(
        thread_id=thread_id,
        drafts=drafts,
        parent=parent,
        expect_leaf=expect_leaf,
        token=token,
        expect_live=expect_live,
        update=update,
        create=create,
        on_duplicate=on_duplicate,
        moves_leaf=moves_leaf,
    )
    return list((yield from commit_append(command)))


def entry(thread_id: str, entry_id: str) -> Operation[Entry]:
    """Return one entry that the thread sees."""
    found: Entry = yield ReadEntry(thread_id=thread_id, entry_id=entry_id)
    return found


def entries(
    thread_id: str,
    after: str | None = None,
    limit: int | None = None,
    *,
    newest_first: bool = False,
    types: Iterable[str] | None = None,
    turn_id: str | None = None,
) -> Operation[list[Entry]]:
    """Return the entries that the thread sees, in the order of their commits or in the reverse order."""
    found: list[Entry] = yield ReadEntries(
        thread_id=thread_id,
        after=after,
        limit=_at_least_zero(limit),
        newest_first=newest_first,
        types=checked_types(types),
        turn_id=turn_id,
    )
    return found


def find_entries(entry_ids: Iterable[str], thread_id: str | None) -> Operation[list[Entry]]:
    """Return the entries with these ids that a thread sees, or without a thread those of the whole store."""
    found: list[Entry] = yield ReadEntriesById(entry_ids=texts_of(entry_ids, "entry_ids"), thread_id=thread_id)
    return found


def last_entries(thread_ids: Iterable[str]) -> Operation[dict[str, Entry]]:
    """Return the last entry of each thread that has one."""
    found: dict[str, Entry] = yield ReadLastEntries(thread_ids=texts_of(thread_ids, "thread_ids"))
    return found


def path(
    thread_id: str, leaf: str | UnsetType | None, limit: int | None, types: Iterable[str] | None = None
) -> Operation[list[Entry]]:
    """Return the entries from the root to the leaf."""
    found: list[Entry] = yield ReadPath(
        thread_id=thread_id, leaf=leaf, limit=_at_least_zero(limit), types=checked_types(types)
    )
    return found


def path_bodies(
    thread_id: str, leaf: str | UnsetType | None, limit: int | None, types: Iterable[str] | None = None
) -> Operation[list[EntryBody]]:
    """Return the entries from the root to the leaf as they are stored."""
    path = ReadPath(thread_id=thread_id, leaf=leaf, limit=_at_least_zero(limit), types=checked_types(types))
    found: list[EntryBody] = yield ReadPathBodies(path=path)
    return found


def checked_types(types: Iterable[str] | None) -> frozenset[str] | None:
    """Return types of entries as a set; a single text is taken as one type."""
    return None if types is None else frozenset(texts_of(types, "types", "names of entry types such as 'user_message'"))


def texts_of(values: Iterable[str], name: str, meaning: str = "ids") -> tuple[str, ...]:
    """Return the texts that a caller gave, each once; a single text counts as one, anything else is refused."""
    texts = (values,) if isinstance(values, str) else tuple(values) if isinstance(values, Iterable) else (values,)
    if not all(isinstance(text, str) and is_unicode(text) for text in texts):
        raise InvalidInputError(f"{name} must be {meaning}, not {values!r}")
    return tuple(dict.fromkeys(texts))


def children(thread_id: str, entry_id: str | None) -> Operation[list[Entry]]:
    """Return the children of an entry, or with ``None`` the roots."""
    found: list[Entry] = yield ReadChildren(thread_id=thread_id, entry_id=entry_id)
    return found


def label(runtime: Runtime, thread_id: str, entry_id: str, name: str) -> Operation[Entry]:
    """Label an entry; an empty name removes its label."""
    if not isinstance(name, str):
        raise InvalidInputError(f"a label is a text, not {name!r}")
    yield ReadEntry(thread_id=thread_id, entry_id=entry_id)
    stored = yield from append_many(runtime, thread_id, [Label(target=entry_id, label=name)])
    return stored[0]


def labels(thread_id: str) -> Operation[dict[str, str]]:
    """Return each label of a thread with the id of its entry."""
    found = yield from entries(thread_id, types=("label",))
    return labels_of(found)


def _turn_of(lease: Lease, thread_id: str) -> tuple[str, int]:
    checked_lease(lease, thread_id)
    return lease.turn_id, lease.token


def draft_of(runtime: Runtime, content: Content, turn_id: str = "") -> Draft:
    """Validate and encode an entry to append, with a new id and the current time where it has none."""
    if isinstance(content, Draft):
        return content
    new = content if isinstance(content, NewEntry) else NewEntry(content=content)
    payload = payload_of(new.content)
    needed = new.blobs if not (named := named_artifacts(payload)) else (*new.blobs, *named)
    return draft_as_given(
        runtime.ids.new() if new.id is None else new.id,
        payload,
        runtime.clock() if new.created_ns is None else new.created_ns,
        turn_id if new.turn_id == "" else new.turn_id,
        needed if needed == () else checked_hashes(needed),
        parent=new.parent,
        has_new_id=new.id is None,
    )


def make_draft(
    content: Payload | Message, *, id: str, created_ns: int, turn_id: str = "", blobs: tuple[str, ...] = ()
) -> Draft:
    """Validate and encode an entry ahead of the commit that stores it. Raises InvalidInputError if it cannot be stored.

    ``append_many`` and ``create_thread`` take drafts as they are, so an import can skip invalid records one by one
    and still write the valid ones in a single commit.

    >>> from sessiontree.model.builders import user
    >>> make_draft(user("hello"), id="m1", created_ns=0).id
    'm1'
    """
    return draft_as_given(id, payload_of(content), created_ns, turn_id, checked_hashes(blobs))


def draft_as_given(
    entry_id: str,
    content: Payload,
    created_ns: int,
    turn_id: str,
    blobs: tuple[str, ...],
    *,
    parent: str | UnsetType | None = UNSET,
    has_new_id: bool = False,
) -> Draft:
    """Validate and encode an entry that has its id and its time already, such as one of another program."""
    payload, body = validate_and_encode(content)
    if len(body) > _LARGEST_BODY:
        raise InvalidInputError(
            f"an entry of {len(body)} bytes is too large, the limit is {_LARGEST_BODY}; store it as an artifact instead"
        )
    messages, tokens = weight_of(payload)
    return Draft(
        id=entry_id if has_new_id else checked_id(entry_id, "entry id"),
        payload=payload,
        body=body,
        created_ns=checked_time(created_ns, "created_ns"),
        turn_id=turn_id if turn_id == "" else checked_id(turn_id, "turn id"),
        parent=parent if parent is UNSET or parent is None else checked_id(parent, "parent"),
        messages=messages,
        tokens=tokens,
        has_new_id=has_new_id,
        blobs=blobs,
        artifacts=artifacts_of(payload) if MAY_HAVE_ARTIFACTS in body else (),
    )


def weight_of(payload: Payload) -> tuple[int, int]:
    """Return how many messages a payload adds to a conversation, and how many estimated tokens to its context."""
    if isinstance(payload, AssistantMessage) and payload.is_partial:
        return 1, 0
    if isinstance(payload, _COUNTED):
        return 1, estimate_message(payload.message)
    match payload:
        case ToolCallMessage(message=message):
            return 1, estimate_message(replace_signals(message))
        case SystemMessage(message=message, replaced_tokens=replaced):
            return 0, estimate_prompt(message.text) - replaced
        case Compaction(dropped_tokens=dropped):
            return 0, -dropped
        case BranchSummary(summary=summary) if summary:
            return 0, estimate_message(Message(role="assistant", parts=(TextPart(text=summary),)))
        case _:
            return 0, 0


def _at_least_zero(limit: int | None) -> int | None:
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise InvalidInputError(f"limit must be a non-negative integer, not {limit!r}")
    return limit
