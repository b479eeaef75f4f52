"""Writes to one thread as one call of a function of the schema (``functions.py``), and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
from msgspec import UNSET
from psycopg.types.numeric import Int8

from sessiontree.model import Checkpoint, Entry, UserMessage
from sessiontree.stores.commands import Append, Draft
from sessiontree.stores.postgres.known import KnownThread
from sessiontree.stores.postgres.rows import ThreadHead, head_of, json_row
from sessiontree.stores.postgres.steps import Row, Statement, Steps, to_bytes, to_text
from sessiontree.stores.postgres.writes import thread_values
from sessiontree.stores.rules.append import needs_title
from sessiontree.stores.rules.state import Fact, PutEntry, PutHead, PutMove, PutThread

__all__ = [
    "Place",
    "Refused",
    "Written",
    "append_at_leaf",
    "entries_below",
    "is_plain",
    "may_be_title",
    "needs_blobs",
    "read_now",
    "write_decided",
]


_PLACE = "%(tree)s, %(namespace)s, %(thread)s"
_CONDITIONS = "%(channel)s, %(leaf)s::bytea[], %(token)s, %(titled)s, %(given)s"
_NOW = f"SELECT state, entries FROM sessiontree.thread_now({_PLACE}, %(given)s, %(lock)s)"
_RESULT = "SELECT previous_leaf, key, version, to_notify, state, entries FROM sessiontree"
_APPEND_ENTRY = f"""
{_RESULT}.append_entry({_PLACE}, {_CONDITIONS}, %(id)s, %(messages)s, %(tokens)s, %(created)s, %(turn)s, %(body)s)"""
_APPEND_MANY = f"""
{_RESULT}.write_thread({_PLACE}, {_CONDITIONS}, true, %(words)s, %(numbers)s, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
    NULL, NULL, NULL, NULL)"""
_WRITE = f"""
{_RESULT}.write_thread({_PLACE}, %(channel)s, %(leaf)s::bytea[], NULL, NULL, %(given)s, false, %(words)s::bytea[],
    %(numbers)s::bigint[], %(version)s, %(stamp)s, %(new_leaf)s, %(head)s, %(meta)s, %(is_archived)s, %(tags)s::bytea[],
    %(needs_title)s, %(reason)s, %(moved_to)s, %(move)s)"""
_NOTIFY = "SELECT pg_notify(%(channel)s, %(topic)s)"
_META = (
    "title_folded", "workspace", "vendor", "model", "agent", "channel", "peer", "key_thread", "state", "status",
    "parent_thread", "forked_from_thread", "body",
)  # fmt: skip


class Place(NamedTuple):
    """Where a thread is, and the channel on which its watchers listen."""

    tree: UUID
    namespace: str
    thread_id: str
    channel: str

    def values(self) -> dict[str, Any]:
        """The values that every call begins with."""
        return {
            "tree": self.tree,
            "namespace": self.namespace,
            "thread": to_bytes(self.thread_id),
            "channel": self.channel,
        }


class Written(NamedTuple):
    """The call wrote: the leaf before it, and the version after it."""

    previous_leaf: str | None
    version: int


class Refused(NamedTuple):
    """The call wrote nothing: the thread as it is, None if it is not there, and those of the given entries that exist."""

    head: ThreadHead | None
    given: Sequence[str]
    entries: list[Row]


def is_plain(command: Append) -> bool:
    """Whether an append needs to know nothing of the thread: entries under the leaf that change nothing else."""
    if command.expect_live or command.update is not None or command.parent is not UNSET:
        return False
    if command.create is not None or command.on_duplicate == "skip" or not command.moves_leaf:
        return False
    drafts = command.drafts
    if len(drafts) > 1 and len({draft.id for draft in drafts}) < len(drafts):
        return False
    return bool(drafts) and all(draft.parent is UNSET for draft in drafts)


def needs_blobs(drafts: Sequence[Draft]) -> bool:
    """Whether drafts refer to blobs, which are in other places."""
    return any(
        draft.blobs or draft.artifacts or (isinstance(draft.payload, Checkpoint) and draft.payload.manifest)
        for draft in drafts
    )


def may_be_title(command: Append) -> bool:
    """Whether an append may give its thread a title."""
    return any(isinstance(draft.payload, UserMessage) for draft in command.drafts)


def read_now(place: Place, given: Sequence[str], *, is_locked: bool) -> Steps[Refused]:
    """The thread as it is, and those of the given entries that exist."""
    values = place.values() | {"given": _ids(given), "lock": is_locked}
    ((state, entries),) = yield Statement(_NOW, values)
    return _refused(given, state, entries)


def append_at_leaf(command: Append, place: Place) -> Steps[Written | Refused]:
    """Append under the leaf, whatever it is or if it is the expected one."""
    drafts = command.drafts
    values = place.values()
    values["leaf"] = None if command.expect_leaf is UNSET else [_optional(command.expect_leaf)]
    values["token"] = None if command.token is None else Int8(command.token)
    values["titled"] = True if may_be_title(command) else None
    given = [draft.id for draft in drafts if not draft.has_new_id]
    values["given"] = _ids(given)
    if len(drafts) == 1:
        (draft,) = drafts
        values["id"] = to_bytes(draft.id)
        values["messages"] = Int8(draft.messages)
        values["tokens"] = Int8(draft.tokens)
        values["created"] = Int8(draft.created_ns)
        values["turn"] = to_bytes(draft.turn_id)
        values["body"] = draft.body
        return (yield from _call(_APPEND_ENTRY, values, given))
    ids = [to_bytes(draft.id) for draft in drafts]
    depths = range(1, len(drafts) + 1)
    messages = accumulate(draft.messages for draft in drafts)
    tokens = accumulate(draft.tokens for draft in drafts)
    values["words"] = _words(zip([None, *ids[:-1]], drafts, strict=True))
    values["numbers"] = _numbers(zip(depths, messages, tokens, drafts, strict=True))
    return (yield from _call(_APPEND_MANY, values, given))


def write_decided(
    known: KnownThread, facts: Sequence[Fact], place: Place, *, given: Sequence[str], stamp: int
) -> Steps[Written | Refused]:
    """Write the facts of a decision if the thread still is at the version for which it was made."""
    before = known.head.state
    leaf = before.leaf
    depth, messages, tokens = (leaf.depth, leaf.messages, leaf.tokens) if leaf else (0, 0, 0)
    entries = [fact for fact in facts if isinstance(fact, PutEntry)]
    state = next(fact.state for fact in reversed(facts) if isinstance(fact, PutHead | PutThread))
    new = state.leaf
    values = place.values() | {
        "given": _ids(given),
        "words": _words((_optional(fact.parent_id), fact.draft) for fact in entries),
        "numbers": _numbers(
            (fact.node.depth - depth, fact.node.messages - messages, fact.node.tokens - tokens, fact.draft)
            for fact in entries
        ),
        "version": Int8(known.head.version),
        # A standby that took over with fewer commits counts from there, and may be at this version with another leaf.
        "leaf": [to_bytes(leaf.id) if leaf else None],
        "stamp": Int8(stamp),
        "new_leaf": to_bytes(new.id) if new else None,
        "head": [
            Int8((new.depth if new else 0) - depth),
            Int8((new.messages if new else 0) - messages),
            Int8((new.tokens if new else 0) - tokens),
            Int8(state.updated_ns),
        ],
        "needs_title": needs_title(state.meta),
        **_meta_values(facts),
        **_move_values(facts),
    }
    return (yield from _call(_WRITE, values, given))


def entries_below(command: Append, parent: str | None) -> tuple[Entry, ...]:
    """The entries of an append under the leaf, which was ``parent``."""
    entries: list[Entry] = []
    for draft in command.drafts:
        entries.append(
            Entry(
                id=draft.id,
                thread_id=command.thread_id,
                parent=parent,
                created_ns=draft.created_ns,
                turn_id=draft.turn_id,
                payload=draft.payload,
            )
        )
        parent = draft.id
    return tuple(entries)


def _call(sql: str, values: dict[str, Any], given: Sequence[str]) -> Steps[Written | Refused]:
    ((previous, key, version, to_notify, state, entries),) = yield Statement(sql, values)
    if version is None:
        return _refused(given, state, entries)
    if to_notify:
        topic = f"{values['tree']}:{key}"
        # What was written stays written: watchers that are not notified find it when they look.
        with suppress(psycopg.Error):
            yield Statement(_NOTIFY, {"channel": values["channel"], "topic": topic})
    return Written(None if previous is None else to_text(previous), version)


def _refused(given: Sequence[str], state: list[Any] | None, entries: list[list[Any]] | None) -> Refused:
    head = None if state is None else head_of((UUID(state[0]), *json_row(state[1:])))
    return Refused(head, given, [json_row(entry) for entry in entries or ()])


def _words(entries: Any) -> list[bytes | None]:
    return [
        word for parent, draft in entries for word in (to_bytes(draft.id), parent, to_bytes(draft.turn_id), draft.body)
    ]


def _numbers(entries: Any) -> list[Int8]:
    return [
        Int8(number)
        for depth, messages, tokens, draft in entries
        for number in (depth, messages, tokens, draft.created_ns)
    ]


def _meta_values(facts: Sequence[Fact]) -> dict[str, Any]:
    changed = next((fact.state for fact in reversed(facts) if isinstance(fact, PutThread)), None)
    if changed is None:
        return {"meta": None, "is_archived": None, "tags": None}
    values = thread_values(changed)
    return {
        "meta": [values[name] for name in _META],
        "is_archived": values["is_archived"],
        "tags": values["tags"],
    }


def _move_values(facts: Sequence[Fact]) -> dict[str, Any]:
    fact = next((fact for fact in facts if isinstance(fact, PutMove)), None)
    if fact is None:
        return {"reason": None, "moved_to": None, "move": None}
    tops = [None, None, None] if fact.tops is None else [Int8(number) for number in fact.tops]
    move = fact.move
    return {"reason": move.reason, "moved_to": _optional(move.to_entry), "move": [Int8(move.at_ns), *tops]}


def _ids(entry_ids: Sequence[str]) -> list[bytes] | None:
    return [to_bytes(entry_id) for entry_id in entry_ids] or None


def _optional(text: Any) -> bytes | None:
    return to_bytes(text) if isinstance(text, str) else None
