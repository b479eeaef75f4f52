"""Read a database of ZimaOS-Blue, without changing it or its folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from sessiontree.context import SUMMARY_KIND, summary_text
from sessiontree.context.dialects.stored_chat import FOREIGN, payload_of_chat
from sessiontree.journal import Journal
from sessiontree.model import (
    Compaction,
    Custom,
    Message,
    Payload,
    SessionKey,
    SystemMessage,
    TextPart,
    Thread,
    ThreadFields,
    json_decoder,
)
from sessiontree.model.builders import system
from sessiontree.model.tokens import estimate_message
from sessiontree.sessions.keys import generation_of
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import size_of
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally, chain_id, with_origin
from sessiontree.transfer.formats._sqlite import is_database, opened, text_of
from sessiontree.transfer.formats.zimaos.records import (
    COLUMNS,
    FIRST_KEPT,
    STATES,
    Metadata,
    messages_text,
    metadata_text,
    written,
)

__all__ = ["detect", "sessions", "size"]


Row = dict[str, Any]


def detect(source: Path) -> bool:
    """Whether the source is an SQLite file with the columns of the seed's table."""
    if not is_database(source):
        return False
    try:
        with opened(source) as connection:
            found = {text_of(row[1]) for row in connection.execute("PRAGMA table_info(sessions)")}
    except (sqlite3.Error, OSError, UnicodeError):
        return False
    return {"agent_id", "channel_id", "peer_id", "messages"} <= found


def size(source: Path) -> int:
    return size_of(source)


def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
    try:
        with opened(source) as connection:
            for values in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM sessions ORDER BY rowid"):
                row = {name: text_of(value) for name, value in zip(COLUMNS, values, strict=True)}
                tally.advance(sum(len(value) for value in row.values() if isinstance(value, str)))
                yield _Row(row, f"{source}, session {row['id']!r}", tally).session()
    except (sqlite3.Error, OSError, UnicodeError) as error:
        tally.note("damage", str(source), f"the rest of the database cannot be read: {error}")


class _Said(NamedTuple):
    """A message as it was decoded, and its text."""

    message: dict[str, Any]
    raw: str


class _Row:
    """One session. ``texts`` keeps columns that an export would write in another way, for as long as they are true."""

    def __init__(self, row: Row, place: str, tally: Tally) -> None:
        self._row = row
        self._place = place
        self._tally = tally
        self._texts: dict[str, Any] = {}
        self._metadata = self._read_metadata()
        self._rest: dict[str, Any] = {}
        self._first_kept = 0
        self._created_ns = self._time("created_at")
        self._active_ns = self._time("last_active_at") or self._time("updated_at") or self._created_ns

    def session(self) -> ImportedSession:
        metadata, row = self._metadata, self._row
        state = row["state"] if isinstance(row["state"], int) else 0
        name = STATES[state] if 0 <= state < len(STATES) else "unknown"
        key = SessionKey(
            agent=_str(row["agent_id"]),
            channel=_str(row["channel_id"]),
            peer=_str(row["peer_id"]),
            thread=_str(row["thread_id"]),
        )
        return ImportedSession(
            id=_str(row["id"]) or "session",
            place=self._place,
            created_ns=self._created_ns or self._active_ns,
            updated_ns=self._active_ns,
            fields={
                "title": metadata.title,
                "tags": tuple(metadata.tags),
                "custom": dict(metadata.custom_data),
                "key": key,
                "state": name,
                "is_archived": name == "archived",
            },
            items=self._items(),
            finish=lambda thread: self._finish(thread, state),
            find=lambda journal: _conversation(journal, key, self._created_ns),
        )

    def _read_metadata(self) -> Metadata:
        text = self._row["metadata"]
        found = Metadata(message_count=0, token_count=0, compaction_count=0)
        if not text:
            if text is None:
                self._damage("metadata", "the metadata is missing")
        else:
            try:
                found = _go.as_type(_str(text).encode(), Metadata)
            except _go.JsonError as error:
                self._damage("metadata", f"the metadata cannot be read: {error}")
        if metadata_text(found, {}) != text:
            self._texts["metadata"] = text
        return found

    def _items(self) -> Iterator[ImportedRecord]:
        """The system prompt, the messages, and before those that it does not replace the summary of the last compaction."""
        previous, replaced = "", 0
        if self._row["system_prompt"] is not None:
            prompt = _str(self._row["system_prompt"])
            previous = chain_id(previous, b"prompt " + prompt.encode())
            yield ImportedRecord(system(prompt), previous, self._active_ns)
        said = self._messages()
        if len(said) < self._first_kept:
            self._first_kept = 0
        for number, (message, raw) in enumerate((*said, _Said({}, ""))):
            if number == self._first_kept and (self._metadata.summary or self._metadata.compaction_count > 0):
                previous = chain_id(previous, b"summary " + self._metadata.summary.encode())
                yield ImportedRecord(self._summary(previous, replaced), previous, self._compacted_ns())
            if number < len(said):
                previous = chain_id(previous, _go.encode(message))
                payload = _payload(message, raw)
                replaced += _tokens(payload)
                yield ImportedRecord(payload, previous, self._active_ns)

    def _summary(self, id: str, replaced: int) -> Compaction:
        """The summary in place of messages with ``replaced`` tokens."""
        text = self._metadata.summary
        shown = Message(role="user", kind=SUMMARY_KIND, parts=(TextPart(text=summary_text(text, [], has_tail=True)),))
        return Compaction(
            id=id,
            summary=text,
            first_kept_entry_id=id,
            generation=max(0, self._metadata.compaction_count),
            dropped_tokens=replaced - (estimate_message(shown) if text else 0),
        )

    def _compacted_ns(self) -> int:
        text = self._row["compacted_at"]
        return (_go.nanoseconds_of_any(text) if isinstance(text, str) else None) or self._active_ns

    def _messages(self) -> list[_Said]:
        text = self._row["messages"]
        said: list[_Said] = []
        if not text:
            if text is None:
                self._damage("messages", "the messages are missing")
        else:
            try:
                said = self._read_messages(_str(text))
            except _go.JsonError as error:
                self._damage("messages", f"the messages cannot be read: {error}")
        beside = self._rest | ({FIRST_KEPT: self._first_kept} if self._first_kept else {})
        if messages_text([one.raw.encode() for one in said], beside) != text:
            self._texts["messages"] = text
        return said

    def _read_messages(self, text: str) -> list[_Said]:
        found = _go.decode(text.encode())
        listed = found.get("messages") if isinstance(found, dict) else None
        if not isinstance(listed, list):
            return []
        self._rest = {name: value for name, value in found.items() if name not in ("messages", FIRST_KEPT)}
        first_kept = found.get(FIRST_KEPT)
        self._first_kept = first_kept if type(first_kept) is int and first_kept > 0 else 0
        raws = _raws(text, len(listed))
        return [_Said(_go.folded(one), raw) for one, raw in zip(listed, raws, strict=True) if isinstance(one, dict)]

    def _time(self, name: str) -> int:
        text = self._row[name]
        found = _go.nanoseconds_of_any(text) if isinstance(text, str) else None
        if found is None:
            self._damage(name, f"{name} is not a time: {text!r}")
        return found or 0

    def _damage(self, column: str, problem: str) -> None:
        self._texts[column] = self._row[column]
        self._tally.note("damage", self._place, problem, thread_id=_str(self._row["id"]))

    def _finish(self, thread: Thread, state: int) -> ThreadFields:
        times = {name: self._row[name] for name in ("created_at", "updated_at", "last_active_at", "compacted_at")}
        counts = [self._metadata.message_count, self._metadata.token_count, self._metadata.compaction_count]
        facts = {
            "id": thread.origin.get("id", _str(self._row["id"])),
            "state": state,
            "times": times,
            "counts": counts,
            "summary": self._metadata.summary,
            "has_thread": self._row["thread_id"] is not None,
        }
        odd = {"texts": self._texts, "rest": self._rest}
        return {"origin": {**thread.origin, **facts, **{name: value for name, value in odd.items() if value}}}


def _conversation(journal: Journal, key: SessionKey, created_ns: int) -> Thread | None:
    """The conversation of a key that began at a moment: an export may have written it under another id.

    ZimaOS-Blue never changes these columns. Threads that were imported with a prefix are copies on purpose.
    """
    threads = journal.iter_threads(
        agent=key.agent, channel=key.channel, peer=key.peer, key_thread=key.thread, is_archived=None
    )
    for thread in threads:
        is_copy = thread.origin.get("id", thread.id) != thread.id
        if thread.created_ns == created_ns and generation_of(thread) is not None and not is_copy:
            return thread
    return None


class _Messages(msgspec.Struct):
    messages: list[msgspec.Raw] = []


def _raws(text: str, count: int) -> list[str]:
    """The texts of the messages; empty ones if the list cannot be split, as with a repeated or misspelt key."""
    try:
        pieces = json_decoder(_Messages).decode(text).messages
    except (msgspec.MsgspecError, UnicodeError):
        pieces = []
    return [bytes(piece).decode() for piece in pieces] if len(pieces) == count else [""] * count


def _payload(message: dict[str, Any], raw: str) -> Payload:
    """The payload of a message, with its text if an export would write another one.

    A system message is not a new prompt: the prompt has a column of its own.
    """
    payload = payload_of_chat(message)
    if isinstance(payload, SystemMessage):
        payload = Custom(name=FOREIGN, message=payload.message)
    return with_origin(payload, raw=raw) if raw and written(payload) != [raw.encode()] else payload


def _tokens(payload: Payload) -> int:
    message: Message | None = None if isinstance(payload, Custom) else getattr(payload, "message", None)
    return estimate_message(message) if message else 0


def _str(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
