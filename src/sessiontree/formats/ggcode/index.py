"""index.json: the list of sessions, which knows titles and models that the session files do not know yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from sessiontree.formats import gojson, gotime
from sessiontree.formats.ggcode import wire
from sessiontree.formats.lines import whole_of
from sessiontree.formats.report import Tally
from sessiontree.formats.verbatim import keep_original, original_or
from sessiontree.model import Thread
from sessiontree.typed import json_decoder

__all__ = ["INDEX", "Index", "index_bytes", "kept_entry"]

INDEX = "index.json"


class Index:
    """The entries of an index file by session id, with their place in it."""

    def __init__(self, folder: Path, tally: Tally) -> None:
        self.entries: dict[str, tuple[int, wire.IndexEntry, bytes]] = {}
        path = folder / INDEX
        body = whole_of(path, tally)
        if body is None:
            return
        try:
            rows = json_decoder(list[msgspec.Raw]).decode(body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            tally.note("damage", str(path), f"the index cannot be read: {error}; the session files are enough")
            return
        for position, row in enumerate(rows):
            self._add(position, bytes(row), path, tally)

    def _add(self, position: int, row: bytes, path: Path, tally: Tally) -> None:
        try:
            entry = gojson.as_type(row, wire.IndexEntry)
        except gojson.JsonError as error:
            tally.note("damage", str(path), f"entry {position} cannot be read: {error}", size=len(row))
            return
        if not (path.parent / f"{entry.id}.jsonl").is_file() or "/" in entry.id:
            tally.note("damage", str(path), f"entry {position} names the session {entry.id!r}, which has no file")
            return
        self.entries[entry.id] = (position, entry, msgspec.json.format(row, indent=-1))


def kept_entry(position: int, original: bytes, thread: Thread, messages: int) -> dict[str, Any]:
    return {"position": position, "messages": messages, **keep_original(original, _entry(thread, messages))}


def index_bytes(rows: list[tuple[Thread, int]]) -> bytes:
    """The whole index: in the old order where there was one, new sessions at the end."""
    last = len(rows) + (1 << 31)
    rows = sorted(rows, key=lambda row: (row[0].origin.get("index", {}).get("position", last), row[0].created_ns))
    entries = [_original(thread, messages) for thread, messages in rows]
    return gojson.indented(b"[" + b",".join(entries) + b"]")


def _original(thread: Thread, messages: int) -> bytes:
    known = thread.origin.get("index", {})
    original = {name: value for name, value in known.items() if name not in ("position", "messages")}
    computed = _entry(thread, messages)
    return original_or(original, computed) or computed


def _entry(thread: Thread, messages: int) -> bytes:
    entry = wire.IndexEntry(
        id=thread.origin.get("id", thread.id),
        title=thread.title,
        created_at=gotime.text(thread.created_ns),
        updated_at=gotime.text(thread.updated_ns),
        msg_count=messages,
        workspace=thread.workspace,
        vendor=thread.vendor,
        endpoint=thread.endpoint,
        model=thread.model,
    )
    return gojson.encode(entry)
