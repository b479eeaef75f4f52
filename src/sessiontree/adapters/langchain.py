"""LangChain: ``SessionTreeMessageHistory``, a history of chat messages.

RunnableWithMessageHistory(chain, lambda session_id: SessionTreeMessageHistory(journal, session_id))
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.adapters._adapter import Adapter
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._records import kept, record_of
from sessiontree.adapters._source import StoreOrJournal
from sessiontree.errors import ThreadNotFoundError
from sessiontree.model import Entry

with imports_of_extra("langchain"):
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict

    from sessiontree.adapters._langchain_messages import MESSAGE_TYPES, from_payload, to_payload

__all__ = ["SessionTreeMessageHistory"]

_ORIGIN = "langchain"


class SessionTreeMessageHistory(Adapter, BaseChatMessageHistory):
    """The messages of one session: the thread with its id. ``limit`` reads only the last ones of them.

    Messages of other programs in that thread are read too. ``clear`` deletes nothing: ``journal.undo`` brings the messages
    back, and ``journal.delete_thread`` deletes them for good.
    """

    def __init__(self, store: StoreOrJournal, session_id: str, *, limit: int | None = None) -> None:
        Adapter.__init__(self, store)
        self.session_id = session_id
        self._limit = limit

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """The messages on the path of the thread, oldest first."""
        try:
            entries = self.journal.path(self.session_id, types=(*MESSAGE_TYPES, "custom"), limit=self._limit)
        except ThreadNotFoundError:
            return []
        return [message for entry in entries for message in _messages_of(entry)]

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages, all or none; they are durable when this returns."""
        contents = [kept(to_payload(message, {}), _ORIGIN, message_to_dict(message)) for message in messages]
        if contents:
            self.journal.append_many(self.session_id, contents, create=True)

    def clear(self) -> None:
        """Start again with an empty path; an undo brings the messages back."""
        try:
            self.journal.reset(self.session_id)
        except ThreadNotFoundError:
            return

    def fork(
        self, new_session_id: str, *, at: str | None = None, before: str | None = None
    ) -> SessionTreeMessageHistory:
        """Return a session that begins with the messages of this one, up to an entry or all of them, without copying them."""
        self.journal.fork(self.session_id, at=at, before=before, new_id=new_session_id)
        return SessionTreeMessageHistory(self.journal, new_session_id, limit=self._limit)

    async def aget_messages(self) -> list[BaseMessage]:
        """Return the messages without blocking the event loop."""
        return await self._in_thread(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Append messages without blocking the event loop."""
        await self._in_thread(self.add_messages, messages)

    async def aclear(self) -> None:
        """Start again without blocking the event loop."""
        await self._in_thread(self.clear)


def _messages_of(entry: Entry) -> list[BaseMessage]:
    record = record_of(entry, _ORIGIN)
    return from_payload(entry.payload) if record is None else messages_from_dict([record])
