"""Read a floret store: every folder with a thread, whatever state its files are in.

thread.json is written after the entries and may lag behind them, so the leaf is repaired by floret's own rule.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from sessiontree.model import Thread, ThreadFields, json_decoder
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import (
    Line,
    as_kept,
    head_of,
    is_plain,
    keep_original,
    lines_of,
    size_of,
    whole_of,
)
from sessiontree.transfer.formats._records import (
    ImportedRecord,
    ImportedSession,
    Tally,
    chain_id,
    unreadable,
    with_origin,
)
from sessiontree.transfer.formats.floret import records
from sessiontree.transfer.formats.floret.entries import payload_of, wire_of
from sessiontree.transfer.formats.floret.records import folder_name, meta_of

__all__ = ["detect", "repaired_leaf", "sessions", "size"]


def repaired_leaf(leaf: str, parents: Mapping[str, str]) -> str | None:
    """The leaf by floret's own rule; ``parents`` has the parent of every entry, in the order of the file.

    >>> journal = {"a": "", "b": "a", "c": "b"}
    >>> repaired_leaf("b", journal), repaired_leaf("gone", journal), repaired_leaf("", journal)
    ('c', 'c', 'c')
    """
    order = list(parents)
    if not order:
        return None
    if not leaf or leaf == order[-1]:
        return order[-1]
    if leaf not in parents:
        rooted = _descendants("", parents)
        return next((entry for entry in reversed(order) if entry in rooted), order[-1])
    below = _descendants(leaf, parents)
    return next((entry for entry in reversed(order) if entry in below), leaf)


def _descendants(ancestor: str, parents: Mapping[str, str]) -> set[str]:
    children: dict[str, list[str]] = {}
    for entry, parent in parents.items():
        children.setdefault(parent, []).append(entry)
    found: set[str] = set()
    todo = [ancestor]
    while todo:
        new = [child for child in children.get(todo.pop(), ()) if child not in found]
        found.update(new)
        todo += new
    return found


_THREAD, _ENTRIES, _LEASE = "thread.json", "entries.jsonl", "active_turn.json"
_HEAD = 64 * 1024
_decode = json_decoder(records.FloretEntry).decode


def detect(source: Path) -> bool:
    """Whether the source is a folder of folders that have a thread.json or an entries.jsonl."""
    return source.is_dir() and any(_folders(source))


def size(source: Path) -> int:
    return sum(size_of(folder / _THREAD, folder / _ENTRIES) for folder in _folders(source))


def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
    for folder in _folders(source):
        if tally.claim(folder / _ENTRIES) and tally.claim(folder / _THREAD):
            yield _Folder(folder, tally).session()


def _folders(source: Path) -> Iterator[Path]:
    for folder in sorted(source.iterdir() if source.is_dir() else ()):
        if folder.is_dir() and (is_plain(folder / _THREAD) or _is_journal(folder / _ENTRIES)):
            yield folder


def _is_journal(path: Path) -> bool:
    """Whether a file may be a journal of floret: its first line is an entry, or damaged."""
    if not is_plain(path):
        return False
    first = head_of(path, _HEAD).partition(b"\n")[0]
    is_object = first.startswith(b'{"') and first.rstrip().endswith(b"}")
    return not is_object or b'"thread_id"' in first


class _Folder:
    """One thread on disk."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        self._folder = folder
        self._tally = tally
        self._original = b""
        self._meta = self._read_meta()
        self._parents: dict[str, str] = {}
        self._has_holes = False
        self._kept_lease: dict[str, Any] = {}

    def session(self) -> ImportedSession:
        meta = self._meta
        return ImportedSession(
            id=meta.id,
            place=str(self._folder),
            created_ns=_time(meta.created_at),
            updated_ns=_time(meta.updated_at),
            fields=self._fields(),
            items=self._items(),
            leaf=lambda: repaired_leaf(meta.leaf_id, self._parents),
            finish=self._finish,
            has_head=bool(self._original),
        )

    def _read_meta(self) -> records.ThreadMeta:
        path = self._folder / _THREAD
        try:
            self._original = whole_of(path, self._tally) or b""
            meta = _go.as_type(self._original, records.ThreadMeta)
        except _go.JsonError as error:
            self._original = b""
            self._tally.note("damage", str(path), f"the metadata cannot be read: {error}")
            meta = records.ThreadMeta(id="", title_updated_at="", created_at="", updated_at="", last_viewed_at="")
        self._tally.advance(len(self._original))
        return meta if meta.id else self._guessed(meta)

    def _guessed(self, meta: records.ThreadMeta) -> records.ThreadMeta:
        """The metadata with id and times from the first entry, where thread.json does not have them."""
        first = self._first_entry()
        meta.id = (first.thread_id if first else "") or _id_in_name(self._folder.name)
        meta.created_at = meta.created_at or (first.created_at if first else "")
        meta.updated_at = meta.updated_at or meta.created_at
        self._tally.note(
            "repair", str(self._folder), f"the thread has no id in {_THREAD}; it was imported as {meta.id!r}"
        )
        return meta

    def _first_entry(self) -> records.FloretEntry | None:
        path = self._folder / _ENTRIES
        for line in lines_of(path, Tally()) if path.is_file() else ():
            try:
                return _go.as_type(next(_go.values_in(line.body)), records.FloretEntry)
            except (_go.JsonError, StopIteration):
                continue
        return None

    def _fields(self) -> ThreadFields:
        meta = self._meta
        origin: dict[str, Any] = {}
        if meta.forked_from_thread_id:
            origin["forked_from_thread"] = meta.forked_from_thread_id
            origin["forked_from_entry"] = meta.forked_from_entry_id
        if self._folder.name != folder_name(meta.id):
            origin["folder"] = self._folder.name
        return {
            "title": meta.title,
            "title_status": meta.title_status,
            "title_source": meta.title_source,
            "title_error": meta.title_error,
            "title_updated_ns": _time(meta.title_updated_at),
            "status": meta.status,
            "last_viewed_ns": _time(meta.last_viewed_at),
            "is_archived": meta.archived,
            "parent_thread": meta.parent_thread_id,
            "origin": {"id": meta.id, **origin, **self._lease()},
        }

    def _lease(self) -> dict[str, Any]:
        """A lease of floret is kept for an export only; it does not lock the thread in the journal."""
        path = self._folder / _LEASE
        body = whole_of(path, self._tally)
        if body is None:
            return {}
        try:
            _go.as_type(body, records.TurnLease)
        except _go.JsonError as error:
            self._tally.note("damage", str(path), f"the lease cannot be read: {error}; the thread is free here")
        self._kept_lease = {"lease": as_kept(body)}
        return self._kept_lease

    def _items(self) -> Iterator[ImportedRecord]:
        path = self._folder / _ENTRIES
        if not path.is_file():
            if self._meta.leaf_id:
                self._tally.note("damage", str(path), "the entries of the thread are missing")
            return
        previous = ""
        for line in lines_of(path, self._tally):
            for item in self._line_items(line, previous):
                previous = item.id
                yield item

    def _line_items(self, line: Line, previous: str) -> Iterator[ImportedRecord]:
        try:
            item = self._exact(line.body) if line.is_ended else None
            if item is not None:
                yield item
                return
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass
        yield from self._loose(line, previous)

    def _exact(self, body: bytes) -> ImportedRecord | None:
        """The fast path: a line that an export would write unchanged, else ``None``."""
        entry = _decode(body)
        item = self._item(entry)
        if not entry.id or records.encode_entry(wire_of(item, entry.thread_id)) != body:
            return None
        self._parents[entry.id] = entry.parent_id
        return item

    def _loose(self, line: Line, previous: str) -> Iterator[ImportedRecord]:
        """Any other line, read by Go's rules and kept as it was; it may hold several records."""
        start = count = 0
        try:
            for body in _go.values_in(line.body):
                item = self._kept(_go.as_type(body, records.FloretEntry), body, previous, is_ended=line.is_ended)
                start += len(body)
                count += 1
                previous = item.id
                yield item
            if count != 1:
                self._has_holes = True
                place = str(self._folder / _ENTRIES)
                self._tally.note("repair", place, f"a line has {count} records", offset=line.offset)
        except _go.JsonError as error:
            self._has_holes = True
            rest = line.body[start:]
            place = str(self._folder / _ENTRIES)
            self._tally.note("damage", place, str(error), offset=line.offset + start, size=len(rest))
            broken = unreadable(rest, str(error), is_ended=line.is_ended)
            yield ImportedRecord(broken, chain_id(previous, rest), _time(self._meta.updated_at))

    def _kept(self, entry: records.FloretEntry, body: bytes, previous: str, *, is_ended: bool) -> ImportedRecord:
        if not entry.id:
            entry.id = chain_id(previous, body)
        item = self._item(entry)
        self._parents[entry.id] = entry.parent_id
        facts: dict[str, Any] = {"line": as_kept(body)} | ({} if is_ended else {"unended": True})
        return item._replace(payload=with_origin(item.payload, **facts))

    def _item(self, entry: records.FloretEntry) -> ImportedRecord:
        created_ns = _go.nanoseconds(entry.created_at)
        payload = payload_of(entry)
        if created_ns is None or entry.created_at[-1] != "Z":
            payload = with_origin(payload, time=entry.created_at)
        return ImportedRecord(payload, entry.id, created_ns or 0, entry.parent_id or None, entry.turn_id)

    def _finish(self, thread: Thread) -> ThreadFields:
        origin = {name: value for name, value in thread.origin.items() if name not in (_THREAD, "lease")}
        origin |= self._kept_lease
        if self._original and not self._has_holes:
            kept = keep_original(self._original, meta_of(thread))
            origin |= {_THREAD: kept} if kept else {}
        return {"origin": origin}


def _time(written: str) -> int:
    return _go.nanoseconds(written) or 0


def _id_in_name(name: str) -> str:
    """The thread id that a folder's name encodes."""
    try:
        coded = name.removeprefix("id_")
        return base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode() if name.startswith("id_") else name
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return name
