"""Write a floret store: every branch of every thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiontree.journal import Journal
from sessiontree.model import Entry, Thread, ToolCallPart, encode_payload
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
from sessiontree.transfer.formats.floret.entries import OURS, wire_of
from sessiontree.transfer.formats.floret.records import folder_name, meta_of

__all__ = ["write"]


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
    native_id = str(thread.origin.get("id", thread.id))
    for entry in without_foreign_origins(pages(journal, thread.id), thread, "floret"):
        target.entries += 1
        has_no_end = "unended" in getattr(entry.payload, "origin", ())
        yield _line(entry, native_id, is_own=entry.thread_id == thread.id, target=target), has_no_end


def _line(entry: Entry, native_id: str, *, is_own: bool, target: ExportTarget) -> bytes:
    broken = unreadable_bytes(entry.payload)
    if broken is not None:
        return broken
    origin: dict[str, Any] = getattr(entry.payload, "origin", {})
    if "line" in origin and is_own:
        return from_kept(origin["line"])
    line = wire_of(ImportedRecord(entry.payload, entry.id, entry.created_ns, entry.parent, entry.turn_id), native_id)
    _note_losses(entry, line, target)
    return records.encode_entry(line)


def _note_losses(entry: Entry, line: records.FloretEntry, target: ExportTarget) -> None:
    message = entry.message
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)] if message else []
    if len(calls) > 1 or (message and len(message.tool_results) > 1):
        line.metadata = dict(sorted({**line.metadata, OURS: _payload_text(entry)}.items()))
        problem = (
            f"entry {entry.id!r} has {len(calls)} tool calls, a message of floret has one; all are in its metadata"
        )
        target.note("loss", problem, thread_id=entry.thread_id)


def _payload_text(entry: Entry) -> str:
    return encode_payload(entry.payload).decode()


def _lease(journal: Journal, thread: Thread) -> bytes | None:
    lease = journal.active_lease(thread.id)
    if lease is not None:
        created = _go.text(lease.created_ns)
        held = records.TurnLease(thread_id=thread.id, turn_id=lease.turn_id, owner_id=lease.owner, created_at=created)
        return _go.indented(_go.encode(held))
    kept = thread.origin.get("lease")
    return None if kept is None else from_kept(kept)
