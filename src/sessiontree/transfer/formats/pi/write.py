"""Write pi's session files, version 3: every branch of the tree, the active leaf last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sessiontree.journal import Journal
from sessiontree.model import Entry, Thread
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import ExportTarget, pages, stem_of, without_foreign_origins
from sessiontree.transfer.formats._records import unreadable_bytes
from sessiontree.transfer.formats.pi.records import wire_entry

__all__ = ["write"]


def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
    for thread in threads:
        target.write(f"{_free_stem(thread, target)}.jsonl", _lines(journal, thread, target))
        target.threads.append(thread.id)


def _free_stem(thread: Thread, target: ExportTarget) -> str:
    moment = thread.created_at.strftime("%Y-%m-%dT%H-%M-%S-") + f"{thread.created_ns // 1_000_000 % 1000:03}Z"
    return target.free_stem(stem_of(str(thread.origin.get("file") or f"{moment}_{thread.id}")), ".jsonl")


def _lines(journal: Journal, thread: Thread, target: ExportTarget) -> Iterator[bytes]:
    yield _dumped(_header(thread))
    last: bytes | None = None
    for entry in without_foreign_origins(pages(journal, thread.id), thread, "pi"):
        target.entries += 1
        line = _line(entry)
        if entry.id == thread.leaf:
            last = line
        else:
            yield line
    if last is not None:
        yield last


def _line(entry: Entry) -> bytes:
    broken = unreadable_bytes(entry.payload)
    return _dumped(wire_entry(entry)) if broken is None else broken + b"\n"


def _header(thread: Thread) -> dict[str, Any]:
    known: dict[str, Any] = dict(thread.origin.get("header") or {})
    known |= {"type": "session", "version": 3, "id": known.get("id") or thread.id}
    known.setdefault("timestamp", _go.text(thread.created_ns))
    known["cwd"] = thread.workspace
    return {name: known[name] for name in ("type", "version", "id", "timestamp", "cwd")} | known


def _dumped(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
