"""Values of channels in and out of the records: serialising, comparing with the checkpoint before, decoding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from hashlib import blake2b
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import ChannelVersions, Checkpoint
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from msgspec import Raw as JsonText
from msgspec import Struct, to_builtins
from msgspec.json import encode
from msgspec.structs import replace

from sessiontree.adapters._langchain_messages import to_payload
from sessiontree.adapters._records import as_stored, with_valid_json
from sessiontree.adapters.langgraph.lists import plan_list
from sessiontree.adapters.langgraph.messages import fields_of, message_of
from sessiontree.adapters.langgraph.records import (
    ITEM,
    CheckpointRecord,
    ListRecord,
    NumberedItem,
    Raw,
    Stored,
    ValuesRecord,
    data_of,
)
from sessiontree.journal import NewEntry
from sessiontree.model import Payload, json_decoder

__all__ = ["KnownCheckpoint", "KnownItem", "PlannedPut", "Serializer", "plan_put"]


_PLAIN = JsonPlusSerializer()


class KnownItem(Struct, frozen=True):
    """An item of a stored list: its content, and if it was put by this process, what the message was like then.

    Comparing a message with ``fields`` is ten times as fast as serialising it again, and finds changes in place too.
    """

    content: bytes
    kind: type[BaseMessage] | None = None
    fields: dict[str, Any] = {}

    @classmethod
    def of(cls, value: Any, content: bytes) -> KnownItem:
        """Remember an item that is stored now."""
        if not isinstance(value, BaseMessage):
            return cls(content)
        return cls(content, type(value), deepcopy(value.__dict__))

    def is_same(self, value: Any) -> bool:
        """Whether a message is certainly the stored one."""
        return type(value) is self.kind and value.__dict__ == self.fields


class KnownCheckpoint(Struct, frozen=True):
    """A stored checkpoint, with the items of its lists to compare the next value with."""

    record: CheckpointRecord
    versions: ChannelVersions
    lists: dict[str, list[KnownItem]]


class PlannedPut(Struct, frozen=True):
    """The entries that a put appends, the checkpoint last, and what the next put compares with."""

    entries: list[NewEntry]
    stored: KnownCheckpoint


class Serializer:
    """LangGraph's serializer, for values and for items of lists.

    ``is_readable`` is false if it may encrypt: then messages must not be stored in plain text either.
    """

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        kind = type(serde)
        self.is_readable = (
            isinstance(serde, JsonPlusSerializer)
            and kind.dumps_typed is JsonPlusSerializer.dumps_typed
            and kind.loads_typed is JsonPlusSerializer.loads_typed
        )

    def dump(self, value: Any) -> Raw:
        """Serialise a value."""
        return Raw(*self._serde.dumps_typed(value))

    def load(self, raw: Raw) -> Any:
        """Return a value."""
        return self._serde.loads_typed((raw.type, raw.data))

    def dump_item(self, value: Any) -> Stored:
        """Return an item of a list as it is stored."""
        fields = fields_of(value) if self.is_readable else None
        return self.dump(value) if fields is None else fields

    def load_items(self, items: Iterable[JsonText]) -> list[Any]:
        """Return the values of items that were read."""
        values = [item if isinstance(item, Raw) else message_of(item) for item in map(_stored.decode, items)]
        loaded = iter(self._load_many([item for item in values if isinstance(item, Raw)]))
        return [next(loaded) if isinstance(item, Raw) else item for item in values]

    def _load_many(self, raws: Sequence[Raw]) -> list[Any]:
        """Return values; all at once where the form allows it, which is faster."""
        if self.is_readable and raws and all(raw.type == "msgpack" for raw in raws):
            head = b"\xdd" + len(raws).to_bytes(4, "big")  # an array of msgpack, then its items
            values: list[Any] = self._serde.loads_typed(("msgpack", head + b"".join([raw.data for raw in raws])))
            return values
        return [self.load(raw) for raw in raws]

    def content(self, value: Any, item: Stored) -> bytes:
        """Return a digest of an item that is equal for equal values, which encrypted ones are not."""
        if not self.is_readable:
            item = Raw(*_PLAIN.dumps_typed(value))
        kind, data = (item.type, item.data) if isinstance(item, Raw) else ("json", encode(item))
        return blake2b(kind.encode() + b"\0" + data, digest_size=16).digest()

    def content_of_read(self, item: JsonText) -> bytes:
        """Return the digest of an item that was read. Version 0.1.0 stored messages as LangGraph writes them."""
        stored = _stored.decode(item)
        value = self.load(stored) if isinstance(stored, Raw) else None
        return self.content(value, fields_of(value) or stored)


_stored = json_decoder(Stored)


def plan_put(
    serializer: Serializer,
    before: KnownCheckpoint | None,
    checkpoint: Checkpoint,
    new_versions: ChannelVersions,
    *,
    parent: str | None,
    metadata: dict[str, Any],
) -> PlannedPut:
    """Plan what has to be stored of a checkpoint, after the one before it. ``parent`` may be one that is not stored."""
    values: dict[str, str] = {}
    changed: dict[str, Raw] = {}
    lists: dict[str, ListRecord] = {}
    contents: dict[str, list[KnownItem]] = {}
    messages: list[Payload] = []
    items: list[NumberedItem] = []
    for channel, value in checkpoint["channel_values"].items():
        if before is not None and _is_unchanged(channel, before, checkpoint, new_versions):
            if channel in before.record.values:
                values[channel] = before.record.values[channel]
            else:
                lists[channel], contents[channel] = before.record.lists[channel], before.lists[channel]
        elif type(value) is list and value:
            lists[channel], contents[channel], new = _add_list(serializer, before, channel, value)
            for item, content in new:
                if serializer.is_readable and isinstance(content, BaseMessage):
                    message = to_payload(content, {ITEM: to_builtins(item)})
                    messages.append(with_valid_json(message) if isinstance(item.stored, Raw) else message)
                else:
                    items.append(item)
        else:
            changed[channel] = serializer.dump(value)
    payloads = list(messages)
    if changed or items:
        payloads.append(data_of(ValuesRecord(values=changed, items=tuple(items))))
    ids = [f"{checkpoint['id']}/{number}" for number in range(len(payloads))]
    record = CheckpointRecord(
        id=checkpoint["id"],
        parent=parent,
        checkpoint=serializer.dump({name: part for name, part in checkpoint.items() if name != "channel_values"}),
        stored_metadata=as_stored(metadata, "the metadata of a checkpoint"),
        values={**values, **dict.fromkeys(changed, ids[-1] if ids else "")},
        lists=_look_further_back(lists, len(payloads)),
        last_item=ids[-1] if ids else "" if before is None else before.record.last_item,
    )
    entries = [NewEntry(content=payload, id=name) for payload, name in zip(payloads, ids, strict=True)]
    entries.append(NewEntry(content=data_of(record), id=record.id, turn_id=str(metadata.get("run_id") or "")))
    entries[0] = replace(entries[0], parent=None if before is None else before.record.id)
    return PlannedPut(entries, KnownCheckpoint(record, dict(checkpoint["channel_versions"]), contents))


def _is_unchanged(channel: str, before: KnownCheckpoint, checkpoint: Checkpoint, new_versions: ChannelVersions) -> bool:
    version = checkpoint["channel_versions"].get(channel)
    return (
        version is not None
        and channel not in new_versions
        and before.versions.get(channel) == version
        and (channel in before.record.values or channel in before.record.lists)
    )


def _add_list(
    serializer: Serializer, before: KnownCheckpoint | None, channel: str, value: list[Any]
) -> tuple[ListRecord, list[KnownItem], list[tuple[NumberedItem, Any]]]:
    """Return the record of a list, its items to compare the next one with, and those that are new, with their values."""
    known = None if before is None else before.record.lists.get(channel)
    old = before.lists[channel] if before is not None and known is not None else []
    count = 0 if known is None else known.count
    same = next(
        (number for number, (item, new) in enumerate(zip(old, value, strict=False)) if not item.is_same(new)), None
    )
    same = min(len(old), len(value)) if same is None else same
    stored = [serializer.dump_item(item) for item in value[same:]]
    contents = [item.content for item in old[:same]]
    contents += [serializer.content(item, one) for item, one in zip(value[same:], stored, strict=True)]
    plan = plan_list([item.content for item in old], () if known is None else known.ranges, count, contents)
    items = old[:same] + [
        KnownItem.of(item, content) for item, content in zip(value[same:], contents[same:], strict=True)
    ]
    added = [
        (
            NumberedItem(
                channel=channel,
                number=number,
                stored=stored[position - same] if position >= same else serializer.dump_item(value[position]),
            ),
            value[position],
        )
        for number, position in enumerate(plan.new, count)
    ]
    lookback = 0 if known is None or len(added) == len(value) else known.lookback
    return ListRecord(ranges=plan.ranges, count=count + len(added), lookback=lookback), items, added


def _look_further_back(lists: dict[str, ListRecord], added: int) -> dict[str, ListRecord]:
    return {
        channel: ListRecord(ranges=record.ranges, count=record.count, lookback=record.lookback + added)
        for channel, record in lists.items()
    }
