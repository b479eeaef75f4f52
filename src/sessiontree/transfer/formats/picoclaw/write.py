"""Write picoclaw sessions. They are flat: the active path is written, other branches are counted as losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sessiontree.context import window_of
from sessiontree.journal import Journal
from sessiontree.model import Compaction, Entry, Thread
from sessiontree.model.builders import ERASED, STORAGE_COMPACTED
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import (
    ExportTarget,
    from_kept,
    joined,
    note_other_branches,
    original_or,
    stem_of,
    without_foreign_origins,
)
from sessiontree.transfer.formats._records import unreadable_bytes
from sessiontree.transfer.formats.picoclaw import records
from sessiontree.transfer.formats.picoclaw.records import legacy_of, meta_of, wire_of

__all__ = ["write"]


class _LoggedPath(NamedTuple):
    """A path as picoclaw's files hold it."""

    lines: list[tuple[bytes, bool]]
    skip: int
    summary: str


def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
    for thread in threads:
        path = list(without_foreign_origins(journal.path(thread.id), thread, "picoclaw"))
        _note_losses(journal, thread, path, target)
        log = _log(path)
        target.entries += len(log.lines)
        target.threads.append(thread.id)
        if "legacy" in thread.origin and not log.skip:
            _write_legacy(thread, log, target)
        else:
            _write_log(thread, log, target)


def _write_log(thread: Thread, log: _LoggedPath, target: ExportTarget) -> None:
    stem = _free_stem(thread, target)
    if log.lines or thread.origin.get("has_lines", True):
        target.write(f"{stem}.jsonl", joined(log.lines))
    count = len(log.lines)
    origin = thread.origin
    if log.skip == min(origin.get("skip", -1), count) and log.summary == origin.get("summary"):
        meta = meta_of(thread, origin["skip"], origin["count"], log.summary)
    else:
        meta = meta_of(thread, log.skip, count, log.summary)
    # The older layout cannot skip messages, so a session that was truncated here leaves it.
    body = meta if "legacy" in origin else original_or(origin.get("meta"), meta)
    if body is not None:
        target.write(f"{stem}.meta.json", [body])


def _write_legacy(thread: Thread, log: _LoggedPath, target: ExportTarget) -> None:
    messages = [_go.as_type(line, records.PicoclawMessage) for line, _ in log.lines]
    body = original_or(thread.origin.get("meta"), legacy_of(thread, messages, log.summary))
    name = f"{stem_of(str(thread.origin['legacy']).removesuffix('.json'))}.json"
    target.write(name, [body or b""])


def _free_stem(thread: Thread, target: ExportTarget) -> str:
    wanted = stem_of(str(thread.origin.get("file") or thread.origin.get("key", thread.id)))
    stem = target.free_stem(wanted, ".jsonl", ".meta.json")
    if stem != wanted:
        problem = f"another key has the same file name {wanted!r}; picoclaw cannot tell them apart"
        target.note("loss", problem, thread_id=thread.id)
    return stem


def _log(path: Sequence[Entry]) -> _LoggedPath:
    window = window_of(path)
    kept = {entry.id for entry in (*window.tail, *window.after)}
    lines: list[tuple[bytes, bool]] = []
    skip = 0
    for entry in path:
        line = _line(entry)
        if line is not None:
            lines.append(line)
            skip += entry.id not in kept
    boundary = window.boundary.payload if window.boundary else None
    return _LoggedPath(lines, skip, boundary.summary if isinstance(boundary, Compaction) else "")


def _line(entry: Entry) -> tuple[bytes, bool] | None:
    origin: dict[str, Any] = getattr(entry.payload, "origin", {})
    has_no_end = "unended" in origin
    broken = unreadable_bytes(entry.payload)
    if broken is not None:
        return broken, has_no_end
    if "line" in origin:
        return from_kept(origin["line"]), has_no_end
    message = wire_of(entry.payload)
    return None if message is None else (_go.encode(message), False)


def _note_losses(journal: Journal, thread: Thread, path: Sequence[Entry], target: ExportTarget) -> None:
    note_other_branches(journal, thread, path, target)
    lost = [entry for entry in path if _line(entry) is None and entry.payload not in (ERASED, STORAGE_COMPACTED)]
    kinds = sorted({entry.type for entry in lost} - {"compaction"})
    if kinds:
        target.note("loss", f"picoclaw cannot hold entries of type {', '.join(kinds)}", thread_id=thread.id)
