"""What the saver stores: the data of its entries, and the threads that they are in.

A thread and namespace of LangGraph is one thread of the journal. A put appends, under the checkpoint before it:

- new messages of list channels, each as a message entry, which search and viewer understand;
- one custom entry with the other values that changed, if there are any;
- the checkpoint, an event with the checkpoint's id, which says where the value of each channel is.

Writes of tasks can come before their checkpoint, so they are in a second thread: custom entries under a root with the id of
the checkpoint. No entry is ever changed.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
from langchain_core.runnables import RunnableConfig

from sessiontree.adapters._records import as_given, thread_id_of
from sessiontree.adapters.langgraph.messages import Fields
from sessiontree.journal import NewEntry
from sessiontree.model import (
    Custom,
    Entry,
    Event,
    Record,
    SessionKey,
    Thread,
    ThreadFields,
    convert,
    json_decoder,
)
from sessiontree.model.codec import EntryBody

__all__ = [
    "AGENT",
    "ITEM_TYPES",
    "CheckpointRecord",
    "ListRecord",
    "NumberedItem",
    "Place",
    "Raw",
    "ReadItem",
    "ReadValues",
    "Stored",
    "ValuesRecord",
    "Write",
    "WritesRecord",
    "data_of",
    "record_of",
    "values_in",
    "values_of",
    "writes_root",
]

AGENT = "langgraph"
CHECKPOINT = "langgraph.checkpoint"
VALUES = "langgraph.values"
WRITES = "langgraph.writes"
WRITES_CHANNEL = "writes"
"""The channel in the key of a thread that holds the writes of another one."""
ITEM = "langgraph"
"""The key in the origin of a message entry that is an item of a list channel."""

ITEM_TYPES = ("user_message", "assistant_message", "tool_call", "tool_result", "system_message", "custom")
"""The types of entries that can hold items of list channels."""


class Raw(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value as LangGraph's serializer writes it."""

    type: str
    data: bytes


Stored = Raw | Fields
"""An item of a list: the fields of a message, if they are JSON."""


class NumberedItem(Record, frozen=True, kw_only=True):
    """An item of a list channel, with its number among all items that the channel has had on this path."""

    channel: str
    number: int
    stored: Stored = msgspec.field(name="raw")


class ListRecord(Record, frozen=True, kw_only=True):
    """The value of a list channel: ranges of item numbers.

    ``count`` is how many items the channel has had on this path. All of these are among the last ``lookback`` entries of
    ITEM_TYPES on it, unless others append to the thread.
    """

    ranges: tuple[tuple[int, int], ...]
    count: int
    lookback: int


class ValuesRecord(Record, frozen=True, kw_only=True):
    """Values that changed with a checkpoint, by channel, and new items of lists that are no messages."""

    values: dict[str, Raw] = {}
    items: tuple[NumberedItem, ...] = ()


class CheckpointRecord(Record, frozen=True, kw_only=True):
    """A checkpoint. ``values`` has the ids of the entries that hold the values of channels.

    ``last_item`` is the last entry of ITEM_TYPES that the saver put on this path.
    """

    id: str
    parent: str | None
    checkpoint: Raw
    stored_metadata: dict[str, Any] = msgspec.field(name="metadata")
    values: dict[str, str] = {}
    lists: dict[str, ListRecord] = {}
    last_item: str = ""

    @property
    def metadata(self) -> dict[str, Any]:
        """What LangGraph says about the checkpoint."""
        return cast("dict[str, Any]", as_given(self.stored_metadata))


class Write(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value that a task wrote to a channel."""

    index: int
    channel: str
    raw: Raw


class WritesRecord(Record, frozen=True, kw_only=True):
    """The writes of a task. Those that replace are about the task itself: errors, interrupts, resumes."""

    task_id: str
    task_path: str
    is_replacing: bool
    writes: tuple[Write, ...]


class Place(Record, frozen=True, kw_only=True):
    """A thread and a namespace of LangGraph.

    >>> Place(thread_id="chat", namespace="").journal_thread, Place(thread_id="chat", namespace="child:1").journal_thread
    ('chat', 'langgraph/chat/child%3A1')
    """

    thread_id: str
    namespace: str

    @classmethod
    def of(cls, config: RunnableConfig) -> Place:
        """The place that a config names."""
        configurable = config["configurable"]
        return cls(thread_id=str(configurable["thread_id"]), namespace=str(configurable.get("checkpoint_ns", "")))

    @classmethod
    def of_thread(cls, thread: Thread) -> Place:
        """The place of a thread of the journal, which has no key of ours if the journal forked it."""
        if thread.key.agent != AGENT:
            return cls(thread_id=thread.id, namespace="")
        return cls(thread_id=thread.key.peer, namespace=thread.key.thread)

    @property
    def journal_thread(self) -> str:
        """The id of the thread in the journal: that of LangGraph, except for subgraphs."""
        if self.thread_id and not self.namespace and not self.thread_id.startswith(f"{AGENT}/"):
            return self.thread_id
        return thread_id_of(AGENT, self.thread_id, self.namespace)

    @property
    def writes_thread(self) -> str:
        """The id of the thread that holds the writes of tasks."""
        return thread_id_of(AGENT, self.thread_id, self.namespace, WRITES_CHANNEL)

    @property
    def fields(self) -> ThreadFields:
        """The metadata of a new thread."""
        key = SessionKey(agent=AGENT, peer=self.thread_id, thread=self.namespace)
        return {"key": key, "parent_thread": self._root} if self.namespace else {"key": key}

    @property
    def writes_fields(self) -> ThreadFields:
        """The metadata of a new thread for writes."""
        key = SessionKey(agent=AGENT, channel=WRITES_CHANNEL, peer=self.thread_id, thread=self.namespace)
        return {"key": key, "parent_thread": self._root}

    @property
    def _root(self) -> str:
        return Place(thread_id=self.thread_id, namespace="").journal_thread

    def config(self, checkpoint_id: str) -> RunnableConfig:
        """The config of a checkpoint of this place."""
        return {
            "configurable": {
                "thread_id": self.thread_id,
                "checkpoint_ns": self.namespace,
                "checkpoint_id": checkpoint_id,
            }
        }


T = TypeVar("T", CheckpointRecord, ValuesRecord, WritesRecord)

_NAMES = {CheckpointRecord: CHECKPOINT, ValuesRecord: VALUES, WritesRecord: WRITES}


def data_of(record: CheckpointRecord | ValuesRecord | WritesRecord) -> Event | Custom:
    """Return the payload that holds a record."""
    data = msgspec.to_builtins(record)
    if isinstance(record, CheckpointRecord):
        return Event(name=CHECKPOINT, data=data)
    return Custom(name=_NAMES[type(record)], data=data)


def record_of(entry: Entry, kind: type[T]) -> T | None:
    """Return the record of an entry; ``None`` if it holds no such record, as after it was erased."""
    payload = entry.payload
    if not isinstance(payload, Event | Custom) or payload.name != _NAMES[kind]:
        return None
    return convert(payload.data, kind)


def writes_root(checkpoint_id: str) -> NewEntry:
    """Return the entry under which the writes of a checkpoint are."""
    return NewEntry(content=Custom(name=WRITES, data=checkpoint_id), id=checkpoint_id, parent=None)


class ReadItem(Record, frozen=True, kw_only=True):
    """A ``NumberedItem`` that was read, not decoded yet: thousands of dicts would keep the garbage collector busy."""

    channel: str
    number: int
    stored: msgspec.Raw = msgspec.field(name="raw")


class ReadValues(Record, frozen=True, kw_only=True):
    """A ``ValuesRecord`` that was read."""

    values: dict[str, Raw] = {}
    items: tuple[ReadItem, ...] = ()


class _Origin(Record, frozen=True, kw_only=True):
    item: ReadItem | None = msgspec.field(name=ITEM, default=None)


class _Body(Record, frozen=True, kw_only=True):
    """The parts of a stored payload that have values: there is one for each message of a conversation."""

    origin: _Origin = _Origin()
    name: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")


_body = json_decoder(_Body)
_values = json_decoder(ReadValues)


def values_in(entry: Entry) -> ValuesRecord:
    """Return the values that an entry holds; a message is one item, entries of others hold nothing."""
    item = getattr(entry.payload, "origin", {}).get(ITEM)
    if item is not None:
        return ValuesRecord(items=(convert(item, NumberedItem),))
    return record_of(entry, ValuesRecord) or ValuesRecord()


def values_of(body: EntryBody) -> ReadValues | ReadItem | None:
    """Return the values that an entry of ITEM_TYPES holds, or the item that a message is; ``None`` for those of others."""
    try:
        found = _body.decode(body.body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None  # not written by the saver, or damaged
    return _values.decode(found.data) if found.name == VALUES else found.origin.item
