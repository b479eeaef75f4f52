"""Read pi's session files: one file, or every file below a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessiontree.model import Thread, ThreadFields, ThreadInfo
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import Line, head_of, is_plain, lines_of, modified_ns, size_of
from sessiontree.transfer.formats._records import (
    ImportedRecord,
    ImportedSession,
    Tally,
    chain_id,
    unreadable,
    whole_number,
    with_origin,
)
from sessiontree.transfer.formats.pi.records import payload_of

__all__ = ["detect", "sessions", "size"]


Json = dict[str, Any]

_NEWEST = 3
_HEADER = re.compile(rb'\s*\{[^{]*"type"\s*:\s*"session"')


def detect(source: Path) -> bool:
    return any(_is_ours(path) for path in _files(source))


def size(source: Path) -> int:
    return size_of(*_files(source))


def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
    for path in _files(source):
        yield _File(path, tally).session()


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
    elif source.is_dir():
        yield from sorted(path for path in source.rglob("*.jsonl") if is_plain(path))


def _is_ours(path: Path) -> bool:
    return _HEADER.match(head_of(path, 64 * 1024).split(b"\n", 1)[0]) is not None


class _File:
    """One session."""

    def __init__(self, path: Path, tally: Tally) -> None:
        self._path = path
        self._tally = tally
        self._header, self._has_header = self._read_header()
        self._by_index: list[str] = []
        self._title = ""
        self._last_ns = 0
        version = self._header.get("version", 1)
        number = whole_number(version)
        if number is None or number > _NEWEST:
            problem = f"version {version!r} of the format is not known; entries of known types were read"
            tally.note("hint", str(path), problem)

    def session(self) -> ImportedSession:
        header = self._header
        modified = modified_ns(self._path)
        name = self._path.name.removesuffix(".jsonl")
        created_ns = _go.nanoseconds(_str(header.get("timestamp"))) or modified
        parent = _str(header.get("parentSession") or header.get("branchedFrom"))
        return ImportedSession(
            id=_str(header.get("id")) or name.rpartition("_")[2],
            place=str(self._path),
            created_ns=created_ns,
            updated_ns=created_ns,
            fields={
                "workspace": _str(header.get("cwd")),
                "parent_thread": _id_in_name(parent),
                "origin": {"header": header, "file": name},
            },
            items=self._items(),
            finish=self._finish,
            has_head=self._has_header,
        )

    def _read_header(self) -> tuple[Json, bool]:
        for line in lines_of(self._path, Tally()):
            try:
                found = _go.decode(line.body)
            except _go.JsonError:
                continue
            if isinstance(found, dict) and found.get("type") == "session":
                return found, True
            break
        self._tally.note("damage", str(self._path), "the file has no header")
        return {}, False

    def _items(self) -> Iterator[ImportedRecord]:
        previous = ""
        is_header_due = self._has_header
        for line in lines_of(self._path, self._tally):
            if line.body.isspace():
                continue
            try:
                wire = _object(line.body)
            except _go.JsonError as error:
                item = self._broken(line, str(error), previous)
            else:
                if is_header_due and wire.get("type") == "session":
                    is_header_due = False
                    self._by_index.append("")
                    continue
                item = self._item(wire, line, previous)
            self._by_index.append(item.id)
            previous = item.id
            yield item

    def _broken(self, line: Line, problem: str, previous: str) -> ImportedRecord:
        self._tally.note("damage", str(self._path), problem, offset=line.offset, size=len(line.body))
        broken = unreadable(line.body, problem, is_ended=line.is_ended)
        return ImportedRecord(broken, chain_id(previous, line.body), self._last_ns)

    def _item(self, wire: Json, line: Line, previous: str) -> ImportedRecord:
        time_text = _str(wire.get("timestamp"))
        created_ns = _go.nanoseconds(time_text)
        self._last_ns = created_ns or self._last_ns
        if "firstKeptEntryIndex" in wire:
            self._keep_index(wire)
        payload = payload_of(wire)
        if created_ns is None:
            payload = with_origin(payload, time=wire.get("timestamp"))
        if isinstance(payload, ThreadInfo):
            self._title = payload.text.strip()
        entry_id = _str(wire.get("id"))
        if not entry_id:
            return ImportedRecord(payload, chain_id(previous, line.body), self._last_ns)
        return ImportedRecord(payload, entry_id, self._last_ns, _str(wire.get("parentId")) or None)

    def _keep_index(self, wire: Json) -> None:
        """Give a compaction of version 1, which has the line number of the first kept entry, that entry's id."""
        index = whole_number(wire["firstKeptEntryIndex"])
        if wire.get("type") == "compaction" and index is not None and "firstKeptEntryId" not in wire:
            following = [entry_id for entry_id in self._by_index[max(index, 0) :] if entry_id]
            wire["firstKeptEntryId"] = following[0] if following else ""

    def _finish(self, thread: Thread) -> ThreadFields:
        return {"title": self._title} if self._title and not thread.title else {}


def _object(body: bytes) -> Json:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        value = _go.decode(body)
    if not isinstance(value, dict):
        raise _go.JsonError("the line is not a JSON object")
    return value


def _id_in_name(path: str) -> str:
    """The session id at the end of a file's name."""
    name = re.split(r"[/\\]", path)[-1].removesuffix(".jsonl")
    return name.rpartition("_")[2]


def _str(value: Any) -> str:
    return value if isinstance(value, str) else ""
