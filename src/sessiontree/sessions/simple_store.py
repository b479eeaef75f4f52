"""The smallest surface: a list of messages and a summary under a key. Nothing it does loses anything.

Truncating and replacing a history are compaction entries and leaf moves, so ``undo`` gives everything back.

>>> import sessiontree as st
>>> with st.open("memory:") as journal:
...     store = SimpleStore(journal)
...     store.add_message("chat", "user", "hello")
...     store.add_message("chat", "assistant", "hi")
...     store.truncate_history("chat", 1)
...     shorter = [message.text for message in store.get_history("chat")]
...     store.undo("chat")
...     shorter, [message.text for message in store.get_history("chat")]
(['hi'], ['hello', 'hi'])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from sessiontree.compaction.plan import CutItem, cut_points
from sessiontree.context import window_of
from sessiontree.errors import (
    InvalidInputError,
    NothingToRedoError,
    NothingToUndoError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import Compaction, Entry, Message, Move, Role, TextPart
from sessiontree.model.builders import payload_of
from sessiontree.sessions._steps import Steps, steps_of

__all__ = ["SimpleStore"]


_PREFIX = "simple:"


class SimpleStore:
    """History and summary by key on a journal. Every call is durable when it returns, and every error is raised."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    @staticmethod
    def thread_id(key: str) -> str:
        """The thread behind a key: no two keys share one."""
        return _PREFIX + key

    def add_message(self, key: str, role: Role, content: str) -> None:
        """Add a text."""
        self.add_full_message(key, Message(role=role, parts=(TextPart(text=content),) if content else ()))

    def add_full_message(self, key: str, message: Message) -> None:
        """Add a message with everything in it; the first one makes the session."""
        try:
            self.journal.append(self.thread_id(key), message)
        except ThreadNotFoundError:
            self._create(key)
            self.journal.append(self.thread_id(key), message)

    def get_history(self, key: str) -> list[Message]:
        """The messages in force, oldest first; an unknown key has none."""
        return [item.said for item in _in_force(self._path(key))]

    def get_full_history(self, key: str) -> list[Message]:
        """The messages that truncations left out too."""
        payloads = (entry.message for entry in self._path(key))
        return [message for message in payloads if message is not None]

    def get_summary(self, key: str) -> str:
        """The summary in force, or nothing."""
        return _summary(self._path(key))

    def set_summary(self, key: str, summary: str) -> None:
        """Replace the summary; the history stays."""
        self._create(key)
        path = self._path(key)
        items = _in_force(path)
        first = items[0].entry_id if items else ""
        self._write(key, path, summary, first)

    def set_history(self, key: str, messages: Iterable[Message]) -> None:
        """Replace the history; the summary stays. The old one is a branch that ``undo`` goes back to."""
        self._create(key)
        summary = self.get_summary(key)
        contents = [payload_of(message) for message in messages]
        kept = [Compaction(summary=summary, trigger="manual", reason="manual")] if summary else []
        if contents or kept:
            self.journal.append_many(self.thread_id(key), [*kept, *contents], parent=None)
        else:
            self.journal.reset(self.thread_id(key))

    def truncate_history(self, key: str, keep_last: int) -> None:
        """Keep the last messages; a few more where the cut would part a tool call from its result."""
        path = self._path(key)
        items = _in_force(path)
        if keep_last >= len(items):
            return
        wanted = len(items) - max(0, keep_last)
        at = max(point for point in cut_points(items) if point <= wanted)
        if at:
            self._write(key, path, _summary(path), items[at].entry_id if at < len(items) else "")

    def undo(self, key: str) -> None:
        """Take back the last thing that shortened or replaced the history; again, the one before it."""
        thread_id = self.thread_id(key)
        steps = self._steps(key)
        if not steps.undo:
            raise NothingToUndoError(thread_id)
        match steps.undo[-1]:
            case Entry():
                self.journal.uncompact(thread_id)
            case Move(from_entry=before):
                self.journal.move_leaf(thread_id, before)

    def redo(self, key: str) -> None:
        """Take the last undo back; again, the one before it. What is added meanwhile ends that."""
        steps = self._steps(key)
        if not steps.redo:
            raise NothingToRedoError(self.thread_id(key))
        self.journal.move_leaf(self.thread_id(key), steps.redo[-1].leaf)

    def save(self, key: str) -> None:
        """Nothing is left to do: what was acknowledged is on the disk."""
        if not key:
            raise InvalidInputError("a session key must not be empty")

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def _create(self, key: str) -> None:
        if not key:
            raise InvalidInputError("a session key must not be empty")
        with suppress(ThreadExistsError):
            self.journal.create_thread(self.thread_id(key), title=key)

    def _steps(self, key: str) -> Steps:
        thread_id = self.thread_id(key)
        try:
            thread = self.journal.thread(thread_id)
        except ThreadNotFoundError:
            return Steps()
        return steps_of(self.journal.entries(thread_id), self.journal.reflog(thread_id), thread.leaf)

    def _path(self, key: str) -> list[Entry]:
        try:
            return self.journal.path(self.thread_id(key))
        except ThreadNotFoundError:
            return []

    def _write(self, key: str, path: Sequence[Entry], summary: str, first_kept: str) -> None:
        boundary = window_of(path).boundary
        earlier = boundary.payload if boundary else None
        generation = earlier.generation + 1 if isinstance(earlier, Compaction) else 1
        compaction = Compaction(
            summary=summary,
            first_kept_entry_id=first_kept,
            tail_after_entry_id=path[-1].id if path and not first_kept else "",
            generation=generation,
            trigger="manual",
            reason="manual",
            strategy="truncate",
        )
        self.journal.append_many(self.thread_id(key), [NewEntry(content=compaction)])


def _in_force(path: Sequence[Entry]) -> list[CutItem]:
    """Every message since the last truncation, whatever its role."""
    window = window_of(path)
    said = ((entry.id, entry.message) for entry in (*window.tail, *window.after))
    return [
        CutItem(entry_id=entry_id, message=message, said=message, tokens=0) for entry_id, message in said if message
    ]


def _summary(path: Sequence[Entry]) -> str:
    boundary = window_of(path).boundary
    return boundary.payload.summary if boundary and isinstance(boundary.payload, Compaction) else ""
