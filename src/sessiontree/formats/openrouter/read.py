"""Reading the file of the openrouter SDK.

A checkpoint of the SDK is a copy of all messages. Here messages with the same history are the same entries, so a
checkpoint is a label on an entry, and a rewind is a move of the leaf to it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessiontree.formats import gojson, gotime
from sessiontree.formats.chat import payload_of_chat
from sessiontree.formats.lines import size_of
from sessiontree.formats.openrouter import wire
from sessiontree.formats.report import Tally
from sessiontree.formats.session import Item, Session, chain_id
from sessiontree.model import Checkpoint, Label, Thread, ThreadFields

__all__ = ["detect", "sessions", "size"]

_HEAD = 64 * 1024


def detect(source: Path) -> bool:
    if not source.is_file():
        return False
    with source.open("rb") as file:
        head = file.read(_HEAD)
    return head.lstrip().startswith(b"{") and b'"sessions"' in head[:200]


def size(source: Path) -> int:
    return size_of(source)


def sessions(source: Path, tally: Tally) -> Iterator[Session]:
    body = source.read_bytes()
    tally.advance(len(body))
    if not body.strip():
        return
    try:
        found = gojson.decode(body)
    except gojson.JsonError as error:
        tally.note("damage", str(source), f"the file cannot be read: {error}", size=len(body))
        yield from _salvaged(body, source, tally)
        return
    state = _folded(found) if isinstance(found, dict) else {}
    if not isinstance(found, dict | None):
        tally.note("damage", str(source), "the file holds no object", size=len(body))
    counters = state.get("fork_counters")
    counters = counters if isinstance(counters, dict) else {}
    kept = state.get("sessions")
    for key, value in kept.items() if isinstance(kept, dict) else ():
        yield from _one(key, value, counters, source, tally)


def _salvaged(body: bytes, source: Path, tally: Tally) -> Iterator[Session]:
    """The sessions before the place where a file breaks off."""
    text = gojson.decode_text(body)
    at = text.find('"sessions"')
    at = text.find("{", at) + 1 if at >= 0 else 0
    decoder = gojson.ValueReader(text, at)
    while at and (pair := decoder.pair()) is not None:
        key, value = pair
        tally.note("repair", str(source), f"session {key!r} was found whole before the break")
        yield from _one(key, value, {}, source, tally)


def _one(key: str, value: Any, counters: dict[str, Any], source: Path, tally: Tally) -> Iterator[Session]:
    place = f"{source}, session {key!r}"
    try:
        session = gojson.as_type(gojson.encode_plain(value), wire.Session)
    except (gojson.JsonError, UnicodeError, RecursionError) as error:
        tally.note("damage", place, f"the session cannot be read: {error}", thread_id=key)
        return
    if value is None:
        tally.note("repair", place, "the session is null; it comes in empty", thread_id=key)
    counter = counters.get(key, 0)
    yield _Reader(key, session, counter if isinstance(counter, int) else 0, place, source).session()


def _folded(value: dict[str, Any]) -> dict[str, Any]:
    return {key.casefold(): one for key, one in value.items()}


class _Reader:
    """One session."""

    def __init__(self, key: str, session: wire.Session, counter: int, place: str, source: Path) -> None:
        self._key = key
        self._session = session
        self._counter = counter
        self._place = place
        self._leaf: str | None = None
        modified = source.stat().st_mtime_ns
        self._created_ns = gotime.nanoseconds(session.created_at) or modified
        self._updated_ns = gotime.nanoseconds(session.updated_at) or self._created_ns

    def session(self) -> Session:
        facts = {"inner_id": self._session.id, "user_turns": self._session.user_turns, "fork_counter": self._counter}
        return Session(
            id=self._key or "default",
            place=self._place,
            created_ns=self._created_ns,
            updated_ns=self._updated_ns,
            fields={"origin": {"key": self._key, **facts}},
            items=self._items(),
            leaf=lambda: self._leaf,
            finish=self._finish,
        )

    def _items(self) -> Iterator[Item]:
        """First what the checkpoints hold beyond the messages, so that the tip comes last."""
        written: set[str] = set()
        tips: dict[str, str] = {}
        for name, messages in self._session.checkpoints.items():
            tip = yield from self._chain(messages or [], written)
            tips[name] = tip
        for name, tip in tips.items():
            yield self._marked(Label(target=tip, label=name) if tip else Label(target="", label=name), name, tip)
        for name, files in self._session.file_checkpoints.items():
            yield self._marked(_file_checkpoint(name, tips.get(name, ""), files or {}), "files " + name, tips.get(name))
        self._leaf = (yield from self._chain(self._session.messages or [], written)) or None

    def _chain(self, messages: wire.Chat, written: set[str]) -> Generator[Item, None, str]:
        previous = ""
        for message in messages:
            entry_id = chain_id(previous, msgspec.json.encode(message, order="sorted"))
            if entry_id not in written:
                written.add(entry_id)
                yield Item(payload_of_chat(message), entry_id, self._updated_ns, previous or None)
            previous = entry_id
        return previous

    def _marked(self, payload: Label | Checkpoint, name: str, tip: str | None) -> Item:
        entry_id = chain_id(tip or "", name.encode() + msgspec.json.encode(payload))
        return Item(payload, entry_id, self._updated_ns, tip or None)

    def _finish(self, thread: Thread) -> ThreadFields:
        times = {"created_at": self._session.created_at, "updated_at": self._session.updated_at}
        is_null = {"has_null_messages": True} if self._session.messages is None else {}
        return {"origin": {**thread.origin, "times": times, **is_null}}


def _file_checkpoint(name: str, tip: str, files: dict[str, str | None]) -> Checkpoint:
    size = sum(len(text.encode()) for text in files.values() if text is not None)
    return Checkpoint(target=tip, label=name, files=len(files), size=size, origin={"files": files})
