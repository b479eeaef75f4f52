"""Sessions with checkpoints by message id: get, set, clone, fork ids, snapshot and rewind, for programs that know those verbs.

A session is a thread and its messages are entries, so an imported session goes on here, and everything else that a
journal does works on it too. Setting a state appends what is new; nothing that was ever set is lost.

>>> import sessiontree as st
>>> with st.open("memory:") as journal:
...     sessions = CheckpointedSessions(journal)
...     _ = sessions.set_state("chat", [{"role": "user", "content": "hi"}], user_turns=1)
...     sessions.snapshot("chat", "chat-u1")
...     _ = sessions.set_state("chat", [], user_turns=2)
...     sessions.rewind("chat", "chat-u1").user_turns, journal.path("chat")[0].message.text
(1, 'hi')
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import json
from msgspec.structs import replace

from sessiontree.context.dialects.openai_chat import chat_of, payload_of_chat
from sessiontree.errors import (
    EntryNotFoundError,
    NoCheckpointError,
    StaleVersionError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.journal.workspace import Workspace
from sessiontree.model import Checkpoint, Custom, Entry, Label, Payload, Thread
from sessiontree.model._base import Record

__all__ = ["MARK", "STATE", "CheckpointedSession", "CheckpointedSessions", "mark_in_force", "mark_of", "user_turns_of"]


DEFAULT_ID = "default"

STATE = "session_state"
"""Name of a custom entry that says how many turns of the user there were."""

MARK = "session_checkpoint"
"""Name of a custom entry that a rewind goes back to; its data is the id of a user message."""

Root = str | os.PathLike[str]


class CheckpointedSession(Record, frozen=True, kw_only=True):
    """A session as it is now: a value of its own, shared with nobody."""

    id: str
    created_ns: int
    updated_ns: int
    messages: tuple[dict[str, Any], ...] = ()
    user_turns: int = 0


class _Said(NamedTuple):
    """A message and the entry that holds it."""

    entry_id: str
    message: dict[str, Any]


class CheckpointedSessions:
    """``""`` means the session ``default``, in every verb."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def _workspace(self) -> Workspace:
        return self._journal.workspace

    def get(self, id: str = "") -> CheckpointedSession:
        """A session; ThreadNotFoundError if there is none."""
        return self._session(self._journal.thread(id or DEFAULT_ID))

    def get_or_create(self, id: str = "") -> CheckpointedSession:
        """A session, made if it is not there."""
        try:
            return self.get(id)
        except ThreadNotFoundError:
            self._create(id or DEFAULT_ID)
            return self.get(id)

    def list(self) -> list[CheckpointedSession]:
        """All sessions, the one that changed last first."""
        found: list[Thread] = []
        page = self._journal.list_threads(is_archived=None)
        found += page
        while page.cursor is not None:
            page = self._journal.list_threads(is_archived=None, cursor=page.cursor)
            found += page
        return [self._session(thread) for thread in found]

    def set_state(self, id: str, messages: Iterable[dict[str, Any]], *, user_turns: int) -> CheckpointedSession:
        """Make these the messages of a session, which is made if it is not there; what was there becomes a branch."""
        name = self.get_or_create(id).id
        wanted = list(messages)
        path = self._journal.path(name)
        said = _said(path)
        same = _shared(said, wanted)
        new: list[Payload] = [*map(payload_of_chat, wanted[same:]), _state_of(user_turns)]
        if same == len(said):
            self._journal.append_many(name, new)
        else:
            self._journal.append_many(name, new, parent=said[same - 1].entry_id if same else None)
        return self.get(name)

    def clone(self, source: str, target: str) -> CheckpointedSession:
        """A session under a new id that shares the path of another one and knows its checkpoints.

        An id that is taken is ThreadExistsError; nothing is overwritten.
        """
        session = self.get(source)
        self._journal.fork(session.id, new_id=target, origin={"user_turns": session.user_turns})
        return self.get(target)

    def new_fork_id(self, base: str = "") -> str:
        """The next of ``base#fork-1``, ``base#fork-2`` … that was never given out and that no session has."""
        name = base or DEFAULT_ID
        while True:
            thread = self._found(name)
            number = (thread.origin.get("fork_counter", 0) if thread else 0) + 1
            while self._found(f"{name}#fork-{number}"):
                number += 1
            if thread is None or self._count_fork(thread, number):
                return f"{name}#fork-{number}"

    def fork(self, source: str = "") -> CheckpointedSession:
        """A clone under the next free fork id."""
        return self.clone(source, self.new_fork_id(source))

    def snapshot(self, id: str, message_id: str) -> None:
        """Remember messages and user turns for a user message; the same id again replaces it."""
        session = self.get_or_create(id)
        _, mark = self._journal.append_many(session.id, [_state_of(session.user_turns), mark_of(message_id)])
        self._journal.append(session.id, Label(target=mark.id, label=message_id))

    def rewind(self, id: str, message_id: str, *, files: Root | None = None) -> CheckpointedSession:
        """Back to what a snapshot remembered, user turns too; with ``files`` that folder as well, or neither.

        A snapshot that was imported knows of no user turns: those of the session stay.
        """
        name = id or DEFAULT_ID
        mark = self._mark_in(name, message_id)
        turns = self.get(name).user_turns
        if files is None:
            self._journal.rewind(name, mark.id)
        else:
            self._journal.rewind(name, mark.id, files=files)
        session = self.get(name)
        if session.user_turns != turns and not any(map(_is_state, self._journal.path(name))):
            self._journal.append(name, _state_of(turns))
            return self.get(name)
        return session

    def snapshot_files(self, id: str, message_id: str, root: Root) -> None:
        """Remember a folder for a user message that was snapshotted."""
        name = id or DEFAULT_ID
        self._workspace.snapshot(name, self._mark_in(name, message_id).id, root, label=message_id)

    def rewind_files(self, id: str, message_id: str, root: Root) -> None:
        """Bring a folder back; the messages stay. Everything since goes; ``journal.workspace`` can tell what that is."""
        name = id or DEFAULT_ID
        for entry in self._entries_in_line(name):
            if isinstance(entry.payload, Checkpoint) and entry.payload.label == message_id:
                self._workspace.restore(name, entry.id, root)
                return
        raise NoCheckpointError(name, message_id)

    def _create(self, name: str) -> None:
        try:
            self._journal.create_thread(name)
        except ThreadExistsError:
            return

    def _found(self, name: str) -> Thread | None:
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
            messages=tuple(said.message for said in _said(path)),
            user_turns=user_turns_of(thread, path),
        )

    def _count_fork(self, thread: Thread, number: int) -> bool:
        """Note a fork id as given out; False if somebody else changed the thread meanwhile."""
        origin = {**thread.origin, "fork_counter": number}
        try:
            self._journal.update_thread(thread.id, expect_version=thread.version, origin=origin)
        except StaleVersionError:
            return False
        return True

    def _entries_in_line(self, name: str) -> Iterator[Entry]:
        """The entries of a session, newest first; then what the sessions had that it was cloned from, at that time."""
        thread = self._found(name)
        until_ns: int | None = None
        while thread is not None:
            for entry in reversed(self._journal.entries(thread.id)):
                if until_ns is None or entry.created_ns <= until_ns:
                    yield entry
            until_ns = thread.created_ns
            thread = self._found(thread.forked_from_thread) if thread.forked_from_thread else None

    def _mark_in(self, name: str, message_id: str) -> Entry:
        """The newest snapshot for a message id, as an entry of this very session."""
        for entry in self._entries_in_line(name):
            if isinstance(entry.payload, Custom) and (entry.payload.name, entry.payload.data) == (MARK, message_id):
                thread = self._journal.thread(entry.thread_id)
                return self._brought_home(name, self._journal.entry(thread.id, mark_in_force(thread, entry)))
        raise NoCheckpointError(name, message_id)

    def _brought_home(self, name: str, mark: Entry) -> Entry:
        """A clone does not see the branches of the session it came from: what is needed of one is written again."""
        try:
            return self._journal.entry(name, mark.id)
        except EntryNotFoundError:
            leaf = self._journal.thread(name).leaf
        seen = {entry.id for entry in self._journal.entries(name)}
        path = self._journal.path(mark.thread_id, mark.id)
        shared = [entry.id for entry in path if entry.id in seen]
        missing = [entry.payload for entry in path if entry.id not in seen]
        *_, copied = self._journal.append_many(name, missing, parent=shared[-1] if shared else None)
        files = self._files_of(mark)
        if files is not None:
            copy = replace(files, target=copied.id)
            self._journal.append_many(name, [NewEntry(content=copy, blobs=(copy.manifest,))])
        self._journal.move_leaf(name, leaf)
        return copied

    def _files_of(self, mark: Entry) -> Checkpoint | None:
        """The newest checkpoint of files for a mark."""
        payloads = (entry.payload for entry in reversed(self._journal.entries(mark.thread_id)))
        return next((one for one in payloads if isinstance(one, Checkpoint) and one.target == mark.id), None)


def mark_of(message_id: str) -> Custom:
    """The entry that a rewind to a user message goes back to."""
    return Custom(name=MARK, data=message_id)


def mark_in_force(thread: Thread, newest: Entry) -> str:
    """The mark that counts, given the newest of its name: of imported ones that which the source names today."""
    payload = newest.payload
    if not isinstance(payload, Custom) or "is_imported" not in payload.origin:
        return newest.id
    return str(thread.origin.get("marks", {}).get(payload.data, newest.id))


def _state_of(user_turns: int) -> Custom:
    return Custom(name=STATE, data={"user_turns": user_turns})


def _is_state(entry: Entry) -> bool:
    return isinstance(entry.payload, Custom) and entry.payload.name == STATE


def user_turns_of(thread: Thread, path: Sequence[Entry]) -> int:
    """What was said last about the user's turns on a path."""
    for entry in reversed(path):
        if isinstance(entry.payload, Custom) and entry.payload.name == STATE:
            return int(entry.payload.data["user_turns"])
    return int(thread.origin.get("user_turns", 0))


def _said(path: Iterable[Entry]) -> list[_Said]:
    found = ((entry.id, chat_of(entry.payload)) for entry in path)
    return [_Said(entry_id, message) for entry_id, message in found if message is not None]


def _shared(said: Sequence[_Said], wanted: Sequence[dict[str, Any]]) -> int:
    """How many messages are the same from the beginning on, down to the text of their numbers."""
    for number, (old, new) in enumerate(zip(said, wanted, strict=False)):
        if json.encode(old.message, order="sorted") != json.encode(new, order="sorted"):
            return number
    return min(len(said), len(wanted))
