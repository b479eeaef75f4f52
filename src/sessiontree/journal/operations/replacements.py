"""Append what takes the place of something: system prompts and compactions.

A new prompt replaces the one before it, and a compaction the messages before it. The count of the thread follows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.compaction.result import stored_tokens
from sessiontree.context.build import is_developer, prompt_text
from sessiontree.errors import NotFoundError, StaleLeafError, ThreadNotFoundError
from sessiontree.journal.operations.entries import is_uncounted
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Compaction, Entry, Message, SystemMessage
from sessiontree.model.codec import validate_and_encode
from sessiontree.model.tokens import estimate_prompt
from sessiontree.stores.commands import Append, Draft
from sessiontree.stores.queries import ReadEntry, ReadPath

__all__ = ["append_replacements", "counted"]

_FIRST_READ = 32
_GROWTH = 8


def append_replacements(command: Append) -> Operation[tuple[Entry, ...]]:
    """Append entries with replacements among them; decided again if the leaf moves, unless the caller names it."""
    is_anywhere = command.parent is UNSET and command.expect_leaf is UNSET
    stored = yield from _stored(command)
    while True:
        path = yield from _path_before(command)
        drafts = counted(path, command.drafts, stored)
        leaf = path[-1].id if path else None
        try:
            appended: tuple[Entry, ...] = yield replace(
                command, drafts=drafts, expect_leaf=leaf if is_anywhere else command.expect_leaf
            )
        except StaleLeafError:
            if not is_anywhere:
                raise
        else:
            return appended


def counted(path: Sequence[Entry], drafts: Iterable[Draft], stored: dict[str, int] | None = None) -> tuple[Draft, ...]:
    """Return drafts whose prompts and compactions have the tokens that they take away, at the end of a path.

    ``stored`` has those of entries that are there already: an append that is repeated must not differ.
    """
    known = stored or {}
    before = [*path]
    found: list[Draft] = []
    for draft in drafts:
        match draft.payload:
            case SystemMessage() as prompt:
                replaced = known.get(draft.id, prompt.replaced_tokens or _replaced(before, prompt))
                change = replaced - prompt.replaced_tokens
                counting = _with_payload(draft, replace(prompt, replaced_tokens=replaced), change)
            case Compaction() as compaction if is_uncounted(compaction):
                dropped = known[draft.id] if draft.id in known else _dropped(before, draft)
                counting = _with_payload(draft, replace(compaction, dropped_tokens=dropped), dropped)
            case _:
                counting = draft
        before.append(_entry(before, counting))
        found.append(counting)
    return tuple(found)


def _replaced(before: Sequence[Entry], prompt: SystemMessage) -> int:
    said = _prompts(before)
    now = estimate_prompt(prompt_text([*said, prompt.message]))
    return estimate_prompt(prompt.message.text) + estimate_prompt(prompt_text(said)) - now


def _dropped(before: Sequence[Entry], draft: Draft) -> int:
    return stored_tokens(before) - stored_tokens([*before, _entry(before, draft)])


def _entry(before: Sequence[Entry], draft: Draft) -> Entry:
    parent = before[-1].id if before else None
    return Entry(id=draft.id, thread_id="", parent=parent, created_ns=draft.created_ns, payload=draft.payload)


def _with_payload(draft: Draft, payload: SystemMessage | Compaction, fewer_tokens: int) -> Draft:
    if not fewer_tokens:
        return draft
    checked, body = validate_and_encode(payload)
    return replace(draft, payload=checked, body=body, tokens=draft.tokens - fewer_tokens)


def _stored(command: Append) -> Operation[dict[str, int]]:
    """Return what the prompts and compactions that were stored before took from the count, by entry id."""
    found: dict[str, int] = {}
    for draft in command.drafts:
        if isinstance(draft.payload, SystemMessage | Compaction) and not draft.has_new_id:
            try:
                entry: Entry = yield ReadEntry(thread_id=command.thread_id, entry_id=draft.id)
            except NotFoundError:
                continue
            match entry.payload:
                case SystemMessage(replaced_tokens=tokens) | Compaction(dropped_tokens=tokens):
                    found[draft.id] = tokens
    return found


def _path_before(command: Append) -> Operation[Sequence[Entry]]:
    """Return as much of the path as it takes to count: all of it for a compaction that was not counted."""
    try:
        if not any(isinstance(draft.payload, Compaction) and is_uncounted(draft.payload) for draft in command.drafts):
            return (yield from _path_since_prompt(command.thread_id, command.parent))
        path: list[Entry] = yield ReadPath(thread_id=command.thread_id, leaf=command.parent)
    except ThreadNotFoundError:
        if command.create is None:
            raise
        return []
    return path


def _path_since_prompt(thread_id: str, at: str | UnsetType | None) -> Operation[Sequence[Entry]]:
    """Return the end of a path from the last prompt on that is not an addition to another one."""
    most = _FIRST_READ
    while True:
        path: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=at, limit=most)
        is_whole = not path or path[0].parent is None
        if is_whole or not all(map(is_developer, _prompts(path))):
            return path
        at = path[-1].id
        most *= _GROWTH


def _prompts(path: Iterable[Entry]) -> list[Message]:
    return [entry.payload.message for entry in path if isinstance(entry.payload, SystemMessage)]
