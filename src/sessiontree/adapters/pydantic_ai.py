"""Conversations of Pydantic AI in a journal: ``await SessionTreeConversationStore(url).save(result)``.

A conversation is a thread, a message an entry, and the record of the conversation is in the metadata of the thread. What
Pydantic AI calls the head of a conversation is the leaf of its thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import sessiontree as st
from sessiontree.adapters._adapter import AsyncAdapter
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._recent import Recent
from sessiontree.adapters._records import kept, record_of, thread_id_of
from sessiontree.adapters._source import StoreOrJournal
from sessiontree.model.builders import payload_of

with imports_of_extra("pydantic-ai"):
    from pydantic import TypeAdapter
    from pydantic_ai.conversation_store import (
        ConversationConflict,
        ConversationEntry,
        ConversationRecord,
        ConversationStore,
    )
    from pydantic_ai.messages import (
        ModelMessage,
        ModelMessagesTypeAdapter,
        ModelRequest,
        ModelResponse,
        RetryPromptPart,
        SystemPromptPart,
        TextPart,
        ThinkingPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

__all__ = ["SessionTreeConversationStore"]

FRAMEWORK = "pydantic-ai"

_RECORD = TypeAdapter(ConversationRecord)
_MESSAGES = ("user_message", "assistant_message", "tool_call", "tool_result", "system_message", "event")
_CONFLICTS = (
    st.StaleLeafError,
    st.StaleVersionError,
    st.ThreadNotFoundError,
    st.ThreadExistsError,
    st.EntryNotFoundError,
    st.InvalidParentError,
    st.DuplicateEntryError,
    KeyError,
)


class SessionTreeConversationStore(AsyncAdapter, ConversationStore):
    """A conversation store. Each ``save`` is one commit, a branch moves the leaf, and a fork shares entries.

    ``delete`` erases the messages from the disk, except for those that a fork shares. After a rewind or an undo of its thread,
    a conversation has another head and another revision.
    """

    def __init__(self, store: StoreOrJournal) -> None:
        super().__init__(store)
        self._places = Recent[str](most=1000)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation; ``None`` if there is none."""
        journal = await self.journal()
        try:
            thread = await journal.thread(_thread_id(conversation_id))
        except st.ThreadNotFoundError:
            return None
        return self._record(thread)

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Return the records, or those of a scope, the last saved first. Archived conversations are left out."""
        journal = await self.journal()
        filters: st.ThreadFilters = {"channel": FRAMEWORK, "limit": min(limit or 1000, 1000)}
        if scope is not None:
            filters["peer"] = scope
        found: list[ConversationRecord] = []
        if limit == 0:
            return found
        async for thread in journal.iter_threads(**filters):
            record = self._record(thread)
            if record is not None and scope in (None, record.scope):
                found.append(record)
            if len(found) == limit:
                break
        return found

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries in one commit.

        Raises ConversationConflict if the stored revision is another one, or if the head is nowhere.
        """
        journal = await self.journal()
        try:
            if expected_revision is None:
                changes = await self._created(record, new_entries)
            else:
                thread = await journal.thread(_thread_id(record.conversation_id))
                changes = self._changed(thread, record, new_entries, expected_revision)
            await journal.commit(changes)
        except _CONFLICTS as error:
            raise ConversationConflict(record.conversation_id) from error

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation for good. Entries that a fork of it shows are kept."""
        journal = await self.journal()
        try:
            thread = await journal.thread(_thread_id(conversation_id))
            self._check(thread, conversation_id, expected_revision)
            await journal.delete_thread(thread.id, expect_version=thread.version, expect_leaf=thread.leaf)
        except _CONFLICTS as error:
            raise ConversationConflict(conversation_id) from error

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return the entry of an id. Raises LookupError if there is none."""
        return _entries([await self._find(entry_id)])[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to a head, or the last ``limit`` of them."""
        if head_id is None or limit == 0:
            return []
        journal = await self.journal()
        place = self._places.get(head_id)
        try:
            place = place or (await self._find(head_id)).thread_id
            path = await journal.path(place, head_id, limit=limit, types=_MESSAGES)
        except (st.ThreadNotFoundError, st.EntryNotFoundError) as error:
            raise LookupError(head_id) from error
        return _entries(path)

    async def thread(self, conversation_id: str) -> st.AsyncThreadHandle:
        """Return the thread of a conversation: ``rewind`` to the id of an entry, ``undo``, ``export`` and the other verbs."""
        return st.AsyncThreadHandle(await self.journal(), _thread_id(conversation_id))

    def _record(self, thread: st.Thread) -> ConversationRecord | None:
        """The record of a thread. If its leaf was moved, the head is there, and the revision is another one."""
        stored = thread.custom.get(FRAMEWORK)
        if stored is None:
            return None
        record = _RECORD.validate_python(stored)
        if record.head_id != thread.leaf:
            record = replace(record, head_id=thread.leaf, revision=f"{record.revision}@{thread.leaf}")
        for entry_id in filter(None, [record.head_id, *record.branches]):
            # Histories are asked for by their heads alone, right after the record: this saves looking for the thread.
            self._places.put(entry_id, thread.id)
        return record

    def _check(self, thread: st.Thread, conversation_id: str, expected_revision: str) -> None:
        record = self._record(thread)
        if record is None or record.revision != expected_revision:
            raise ConversationConflict(conversation_id)

    async def _created(self, record: ConversationRecord, new_entries: Sequence[ConversationEntry]) -> st.Changes:
        """Create a conversation, as a fork if its history begins in another one."""
        thread_id = _thread_id(record.conversation_id)
        base = new_entries[0].parent_id if new_entries else record.head_id
        if base is None:
            return st.Changes().create_thread(thread_id, contents=_drafts(new_entries), **_fields(record))
        source = _thread_id(record.forked_from) if record.forked_from else (await self._find(base)).thread_id
        changes = st.Changes().fork(source, at=base, new_id=thread_id)
        # The version is 1 only if the fork is new: a fork that is repeated returns the one that is there.
        if not new_entries:
            return changes.update_thread(thread_id, expect_version=1, **_fields(record))
        return changes.append(thread_id, *_drafts(new_entries), fields=_fields(record), expect_version=1)

    def _changed(
        self,
        thread: st.Thread,
        record: ConversationRecord,
        new_entries: Sequence[ConversationEntry],
        expected_revision: str,
    ) -> st.Changes:
        self._check(thread, record.conversation_id, expected_revision)
        fields = _fields(record, thread.custom)
        if new_entries:
            drafts, parent = _drafts(new_entries), new_entries[0].parent_id
            return st.Changes().append(
                thread.id, *drafts, parent=parent, expect_leaf=thread.leaf, fields=fields, expect_version=thread.version
            )
        changes = st.Changes()
        if record.head_id != thread.leaf:
            changes.move_leaf(thread.id, record.head_id, expect_leaf=thread.leaf)
        return changes.update_thread(thread.id, expect_version=thread.version, **fields)

    async def _find(self, entry_id: str) -> st.Entry:
        journal = await self.journal()
        found = await journal.find_entries([entry_id])
        if not found:
            raise KeyError(f"no entry {entry_id!r} in this store")
        return found[0]


def _thread_id(conversation_id: str) -> str:
    return thread_id_of(FRAMEWORK, conversation_id)


def _fields(record: ConversationRecord, custom: dict[str, Any] | None = None) -> st.ThreadFields:
    stored = _RECORD.dump_python(record, mode="json")
    key = st.SessionKey(channel=FRAMEWORK, peer=record.scope or "", thread=record.conversation_id)
    updated_ns = int(record.updated_at.timestamp() * 1_000_000) * 1000
    return {"key": key, "updated_ns": updated_ns, "custom": {**(custom or {}), FRAMEWORK: stored}}


def _drafts(entries: Iterable[ConversationEntry]) -> list[st.NewEntry]:
    return [st.NewEntry(content=payload_of_message(entry.message), id=entry.id) for entry in entries]


def _entries(path: Sequence[st.Entry]) -> list[ConversationEntry]:
    stored = [(entry, record) for entry in path if (record := record_of(entry, FRAMEWORK)) is not None]
    messages = ModelMessagesTypeAdapter.validate_json(f"[{','.join(record for _, record in stored)}]")
    found: list[ConversationEntry] = []
    for (entry, _), message in zip(stored, messages, strict=True):
        parent = found[-1].id if found else entry.parent
        found.append(ConversationEntry(id=entry.id, parent_id=parent, message=message))
    return found


def payload_of_message(message: ModelMessage) -> st.Payload:
    """Return what a message means, with the message as JSON in its origin."""
    record = ModelMessagesTypeAdapter.dump_json([message])[1:-1].decode()
    meaning = _answer(message) if isinstance(message, ModelResponse) else _request(message)
    return kept(meaning, FRAMEWORK, record)


def _answer(message: ModelResponse) -> st.Payload:
    parts: list[st.Part] = []
    for part in message.parts:
        match part:
            case TextPart(content=text):
                parts.append(st.TextPart(text=text))
            case ThinkingPart(content=text):
                parts.append(st.ReasoningPart(text=text, provider=message.provider_name or FRAMEWORK))
            case ToolCallPart(tool_call_id=call_id, tool_name=name):
                parts.append(st.call(call_id, name, part.args_as_json_str()))
    used = message.usage
    cached = used.cache_read_tokens + used.cache_write_tokens
    usage = st.Usage(
        input_tokens=max(0, used.input_tokens - cached),
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
    )
    return st.assistant(
        parts,
        provider=message.provider_name or "",
        model=message.model_name or "",
        usage=usage if used.has_values() else None,
    )


def _request(message: ModelRequest) -> st.Payload:
    """A request as a message: the results of tools in it, or else what the user or the system says."""
    results: list[st.ToolResultPart] = []
    said: list[st.Part] = []
    rules: list[str] = []
    for part in message.parts:
        match part:
            case ToolReturnPart(tool_call_id=call_id, tool_name=name):
                results.append(_result(call_id, name, part.model_response_str(), is_error=part.outcome != "success"))
            case RetryPromptPart(tool_call_id=call_id, tool_name=str(name)):
                results.append(_result(call_id, name, part.model_response(), is_error=True))
            case RetryPromptPart():
                said.append(st.TextPart(text=part.model_response()))
            case UserPromptPart(content=content):
                said += _spoken(content)
            case SystemPromptPart(content=text):
                rules.append(text)
    if results:
        return payload_of(st.Message(role="tool", parts=tuple(results)))
    if said:
        return st.user(said)
    return st.system("\n\n".join(rules)) if rules else st.Event(name="request")


def _result(call_id: str, name: str, text: str, *, is_error: bool) -> st.ToolResultPart:
    return st.ToolResultPart(call_id=call_id, name=name, parts=(st.TextPart(text=text),), is_error=is_error)


def _spoken(content: str | Sequence[Any]) -> list[st.Part]:
    """The words of a prompt; of anything else only what it is, as its data is in the record."""
    items = [content] if isinstance(content, str) else content
    return [st.TextPart(text=item if isinstance(item, str) else f"[{item.kind}]") for item in items]
