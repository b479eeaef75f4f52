"""Read a folder of ggcode sessions, with index.json and meta records.

index.json lists the sessions and may have newer titles and models than the session files.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
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
    lines_starting,
    modified_ns,
    original_or,
    plain_files,
    size_of,
    whole_of,
)
from sessiontree.transfer.formats._records import (
    ImportedRecord,
    ImportedSession,
    LineIds,
    Tally,
    unreadable,
    with_origin,
)
from sessiontree.transfer.formats.ggcode import records
from sessiontree.transfer.formats.ggcode.records import (
    Recent,
    is_said_by_user,
    message_of,
    payload_of_record,
    wire_message,
    wire_record,
)

__all__ = [
    "INDEX",
    "GgcodeIndex",
    "detect",
    "index_bytes",
    "kept_entry",
    "meta_hash",
    "meta_record",
    "sessions",
    "size",
]


INDEX = "index.json"


class GgcodeIndex:
    """The entries of index.json by session id, with their positions and original bytes."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        self.entries: dict[str, tuple[int, records.IndexEntry, bytes]] = {}
        path = folder / INDEX
        body = whole_of(path, tally)
        if body is None:
            return
        try:
            rows = json_decoder(list[msgspec.Raw]).decode(body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            tally.note(
                "damage", str(path), f"the index cannot be read: {error}; the sessions were read from their files"
            )
            return
        for position, row in enumerate(rows):
            self._add(position, bytes(row), path, tally)

    def _add(self, position: int, row: bytes, path: Path, tally: Tally) -> None:
        try:
            entry = _go.as_type(row, records.IndexEntry)
        except _go.JsonError as error:
            tally.note("damage", str(path), f"entry {position} cannot be read: {error}", size=len(row))
            return
        if not (path.parent / f"{entry.id}.jsonl").is_file() or "/" in entry.id:
            tally.note("damage", str(path), f"entry {position} names session {entry.id!r}, which has no file")
            return
        self.entries[entry.id] = (position, entry, msgspec.json.format(row, indent=-1))


def kept_entry(position: int, original: bytes, thread: Thread, messages: int) -> dict[str, Any]:
    """What an export needs to write the index entry of a session again."""
    return {"position": position, "messages": messages, **keep_original(original, _entry(thread, messages))}


def index_bytes(rows: list[tuple[Thread, int]]) -> bytes:
    """The contents of index.json: imported sessions in their old order, new ones at the end."""
    last = len(rows) + (1 << 31)
    rows = sorted(rows, key=lambda row: (row[0].origin.get("index", {}).get("position", last), row[0].created_ns))
    entries = [_original(thread, messages) for thread, messages in rows]
    return _go.indented(b"[" + b",".join(entries) + b"]")


def _original(thread: Thread, messages: int) -> bytes:
    known = thread.origin.get("index", {})
    original = {name: value for name, value in known.items() if name not in ("position", "messages")}
    computed = _entry(thread, messages)
    return original_or(original, computed) or computed


def _entry(thread: Thread, messages: int) -> bytes:
    entry = records.IndexEntry(
        id=thread.origin.get("id", thread.id),
        title=thread.title,
        created_at=_go.text(thread.created_ns),
        updated_at=_go.text(thread.updated_ns),
        msg_count=messages,
        workspace=thread.workspace,
        vendor=thread.vendor,
        endpoint=thread.endpoint,
        model=thread.model,
    )
    return _go.encode(entry)


def meta_record(thread: Thread) -> records.GgcodeRecord:
    """The meta record for a thread."""
    return records.GgcodeRecord(
        type="meta",
        session_id=thread.origin.get("id", thread.id),
        title=thread.title,
        workspace=thread.workspace,
        vendor=thread.vendor,
        endpoint=thread.endpoint,
        model=thread.model,
        created_at=_go.text(thread.created_ns),
        updated_at=_go.text(thread.updated_ns),
        tunnel_events_complete=thread.origin.get("tunnel_events_complete") is True,
    )


def meta_hash(thread: Thread) -> str:
    """A hash that changes with the metadata of a thread, but not with the time of its last change."""
    record = meta_record(thread)
    record.updated_at = ""
    return hashlib.blake2b(_go.encode_plain(record), digest_size=16).hexdigest()


_HEAD = 64 * 1024
_STARTS = (
    b'{"type":"meta"',
    b'{"type":"message"',
    b'{"type":"tunnel_event"',
    b'{"type":"checkpoint"',
    b'{"type":"cost"',
)
_META = b'{"type":"meta"'
_decode = json_decoder(records.GgcodeRecord).decode


def detect(source: Path) -> bool:
    """Whether the source is a folder with a JSONL file that starts with a record of ggcode."""
    return source.is_dir() and any(map(_is_ours, plain_files(source, "*.jsonl")))


def size(source: Path) -> int:
    return size_of(*plain_files(source, "*.jsonl"))


def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
    index = GgcodeIndex(source, tally)
    for path in plain_files(source, "*.jsonl", tally):
        if not _is_foreign(path, index) and tally.claim(path):
            yield _SessionFile(path, index, tally).session()


def _is_ours(path: Path) -> bool:
    head = head_of(path, _HEAD)
    return head.startswith(_STARTS) and b'"created_at":' in head


def _is_foreign(path: Path, index: GgcodeIndex) -> bool:
    """Whether a file begins with a record of another tool; a damaged file may be one of ours."""
    head = head_of(path, _HEAD)
    is_object = head.startswith(b"{") and head.partition(b"\n")[0].endswith(b"}")
    return is_object and not head.startswith(b'{"type":') and path.name.removesuffix(".jsonl") not in index.entries


class _SessionFile:
    """One session file."""

    def __init__(self, path: Path, index: GgcodeIndex, tally: Tally) -> None:
        self._path = path
        self._tally = tally
        self._id = path.name.removesuffix(".jsonl")
        self._indexed = index.entries.get(self._id)
        self._has_index = bool(index.entries)
        self._recent = Recent()
        self._has_user_text = False
        self._meta = self._last_meta()
        modified = modified_ns(path)
        newest = self._indexed[1] if self._indexed else self._meta
        self._created_ns = self._time(self._meta.created_at, newest.created_at) or modified
        self._updated_ns = self._time(newest.updated_at, self._meta.updated_at) or self._created_ns

    def session(self) -> ImportedSession:
        newest = self._indexed[1] if self._indexed else self._meta
        if self._has_index and not self._indexed:
            self._tally.note("repair", str(self._path), f"the session is missing in {INDEX}; it was imported anyway")
        return ImportedSession(
            id=self._id,
            place=str(self._path),
            created_ns=self._created_ns,
            updated_ns=self._updated_ns,
            fields={
                "title": _without_cut_character(newest.title),
                "workspace": newest.workspace,
                "vendor": newest.vendor,
                "endpoint": newest.endpoint,
                "model": newest.model,
                "origin": {"id": self._id, **self._times(), **self._flags()},
            },
            items=self._items(),
            finish=self._finish,
            has_head=self._indexed is not None,
        )

    def _last_meta(self) -> records.GgcodeRecord:
        """The last meta record, which is the valid one; read first, because a thread is created with its times."""
        found = records.bare("meta", self._id)
        for line in lines_starting(self._path, _META):
            try:
                found = _go.as_type(line, records.GgcodeRecord)
            except _go.JsonError:
                continue
        return found

    def _times(self) -> dict[str, Any]:
        """Times that are not in UTC, as they were written."""
        newest = self._indexed[1] if self._indexed else self._meta
        written = {"created_at": self._meta.created_at, "updated_at": newest.updated_at}
        zoned = {name: text for name, text in written.items() if not text.endswith("Z")}
        return (
            {
                "times": {
                    name: {"ns": _go.nanoseconds(text), "text": _go.whole_seconds(text)} for name, text in zoned.items()
                }
            }
            if zoned
            else {}
        )

    def _flags(self) -> dict[str, Any]:
        """What a new meta record must repeat, because the last one counts."""
        return {"tunnel_events_complete": True} if self._meta.tunnel_events_complete else {}

    @staticmethod
    def _time(*written: str) -> int:
        return next((value for text in written if (value := _go.nanoseconds(text))), 0)

    def _items(self) -> Iterator[ImportedRecord]:
        ids = LineIds(self._id)
        for line in lines_of(self._path, self._tally):
            if line.body.isspace():
                self._tally.note("repair", str(self._path), "a blank line was left out", offset=line.offset)
                continue
            entry_id = ids.next(line.body)
            yield ImportedRecord(self._payload(line, entry_id), entry_id, self._updated_ns)

    def _payload(self, line: Line, entry_id: str) -> Payload:
        try:
            record = _decode(line.body)
            payload = self._meaning(record, entry_id)
            if line.is_ended and self._is_exact(record, payload, line.body):
                return self._remembered(payload, record, entry_id)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass
        return self._loose(line, entry_id)

    def _is_exact(self, record: records.GgcodeRecord, payload: Payload, body: bytes) -> bool:
        if record.type == "checkpoint":
            again: records.GgcodeRecord | None = records.bare("checkpoint", self._id)
            assert again is not None
            again.checkpoint_messages = [wire_message(message_of(message)) for message in record.checkpoint_messages]
            again.checkpoint_tokens = record.checkpoint_tokens
        else:
            again = wire_record(payload, self._id)
        return again is not None and _go.encode_plain(again) == body

    def _loose(self, line: Line, entry_id: str) -> Payload:
        end: dict[str, Any] = {} if line.is_ended else {"unended": True}
        try:
            record = _go.as_type(line.body, records.GgcodeRecord)
            payload = self._remembered(self._meaning(record, entry_id), record, entry_id)
            return with_origin(payload, line=as_kept(line.body), **end)
        except (_go.JsonError, msgspec.MsgspecError) as error:
            self._tally.note("damage", str(self._path), str(error), offset=line.offset, size=len(line.body))
            return unreadable(line.body, str(error), is_ended=line.is_ended)

    def _meaning(self, record: records.GgcodeRecord, entry_id: str) -> Payload:
        return Compaction() if record.type == "checkpoint" else payload_of_record(record)

    def _remembered(self, payload: Payload, record: records.GgcodeRecord, entry_id: str) -> Payload:
        if record.type == "checkpoint":
            return self._recent.checkpoint(entry_id, record)
        if record.message is not None and record.type == "message":
            self._recent.add(entry_id, record.message)
            self._has_user_text = self._has_user_text or is_said_by_user(getattr(payload, "message", None))
        return payload

    def _finish(self, thread: Thread) -> ThreadFields:
        origin = {**thread.origin, "meta_hash": meta_hash(thread)}
        if self._indexed:
            position, entry, original = self._indexed
            origin["index"] = kept_entry(position, original, thread, entry.msg_count)
        fields: ThreadFields = {"origin": origin}
        if not self._has_user_text:
            fields["is_archived"] = True
            origin["hidden"] = "no user text"
        elif origin.pop("hidden", None):
            fields["is_archived"] = False
        return fields


def _without_cut_character(title: str) -> str:
    """The title without the half character that is left where ggcode cut it at a byte."""
    return re.sub("\ufffd+\\.\\.\\.$", "...", title)
