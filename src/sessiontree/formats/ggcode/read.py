"""Reading a folder of ggcode sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessiontree.formats import gojson, gotime
from sessiontree.formats.ggcode import wire
from sessiontree.formats.ggcode.checkpoints import Recent, is_said_by_user
from sessiontree.formats.ggcode.index import INDEX, Index, kept_entry
from sessiontree.formats.ggcode.messages import message_of, wire_message
from sessiontree.formats.ggcode.meta import meta_hash
from sessiontree.formats.ggcode.records import payload_of_record, wire_record
from sessiontree.formats.lines import Line, head_of, lines_of, lines_starting, modified_ns, plain_files, size_of
from sessiontree.formats.report import Tally
from sessiontree.formats.session import Item, LineIds, Session, unreadable, with_origin
from sessiontree.formats.verbatim import as_kept
from sessiontree.model import Compaction, Payload, Thread, ThreadFields
from sessiontree.typed import json_decoder

__all__ = ["detect", "sessions", "size"]

_HEAD = 64 * 1024
_STARTS = (
    b'{"type":"meta"',
    b'{"type":"message"',
    b'{"type":"tunnel_event"',
    b'{"type":"checkpoint"',
    b'{"type":"cost"',
)
_META = b'{"type":"meta"'
_decode = json_decoder(wire.Record).decode


def detect(source: Path) -> bool:
    """A folder with an index, or with JSONL files whose records have a type and a session."""
    return source.is_dir() and any(map(_is_ours, plain_files(source, "*.jsonl")))


def size(source: Path) -> int:
    return size_of(*plain_files(source, "*.jsonl"))


def sessions(source: Path, tally: Tally) -> Iterator[Session]:
    index = Index(source, tally)
    for path in plain_files(source, "*.jsonl", tally):
        yield _Log(path, index, tally).session()


def _is_ours(path: Path) -> bool:
    head = head_of(path, _HEAD)
    return head.startswith(_STARTS) and b'"created_at":' in head


class _Log:
    """One session file."""

    def __init__(self, path: Path, index: Index, tally: Tally) -> None:
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

    def session(self) -> Session:
        newest = self._indexed[1] if self._indexed else self._meta
        if self._has_index and not self._indexed:
            self._tally.note("repair", str(self._path), f"the session is not in {INDEX}; it comes in all the same")
        return Session(
            id=self._id,
            place=str(self._path),
            created_ns=self._created_ns,
            updated_ns=self._updated_ns,
            fields={
                "title": _mended(newest.title),
                "workspace": newest.workspace,
                "vendor": newest.vendor,
                "endpoint": newest.endpoint,
                "model": newest.model,
                "origin": {"id": self._id, **self._times()},
            },
            items=self._items(),
            finish=self._finish,
            has_head=self._indexed is not None,
        )

    def _last_meta(self) -> wire.Record:
        """The last meta record decides; it is looked for first, because a thread is created with its times."""
        found = wire.bare("meta", self._id)
        for line in lines_starting(self._path, _META):
            try:
                found = gojson.as_type(line, wire.Record)
            except gojson.JsonError:
                continue
        return found

    def _times(self) -> dict[str, Any]:
        """Times in the zone in which they were written."""
        newest = self._indexed[1] if self._indexed else self._meta
        written = {"created_at": self._meta.created_at, "updated_at": newest.updated_at}
        zoned = {name: text for name, text in written.items() if not text.endswith("Z")}
        return (
            {
                "times": {
                    name: {"ns": gotime.nanoseconds(text), "text": gotime.whole_seconds(text)}
                    for name, text in zoned.items()
                }
            }
            if zoned
            else {}
        )

    @staticmethod
    def _time(*written: str) -> int:
        return next((value for text in written if (value := gotime.nanoseconds(text))), 0)

    def _items(self) -> Iterator[Item]:
        ids = LineIds(self._id)
        for line in lines_of(self._path, self._tally):
            if line.body.isspace():
                self._tally.note("repair", str(self._path), "a blank line is left out", offset=line.offset)
                continue
            entry_id = ids.next(line.body)
            yield Item(self._payload(line, entry_id), entry_id, self._updated_ns)

    def _payload(self, line: Line, entry_id: str) -> Payload:
        try:
            record = _decode(line.body)
            payload = self._meaning(record, entry_id)
            if line.is_ended and self._is_exact(record, payload, line.body):
                return self._remembered(payload, record, entry_id)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass
        return self._loose(line, entry_id)

    def _is_exact(self, record: wire.Record, payload: Payload, body: bytes) -> bool:
        if record.type == "checkpoint":
            again: wire.Record | None = wire.bare("checkpoint", self._id)
            assert again is not None
            again.checkpoint_messages = [wire_message(message_of(message)) for message in record.checkpoint_messages]
            again.checkpoint_tokens = record.checkpoint_tokens
        else:
            again = wire_record(payload, self._id)
        return again is not None and gojson.encode_plain(again) == body

    def _loose(self, line: Line, entry_id: str) -> Payload:
        end: dict[str, Any] = {} if line.is_ended else {"unended": True}
        try:
            record = gojson.as_type(line.body, wire.Record)
            payload = self._remembered(self._meaning(record, entry_id), record, entry_id)
            return with_origin(payload, line=as_kept(line.body), **end)
        except (gojson.JsonError, msgspec.MsgspecError) as error:
            self._tally.note("damage", str(self._path), str(error), offset=line.offset, size=len(line.body))
            return unreadable(line.body, str(error), is_ended=line.is_ended)

    def _meaning(self, record: wire.Record, entry_id: str) -> Payload:
        return Compaction() if record.type == "checkpoint" else payload_of_record(record)

    def _remembered(self, payload: Payload, record: wire.Record, entry_id: str) -> Payload:
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


def _mended(title: str) -> str:
    """ggcode cuts titles at a byte; half a character at the cut is taken away."""
    return re.sub("\ufffd+\\.\\.\\.$", "...", title)
