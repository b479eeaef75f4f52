"""Read checkpoints of one thread of the journal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
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
    Place,
    Raw,
    ReadItem,
    ReadValues,
    ValuesRecord,
    WritesRecord,
    record_of,
    values_of,
)
from sessiontree.adapters.langgraph.values import KnownCheckpoint, KnownItem, Serializer
from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.journal import Journal

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
        self._items: list[ReadItem] = []
        self._ends: dict[str, int] = {}
        """How many of these items are on the path to an entry."""
        self._decoded: dict[int, Any] = {}
        """The values of items by their position."""
        self._values: dict[str, dict[str, Raw]] = {}

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
        lists = {
            channel: [
                KnownItem(self._serializer.content_of_read(self._items[position].stored)) for position in positions
            ]
            for channel, positions in self._positions(record).items()
        }
        return KnownCheckpoint(record, stored["channel_versions"], lists)

    def _channel_values(self, record: CheckpointRecord) -> dict[str, Any]:
        values = {channel: self._decode(positions) for channel, positions in self._positions(record).items()}
        missing = {entry_id for entry_id in record.values.values() if entry_id not in self._values}
        if missing:
            for entry in self._journal.find_entries(sorted(missing), thread_id=self._place.journal_thread):
                held = record_of(entry, ValuesRecord)
                self._values[entry.id] = {} if held is None else held.values
        for channel, entry_id in record.values.items():
            raw = self._values.get(entry_id, {}).get(channel)
            if raw is not None:
                values[channel] = self._serializer.load(raw)
        return values

    def _positions(self, record: CheckpointRecord) -> dict[str, list[int]]:
        """Where the items of each list of a checkpoint are. Erased ones are missing."""
        if not record.lists:
            return {}
        end = self._ends.get(record.last_item)  # known from a later checkpoint, if it is on the same path
        if end is None:
            end = self._read_items(record, max(one.lookback for one in record.lists.values()))
        found = self._numbered(end)
        if any(one.ranges[0][0] not in found.get(channel, {}) for channel, one in record.lists.items()):
            # Others append to this thread too, or the first item was erased.
            found = self._numbered(self._read_items(record, None))
        return {
            channel: [found[channel][number] for number in numbers_in(one.ranges) if number in found.get(channel, {})]
            for channel, one in record.lists.items()
        }

    def _numbered(self, end: int) -> dict[str, dict[int, int]]:
        """The positions of the items before ``end``, by channel and number."""
        numbered: dict[str, dict[int, int]] = {}
        for position, item in enumerate(islice(self._items, end)):
            numbered.setdefault(item.channel, {})[item.number] = position
        return numbered

    def _read_items(self, record: CheckpointRecord, limit: int | None) -> int:
        """Read the items on the path to a checkpoint, of its last ``limit`` entries, and return their number."""
        self._items, self._ends, self._decoded = [], {}, {}
        for stored in self._journal.path_bodies(self._place.journal_thread, record.id, types=ITEM_TYPES, limit=limit):
            match values_of(stored):
                case ReadItem() as item:
                    self._items.append(item)
                case ReadValues(values=values, items=items):
                    self._items += items
                    self._values[stored.id] = values
            self._ends[stored.id] = len(self._items)
        return len(self._items)

    def _decode(self, positions: list[int]) -> list[Any]:
        decoded = self._decoded
        new = [position for position in positions if position not in decoded]
        decoded.update(zip(new, self._serializer.load_items([self._items[at].stored for at in new]), strict=True))
        return [decoded[position] for position in positions]

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
