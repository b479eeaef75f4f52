"""Erase the contents of entries: the only verbs besides deletes that remove something for good."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.context.answers import saves_of
from sessiontree.context.projection import window_of
from sessiontree.errors import StaleLeafError
from sessiontree.journal.operations.entries import Content, NewEntry, draft_of, labels_of, texts_of
from sessiontree.journal.operations.reads import all_threads
from sessiontree.journal.operations.requests import Operation, Runtime
from sessiontree.model import Compaction, Entry, Label, Payload, Queued, Thread, ThreadQuery
from sessiontree.stores.commands import Draft, EraseContents, Erased
from sessiontree.stores.queries import ReadEntries, ReadPath, ReadThread

__all__ = ["erase", "erase_contents", "prune", "unreached"]


def erase_contents(
    runtime: Runtime, thread_id: str, entry_ids: Iterable[str], content: Content, *, expect_leaf: str | None
) -> Operation[Erased]:
    """Erase the contents of entries that no other thread sees for good, and append an entry, all in one commit."""
    erased: Erased = yield EraseContents(
        thread_id=thread_id, entries=tuple(entry_ids), draft=draft_of(runtime, content), expect_leaf=expect_leaf
    )
    return erased


def erase(
    runtime: Runtime, thread_id: str, entry_ids: Iterable[str], *, expect_leaf: str | UnsetType | None = UNSET
) -> Operation[Erased]:
    """Erase the contents of entries for good, in every thread that shows them, and what was saved of streamed answers.

    A result that a compaction cut has its whole text in an artifact, which goes with the compactions that name it.
    """
    names = texts_of(entry_ids, "entry_ids")
    events: list[Entry] = yield ReadEntries(thread_id=thread_id, types=frozenset({"event"}))
    saves = [entry.id for entry in saves_of(events, names)]
    erased: Erased = yield EraseContents(
        thread_id=thread_id, entries=(*names, *saves), expect_leaf=expect_leaf, in_all_threads=True
    )
    thread: Thread = yield ReadThread(thread_id=thread_id)
    family = yield from all_threads(ThreadQuery(tree=thread.tree, is_archived=None, order="created"))
    count = erased.entries
    for member in family:
        count += yield from _erase_cuts(runtime, member.id, frozenset(names))
    return replace(erased, entries=count)


def _erase_cuts(runtime: Runtime, thread_id: str, entry_ids: Collection[str]) -> Operation[int]:
    """Erase the compactions that cut results of these entries. The one in force follows again without the cut."""
    while True:
        found: list[Entry] = yield ReadEntries(thread_id=thread_id, types=frozenset({"compaction"}))
        cutting = tuple(entry.id for entry in found if _has_cuts(entry.payload, entry_ids))
        if not cutting:
            return 0
        thread: Thread = yield ReadThread(thread_id=thread_id)
        path: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=thread.leaf)
        draft = _without_cuts(runtime, path, entry_ids)
        try:
            erased: Erased = yield EraseContents(
                thread_id=thread_id, entries=cutting, draft=draft, expect_leaf=thread.leaf, in_all_threads=True
            )
        except StaleLeafError:
            continue
        return erased.entries


def _has_cuts(payload: Payload, entry_ids: Collection[str]) -> bool:
    return isinstance(payload, Compaction) and any(cut.entry_id in entry_ids for cut in payload.cut_results)


def _without_cuts(runtime: Runtime, path: Sequence[Entry], entry_ids: Collection[str]) -> Draft | None:
    boundary = window_of(path).boundary
    if boundary is None or not isinstance(boundary.payload, Compaction) or not _has_cuts(boundary.payload, entry_ids):
        return None
    cuts = tuple(cut for cut in boundary.payload.cut_results if cut.entry_id not in entry_ids)
    # The thread's count of tokens has what the erased compaction dropped.
    again = replace(boundary.payload, id=runtime.ids.new(), cut_results=cuts, dropped_tokens=0)
    return draft_of(runtime, NewEntry(content=again, id=again.id))


def prune(thread_id: str) -> Operation[Erased]:
    """Erase the contents of the entries that no leaf and no label reaches."""
    while True:
        thread: Thread = yield ReadThread(thread_id=thread_id)
        found: list[Entry] = yield ReadEntries(thread_id=thread_id)
        path: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=thread.leaf)
        gone = unreached(found, {entry.id for entry in path})
        try:
            erased: Erased = yield EraseContents(thread_id=thread_id, entries=gone, expect_leaf=thread.leaf)
        except StaleLeafError:
            continue
        return erased


def unreached(entries: Sequence[Entry], reached: set[str]) -> tuple[str, ...]:
    """Return the ids of entries that are neither reached, nor labels or queued, nor on the path to a labelled entry."""
    parents = {entry.id: entry.parent for entry in entries}
    for place in labels_of(entries).values():
        above: str | None = place
        while above is not None and above not in reached:
            reached.add(above)
            above = parents.get(above)
    kept = (Label, Queued)
    return tuple(entry.id for entry in entries if entry.id not in reached and not isinstance(entry.payload, kept))
