"""Read checkpoints of one thread of the journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    writes_sort_key,
)

from sessiontree.adapters.langgraph.lists import numbers_in
from sessiontree.adapters.langgraph.records import (
    ITEM_TYPES,
    CheckpointRecord,
    NumberedItem,
    Place,
    Raw,
    ValuesRecord,
    WritesRecord,
    items_of,
    record_of,
)
from sessiontree.adapters.langgraph.values import KnownCheckpoint, KnownItem, Serializer
from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.model import Entry

__all__ = ["CheckpointReader", "find_record", "latest_record", "list_records", "read_writes"]

_PAGE = 64


def find_record(journal: Journal, place: Place, checkpoint_id: str) -> CheckpointRecord | None:
    """Return a checkpoint by its id."""
    try:
        return record_of(journal.entry(place.journal_thread, checkpoint_id), CheckpointRecord)
    except (EntryNotFoundError, ThreadNotFoundError):
        return None


def latest_record(journal: Journal, place: Place) -> CheckpointRecord | None:
    """Return the last checkpoint on the path of the thread, so that a rewind of the thread is one of the graph."""
    limit = 1
    try:
        while True:
            events = journal.path(place.journal_thread, types=("event",), limit=limit)
            found = next((record for event in reversed(events) if (record := record_of(event, CheckpointRecord))), None)
            if found is not None or len(events) < limit:
                return found
            limit *= 8
    except ThreadNotFoundError:
        return None


def list_records(journal: Journal, place: Place, before: str | None) -> Iterator[CheckpointRecord]:
    """Return the checkpoints of every branch that are older than the one with the id ``before``, the newest first."""
    after = before if before is not None and find_record(journal, place, before) is not None else None
    while True:
        try:
            events = journal.entries(
                place.journal_thread, after=after, limit=_PAGE, newest_first=True, types=("event",)
            )
        except ThreadNotFoundError:
            return
        for event in events:
            record = record_of(event, CheckpointRecord)
            if record is not None and (before is None or record.id < before):
                yield record
        if len(events) < _PAGE:
            return
        after = events[-1].id


def read_writes(journal: Journal, place: Place, checkpoint_id: str) -> list[WritesRecord]:
    """Return the writes of the tasks of a checkpoint, in the order in which they were stored."""
    try:
        entries = journal.children(place.writes_thread, checkpoint_id)
    except (EntryNotFoundError, ThreadNotFoundError):
        return []
    return [record for entry in entries if (record := record_of(entry, WritesRecord)) is not None]


class CheckpointReader:
    """Loads checkpoints of one place. Neighbours share what was read and decoded: a list of them costs little more than one."""

    def __init__(self, journal: Journal, place: Place, serializer: Serializer) -> None:
        self._journal = journal
        self._place = place
        self._serializer = serializer
        self._window: list[Entry] = []
        self._values: dict[str, dict[str, Raw]] = {}
        self._decoded: dict[tuple[str, str, int], Any] = {}

    def load(self, record: CheckpointRecord) -> CheckpointTuple:
        """Return a checkpoint with its values and pending writes."""
        stored: dict[str, Any] = self._serializer.load(record.checkpoint)
        checkpoint = {**stored, "channel_values": self._channel_values(record)}
        parent = None if record.parent is None else self._place.config(record.parent)
        return CheckpointTuple(
            self._place.config(record.id),
            cast("Checkpoint", checkpoint),
            cast("CheckpointMetadata", record.metadata),
            parent,
            self._pending_writes(record.id),
        )

    def known(self, record: CheckpointRecord) -> KnownCheckpoint:
        """Return what the next checkpoint is compared with."""
        stored = self._serializer.load(record.checkpoint)
        items = self._items(record)
        serializer = self._serializer
        lists = {
            channel: [
                KnownItem(serializer.content(None if serializer.is_readable else serializer.load(item.raw), item.raw))
                for _, item in found
            ]
            for channel, found in items.items()
        }
        return KnownCheckpoint(record, stored["channel_versions"], lists)

    def _channel_values(self, record: CheckpointRecord) -> dict[str, Any]:
        values = {channel: self._decode(found) for channel, found in self._items(record).items()}
        missing = {entry_id for entry_id in record.values.values() if entry_id not in self._values}
        if missing:
            for entry in self._journal.find_entries(sorted(missing), thread_id=self._place.journal_thread):
                self._keep_values(entry)
        for channel, entry_id in record.values.items():
            raw = self._values.get(entry_id, {}).get(channel)
            if raw is not None:
                values[channel] = self._serializer.load(raw)
        return values

    def _items(self, record: CheckpointRecord) -> dict[str, list[tuple[str, NumberedItem]]]:
        """The items of each list of a checkpoint, with the ids of their entries. Erased ones are missing."""
        if not record.lists:
            return {}
        lookback = max(one.lookback for one in record.lists.values())
        found = self._numbered(self._window_of(record, lookback))
        if any(one.ranges[0][0] not in found.get(channel, {}) for channel, one in record.lists.items()):
            # Others append to this thread too, or the first item was erased.
            found = self._numbered(self._read_window(record, None))
        return {
            channel: [found[channel][number] for number in numbers_in(one.ranges) if number in found.get(channel, {})]
            for channel, one in record.lists.items()
        }

    def _numbered(self, window: list[Entry]) -> dict[str, dict[int, tuple[str, NumberedItem]]]:
        numbered: dict[str, dict[int, tuple[str, NumberedItem]]] = {}
        for entry in window:
            for item in items_of(entry):
                numbered.setdefault(item.channel, {})[item.number] = (entry.id, item)
        return numbered

    def _window_of(self, record: CheckpointRecord, lookback: int) -> list[Entry]:
        """The entries that hold the items: those that were read for a later checkpoint, if it is on the same path."""
        for position in range(len(self._window) - 1, -1, -1):
            if self._window[position].id == record.last_item:
                return self._window[: position + 1]
        return self._read_window(record, lookback)

    def _read_window(self, record: CheckpointRecord, limit: int | None) -> list[Entry]:
        self._window = self._journal.path(self._place.journal_thread, record.id, types=ITEM_TYPES, limit=limit)
        for entry in self._window:
            self._keep_values(entry)
        return self._window

    def _keep_values(self, entry: Entry) -> None:
        record = record_of(entry, ValuesRecord)
        if record is not None:
            self._values[entry.id] = record.values

    def _decode(self, found: list[tuple[str, NumberedItem]]) -> list[Any]:
        new = [one for one in found if _key(one) not in self._decoded]
        decoded = self._serializer.load_many([item.raw for _, item in new])
        self._decoded.update(zip(map(_key, new), decoded, strict=True))
        return [self._decoded[_key(one)] for one in found]

    def _pending_writes(self, checkpoint_id: str) -> list[PendingWrite]:
        """The writes of tasks. Of two with the same place the first one counts, unless the second one replaces it."""
        writes: dict[tuple[str, int], tuple[str, str, Raw]] = {}
        for record in read_writes(self._journal, self._place, checkpoint_id):
            for write in record.writes:
                value = (record.task_path, write.channel, write.raw)
                if record.is_replacing:
                    writes[record.task_id, write.index] = value
                else:
                    writes.setdefault((record.task_id, write.index), value)
        return [
            (task_id, channel, self._serializer.load(raw))
            for (task_id, _), (_, channel, raw) in sorted(
                writes.items(), key=lambda item: writes_sort_key(item[1][0], item[0][0], item[0][1])
            )
        ]


def _key(found: tuple[str, NumberedItem]) -> tuple[str, str, int]:
    entry_id, item = found
    return entry_id, item.channel, item.number
