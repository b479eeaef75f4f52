"""Read a folder of picoclaw sessions, the newer JSONL files and the older JSON files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from sessiontree.model import Compaction, Payload, Thread, ThreadFields, json_decoder
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import (
    Line,
    as_kept,
    head_of,
    keep_original,
    lines_of,
    modified_ns,
    plain_files,
    size_of,
    stem_of,
    whole_of,
)
from sessiontree.transfer.formats._records import (
    ImportedRecord,
    ImportedSession,
    LineIds,
    Tally,
    chain_id,
    unreadable,
    with_origin,
)
from sessiontree.transfer.formats.picoclaw import records
from sessiontree.transfer.formats.picoclaw.records import legacy_of, meta_of, payload_of, wire_of

__all__ = ["detect", "sessions", "size"]


_LINES, _META, _LEGACY = ".jsonl", ".meta.json", ".json"
_HEAD = 64 * 1024
_decode = json_decoder(records.PicoclawMessage).decode


def detect(source: Path) -> bool:
    """Whether the source is a folder with a meta file or an older session of picoclaw.

    Lines of messages alone are no evidence: many tools write them.
    """
    if not source.is_dir():
        return False
    return any(_is_meta(path) for path in plain_files(source, "*" + _META)) or any(
        _is_legacy(path) for path in _legacy_files(source)
    )


def size(source: Path) -> int:
    return size_of(*plain_files(source, "*" + _LINES), *_legacy_files(source))


def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
    for path in _legacy_files(source, tally):
        session = _legacy(path, tally) if not _is_foreign_document(path) and tally.claim(path) else None
        if session is not None:
            yield session
    files = (*plain_files(source, "*" + _LINES, tally), *plain_files(source, "*" + _META))
    for stem in sorted(set(map(_stem, files))):
        log, meta = source / (stem + _LINES), source / (stem + _META)
        if (meta.is_file() or not _is_foreign_log(log)) and tally.claim(log):
            tally.claim(meta)
            yield _MessageLog(source, stem, tally).session()


def _legacy_files(source: Path, tally: Tally | None = None) -> list[Path]:
    return [path for path in plain_files(source, "*" + _LEGACY, tally) if not path.name.endswith(_META)]


def _stem(path: Path) -> str:
    return path.name.removesuffix(_LINES).removesuffix(_META)


def _is_meta(path: Path) -> bool:
    return {"key", "skip", "count"} <= _first_object(path).keys()


def _is_legacy(path: Path) -> bool:
    head = head_of(path, _HEAD).lstrip()
    return head.startswith(b"{") and all(name in head for name in (b'"key"', b'"messages"'))


def _is_foreign_document(path: Path) -> bool:
    """Whether a file holds JSON of another shape; a damaged file may be one of ours."""
    head = head_of(path, _HEAD).lstrip()
    is_known = b'"key"' in head or all(name in head for name in (b'"messages"', b'"created"', b'"updated"'))
    return head.startswith((b"{", b"[")) and not is_known


def _is_foreign_log(path: Path) -> bool:
    first = _first_object(path)
    return bool(first) and "role" not in first


def _first_object(path: Path) -> dict[str, Any]:
    """The JSON object of a file, or of its first line; empty if there is none."""
    head = head_of(path, _HEAD).strip()
    for body in (head, head.partition(b"\n")[0]):
        with suppress(_go.JsonError):
            found = _go.decode(body)
            return found if isinstance(found, dict) else {}
    return {}


class _MessageLog:
    """A session: a log of messages with its meta file."""

    def __init__(self, folder: Path, stem: str, tally: Tally) -> None:
        self._path = folder / (stem + _LINES)
        self._meta_path = folder / (stem + _META)
        self._stem = stem
        self._tally = tally
        self._original: bytes | None = None
        self._has_meta = self._meta_path.is_file()
        self._meta = self._read_meta()
        self._time_ns = _go.nanoseconds(self._meta.updated_at) or modified_ns(self._path, self._meta_path)

    def session(self) -> ImportedSession:
        key = self._meta.key or self._stem
        origin: dict[str, Any] = {"key": key, "has_lines": self._path.is_file()}
        if self._stem != stem_of(key):
            origin["file"] = self._stem
        return ImportedSession(
            id=key,
            place=str(self._path),
            created_ns=_go.nanoseconds(self._meta.created_at) or self._time_ns,
            updated_ns=self._time_ns,
            fields={"title": key, "origin": origin},
            items=self._items(),
            finish=self._finish,
            has_head=self._has_meta,
        )

    def _read_meta(self) -> records.Meta:
        if not self._has_meta:
            return records.Meta()
        self._original = whole_of(self._meta_path, self._tally)
        if self._original is None:
            return records.Meta()
        try:
            return _go.as_type(self._original, records.Meta)
        except _go.JsonError as error:
            self._tally.note("damage", str(self._meta_path), f"the metadata cannot be read: {error}")
            return records.Meta()

    def _items(self) -> Iterator[ImportedRecord]:
        """Every line, then a compaction for the lines that the meta file skips, with its summary."""
        ids, first_kept = LineIds(self._stem), ""
        lines = lines_of(self._path, self._tally) if self._path.is_file() else ()
        for number, line in enumerate(lines):
            entry_id = ids.next(line.body)
            if number == max(self._meta.skip, 0):
                first_kept = entry_id
            yield ImportedRecord(self._payload(line), entry_id, self._time_ns)
        if self._meta.skip > 0 or self._meta.summary:
            yield self._cut(ids.last, first_kept)

    def _cut(self, previous: str, first_kept: str) -> ImportedRecord:
        facts = msgspec.json.encode([first_kept, self._meta.summary])
        entry_id = chain_id(previous, facts)
        cut = Compaction(
            id=entry_id, summary=self._meta.summary, first_kept_entry_id=first_kept or entry_id, strategy="truncate"
        )
        return ImportedRecord(cut, entry_id, self._time_ns)

    def _payload(self, line: Line) -> Payload:
        try:
            payload = payload_of(_decode(line.body))
            again = wire_of(payload)
            if again is not None and line.is_ended and _go.encode(again) == line.body:
                return payload
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass
        return self._loose(line)

    def _loose(self, line: Line) -> Payload:
        end: dict[str, Any] = {} if line.is_ended else {"unended": True}
        try:
            payload = payload_of(_go.as_type(line.body, records.PicoclawMessage))
            return with_origin(payload, line=as_kept(line.body), **end)
        except _go.JsonError as error:
            self._tally.note("damage", str(self._path), str(error), offset=line.offset, size=len(line.body))
            return unreadable(line.body, str(error), is_ended=line.is_ended)

    def _finish(self, thread: Thread) -> ThreadFields:
        origin = {name: value for name, value in thread.origin.items() if name != "meta"}
        origin["skip"], origin["count"], origin["summary"] = self._meta.skip, self._meta.count, self._meta.summary
        kept = keep_original(self._original, meta_of(thread, self._meta.skip, self._meta.count, self._meta.summary))
        return {"origin": origin | ({"meta": kept} if kept else {})}


def _legacy(path: Path, tally: Tally) -> ImportedSession | None:
    body = whole_of(path, tally)
    if body is None:
        return None
    tally.advance(len(body))
    try:
        found = _go.as_type(body, records.LegacySession)
    except _go.JsonError as error:
        tally.note("damage", str(path), f"the session cannot be read: {error}", size=len(body))
        return None
    updated_ns = _go.nanoseconds(found.updated) or modified_ns(path)
    key = found.key or path.name.removesuffix(_LEGACY)

    def finish(thread: Thread) -> ThreadFields:
        computed = legacy_of(thread, found.messages, found.summary)
        kept = keep_original(body, computed)
        return {"origin": {**thread.origin, "legacy": path.name} | ({"meta": kept} if kept else {})}

    return ImportedSession(
        id=key,
        place=str(path),
        created_ns=_go.nanoseconds(found.created) or updated_ns,
        updated_ns=updated_ns,
        fields={"title": key, "origin": {"key": key, "legacy": path.name}},
        items=_legacy_items(found, updated_ns),
        finish=finish,
    )


def _legacy_items(found: records.LegacySession, time_ns: int) -> Iterator[ImportedRecord]:
    previous, first = "", ""
    for message in found.messages or ():
        line = _go.encode(message)
        payload = payload_of(message)
        again = wire_of(payload)
        if again is None or _go.encode(again) != line:
            payload = with_origin(payload, line=as_kept(line))
        previous = chain_id(previous, line)
        first = first or previous
        yield ImportedRecord(payload, previous, time_ns)
    if found.summary:
        entry_id = chain_id(previous, found.summary.encode())
        cut = Compaction(id=entry_id, summary=found.summary, first_kept_entry_id=first or entry_id, strategy="truncate")
        yield ImportedRecord(cut, entry_id, time_ns)
