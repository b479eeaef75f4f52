"""SimpleStore: a list of messages and a summary for each key. Everything it does can be undone."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from sessiontree.errors import (
    InvalidInputError,
    NothingToRedoError,
    NothingToUndoError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.model import Compaction, Entry, Message, Move, Role, TextPart
from sessiontree.model.builders import payload_of
from sessiontree.sessions._steps import (
    Steps,
    messages_in_force,
    steps_of,
    summary_in_force,
    truncation,
    truncation_after,
)

__all__ = ["AsyncSimpleStore"]

_PREFIX = "simple:"


class AsyncSimpleStore:
    """Histories and summaries by key, stored in a journal. Every change is durable when the call returns."""

    def __init__(self, journal: AsyncJournal) -> None:
        self.journal = journal

    @staticmethod
    def thread_id(key: str) -> str:
        """Return the id of the thread for a key."""
        return _PREFIX + key

    async def add_message(self, key: str, role: Role, content: str) -> None:
        """Append a text message."""
        await self.add_full_message(key, Message(role=role, parts=(TextPart(text=content),) if content else ()))

    async def add_full_message(self, key: str, message: Message) -> None:
        """Append a message; the first one creates the session."""
        try:
            await self.journal.append(self.thread_id(key), message)
        except ThreadNotFoundError:
            await self._create(key)
            await self.journal.append(self.thread_id(key), message)

    async def get_history(self, key: str) -> list[Message]:
        """Return the messages in force, oldest first; an empty list for an unknown key."""
        return [item.original for item in messages_in_force(await self._path(key))]

    async def get_full_history(self, key: str) -> list[Message]:
        """Return all messages, including those that were cut off by truncations."""
        messages = [entry.message for entry in await self._path(key)]
        return [message for message in messages if message is not None]

    async def get_summary(self, key: str) -> str:
        """Return the current summary, or an empty string."""
        return summary_in_force(await self._path(key))

    async def set_summary(self, key: str, summary: str) -> None:
        """Replace the summary; the history stays."""
        await self._create(key)
        path = await self._path(key)
        items = messages_in_force(path)
        await self.journal.append(self.thread_id(key), truncation(path, summary, items[0].entry_id if items else ""))

    async def set_history(self, key: str, messages: Iterable[Message]) -> None:
        """Replace the history; the summary stays."""
        await self._create(key)
        summary = await self.get_summary(key)
        contents = [payload_of(message) for message in messages]
        kept = [Compaction(summary=summary, trigger="manual", reason="manual")] if summary else []
        if contents or kept:
            await self.journal.append_many(self.thread_id(key), [*kept, *contents], parent=None)
        else:
            await self.journal.reset(self.thread_id(key))

    async def truncate_history(self, key: str, keep_last: int) -> None:
        """Keep the last messages; a few more if the cut would separate a tool call from its result."""
        truncated = truncation_after(await self._path(key), keep_last)
        if truncated is not None:
            await self.journal.append(self.thread_id(key), truncated)

    async def undo(self, key: str) -> None:
        """Revert the last change that shortened or replaced the history; NothingToUndoError if there is none."""
        thread_id = self.thread_id(key)
        steps = await self._steps(key)
        if not steps.undo:
            raise NothingToUndoError(thread_id)
        match steps.undo[-1]:
            case Entry():
                await self.journal.uncompact(thread_id)
            case Move(from_entry=before):
                await self.journal.move_leaf(thread_id, before)

    async def redo(self, key: str) -> None:
        """Revert the last undo; NothingToRedoError if there is none or if a message was added since."""
        steps = await self._steps(key)
        if not steps.redo:
            raise NothingToRedoError(self.thread_id(key))
        await self.journal.move_leaf(self.thread_id(key), steps.redo[-1].leaf)

    async def save(self, key: str) -> None:
        """Do nothing: every change is durable already."""
        _check_key(key)

    async def close(self) -> None:
        """Close the journal."""
        await self.journal.close()

    async def _create(self, key: str) -> None:
        _check_key(key)
        with suppress(ThreadExistsError):
            await self.journal.create_thread(self.thread_id(key), title=key)

    async def _steps(self, key: str) -> Steps:
        thread_id = self.thread_id(key)
        try:
            thread = await self.journal.thread(thread_id)
        except ThreadNotFoundError:
            return Steps()
        entries = await self.journal.entries(thread_id)
        return steps_of(entries, await self.journal.reflog(thread_id), thread.leaf)

    async def _path(self, key: str) -> list[Entry]:
        try:
            return await self.journal.path(self.thread_id(key))
        except ThreadNotFoundError:
            return []


def _check_key(key: str) -> None:
    if not key:
        raise InvalidInputError("a session key must not be empty")
