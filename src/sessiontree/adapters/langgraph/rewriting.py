"""Write a place again with some of its checkpoints only.

What stays is stored as it was, with its ids and the numbers of its items: savers of other processes may have it in mind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from sessiontree.adapters.langgraph.lists import numbers_in
from sessiontree.adapters.langgraph.reading import read_writes
from sessiontree.adapters.langgraph.records import (
    CheckpointRecord,
    Place,
    ValuesRecord,
    WritesRecord,
    data_of,
    record_of,
    values_in,
    writes_root,
)
from sessiontree.errors import ThreadNotFoundError
from sessiontree.journal import Changes, Journal, NewEntry
from sessiontree.model import Custom, Entry, Payload

__all__ = ["rewrite", "stored_writes"]


def rewrite(
    journal: Journal, place: Place, is_kept: Callable[[CheckpointRecord], bool], *, new_tree: str = ""
) -> Changes | None:
    """Return the changes that leave only some checkpoints of a place; ``None`` if all of them stay.

    They fail if somebody puts another checkpoint meanwhile, and with DuplicateEntryError if forks share what stays, unless it
    gets a ``new_tree``: ids are unique within a tree only.
    """
    try:
        thread = journal.thread(place.journal_thread)
        entries = journal.entries(thread.id)
    except ThreadNotFoundError:
        return None
    records = [record for entry in entries if (record := record_of(entry, CheckpointRecord)) is not None]
    kept = [record for record in records if is_kept(record)]
    if len(kept) == len(records):
        return None
    changes = Changes().delete_thread(thread.id, expect_leaf=thread.leaf)
    writes = [entry for record in kept for entry in _writes_of(journal, place, record)]
    if _has_thread(journal, place.writes_thread):
        changes.delete_thread(place.writes_thread)
    if kept:
        fields = place.fields
        fields["title"] = thread.title
        contents = _stored_again(entries, kept)
        if new_tree:
            changes.create_thread(new_tree).fork(new_tree, new_id=thread.id, **fields)
            changes.append(thread.id, *contents).delete_thread(new_tree)
        else:
            changes.create_thread(thread.id, contents=contents, **fields)
    if writes:
        changes.create_thread(place.writes_thread, contents=writes, **place.writes_fields)
    return changes


def stored_writes(checkpoint_id: str, writes: Iterable[WritesRecord]) -> list[NewEntry]:
    """Return the entries that hold the writes of a checkpoint."""
    entries = [NewEntry(content=data_of(record), parent=checkpoint_id) for record in writes]
    return [writes_root(checkpoint_id), *entries] if entries else []


def _writes_of(journal: Journal, place: Place, record: CheckpointRecord) -> list[NewEntry]:
    return stored_writes(record.id, read_writes(journal, place, record.id))


def _stored_again(entries: Sequence[Entry], kept: Iterable[CheckpointRecord]) -> list[NewEntry]:
    """The entries that checkpoints need, each under the nearest one before it that is needed too."""
    needs = _Needs(entries)
    for record in kept:
        needs.add(record)
    nearest: dict[str | None, str | None] = {None: None}
    stored: list[NewEntry] = []
    for entry in entries:
        parent = nearest.get(entry.parent)
        payload = needs.payload(entry)
        nearest[entry.id] = parent if payload is None else entry.id
        if payload is not None:
            stored.append(
                NewEntry(
                    content=payload, id=entry.id, parent=parent, created_ns=entry.created_ns, turn_id=entry.turn_id
                )
            )
    return stored


class _Needs:
    """What checkpoints need of the entries of their thread."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.id: entry for entry in entries}
        self._held = {entry.id: values_in(entry) for entry in self._entries.values()}
        self._whole: set[str] = set()
        self._items: set[tuple[str, str, int]] = set()
        """An entry, and the channel and number of an item in it."""
        self._values: set[tuple[str, str]] = set()
        """An entry, and the channel of a value in it."""

    def add(self, record: CheckpointRecord) -> None:
        """Note what a checkpoint needs: itself, its values, and its items, which are on its path."""
        self._whole.add(record.id)
        self._values.update((entry_id, channel) for channel, entry_id in record.values.items())
        wanted = {(channel, number) for channel, one in record.lists.items() for number in numbers_in(one.ranges)}
        entry = self._entries.get(record.id)
        while wanted and entry is not None:
            found = wanted.intersection((item.channel, item.number) for item in self._held[entry.id].items)
            self._items.update((entry.id, *item) for item in found)
            wanted -= found
            entry = None if entry.parent is None else self._entries.get(entry.parent)

    def payload(self, entry: Entry) -> Payload | None:
        """Return the part of an entry that is needed; ``None`` if nothing is."""
        if entry.id in self._whole:
            return entry.payload
        held = self._held[entry.id]
        items = tuple([item for item in held.items if (entry.id, item.channel, item.number) in self._items])
        values = {channel: raw for channel, raw in held.values.items() if (entry.id, channel) in self._values}
        if not items and not values:
            return None
        if isinstance(entry.payload, Custom) and record_of(entry, ValuesRecord) is not None:
            return data_of(replace(held, items=items, values=values))
        return entry.payload


def _has_thread(journal: Journal, thread_id: str) -> bool:
    try:
        journal.thread(thread_id)
    except ThreadNotFoundError:
        return False
    return True
