"""Append system prompts. A new prompt replaces the one before it, and so do its tokens in the count of the thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.context.build import is_developer, prompt_text
from sessiontree.errors import EntryNotFoundError, StaleLeafError
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Entry, Message, SystemMessage
from sessiontree.model.codec import validate_and_encode
from sessiontree.model.tokens import estimate_prompt
from sessiontree.stores.commands import Append, Draft
from sessiontree.stores.queries import ReadEntry, ReadPath

__all__ = ["append_prompts", "counted"]

_FIRST_READ = 32
_GROWTH = 8


def append_prompts(command: Append) -> Operation[tuple[Entry, ...]]:
    """Append entries with prompts among them; decided again if the leaf moves, unless the caller names it."""
    is_anywhere = command.parent is UNSET and command.expect_leaf is UNSET
    stored = yield from _stored(command)
    while True:
        path = yield from _path_since_prompt(command.thread_id, command.parent)
        drafts = counted(_prompts(path), command.drafts, stored)
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


def counted(
    before: Iterable[Message], drafts: Iterable[Draft], stored: dict[str, int] | None = None
) -> tuple[Draft, ...]:
    """Return drafts whose prompts have the tokens that they replace, after the prompts ``before`` them on the path.

    ``stored`` has those of entries that are there already: an append that is repeated must not differ.
    """
    said = [*before]
    found: list[Draft] = []
    for draft in drafts:
        if isinstance(payload := draft.payload, SystemMessage):
            old, own = estimate_prompt(prompt_text(said)), estimate_prompt(payload.message.text)
            said.append(payload.message)
            replaced = payload.replaced_tokens or own + old - estimate_prompt(prompt_text(said))
            found.append(_replacing(draft, payload, (stored or {}).get(draft.id, replaced)))
        else:
            found.append(draft)
    return tuple(found)


def _replacing(draft: Draft, payload: SystemMessage, tokens: int) -> Draft:
    if tokens == payload.replaced_tokens:
        return draft
    counted, body = validate_and_encode(replace(payload, replaced_tokens=tokens))
    return replace(draft, payload=counted, body=body, tokens=draft.tokens + payload.replaced_tokens - tokens)


def _stored(command: Append) -> Operation[dict[str, int]]:
    """Return the replaced tokens of the prompts that were stored before, by entry id."""
    found: dict[str, int] = {}
    for draft in command.drafts:
        if isinstance(draft.payload, SystemMessage) and not draft.has_new_id:
            try:
                entry: Entry = yield ReadEntry(thread_id=command.thread_id, entry_id=draft.id)
            except EntryNotFoundError:
                continue
            if isinstance(entry.payload, SystemMessage):
                found[draft.id] = entry.payload.replaced_tokens
    return found


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
