"""Write the checkpoints of a place again without some of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sessiontree.adapters.langgraph.reading import CheckpointReader, list_records, read_writes
from sessiontree.adapters.langgraph.records import CheckpointRecord, Place, WritesRecord, data_of, writes_root
from sessiontree.adapters.langgraph.values import KnownCheckpoint, Serializer, plan_put
from sessiontree.errors import ThreadNotFoundError
from sessiontree.journal import Changes, Journal, NewEntry

__all__ = ["rewrite", "stored_writes"]


def rewrite(
    journal: Journal, place: Place, serializer: Serializer, is_kept: Callable[[CheckpointRecord], bool]
) -> Changes | None:
    """Return the changes that leave only some checkpoints of a place; ``None`` if all of them stay.

    They fail if somebody puts another checkpoint meanwhile.
    """
    try:
        thread = journal.thread(place.journal_thread)
    except ThreadNotFoundError:
        return None
    records = list(list_records(journal, place, None))
    kept = [record for record in records if is_kept(record)]
    if len(kept) == len(records):
        return None
    changes = Changes().delete_thread(thread.id, expect_leaf=thread.leaf)
    writes = [entry for record in kept for entry in _writes_of(journal, place, record)]
    if _has_thread(journal, place.writes_thread):
        changes.delete_thread(place.writes_thread)
    if kept:
        contents = _stored_again(journal, place, serializer, records, kept)
        fields = place.fields
        fields["title"] = thread.title
        changes.create_thread(place.journal_thread, contents=contents, **fields)
    if writes:
        changes.create_thread(place.writes_thread, contents=writes, **place.writes_fields)
    return changes


def stored_writes(checkpoint_id: str, writes: Iterable[WritesRecord]) -> list[NewEntry]:
    """Return the entries that hold the writes of a checkpoint."""
    entries = [NewEntry(content=data_of(record), parent=checkpoint_id) for record in writes]
    return [writes_root(checkpoint_id), *entries] if entries else []


def _writes_of(journal: Journal, place: Place, record: CheckpointRecord) -> list[NewEntry]:
    return stored_writes(record.id, read_writes(journal, place, record.id))


def _stored_again(
    journal: Journal,
    place: Place,
    serializer: Serializer,
    records: Iterable[CheckpointRecord],
    kept: Iterable[CheckpointRecord],
) -> list[NewEntry]:
    """The entries of checkpoints, each under the nearest one before it that is kept too."""
    parents = {record.id: record.parent for record in records}
    reader = CheckpointReader(journal, place, serializer)
    loaded = [(record, reader.load(record)) for record in kept]
    stored: dict[str, KnownCheckpoint] = {}
    entries: list[NewEntry] = []
    for record, found in reversed(loaded):
        nearest = record.parent
        while nearest is not None and nearest not in stored:
            nearest = parents.get(nearest)
        before = None if nearest is None else stored[nearest]
        planned = plan_put(serializer, before, found.checkpoint, {}, parent=record.parent, metadata=record.metadata)
        entries += planned.entries
        stored[record.id] = planned.stored
    return entries


def _has_thread(journal: Journal, thread_id: str) -> bool:
    try:
        journal.thread(thread_id)
    except ThreadNotFoundError:
        return False
    return True
