"""Read as much of a path as its context depends on, however long the conversation was before its compaction."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from sessiontree.context.needed import needed_of
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Compaction, Entry
from sessiontree.stores.queries import ReadEntries, ReadEntriesById, ReadPath

__all__ = ["read_window"]

_FIRST_READ = 512
_GROWTH = 4


def read_window(thread_id: str, leaf: str | UnsetType | None = UNSET) -> Operation[list[Entry]]:
    """Return a path that has the same context as the whole one; the whole one if it is short, or was never compacted."""
    limit = _FIRST_READ
    while True:
        end: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=leaf, limit=limit)
        if not end or end[0].parent is None:
            return end
        leaf = end[-1].id
        needed = needed_of(end)
        if needed is not None:
            earlier: list[Entry] = yield ReadEntriesById(entry_ids=needed.earlier, thread_id=thread_id)
            path = needed.path(earlier)
            if path is not None:
                return path
        is_compacted = any(isinstance(entry.payload, Compaction) for entry in end)
        if needed is not None or not (is_compacted or (yield from _has_compaction(thread_id))):
            whole: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=leaf)
            return whole
        limit *= _GROWTH


def _has_compaction(thread_id: str) -> Operation[bool]:
    found: list[Entry] = yield ReadEntries(
        thread_id=thread_id, types=frozenset({"compaction"}), newest_first=True, limit=1
    )
    return bool(found)
