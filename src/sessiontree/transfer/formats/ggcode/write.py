"""Write ggcode sessions. They are flat: the active path is written, other branches are counted as losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sessiontree.context import window_of
from sessiontree.journal import Journal
from sessiontree.model import Compaction, Entry, Thread
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import (
    ExportTarget,
    from_kept,
    joined,
    note_other_branches,
    stem_of,
    without_foreign_origins,
)
from sessiontree.transfer.formats._records import unreadable_bytes
from sessiontree.transfer.formats.ggcode import records
from sessiontree.transfer.formats.ggcode.read import INDEX, index_bytes, meta_hash, meta_record
from sessiontree.transfer.formats.ggcode.records import head_of, wire_message, wire_record

__all__ = ["write"]


def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
    rows: list[tuple[Thread, int]] = []
    for thread in threads:
        path = list(without_foreign_origins(journal.path(thread.id), thread, "ggcode"))
        session = _Session(thread, path)
        lines = list(session.lines())
        _note_losses(journal, thread, path, session, target)
        target.write(f"{_free_stem(thread, target)}.jsonl", joined(lines))
        target.entries += len(lines)
        target.threads.append(thread.id)
        rows.append((thread, session.message_count()))
    target.write(INDEX, [index_bytes(rows)])


def _free_stem(thread: Thread, target: ExportTarget) -> str:
    return target.free_stem(stem_of(str(thread.origin.get("id", thread.id))), ".jsonl")


class _Session:
    """A path as ggcode writes it."""

    def __init__(self, thread: Thread, path: Sequence[Entry]) -> None:
        self._thread = thread
        self._path = path
        self._id = str(thread.origin.get("id", thread.id))
        self._said: dict[str, records.GgcodeMessage] = {}
        self._messages: list[tuple[str, records.GgcodeMessage]] = []
        self.kinds_left_out: set[str] = set()

    def lines(self) -> Iterator[tuple[bytes, bool]]:
        is_imported = self._thread.origin.get("format") == "ggcode"
        if not is_imported:
            yield _go.encode_plain(meta_record(self._thread)), False
        for entry in self._path:
            line = self._line(entry)
            if line is not None:
                yield line
        if is_imported and self._thread.origin.get("meta_hash") != meta_hash(self._thread):
            yield _go.encode_plain(meta_record(self._thread)), False

    def message_count(self) -> int:
        """The number of messages for the index; the imported number if nothing was added since."""
        known = self._thread.origin.get("index", {})
        if known and self._thread.origin.get("leaf") == self._thread.leaf:
            return int(known.get("messages", 0))
        return len(self._messages)

    def _line(self, entry: Entry) -> tuple[bytes, bool] | None:
        origin: dict[str, Any] = getattr(entry.payload, "origin", {})
        has_no_end = "unended" in origin
        broken = unreadable_bytes(entry.payload)
        if broken is not None:
            return broken, has_no_end
        record = self._record(entry)
        if "line" in origin:
            return from_kept(origin["line"]), has_no_end
        return None if record is None else (_go.encode_plain(record), False)

    def _record(self, entry: Entry) -> records.GgcodeRecord | None:
        if isinstance(entry.payload, Compaction):
            return self._checkpoint(entry, entry.payload)
        record = wire_record(entry.payload, self._id)
        if record is None:
            self.kinds_left_out.add(entry.type)
        elif record.message is not None:
            assert entry.message is not None
            self._said[entry.id] = wire_message(entry.message)
            self._messages.append((entry.id, self._said[entry.id]))
        return record

    def _checkpoint(self, entry: Entry, compaction: Compaction) -> records.GgcodeRecord:
        so_far = self._path[: next(place for place, one in enumerate(self._path) if one.id == entry.id) + 1]
        tail = {kept.id for kept in window_of(so_far).tail}
        kept = [(entry_id, message) for entry_id, message in self._said.items() if entry_id in tail]
        head = [("", message) for message in head_of(compaction)]
        self._messages = [*head, *kept]
        record = records.bare("checkpoint", self._id)
        record.checkpoint_messages = [message for _, message in self._messages]
        record.checkpoint_tokens = compaction.tokens_after
        return record


def _note_losses(
    journal: Journal, thread: Thread, path: Sequence[Entry], session: _Session, target: ExportTarget
) -> None:
    note_other_branches(journal, thread, path, target)
    if session.kinds_left_out - {"custom"}:
        kinds = ", ".join(sorted(session.kinds_left_out))
        target.note("loss", f"ggcode cannot hold entries of type {kinds}", thread_id=thread.id)
