# Generated from checkpointed_async.py by tools/async_to_sync.py; do not edit.
"""CheckpointedSessions: sessions whose state can be set, cloned, snapshotted and rewound by message id."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from sessiontree.context.dialects.stored_chat import payload_of_chat
from sessiontree.errors import (
    EntryNotFoundError,
    NoCheckpointError,
    StaleVersionError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import Checkpoint, Custom, Entry, Label, Payload, Thread
from sessiontree.sessions._steps import (
    MARK,
    STATE,
    CheckpointedSession,
    chat_messages,
    is_state,
    mark_in_force,
    mark_of,
    shared_length,
    state_entry,
    user_turns_of,
)

__all__ = [
    "MARK",
    "STATE",
    "CheckpointedSession",
    "CheckpointedSessions",
    "mark_in_force",
    "mark_of",
    "user_turns_of",
]

_DEFAULT_ID = "default"

Root = str | os.PathLike[str]


class CheckpointedSessions:
    """Sessions of a journal, each one a thread with the messages as entries. What was set once is never deleted.

    In every method the id ``""`` means the session ``default``.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def get(self, id: str = "") -> CheckpointedSession:
        """Return a session; ThreadNotFoundError if there is none."""
        return self._session(self._journal.thread(id or _DEFAULT_ID))

    def get_or_create(self, id: str = "") -> CheckpointedSession:
        """Return a session, created if it does not exist."""
        try:
            return self.get(id)
        except ThreadNotFoundError:
            with suppress(ThreadExistsError):
                self._journal.create_thread(id or _DEFAULT_ID)
            return self.get(id)

    def list(self) -> list[CheckpointedSession]:
        """Return all sessions, last changed first."""
        return [self._session(thread) for thread in self._journal.iter_threads(is_archived=None)]

    def set_state(self, id: str, messages: Iterable[dict[str, Any]], *, user_turns: int) -> CheckpointedSession:
        """Set the messages and user turns of a session, created if it does not exist.

        Only what is new is appended; messages that are replaced stay on a branch of their own.
        """
        name = (self.get_or_create(id)).id
        wanted = list(messages)
        stored = chat_messages(self._journal.path(name))
        same = shared_length(stored, wanted)
        new: list[Payload] = [*map(payload_of_chat, wanted[same:]), state_entry(user_turns)]
        if same == len(stored):
            self._journal.append_many(name, new)
        else:
            self._journal.append_many(name, new, parent=stored[same - 1].entry_id if same else None)
        return self.get(name)

    def clone(self, source: str, target: str) -> CheckpointedSession:
        """Create a session with the path and the snapshots of another one; ThreadExistsError if the id is taken."""
        session = self.get(source)
        self._journal.fork(session.id, new_id=target, origin={"user_turns": session.user_turns})
        return self.get(target)

    def new_fork_id(self, base: str = "") -> str:
        """Return the next of ``base#fork-1``, ``base#fork-2`` … that is unused and was never returned before."""
        name = base or _DEFAULT_ID
        while True:
            thread = self._find(name)
            number = (thread.origin.get("fork_counter", 0) if thread else 0) + 1
            while self._find(f"{name}#fork-{number}"):
                number += 1
            if thread is None or self._store_fork_counter(thread, number):
                return f"{name}#fork-{number}"

    def fork(self, source: str = "") -> CheckpointedSession:
        """Clone a session under the next fork id."""
        return self.clone(source, self.new_fork_id(source))

    def snapshot(self, id: str, message_id: str) -> None:
        """Store messages and user turns under the id of a user message; an earlier snapshot is replaced."""
        session = self.get_or_create(id)
        _, mark = self._journal.append_many(session.id, [state_entry(session.user_turns), mark_of(message_id)])
        self._journal.append(session.id, Label(target=mark.id, label=message_id))

    def rewind(self, id: str, message_id: str, *, files: Root | None = None) -> CheckpointedSession:
        """Return to a snapshot, and with ``files`` return that folder to its checkpoint as well, or neither.

        A snapshot that was imported has no user turns: the session keeps its own.
        """
        name = id or _DEFAULT_ID
        mark = self._find_mark(name, message_id)
        turns = (self.get(name)).user_turns
        self._journal.rewind(name, mark.id, files=files)
        session = self.get(name)
        if session.user_turns != turns and not any(map(is_state, self._journal.path(name))):
            self._journal.append(name, state_entry(turns))
            return self.get(name)
        return session

    def snapshot_files(self, id: str, message_id: str, root: Root) -> None:
        """Store a checkpoint of a folder for a user message that has a snapshot."""
        name = id or _DEFAULT_ID
        mark = self._find_mark(name, message_id)
        self._journal.workspace.snapshot(name, mark.id, root, label=message_id)

    def rewind_files(self, id: str, message_id: str, root: Root) -> None:
        """Restore a folder to its checkpoint; the messages stay. Later changes to its files are lost."""
        name = id or _DEFAULT_ID
        for entry in self._entries_in_line(name):
            if isinstance(entry.payload, Checkpoint) and entry.payload.label == message_id:
                self._journal.workspace.restore(name, entry.id, root)
                return
        raise NoCheckpointError(name, message_id)

    def _find(self, name: str) -> Thread | None:
        try:
            return self._journal.thread(name)
        except ThreadNotFoundError:
            return None

    def _session(self, thread: Thread) -> CheckpointedSession:
        path = self._journal.path(thread.id)
        return CheckpointedSession(
            id=thread.id,
            created_ns=thread.created_ns,
            updated_ns=thread.updated_ns,
            messages=tuple(stored.message for stored in chat_messages(path)),
            user_turns=user_turns_of(thread, path),
        )

    def _store_fork_counter(self, thread: Thread, number: int) -> bool:
        """Reserve a fork id; ``False`` if another writer changed the thread meanwhile."""
        origin = {**thread.origin, "fork_counter": number}
        try:
            self._journal.update_thread(thread.id, expect_version=thread.version, origin=origin)
        except StaleVersionError:
            return False
        return True

    def _entries_in_line(self, name: str) -> Iterator[Entry]:
        """Yield the entries of a session, newest first, then those its sources had when it was cloned."""
        thread = self._find(name)
        until_ns: int | None = None
        while thread is not None:
            for entry in reversed(self._journal.entries(thread.id)):
                if until_ns is None or entry.created_ns <= until_ns:
                    yield entry
            until_ns = thread.created_ns
            thread = self._find(thread.forked_from_thread) if thread.forked_from_thread else None

    def _find_mark(self, name: str, message_id: str) -> Entry:
        """Return the newest snapshot for a message id, as an entry of this session."""
        for entry in self._entries_in_line(name):
            if isinstance(entry.payload, Custom) and (entry.payload.name, entry.payload.data) == (MARK, message_id):
                thread = self._journal.thread(entry.thread_id)
                mark = self._journal.entry(thread.id, mark_in_force(thread, entry))
                return self._copy_mark(name, mark)
        raise NoCheckpointError(name, message_id)

    def _copy_mark(self, name: str, mark: Entry) -> Entry:
        """Return a mark that the session can see: a clone does not see its source's branches, so copy what is missing."""
        try:
            return self._journal.entry(name, mark.id)
        except EntryNotFoundError:
            leaf = (self._journal.thread(name)).leaf
        seen = {entry.id for entry in self._journal.entries(name)}
        path = self._journal.path(mark.thread_id, mark.id)
        shared = [entry.id for entry in path if entry.id in seen]
        missing = [entry.payload for entry in path if entry.id not in seen]
        *_, copied = self._journal.append_many(name, missing, parent=shared[-1] if shared else None)
        files = self._find_files(mark)
        if files is not None:
            copy = replace(files, target=copied.id)
            self._journal.append_many(name, [NewEntry(content=copy, blobs=(copy.manifest,))])
        self._journal.move_leaf(name, leaf)
        return copied

    def _find_files(self, mark: Entry) -> Checkpoint | None:
        """Return the newest checkpoint of files for a mark."""
        entries = self._journal.entries(mark.thread_id)
        payloads = (entry.payload for entry in reversed(entries))
        return next((one for one in payloads if isinstance(one, Checkpoint) and one.target == mark.id), None)
