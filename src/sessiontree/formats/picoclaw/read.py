"""Reading a folder of picoclaw sessions, the newer JSONL files and the older JSON files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessiontree.formats import gojson, gotime
from sessiontree.formats.lines import Line, head_of, lines_of, modified_ns, plain_files, size_of, whole_of
from sessiontree.formats.picoclaw import wire
from sessiontree.formats.picoclaw.messages import payload_of, wire_of
from sessiontree.formats.picoclaw.meta import legacy_of, meta_of
from sessiontree.formats.report import Tally
from sessiontree.formats.session import Item, LineIds, Session, chain_id, unreadable, with_origin
from sessiontree.formats.stems import stem_of
from sessiontree.formats.verbatim import as_kept, keep_original
from sessiontree.model import Compaction, Payload, Thread, ThreadFields
from sessiontree.typed import json_decoder

__all__ = ["detect", "sessions", "size"]

_LINES, _META, _LEGACY = ".jsonl", ".meta.json", ".json"
_decode = json_decoder(wire.Message).decode


def detect(source: Path) -> bool:
    """A folder with meta files, or with JSON files or JSONL files of messages."""
    if not source.is_dir():
        return False
    if plain_files(source, "*" + _META):
        return True
    return any(_is_ours(path) for path in (*plain_files(source, "*" + _LINES), *_legacy_files(source)))


def size(source: Path) -> int:
    return size_of(*plain_files(source, "*" + _LINES), *_legacy_files(source))


def sessions(source: Path, tally: Tally) -> Iterator[Session]:
    for path in _legacy_files(source, tally):
        session = _legacy(path, tally)
        if session is not None:
            yield session
    files = (*plain_files(source, "*" + _LINES, tally), *plain_files(source, "*" + _META))
    for stem in sorted(set(map(_stem, files))):
        yield _Log(source, stem, tally).session()


def _legacy_files(source: Path, tally: Tally | None = None) -> list[Path]:
    return [path for path in plain_files(source, "*" + _LEGACY, tally) if not path.name.endswith(_META)]


def _stem(path: Path) -> str:
    return path.name.removesuffix(_LINES).removesuffix(_META)


def _is_ours(path: Path) -> bool:
    head = head_of(path, 64 * 1024).lstrip()
    return head.startswith((b'{"role":', b'{\n  "key":', b'{"key":', b'{"messages":'))


class _Log:
    """A session as a log of messages with its meta file."""

    def __init__(self, folder: Path, stem: str, tally: Tally) -> None:
        self._path = folder / (stem + _LINES)
        self._meta_path = folder / (stem + _META)
        self._stem = stem
        self._tally = tally
        self._original: bytes | None = None
        self._has_meta = self._meta_path.is_file()
        self._meta = self._read_meta()
        self._time_ns = gotime.nanoseconds(self._meta.updated_at) or modified_ns(self._path, self._meta_path)

    def session(self) -> Session:
        key = self._meta.key or self._stem
        origin: dict[str, Any] = {"key": key, "has_lines": self._path.is_file()}
        if self._stem != stem_of(key):
            origin["file"] = self._stem
        return Session(
            id=key,
            place=str(self._path),
            created_ns=gotime.nanoseconds(self._meta.created_at) or self._time_ns,
            updated_ns=self._time_ns,
            fields={"title": key, "origin": origin},
            items=self._items(),
            finish=self._finish,
            has_head=self._has_meta,
        )

    def _read_meta(self) -> wire.Meta:
        if not self._has_meta:
            return wire.Meta()
        self._original = whole_of(self._meta_path, self._tally)
        if self._original is None:
            return wire.Meta()
        try:
            return gojson.as_type(self._original, wire.Meta)
        except gojson.JsonError as error:
            self._tally.note("damage", str(self._meta_path), f"the metadata cannot be read: {error}")
            return wire.Meta()

    def _items(self) -> Iterator[Item]:
        """Every line; then what the meta file says about them: how many are skipped, and the summary of those."""
        ids, first_kept = LineIds(self._stem), ""
        lines = lines_of(self._path, self._tally) if self._path.is_file() else ()
        for number, line in enumerate(lines):
            entry_id = ids.next(line.body)
            if number == max(self._meta.skip, 0):
                first_kept = entry_id
            yield Item(self._payload(line), entry_id, self._time_ns)
        if self._meta.skip > 0 or self._meta.summary:
            yield self._cut(ids.last, first_kept)

    def _cut(self, previous: str, first_kept: str) -> Item:
        facts = msgspec.json.encode([first_kept, self._meta.summary])
        entry_id = chain_id(previous, facts)
        cut = Compaction(
            id=entry_id, summary=self._meta.summary, first_kept_entry_id=first_kept or entry_id, strategy="truncate"
        )
        return Item(cut, entry_id, self._time_ns)

    def _payload(self, line: Line) -> Payload:
        try:
            payload = payload_of(_decode(line.body))
            again = wire_of(payload)
            if again is not None and line.is_ended and gojson.encode(again) == line.body:
                return payload
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass
        return self._loose(line)

    def _loose(self, line: Line) -> Payload:
        end: dict[str, Any] = {} if line.is_ended else {"unended": True}
        try:
            payload = payload_of(gojson.as_type(line.body, wire.Message))
            return with_origin(payload, line=as_kept(line.body), **end)
        except gojson.JsonError as error:
            self._tally.note("damage", str(self._path), str(error), offset=line.offset, size=len(line.body))
            return unreadable(line.body, str(error), is_ended=line.is_ended)

    def _finish(self, thread: Thread) -> ThreadFields:
        origin = {name: value for name, value in thread.origin.items() if name != "meta"}
        origin["skip"], origin["count"], origin["summary"] = self._meta.skip, self._meta.count, self._meta.summary
        kept = keep_original(self._original, meta_of(thread, self._meta.skip, self._meta.count, self._meta.summary))
        return {"origin": origin | ({"meta": kept} if kept else {})}


def _legacy(path: Path, tally: Tally) -> Session | None:
    body = whole_of(path, tally)
    if body is None:
        return None
    tally.advance(len(body))
    try:
        found = gojson.as_type(body, wire.LegacySession)
    except gojson.JsonError as error:
        tally.note("damage", str(path), f"the session cannot be read: {error}", size=len(body))
        return None
    updated_ns = gotime.nanoseconds(found.updated) or modified_ns(path)
    key = found.key or path.name.removesuffix(_LEGACY)

    def finish(thread: Thread) -> ThreadFields:
        computed = legacy_of(thread, found.messages, found.summary)
        kept = keep_original(body, computed)
        return {"origin": {**thread.origin, "legacy": path.name} | ({"meta": kept} if kept else {})}

    return Session(
        id=key,
        place=str(path),
        created_ns=gotime.nanoseconds(found.created) or updated_ns,
        updated_ns=updated_ns,
        fields={"title": key, "origin": {"key": key, "legacy": path.name}},
        items=_legacy_items(found, updated_ns),
        finish=finish,
    )


def _legacy_items(found: wire.LegacySession, time_ns: int) -> Iterator[Item]:
    previous, first = "", ""
    for message in found.messages or ():
        line = gojson.encode(message)
        payload = payload_of(message)
        again = wire_of(payload)
        if again is None or gojson.encode(again) != line:
            payload = with_origin(payload, line=as_kept(line))
        previous = chain_id(previous, line)
        first = first or previous
        yield Item(payload, previous, time_ns)
    if found.summary:
        entry_id = chain_id(previous, found.summary.encode())
        cut = Compaction(id=entry_id, summary=found.summary, first_kept_entry_id=first or entry_id, strategy="truncate")
        yield Item(cut, entry_id, time_ns)
