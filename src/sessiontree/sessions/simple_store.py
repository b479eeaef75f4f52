# Generated from simple_store_async.py by tools/async_to_sync.py; do not edit.
"""SimpleStore: a list of messages and a summary for each key. Everything but ``compact_storage`` can be undone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from sessiontree.journal.journal import Journal
from sessiontree.model import Message, Role, TextPart, Thread
from sessiontree.sessions import histories
from sessiontree.sessions._history import messages_in_force, messages_of, summary_in_force

__all__ = ["SimpleStore"]


class SimpleStore:
    """Histories and summaries by key, stored in a journal. The key is the id of the session's thread.

    Every method is one atomic step, and every change is durable when the call returns.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    @staticmethod
    def thread_id(key: str) -> str:
        """Return the id of the thread for a key, which is the key itself."""
        return key

    def get_or_create(self, key: str) -> Thread:
        """Return the thread of a session, with its title and times; a key without one gets an empty session."""
        return self.journal.run(histories.get_or_create(self.journal.runtime, key))

    def add_message(self, key: str, role: str, content: str) -> None:
        """Append a text message. A role that no model knows is kept as it is."""
        parts = (TextPart(text=content),) if content != "" else ()
        self.add_full_message(key, Message(role=cast("Role", role), parts=parts))

    def add_full_message(self, key: str, message: Message) -> None:
        """Append a message; the first one creates the session."""
        self.journal.run(histories.add_message(self.journal.runtime, key, message))

    def get_history(self, key: str) -> list[Message]:
        """Return the messages in force, oldest first; an empty list for an unknown key."""
        path = self.journal.run(histories.path_in_force(key))
        return [item.original for item in messages_in_force(path or ())]

    def get_full_history(self, key: str) -> list[Message]:
        """Return all messages, including those that were cut off by truncations."""
        return messages_of(self.journal.run(histories.whole_path(key)))

    def get_summary(self, key: str) -> str:
        """Return the current summary, or an empty string."""
        path = self.journal.run(histories.path_in_force(key))
        return summary_in_force(path or ())

    def set_summary(self, key: str, summary: str) -> None:
        """Replace the summary; the history stays."""
        self.journal.run(histories.set_summary(self.journal.runtime, key, summary))

    def set_history(self, key: str, messages: Iterable[Message]) -> None:
        """Replace the history; the summary stays."""
        self.journal.run(histories.set_history(self.journal.runtime, key, messages))

    def truncate_history(self, key: str, keep_last: int) -> None:
        """Keep the last messages; a few more if the cut would separate a tool call from its result."""
        self.journal.run(histories.truncate_history(self.journal.runtime, key, keep_last))

    def undo(self, key: str) -> None:
        """Revert the last change that shortened or replaced the history; NothingToUndoError if there is none."""
        self.journal.run(histories.undo(self.journal.runtime, key))

    def redo(self, key: str) -> None:
        """Revert the last undo; NothingToRedoError if there is none or if a message was added since."""
        self.journal.run(histories.redo(self.journal.runtime, key))

    def compact_storage(self, key: str) -> int:
        """Erase what truncations and replaced histories left behind, give the room back, and return how many entries.

        This cannot be undone. Messages that a fork or a label still shows stay.
        """
        return self.journal.run(histories.compact_storage(self.journal.runtime, key))

    def save(self, key: str) -> None:
        """Do nothing: every change is durable already, and only ``compact_storage`` erases something."""
        histories.checked(key)

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()
