"""Sessions with checkpoints by message id: get, set, clone, fork ids, snapshot and rewind, for programs that know those verbs.

A session is a thread; setting its state appends what is new, so that nothing that was ever set is lost.

>>> import sessiontree as st
>>> with st.open("memory:") as journal:
...     sessions = CheckpointedSessions(journal)
...     _ = sessions.set_state("chat", [{"role": "user", "content": "hi"}], user_turns=1)
...     sessions.snapshot("chat", "chat-u1")
...     _ = sessions.set_state("chat", [], user_turns=2)
...     sessions.rewind("chat", "chat-u1").user_turns
1
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from sessiontree.errors import NoCheckpointError, ThreadExistsError, ThreadNotFoundError
from sessiontree.file_verbs import Workspace
from sessiontree.journal import Journal
from sessiontree.model import Custom, Entry, Thread
from sessiontree.model.record import Record

__all__ = ["CheckpointedSessions", "Session"]

DEFAULT_ID = "default"
_STATE = "session_state"
_MARK = "session_checkpoint"

Root = str | os.PathLike[str]


class Session(Record, frozen=True, kw_only=True):
    """A session as it is now: a value of its own, shared with nobody."""

    id: str
    created_ns: int
    updated_ns: int
    messages: tuple[dict[str, Any], ...] = ()
    user_turns: int = 0


class CheckpointedSessions:
    """``""`` means the session ``default``, in every verb."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def _workspace(self) -> Workspace:
        return self._journal.workspace

    def get(self, id: str = "") -> Session:
        """A session; ThreadNotFoundError if there is none."""
        thread = self._journal.thread(id or DEFAULT_ID)
        return _session(thread, self._state(thread))

    def get_or_create(self, id: str = "") -> Session:
        """A session, made if it is not there."""
        try:
            return self.get(id)
        except ThreadNotFoundError:
            self._create(id or DEFAULT_ID)
            return self.get(id)

    def list(self) -> list[Session]:
        """All sessions, the one that changed last first."""
        found: list[Thread] = []
        page = self._journal.list_threads(is_archived=None)
        found += page
        while page.cursor is not None:
            page = self._journal.list_threads(is_archived=None, cursor=page.cursor)
            found += page
        return [_session(thread, self._state(thread)) for thread in found]

    def set_state(self, id: str, messages: Iterable[dict[str, Any]], *, user_turns: int) -> Session:
        """Make these the messages of a session, which is made if it is not there."""
        name = self.get_or_create(id).id
        self._journal.append(name, Custom(name=_STATE, data={"messages": list(messages), "user_turns": user_turns}))
        return self.get(name)

    def clone(self, source: str, target: str) -> Session:
        """A session under a new id that shares the path of another one, with the checkpoints on it."""
        self._journal.fork(source or DEFAULT_ID, new_id=target)
        return self.get(target)

    def new_fork_id(self, base: str = "") -> str:
        """The first of ``base#fork-1``, ``base#fork-2`` … that no session has."""
        number = 1
        while self._exists(f"{base or DEFAULT_ID}#fork-{number}"):
            number += 1
        return f"{base or DEFAULT_ID}#fork-{number}"

    def fork(self, source: str = "") -> Session:
        """A clone under the next free fork id."""
        return self.clone(source, self.new_fork_id(source))

    def snapshot(self, id: str, message_id: str) -> None:
        """Remember messages and user turns for a user message; the same id again replaces it."""
        name = self.get_or_create(id).id
        self._journal.append(name, Custom(name=_MARK, data=message_id))

    def rewind(self, id: str, message_id: str, *, files: Root | None = None) -> Session:
        """Back to what a snapshot remembered, user turns too; with ``files`` that folder as well, or neither."""
        name = id or DEFAULT_ID
        mark = self._mark(name, message_id)
        if files is None:
            self._journal.rewind(name, mark.id)
        else:
            self._journal.rewind(name, mark.id, files=files)
        return self.get(name)

    def snapshot_files(self, id: str, message_id: str, root: Root) -> None:
        """Remember a folder for a user message that was snapshotted."""
        name = id or DEFAULT_ID
        self._workspace.snapshot(name, self._mark(name, message_id).id, root, label=message_id)

    def rewind_files(self, id: str, message_id: str, root: Root) -> None:
        """Bring a folder back; the messages stay."""
        name = id or DEFAULT_ID
        self._workspace.restore(name, self._mark(name, message_id).id, root)

    def _create(self, name: str) -> None:
        try:
            self._journal.create_thread(name)
        except ThreadExistsError:
            return

    def _exists(self, name: str) -> bool:
        try:
            self._journal.thread(name)
        except ThreadNotFoundError:
            return False
        return True

    def _mark(self, name: str, message_id: str) -> Entry:
        """The newest snapshot for a message id."""
        if self._exists(name):
            for entry in reversed(self._journal.entries(name)):
                if isinstance(entry.payload, Custom) and (entry.payload.name, entry.payload.data) == (
                    _MARK,
                    message_id,
                ):
                    return entry
        raise NoCheckpointError(name, message_id)

    def _state(self, thread: Thread) -> Entry | None:
        for entry in reversed(self._journal.path(thread.id)):
            if isinstance(entry.payload, Custom) and entry.payload.name == _STATE:
                return entry
        return None


def _session(thread: Thread, state: Entry | None) -> Session:
    data: Any = state.payload.data if state and isinstance(state.payload, Custom) else {}
    return Session(
        id=thread.id,
        created_ns=thread.created_ns,
        updated_ns=thread.updated_ns,
        messages=tuple(data.get("messages", ())),
        user_turns=data.get("user_turns", 0),
    )
