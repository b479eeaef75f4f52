"""The MCP Python SDK: ``SessionTreeEventStore`` keeps events of streams, so that clients can resume them.

StreamableHTTPSessionManager(app=server, event_store=SessionTreeEventStore("sqlite:///events.db"))
"""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote, unquote

from sessiontree.adapters._adapter import AsyncAdapter
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._records import thread_id_of
from sessiontree.adapters._source import StoreOrJournal
from sessiontree.errors import EntryNotFoundError, StaleLeafError, ThreadNotFoundError
from sessiontree.model import Entry, Event, SessionKey, ThreadQuery

with imports_of_extra("mcp"):
    from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
    from mcp.types import JSONRPCMessage, jsonrpc_message_adapter

__all__ = ["SessionTreeEventStore"]

_AGENT = "mcp"
_MESSAGE = "mcp.message"
_PAGE = 100


class SessionTreeEventStore(AsyncAdapter, EventStore):
    """Events in the order in which they were sent, a thread for each stream; they survive a restart of the server.

    The SDK numbers the streams of each session from the start again and does not tell a store which session it speaks of. A
    program that makes a transport for each session gives each one a store with its ``session_id`` on the same journal.
    """

    def __init__(self, store: StoreOrJournal, *, session_id: str = "") -> None:
        AsyncAdapter.__init__(self, store)
        self._session_id = session_id

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Store a message, or with ``None`` only a place to resume from, and return the id of the event."""
        journal = await self.journal()
        data = None if message is None else message.model_dump(mode="json", by_alias=True, exclude_unset=True)
        thread = self._thread(stream_id)
        event = Event(name=_MESSAGE, stream=stream_id, data=data)
        try:
            entry = await journal.append(thread, event)
        except ThreadNotFoundError:
            key = SessionKey(agent=_AGENT, peer=self._session_id, thread=stream_id)
            entry = await journal.append(thread, event, create=True, fields={"key": key})
        return f"{quote(stream_id, safe='')}/{entry.id}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send the messages of a stream that came after an event, and return the stream; ``None`` if the event is unknown."""
        journal = await self.journal()
        quoted, _, after = last_event_id.partition("/")
        stream_id = unquote(quoted)
        thread = self._thread(stream_id)
        try:
            await journal.entry(thread, after)
            while events := await journal.entries(thread, after=after, limit=_PAGE, types=("event",)):
                for entry in events:
                    await self._send(quoted, entry, send_callback)
                after = events[-1].id
        except (EntryNotFoundError, ThreadNotFoundError):
            return None
        return stream_id

    async def delete_older_than(self, seconds: float) -> int:
        """Delete the streams that got no event for some time, for good, and return how many."""
        journal = await self.journal()
        query = ThreadQuery(agent=_AGENT, is_archived=None, updated_before_ns=journal.clock() - int(seconds * 1e9))
        deleted = 0
        for thread in [thread async for thread in journal.iter_threads(query)]:
            with suppress(
                StaleLeafError, ThreadNotFoundError
            ):  # it got an event meanwhile, or another server deleted it
                await journal.delete_thread(thread.id, expect_leaf=thread.leaf)
                deleted += 1
        return deleted

    async def _send(self, quoted_stream: str, entry: Entry, send_callback: EventCallback) -> None:
        payload = entry.payload
        if isinstance(payload, Event) and payload.name == _MESSAGE and payload.data is not None:
            message = jsonrpc_message_adapter.validate_python(payload.data, by_name=False)
            await send_callback(EventMessage(message, f"{quoted_stream}/{entry.id}"))

    def _thread(self, stream_id: str) -> str:
        return thread_id_of(_AGENT, self._session_id, stream_id)
