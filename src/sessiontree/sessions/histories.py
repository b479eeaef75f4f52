"""The verbs of SimpleStore, as operations. Each changes a session with one command.

A change is decided from one read of the path's end and refused if the leaf has moved since; then it is decided again. So
two changes at the same time, by threads, tasks or processes, are made one after the other, and none is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import UNSET, UnsetType

from sessiontree.errors import (
    InvalidInputError,
    NothingToRedoError,
    NothingToUndoError,
    StaleLeafError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.operations.entries import append_many
from sessiontree.journal.operations.erase import erase_contents
from sessiontree.journal.operations.leaf import move_leaf
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.journal.operations.threads import create_thread
from sessiontree.model import Compaction, Entry, Message, Move, Payload, Thread
from sessiontree.model._base import Record
from sessiontree.model.builders import STORAGE_COMPACTED, payload_of_any_role
from sessiontree.model.thread import Direction
from sessiontree.sessions._history import (
    Step,
    Steps,
    is_enough,
    messages_in_force,
    out_of_force,
    replayed,
    summary_in_force,
    truncation,
    truncation_after,
)
from sessiontree.stores.queries import ReadEntries, ReadMoves, ReadPath, ReadThread

__all__ = [
    "add_message",
    "checked",
    "compact_storage",
    "get_or_create",
    "path_in_force",
    "redo",
    "set_history",
    "set_summary",
    "truncate_history",
    "undo",
    "whole_path",
]

_FIRST_READ = 32
_GROWTH = 4
_MOVED = (StaleLeafError, ThreadExistsError, ThreadNotFoundError)
"""Somebody else changed, created or deleted the session since it was read."""


class _Change(Record, frozen=True, kw_only=True):
    """Entries to append, under the leaf or with ``parent=None`` as a new history; without any, an empty history."""

    contents: tuple[Payload, ...]
    parent: UnsetType | None = UNSET


def add_message(runtime: Runtime, key: str, message: Message) -> Operation[None]:
    """Append a message; the first one creates the session."""
    content = _content_of(message)
    while True:
        try:
            yield from append_many(runtime, checked(key), [content])
        except ThreadNotFoundError:
            try:
                yield from create_thread(runtime, key, None, {"title": key}, contents=[content])
            except ThreadExistsError:
                continue
        return


def get_or_create(runtime: Runtime, key: str) -> Operation[Thread]:
    """Return the thread of a session; a key without one gets an empty session."""
    while True:
        try:
            thread: Thread = yield ReadThread(thread_id=checked(key))
        except ThreadNotFoundError:
            try:
                thread = yield from create_thread(runtime, key, None, {"title": key})
            except ThreadExistsError:
                continue
        return thread


def set_summary(runtime: Runtime, key: str, summary: str) -> Operation[None]:
    """Replace the summary; the history stays."""

    def change(path: Sequence[Entry]) -> _Change:
        items = messages_in_force(path)
        return _Change(contents=(truncation(path, summary, items[0].entry_id if items else ""),))

    yield from _commit(runtime, key, change)


def set_history(runtime: Runtime, key: str, messages: Iterable[Message]) -> Operation[None]:
    """Replace the history; the summary stays."""
    contents = tuple([_content_of(message) for message in messages])

    def change(path: Sequence[Entry]) -> _Change:
        summary = summary_in_force(path)
        kept = (Compaction(summary=summary, trigger="manual", reason="manual"),) if summary else ()
        return _Change(contents=(*kept, *contents), parent=None)

    yield from _commit(runtime, key, change)


def truncate_history(runtime: Runtime, key: str, keep_last: int) -> Operation[None]:
    """Keep the last messages; a few more if the cut would separate a tool call from its result."""
    if type(keep_last) is not int:
        raise InvalidInputError(f"keep_last must be an integer, not {keep_last!r}")

    def change(path: Sequence[Entry]) -> _Change | None:
        truncated = truncation_after(path, keep_last)
        return None if truncated is None else _Change(contents=(truncated,))

    yield from _commit(runtime, key, change)


def undo(runtime: Runtime, key: str) -> Operation[None]:
    """Revert the last change that shortened or replaced the history."""
    while True:
        leaf, steps = yield from _steps(key, "undo")
        if not steps.undo:
            raise NothingToUndoError(key)
        try:
            match steps.undo[-1]:
                case Entry(id=entry_id, payload=Compaction(dropped_tokens=dropped)):
                    revert = Compaction(reverts=entry_id, dropped_tokens=-dropped, trigger="manual", reason="manual")
                    yield from append_many(runtime, key, [revert], expect_leaf=leaf)
                case Move(from_entry=before):
                    yield from move_leaf(runtime, key, before, "move", expect_leaf=leaf)
        except _MOVED:
            continue
        return


def redo(runtime: Runtime, key: str) -> Operation[None]:
    """Revert the last undo."""
    while True:
        leaf, steps = yield from _steps(key, "redo")
        if not steps.redo:
            raise NothingToRedoError(key)
        try:
            yield from move_leaf(runtime, key, steps.redo[-1].leaf, "move", expect_leaf=leaf)
        except _MOVED:
            continue
        return


def compact_storage(runtime: Runtime, key: str) -> Operation[int]:
    """Erase the contents that are out of force and that no fork and no label shows; return how many there were."""
    while True:
        try:
            path: list[Entry] = yield ReadPath(thread_id=checked(key))
            entries: list[Entry] = yield ReadEntries(thread_id=key)
        except ThreadNotFoundError:
            return 0
        gone = out_of_force(path, entries)
        if not gone:
            return 0
        try:
            erased = yield from erase_contents(
                runtime, key, gone, STORAGE_COMPACTED, expect_leaf=path[-1].id if path else None
            )
        except _MOVED:
            continue
        return erased.entries


def path_in_force(key: str) -> Operation[list[Entry] | None]:
    """Return the end of the path with everything in force, however long the path is; ``None`` for an unknown key."""
    most = _FIRST_READ
    leaf: str | UnsetType = UNSET
    while True:
        try:
            path: list[Entry] = yield ReadPath(thread_id=checked(key), leaf=leaf, limit=most)
        except ThreadNotFoundError:
            return None
        if is_enough(path):
            return path
        leaf = path[-1].id
        most *= _GROWTH


def whole_path(key: str) -> Operation[list[Entry]]:
    """Return every entry of the path; none for an unknown key."""
    try:
        path: list[Entry] = yield ReadPath(thread_id=checked(key))
    except ThreadNotFoundError:
        return []
    return path


def _commit(runtime: Runtime, key: str, decide: Callable[[Sequence[Entry]], _Change | None]) -> Operation[None]:
    """Make a change that follows from what is in force; decide again if the session has changed since it was read."""
    while True:
        path = yield from path_in_force(key)
        change = decide(path or ())
        if change is None:
            return
        leaf = path[-1].id if path else None
        try:
            if path is None:
                yield from create_thread(runtime, key, None, {"title": key}, contents=change.contents)
            elif change.contents:
                yield from append_many(runtime, key, change.contents, parent=change.parent, expect_leaf=leaf)
            elif leaf is not None:
                yield from move_leaf(runtime, key, None, "reset", expect_leaf=leaf)
        except _MOVED:
            continue
        return


def _steps(key: str, wanted: Direction) -> Operation[tuple[str | None, Steps]]:
    """Return the leaf, and what can be undone or redone there, from as few of the last events as it takes."""
    try:
        thread: Thread = yield ReadThread(thread_id=checked(key))
        moves: Sequence[Move] = yield ReadMoves(thread_id=key)
        most = _FIRST_READ
        while True:
            events, is_whole = yield from _last_events(key, thread.leaf, moves, most)
            steps = replayed(events, wanted, is_whole=is_whole)
            if steps is not None:
                return thread.leaf, steps
            most *= _GROWTH
    except ThreadNotFoundError:
        return None, Steps()


def _last_events(key: str, leaf: str | None, moves: Sequence[Move], most: int) -> Operation[tuple[list[Step], bool]]:
    """Return about ``most`` entries and moves in the order in which they happened, and whether those are all."""
    newest_first: list[Step] = []
    until = leaf
    for move in (*reversed(moves), None):
        since = move.to_entry if move else None
        if until not in (None, since):
            path: list[Entry] = yield ReadPath(thread_id=key, leaf=until, limit=most - len(newest_first))
            appended = _after(path, since)
            newest_first += reversed(appended)
            if len(appended) == len(path) and path[0].parent not in (None, since):
                return newest_first[::-1], False
        if move is None:
            break
        newest_first.append(move)
        if len(newest_first) >= most:
            return newest_first[::-1], False
        until = move.from_entry
    return newest_first[::-1], True


def _after(path: Sequence[Entry], since: str | None) -> Sequence[Entry]:
    """Return what follows an entry; the whole path if the entry is not on it."""
    for index, entry in enumerate(path):
        if entry.id == since:
            return path[index + 1 :]
    return path


def _content_of(message: Message) -> Payload:
    """Return the payload of a message of any role; a role is any string."""
    if not isinstance(message, Message) or not isinstance(message.role, str):
        raise InvalidInputError(f"a history has messages with a role, such as Message(role='user'), not {message!r}")
    return payload_of_any_role(message)


def checked(key: str) -> str:
    """Return a session key: any string but the empty one."""
    if not key:
        raise InvalidInputError("a session key must not be empty")
    return key
