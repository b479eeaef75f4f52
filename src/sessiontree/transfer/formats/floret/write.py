"""Write a floret store: every branch of every thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiontree.context import window_of
from sessiontree.journal import Journal
from sessiontree.model import (
    Compaction,
    Entry,
    ReasoningPart,
    TextPart,
    Thread,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import (
    ExportTarget,
    from_kept,
    joined,
    original_or,
    pages,
    without_foreign_origins,
)
from sessiontree.transfer.formats._records import ImportedRecord, unreadable_bytes
from sessiontree.transfer.formats.floret import records
from sessiontree.transfer.formats.floret.entries import set_window, wire_of
from sessiontree.transfer.formats.floret.records import folder_name, meta_of

__all__ = ["write"]

_SHOWN_PARTS = (TextPart, ReasoningPart, ToolCallPart, ToolResultPart)


def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
    for thread in threads:
        folder = _free_folder(thread, target)
        meta = original_or(thread.origin.get("thread.json"), meta_of(thread))
        target.write(f"{folder}/thread.json", [] if meta is None else [meta])
        if thread.leaf is not None or journal.entries(thread.id, limit=1):
            target.write(f"{folder}/entries.jsonl", joined(_lines(journal, thread, target)))
        lease = _lease(journal, thread)
        if lease is not None:
            target.write(f"{folder}/active_turn.json", [lease])
        target.threads.append(thread.id)


def _free_folder(thread: Thread, target: ExportTarget) -> str:
    """A folder name that is free: floret maps some ids to one name, but reads every folder whatever its name is."""
    wanted = str(thread.origin.get("folder") or folder_name(thread.origin.get("id", thread.id)))
    name = wanted if len(wanted.encode()) <= 255 and "/" not in wanted else f"thread-{len(target.threads) + 1}"
    number = 2
    while target.is_taken(name):
        name, number = f"{name}-{number}", number + 1
    return name


def _lines(journal: Journal, thread: Thread, target: ExportTarget) -> Iterator[tuple[bytes, bool]]:
    for entry in without_foreign_origins(pages(journal, thread.id), thread, "floret"):
        target.entries += 1
        has_no_end = "unended" in getattr(entry.payload, "origin", ())
        yield _line(journal, entry, thread, target), has_no_end


def _line(journal: Journal, entry: Entry, thread: Thread, target: ExportTarget) -> bytes:
    broken = unreadable_bytes(entry.payload)
    if broken is not None:
        return broken
    origin: dict[str, Any] = getattr(entry.payload, "origin", {})
    if "line" in origin and entry.thread_id == thread.id:
        return from_kept(origin["line"])
    native_id = str(thread.origin.get("id", thread.id))
    line = wire_of(ImportedRecord(entry.payload, entry.id, entry.created_ns, entry.parent, entry.turn_id), native_id)
    if isinstance(entry.payload, Compaction) and (entry.payload.reverts or entry.payload.tail_after_entry_id):
        set_window(line, window_of(journal.path(thread.id, entry.id)))
    _note_losses(entry, target)
    return records.encode_entry(line)


def _note_losses(entry: Entry, target: ExportTarget) -> None:
    """Name what floret does not show of a message. The whole of it is in the metadata of the exported entry."""
    parts = entry.message.parts if entry.message else ()
    calls = sum(isinstance(part, ToolCallPart) for part in parts)
    results = sum(isinstance(part, ToolResultPart) for part in parts)
    others = sum(not isinstance(part, _SHOWN_PARTS) for part in parts)
    if max(calls, results) > 1:
        problem = f"has {calls or results} tool {'calls' if calls else 'results'}, a message of floret has one"
    elif others:
        problem = f"has {others} parts, such as images, that a message of floret cannot have"
    else:
        return
    target.note("loss", f"entry {entry.id!r} {problem}; all are in its metadata", thread_id=entry.thread_id)


def _lease(journal: Journal, thread: Thread) -> bytes | None:
    lease = journal.active_lease(thread.id)
    if lease is not None:
        created = _go.text(lease.created_ns)
        held = records.TurnLease(thread_id=thread.id, turn_id=lease.turn_id, owner_id=lease.owner, created_at=created)
        return _go.indented(_go.encode(held))
    kept = thread.origin.get("lease")
    return None if kept is None else from_kept(kept)
