"""LlamaIndex: ``SessionTreeChatStore``, the chat store of ``Memory``.

Memory.from_defaults(session_id="chat", chat_store=SessionTreeChatStore("sqlite:///journal.db"))
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._records import kept, record_of
from sessiontree.adapters._source import JournalSource, StoreOrJournal
from sessiontree.errors import InvalidInputError, StaleVersionError, ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.model import (
    AssistantMessage,
    Entry,
    Message,
    Payload,
    SessionKey,
    SystemMessage,
    TextPart,
    ThreadFields,
    ThreadQuery,
    ToolCallMessage,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    UserMessage,
)

with imports_of_extra("llama-index"):
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus
    from pydantic import ConfigDict, PrivateAttr, field_serializer

__all__ = ["SessionTreeChatStore"]

_NAME = "llama_index"
_TYPES = ("user_message", "assistant_message", "tool_call", "tool_result", "system_message", "custom")
_FIRST_LOOK = 64


class SessionTreeChatStore(AsyncDBChatStore):
    """The messages of each key are a thread with that id. Archived ones are the oldest on its path.

    Deleted messages are erased for good. ``set_messages`` keeps the old ones on a branch.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    store: StoreOrJournal
    _source: JournalSource = PrivateAttr()

    def __init__(self, store: StoreOrJournal) -> None:
        super().__init__(store=store)  # type: ignore[call-arg]  # pydantic makes it of the fields
        self._source = JournalSource(store)

    @field_serializer("store")
    def _dumped(self, store: StoreOrJournal) -> str:
        if isinstance(store, Journal | AsyncJournal):
            raise InvalidInputError(
                "a chat store on an open journal cannot be dumped; make it with the URL of the store"
            )
        return str(store)

    @classmethod
    def class_name(cls) -> str:
        """Return the name of this class."""
        return "SessionTreeChatStore"

    async def journal(self) -> AsyncJournal:
        """Return the journal, which has searches, forks, rewinds and all other verbs."""
        return await self._source.asynchronous()

    async def close(self) -> None:
        """Close the store, if it was given as a URL. A second call does nothing."""
        await self._source.aclose()

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[ChatMessage]:
        """Return the messages of a key, oldest first: the active ones, the archived ones, or all."""
        found = await self._entries(key, status)
        start = offset or 0
        return [_message(entry) for entry in found[start : None if limit is None else start + limit]]

    async def count_messages(self, key: str, status: MessageStatus | None = MessageStatus.ACTIVE) -> int:
        """Return how many messages a key has."""
        return len(await self._entries(key, status))

    async def add_message(self, key: str, message: ChatMessage, status: MessageStatus = MessageStatus.ACTIVE) -> None:
        """Append a message; it is durable when this returns."""
        await self.add_messages(key, [message], status)

    async def add_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Append messages, all or none."""
        journal = await self.journal()
        contents = [_payload(message, status) for message in messages]
        try:
            await journal.append_many(key, contents)
        except ThreadNotFoundError:
            await journal.append_many(key, contents, create=True, fields=_fields(key))

    async def set_messages(
        self, key: str, messages: list[ChatMessage], status: MessageStatus = MessageStatus.ACTIVE
    ) -> None:
        """Replace the messages of a key. The old ones stay on a branch, and ``journal.move_leaf`` goes back to it."""
        journal = await self.journal()
        contents = [_payload(message, status) for message in messages]
        try:
            if contents:
                await journal.append_many(key, contents, parent=None)
            else:
                await journal.reset(key)
        except ThreadNotFoundError:
            await journal.append_many(key, contents, create=True, fields=_fields(key))

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        """Erase the active message at an index, counted from the oldest one, and return it."""
        active = await self._entries(key, MessageStatus.ACTIVE)
        if not 0 <= idx < len(active):
            return None
        await self._erase(key, [active[idx]])
        return _message(active[idx])

    async def delete_messages(self, key: str, status: MessageStatus | None = None) -> None:
        """Erase the messages of a key; without a status, its thread is deleted."""
        journal = await self.journal()
        if status is not None:
            await self._erase(key, await self._entries(key, status))
        else:
            with suppress(ThreadNotFoundError):
                await journal.delete_thread(key)

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Erase the oldest active messages, and return them."""
        oldest = (await self._entries(key, MessageStatus.ACTIVE))[:n]
        await self._erase(key, oldest)
        return [_message(entry) for entry in oldest]

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        """Archive the oldest active messages, and return them."""
        journal = await self.journal()
        while True:
            try:
                thread = await journal.thread(key)
            except ThreadNotFoundError:
                return []
            oldest = (await self._entries(key, MessageStatus.ACTIVE))[:n]
            if not oldest:
                return []
            custom = {**thread.custom, _NAME: {"archived_through": oldest[-1].id}}
            with suppress(StaleVersionError, ThreadNotFoundError):  # changed or deleted meanwhile
                await journal.update_thread(key, expect_version=thread.version, custom=custom)
                return [_message(entry) for entry in oldest]

    async def get_keys(self) -> list[str]:
        """Return the keys that have messages."""
        journal = await self.journal()
        threads = journal.iter_threads(ThreadQuery(agent=_NAME, is_archived=None, order="created"))
        return [thread.key.peer async for thread in threads if thread.entries > 0]

    async def _entries(self, key: str, status: MessageStatus | None) -> list[Entry]:
        journal = await self.journal()
        try:
            boundary = (await journal.thread(key)).custom.get(_NAME, {}).get("archived_through")
            if status is not MessageStatus.ACTIVE or boundary is None:
                path = await journal.path(key, types=_TYPES)
            else:
                path = await _path_after(journal, key, boundary)
        except ThreadNotFoundError:
            return []
        position = next((number for number, entry in enumerate(path) if entry.id == boundary), -1)
        return [
            entry
            for number, entry in enumerate(path)
            if _is_message(entry)
            and (status is None or status is _status(entry, is_before_boundary=number <= position))
        ]

    async def _erase(self, key: str, entries: Sequence[Entry]) -> None:
        if entries:
            with suppress(ThreadNotFoundError):  # deleted meanwhile
                await (await self.journal()).erase(key, [entry.id for entry in entries])


async def _path_after(journal: AsyncJournal, key: str, boundary: str) -> list[Entry]:
    """Return the end of the path, far enough back to hold the boundary: archives can be long."""
    limit = _FIRST_LOOK
    while True:
        path = await journal.path(key, types=_TYPES, limit=limit)
        if len(path) < limit or any(entry.id == boundary for entry in path):
            return path
        limit *= 4


def _fields(key: str) -> ThreadFields:
    return {"key": SessionKey(agent=_NAME, peer=key)}


def _is_message(entry: Entry) -> bool:
    return record_of(entry, _NAME) is not None or entry.type in _TYPES[:-1]


def _status(entry: Entry, *, is_before_boundary: bool) -> MessageStatus:
    record = record_of(entry, _NAME)
    is_archived = is_before_boundary or (record is not None and record["status"] == MessageStatus.ARCHIVED.value)
    return MessageStatus.ARCHIVED if is_archived else MessageStatus.ACTIVE


def _message(entry: Entry) -> ChatMessage:
    """Return the message that LlamaIndex stored, or what an entry of another program says."""
    record = record_of(entry, _NAME)
    if record is not None:
        return ChatMessage.model_validate(record["message"])
    message = entry.message
    if message is None:
        return ChatMessage(role=MessageRole.USER, content="")
    text = message.text
    for result in message.tool_results:
        text += "".join(part.text for part in result.parts if isinstance(part, TextPart))
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    extra: dict[str, Any] = {"tool_calls": calls} if calls else {}
    if message.tool_results:
        extra["tool_call_id"] = message.tool_results[0].call_id
    return ChatMessage(role=MessageRole(message.role), content=text, additional_kwargs=extra)


def _payload(message: ChatMessage, status: MessageStatus) -> Payload:
    record = {"message": message.model_dump(mode="json"), "status": status.value}
    parts = (TextPart(text=message.content),) if message.content else ()
    match message.role:
        case MessageRole.USER:
            return kept(UserMessage(message=Message(role="user", parts=parts)), _NAME, record)
        case MessageRole.SYSTEM | MessageRole.DEVELOPER:
            return kept(SystemMessage(message=Message(role="system", parts=parts)), _NAME, record)
        case MessageRole.ASSISTANT | MessageRole.CHATBOT | MessageRole.MODEL:
            calls = tuple(_calls(message))
            answer = Message(role="assistant", parts=(*parts, *calls))
            if calls:
                return kept(ToolCallMessage(message=answer), _NAME, record)
            return kept(AssistantMessage(message=answer), _NAME, record)
        case MessageRole.TOOL | MessageRole.FUNCTION:
            call_id = str(message.additional_kwargs.get("tool_call_id", ""))
            result = ToolResultPart(call_id=call_id, name=str(message.additional_kwargs.get("name", "")), parts=parts)
            return kept(ToolResultMessage(message=Message(role="tool", parts=(result,))), _NAME, record)


def _calls(message: ChatMessage) -> list[ToolCallPart]:
    blocks = [block for block in message.blocks if block.block_type == "tool_call"]
    if blocks:
        return [
            ToolCallPart(id=block.tool_call_id or "", name=block.tool_name, arguments=_arguments(block.tool_kwargs))
            for block in blocks
        ]
    calls: list[ToolCallPart] = []
    for given in message.additional_kwargs.get("tool_calls", ()):
        call = given if isinstance(given, dict) else given.model_dump()
        function = call.get("function", {})
        arguments = _arguments(function.get("arguments", "{}"))
        calls.append(ToolCallPart(id=str(call.get("id", "")), name=str(function.get("name", "")), arguments=arguments))
    return calls


def _arguments(given: Any) -> str:
    return given if isinstance(given, str) else json.dumps(given)
