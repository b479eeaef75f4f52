"""Reading the file of the openrouter SDK.

A checkpoint of the SDK is a copy of all messages. Here messages with the same history are the same entries, so a
checkpoint is a labelled mark behind one of them, and a rewind is a move of the leaf to it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import msgspec

from sessiontree.chat import payload_of_chat
from sessiontree.checkpointed_sessions import mark_of
from sessiontree.formats import gojson, gotime
from sessiontree.formats.lines import head_of, modified_ns, size_of, whole_of
from sessiontree.formats.openrouter import wire
from sessiontree.formats.openrouter.files import checkpoint_of
from sessiontree.formats.report import Tally
from sessiontree.formats.session import Item, Session, chain_id, with_origin
from sessiontree.model import Checkpoint, Label, Thread, ThreadFields

__all__ = ["detect", "sessions", "size"]

_HEAD = 64 * 1024


def detect(source: Path) -> bool:
    head = head_of(source, _HEAD)
    return head.lstrip().startswith(b"{") and b'"sessions"' in head[:200]


def size(source: Path) -> int:
    return size_of(source)


def sessions(source: Path, tally: Tally) -> Iterator[Session]:
    body = whole_of(source, tally) or b""
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
        self._marks: dict[str, str] = {}
        modified = modified_ns(source)
        self._created_ns = gotime.nanoseconds(session.created_at) or modified
        self._updated_ns = gotime.nanoseconds(session.updated_at) or self._created_ns

    def session(self) -> Session:
        return Session(
            id=self._key or "default",
            place=self._place,
            created_ns=self._created_ns,
            updated_ns=self._updated_ns,
            fields={"origin": {"key": self._key, **self._facts(0)}},
            items=self._items(),
            leaf=lambda: self._leaf,
            finish=self._finish,
        )

    def _facts(self, counted: int) -> dict[str, Any]:
        """What a thread has no field for; fork ids that were given out here stay given out."""
        return {
            "inner_id": self._session.id,
            "user_turns": self._session.user_turns,
            "fork_counter": max(self._counter, counted),
        }

    def _items(self) -> Iterator[Item]:
        """First what the checkpoints hold beyond the messages, so that the tip comes last."""
        written: set[str] = set()
        marks = self._marks
        for name, messages in self._session.checkpoints.items():
            tip = yield from self._chain(messages or [], written)
            marks[name] = chain_id(tip, b"checkpoint " + name.encode())
            null = {"is_null": True} if messages is None else {}
            mark = with_origin(mark_of(name), is_imported=True, **null)
            yield Item(mark, marks[name], self._updated_ns, tip or None)
            yield self._under(marks[name], Label(target=marks[name], label=name))
        for name, files in self._session.file_checkpoints.items():
            checkpoint, blobs = checkpoint_of(name, marks.get(name, ""), files)
            yield self._under(marks.get(name, ""), checkpoint)._replace(blobs=blobs)
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

    def _under(self, mark: str, payload: Label | Checkpoint) -> Item:
        entry_id = chain_id(mark, msgspec.json.encode(payload))
        return Item(payload, entry_id, self._updated_ns, mark or None)

    def _finish(self, thread: Thread) -> ThreadFields:
        times = {"created_at": self._session.created_at, "updated_at": self._session.updated_at}
        is_null = {"has_null_messages": True} if self._session.messages is None else {}
        facts = self._facts(thread.origin.get("fork_counter", 0))
        return {"origin": {**thread.origin, **facts, "times": times, "marks": self._marks, **is_null}}
