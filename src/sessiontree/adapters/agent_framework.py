"""Microsoft Agent Framework in a journal: the history of agents, and the checkpoints of workflows.

A session is the thread with its id and a message an entry. The checkpoints of a workflow are entries of one thread, each
under the one before it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import sessiontree as st
from sessiontree.adapters._adapter import AsyncAdapter
from sessiontree.adapters._extra import imports_of_extra
from sessiontree.adapters._records import kept, record_of, records_of, stored_record, thread_id_of
from sessiontree.adapters._source import StoreOrJournal
from sessiontree.model.builders import payload_of

with imports_of_extra("agent-framework"):
    from agent_framework import (
        Content,
        FileCheckpointStorage,
        HistoryProvider,
        Message,
        WorkflowCheckpoint,
        WorkflowCheckpointException,
    )

__all__ = ["SessionTreeCheckpointStorage", "SessionTreeHistoryProvider"]

FRAMEWORK = "agent-framework"

Record = dict[str, Any]

_MESSAGES = ("user_message", "assistant_message", "tool_call", "tool_result", "system_message", "custom")
_VISIBLE = (*_MESSAGES, "compaction", "branch_summary")
_CHECKPOINT = "checkpoint"


class SessionTreeHistoryProvider(AsyncAdapter, HistoryProvider):
    """The messages of sessions: ``Agent(…, context_providers=[SessionTreeHistoryProvider(url)])``."""

    def __init__(
        self,
        store: StoreOrJournal,
        source_id: str = "sessiontree",
        *,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
        skip_excluded: bool = False,
    ) -> None:
        AsyncAdapter.__init__(self, store)
        HistoryProvider.__init__(
            self,
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self.skip_excluded = skip_excluded

    async def thread(self, session_id: str | None) -> st.AsyncThreadHandle:
        """Return the thread of a session: ``undo``, ``rewind``, ``fork``, ``compact`` and the other verbs."""
        return st.AsyncThreadHandle(await self.journal(), session_id or "default")

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages that the model should see. After a compaction they begin with the summary.

        With ``skip_excluded``, those that a CompactionProvider had marked when they were saved are left out.
        """
        messages = await self._messages(await self.thread(session_id))
        if self.skip_excluded:
            return [message for message in messages if not message.additional_properties.get("_excluded")]
        return messages

    async def _messages(self, thread: st.AsyncThreadHandle) -> list[Message]:
        try:
            bodies = await thread.path_bodies(types=_VISIBLE)
            messages = []
            for body in bodies:  # a record at a time: thousands of them at once would keep the garbage collector busy
                record = stored_record(body, FRAMEWORK)
                if record is not None:
                    messages.append(Message.from_dict(record))
                elif body.type != "custom":
                    return _translated(await thread.path())
        except st.ThreadNotFoundError:
            return []
        return messages

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append messages, all or none. Those that the end of the history has already are left out."""
        if not messages:
            return
        thread = await self.thread(session_id)
        records = [message.to_dict() for message in messages]
        while True:
            leaf, stored = await self._last(thread, len(records))
            new = records[_overlap(stored, records) :]
            if not new:
                return
            payloads = [payload_of_message(record) for record in new]
            try:
                await thread.append_many(payloads, expect_leaf=leaf, create=leaf is None)
            except st.StaleLeafError:
                continue
            return

    async def _last(self, thread: st.AsyncThreadHandle, count: int) -> tuple[str | None, list[Record]]:
        """The leaf of a thread and the last records on its path; nothing if the thread is missing."""
        try:
            leaf = (await thread.thread()).leaf
            bodies = await thread.path_bodies(leaf, limit=count, types=_MESSAGES)
        except st.ThreadNotFoundError:
            return None, []
        return leaf, [record for record in records_of(bodies, FRAMEWORK) if record is not None]


class SessionTreeCheckpointStorage(AsyncAdapter):
    """The checkpoints of workflows: ``WorkflowBuilder(…, checkpoint_storage=SessionTreeCheckpointStorage(url))``.

    Checkpoints are stored in the form in which the framework's ``FileCheckpointStorage`` writes them, and read with its
    rules: ``allowed_checkpoint_types`` are the types of your own that may be read.
    """

    def __init__(self, store: StoreOrJournal, *, allowed_checkpoint_types: list[str] | None = None) -> None:
        super().__init__(store)
        self._allowed = allowed_checkpoint_types

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        """Store a checkpoint under the one before it, and return its id. One with the same id is replaced."""
        journal = await self.journal()
        thread_id, name = _workflow(checkpoint.workflow_name), checkpoint.checkpoint_id
        content = st.Custom(name=_CHECKPOINT, data=await self._encoded(checkpoint))
        while True:
            before = await journal.documents.get(_INDEX, name)
            previous = await journal.documents.get(_INDEX, checkpoint.previous_checkpoint_id or "")
            entry_id = name if before is None else str(uuid4())
            parent = previous.value["entry"] if previous and previous.value["thread"] == thread_id else None
            entry = st.NewEntry(content=content, id=entry_id, parent=parent)
            changes = st.Changes().append(thread_id, entry, create=True, fields={"key": _WORKFLOW_KEY})
            place = {"thread": thread_id, "entry": entry_id}
            changes.put_document(_INDEX, name, place, expect_version=before.version if before else 0)
            try:
                await journal.commit(changes)
            except (st.StaleDocumentError, st.DuplicateEntryError):
                continue
            if before is not None:
                await journal.erase(before.value["thread"], [before.value["entry"]])
            return name

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        """Return a checkpoint. Raises WorkflowCheckpointException if there is none."""
        entry = await self._find(checkpoint_id)
        if entry is None:
            raise WorkflowCheckpointException(f"No checkpoint found with ID {checkpoint_id}")
        return await self._decoded(_data(entry))

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return the checkpoints of a workflow, in the order in which they were saved."""
        return [await self._decoded(_data(entry)) for entry in await self._saved(workflow_name)]

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        """Return the ids of the checkpoints of a workflow."""
        return [_data(entry)["checkpoint_id"] for entry in await self._saved(workflow_name)]

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the checkpoint of a workflow with the latest time; ``None`` if there is none."""
        saved = [_data(entry) for entry in await self._saved(workflow_name)]
        if not saved:
            return None
        return await self._decoded(max(saved, key=lambda data: datetime.fromisoformat(data["timestamp"])))

    async def delete(self, checkpoint_id: str) -> bool:
        """Erase a checkpoint for good, and return whether there was one."""
        journal = await self.journal()
        entry = await self._find(checkpoint_id)
        if entry is None:
            return False
        await journal.erase(entry.thread_id, [entry.id])
        return await journal.documents.delete(_INDEX, checkpoint_id)

    async def _find(self, checkpoint_id: str) -> st.Entry | None:
        journal = await self.journal()
        place = await journal.documents.get(_INDEX, checkpoint_id)
        if place is None:
            return None
        found = await journal.find_entries([place.value["entry"]], thread_id=place.value["thread"])
        return next((entry for entry in found if _is_checkpoint(entry)), None)

    async def _saved(self, workflow_name: str) -> list[st.Entry]:
        journal = await self.journal()
        try:
            found = await journal.entries(_workflow(workflow_name), types=["custom"])
        except st.ThreadNotFoundError:
            return []
        return [entry for entry in found if _is_checkpoint(entry)]

    async def _encoded(self, checkpoint: WorkflowCheckpoint) -> Record:
        with TemporaryDirectory() as folder:
            await self._files(folder).save(replace(checkpoint, checkpoint_id=_CHECKPOINT))
            data: Record = json.loads(_file(folder).read_bytes())
        return {**data, "checkpoint_id": checkpoint.checkpoint_id}

    async def _decoded(self, data: Record) -> WorkflowCheckpoint:
        with TemporaryDirectory() as folder:
            _file(folder).write_text(json.dumps(data))
            return await self._files(folder).load(_CHECKPOINT)

    def _files(self, folder: str) -> FileCheckpointStorage:
        """The framework's own codec of checkpoints, which is public as a storage of files only."""
        return FileCheckpointStorage(folder, allowed_checkpoint_types=self._allowed)


_INDEX = thread_id_of(FRAMEWORK, "checkpoints")
_WORKFLOW_KEY = st.SessionKey(channel=FRAMEWORK, agent="workflow")


def payload_of_message(record: Record) -> st.Payload:
    """Return what a message means, with the message in its origin."""
    parts = [part for content in record.get("contents", []) if (part := _part(content)) is not None]
    results = tuple(part for part in parts if isinstance(part, st.ToolResultPart))
    role = record.get("role")
    if results:
        return kept(payload_of(st.Message(role="tool", parts=results)), FRAMEWORK, record)
    if role in ("system", "user", "assistant"):
        return kept(payload_of(st.Message(role=role, parts=tuple(parts))), FRAMEWORK, record)
    return kept(st.Custom(name=f"message of {role}"), FRAMEWORK, record)


def _part(content: Record) -> st.Part | None:
    match content:
        case {"type": "text", "text": str(text)}:
            return st.TextPart(text=text)
        case {"type": "text_reasoning", "text": str(text)}:
            return st.ReasoningPart(text=text, provider=FRAMEWORK)
        case {"type": "function_call", "call_id": str(call_id), "name": str(name), **rest}:
            given = rest.get("arguments")
            return st.call(call_id, name, given if isinstance(given, str) else json.dumps(given or {}))
        case {"type": "function_result", "call_id": str(call_id), **rest}:
            said = rest.get("result")
            text = said if isinstance(said, str) else json.dumps(said)
            is_error = bool(rest.get("exception"))
            return st.ToolResultPart(call_id=call_id, parts=(st.TextPart(text=text),), is_error=is_error)
        case {"type": str(kind)}:
            return st.TextPart(text=f"[{kind}]")
        case _:
            return None


def _translated(path: Sequence[st.Entry]) -> list[Message]:
    """What the model sees at the end of any path, as messages; those with a record are the record."""
    context = st.build_context(path)
    entries = {entry.id: entry for entry in path}
    found = [Message("system", [context.system])] if context.system else []
    for segment, message in zip(context.segments, context.messages, strict=True):
        entry = entries.get(segment.entry_id)
        record = record_of(entry, FRAMEWORK) if entry is not None and entry.message == message else None
        found.append(Message.from_dict(record) if record else Message(message.role, _contents(message)))
    return found


def _contents(message: st.Message) -> list[Content]:
    contents: list[Content] = []
    for part in message.parts:
        match part:
            case st.TextPart(text=text):
                contents.append(Content.from_text(text))
            case st.ToolCallPart(id=call_id, name=name, arguments=arguments):
                contents.append(Content.from_function_call(call_id, name, arguments=arguments))
            case st.ToolResultPart(call_id=call_id, parts=parts):
                text = "\n".join(one.text for one in parts if isinstance(one, st.TextPart))
                contents.append(Content.from_function_result(call_id, result=text))
    return contents


def _overlap(stored: Sequence[Record], given: Sequence[Record]) -> int:
    """How many of the first messages end the history already. A text that a user repeats is a new one."""
    for count in range(min(len(stored), len(given)), 0, -1):
        is_repeated_input = count == 1 and given[0].get("role") == "user" and not given[0].get("message_id")
        if list(stored[-count:]) == list(given[:count]) and not is_repeated_input:
            return count
    return 0


def _workflow(workflow_name: str) -> str:
    return thread_id_of(FRAMEWORK, "workflow", workflow_name)


def _is_checkpoint(entry: st.Entry) -> bool:
    return isinstance(entry.payload, st.Custom) and entry.payload.name == _CHECKPOINT


def _data(entry: st.Entry) -> Record:
    assert isinstance(entry.payload, st.Custom)
    data: Record = entry.payload.data
    return data


def _file(folder: str) -> Path:
    return Path(folder, f"{_CHECKPOINT}.json")
