"""The ``zimaos`` format: the SQLite database of ZimaOS-Blue (seed 003), one row per session.

A database is read without changing it or its folder. Sessions are flat, so an export writes the active path.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from sessiontree.context import window_of
from sessiontree.context.dialects.stored_chat import FOREIGN, chat_of, payload_of_chat
from sessiontree.journal import Journal
from sessiontree.model import Compaction, Custom, Entry, Payload, SessionKey, SystemMessage, Thread, ThreadFields
from sessiontree.model.builders import system
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import (
    ExportTarget,
    head_of,
    note_other_branches,
    size_of,
    without_foreign_origins,
)
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally, chain_id

__all__ = ["COLUMNS", "SCHEMA", "STATES", "Metadata", "detect", "sessions", "size", "write"]


STATES = ("active", "idle", "compacting", "suspended", "archived")
"""Names of the states, by number."""

COLUMNS = (
    "id", "agent_id", "channel_id", "peer_id", "thread_id", "state", "metadata", "messages", "system_prompt",
    "created_at", "updated_at", "last_active_at", "compacted_at",
)  # fmt: skip

SCHEMA = """
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    channel_id TEXT NOT NULL,
    peer_id TEXT NOT NULL,
    thread_id TEXT,
    state INTEGER NOT NULL DEFAULT 0,
    metadata TEXT,
    messages TEXT,
    system_prompt TEXT,
    created_at DATETIME NOT NULL,
    updated_at DATETIME NOT NULL,
    last_active_at DATETIME NOT NULL,
    compacted_at DATETIME
);
CREATE INDEX idx_sessions_agent ON sessions(agent_id);
CREATE INDEX idx_sessions_channel ON sessions(channel_id);
CREATE INDEX idx_sessions_peer ON sessions(peer_id);
CREATE INDEX idx_sessions_state ON sessions(state);
CREATE INDEX idx_sessions_last_active ON sessions(last_active_at);
"""


class Metadata(msgspec.Struct, omit_defaults=True, kw_only=True):
    title: str = ""
    summary: str = ""
    tags: list[str] = []
    custom_data: dict[str, str] = {}
    message_count: int
    token_count: int
    compaction_count: int


Row = dict[str, Any]

_LOG_ENDINGS = ("-wal", "-journal")
_COPIES = 5


def detect(source: Path) -> bool:
    """Whether the source is an SQLite file with the columns of the seed's table."""
    if head_of(source, 16) != b"SQLite format 3\x00":
        return False
    try:
        with _opened(source) as connection:
            found = {_text(row[1]) for row in connection.execute("PRAGMA table_info(sessions)")}
    except (sqlite3.Error, OSError, UnicodeError):
        return False
    return {"agent_id", "channel_id", "peer_id", "messages"} <= found


def size(source: Path) -> int:
    return size_of(source)


def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
    try:
        with _opened(source) as connection:
            for values in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM sessions ORDER BY rowid"):
                row = {name: _text(value) for name, value in zip(COLUMNS, values, strict=True)}
                tally.advance(sum(len(value) for value in row.values() if isinstance(value, str)))
                yield _Row(row, f"{source}, session {row['id']!r}", tally).session()
    except (sqlite3.Error, OSError, UnicodeError) as error:
        tally.note("damage", str(source), f"the rest of the database cannot be read: {error}")


@contextmanager
def _opened(source: Path) -> Iterator[sqlite3.Connection]:
    """A connection that creates no file next to the source and takes no lock on it.

    If there is a log or a rollback journal, the database file alone is not complete; then a copy is opened.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        if _logs(source):
            _copy(source, copy)
            address = f"file:{quote(str(copy))}"
        else:
            address = f"file:{quote(str(source.absolute()))}?immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.text_factory = bytes
            yield connection


def _logs(source: Path) -> list[Path]:
    """The log and the rollback journal that SQLite needs to read the database as of its last commit."""
    beside = (source.with_name(source.name + ending) for ending in _LOG_ENDINGS)
    return [path for path in beside if path.is_file() and path.stat().st_size]


def _copy(source: Path, copy: Path) -> None:
    """Copy the database with its logs; again if they were written meanwhile, so that they fit together."""
    for _ in range(_COPIES):
        before = _stamps(source)
        for ending in ("", *_LOG_ENDINGS):
            target = copy.with_name(copy.name + ending)
            target.unlink(missing_ok=True)
            part = source.with_name(source.name + ending)
            if part.is_file():
                shutil.copyfile(part, target)
        if _stamps(source) == before:
            return


def _stamps(source: Path) -> list[tuple[int, int]]:
    return [(path.stat().st_size, path.stat().st_mtime_ns) for path in (source, *_logs(source))]


def _text(value: Any) -> Any:
    return _go.decode_text(value) if isinstance(value, bytes) else value


class _Row:
    """One session."""

    def __init__(self, row: Row, place: str, tally: Tally) -> None:
        self._row = row
        self._place = place
        self._tally = tally
        self._broken: dict[str, Any] = {}
        self._metadata = self._read_metadata()
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
        )

    def _read_metadata(self) -> Metadata:
        text = self._row["metadata"]
        empty = Metadata(message_count=0, token_count=0, compaction_count=0)
        if not text:
            if text is None:
                self._damage("metadata", "the metadata is missing")
            return empty
        try:
            return _go.as_type(_str(text).encode(), Metadata)
        except _go.JsonError as error:
            self._damage("metadata", f"the metadata cannot be read: {error}")
            return empty

    def _items(self) -> Iterator[ImportedRecord]:
        """The system prompt, the summary of the last compaction, then the messages."""
        previous = ""
        if self._row["system_prompt"] is not None:
            prompt = _str(self._row["system_prompt"])
            previous = chain_id(previous, b"prompt " + prompt.encode())
            yield ImportedRecord(system(prompt), previous, self._active_ns)
        if self._metadata.summary:
            previous = chain_id(previous, b"summary " + self._metadata.summary.encode())
            summary = Compaction(
                id=previous,
                summary=self._metadata.summary,
                first_kept_entry_id=previous,
                generation=self._metadata.compaction_count,
            )
            yield ImportedRecord(summary, previous, self._active_ns)
        for message in self._messages():
            previous = chain_id(previous, _go.encode(message))
            yield ImportedRecord(_said(payload_of_chat(message)), previous, self._active_ns)

    def _messages(self) -> list[dict[str, Any]]:
        text = self._row["messages"]
        if not text:
            if text is None:
                self._damage("messages", "the messages are missing")
            return []
        try:
            found = _go.decode(_str(text).encode())
        except _go.JsonError as error:
            self._damage("messages", f"the messages cannot be read: {error}")
            return []
        listed = found.get("messages") if isinstance(found, dict) else None
        return (
            [_go.folded(message) for message in listed if isinstance(message, dict)] if isinstance(listed, list) else []
        )

    def _time(self, name: str) -> int:
        text = self._row[name]
        found = _go.nanoseconds_of_any(text) if isinstance(text, str) else None
        if found is None:
            self._damage(name, f"{name} is not a time: {text!r}")
        return found or 0

    def _damage(self, column: str, problem: str) -> None:
        self._broken[column] = self._row[column]
        self._tally.note("damage", self._place, problem, thread_id=_str(self._row["id"]))

    def _finish(self, thread: Thread, state: int) -> ThreadFields:
        times = {name: self._row[name] for name in ("created_at", "updated_at", "last_active_at", "compacted_at")}
        counts = [self._metadata.message_count, self._metadata.token_count, self._metadata.compaction_count]
        facts = {"state": state, "times": times, "counts": counts, "summary": self._metadata.summary}
        broken = {"broken": self._broken} if self._broken else {}
        return {"origin": {**thread.origin, **facts, **broken, "has_thread": self._row["thread_id"] is not None}}


def _said(payload: Payload) -> Payload:
    """The payload of a message. A system message is not a new prompt: the prompt has a column of its own."""
    return Custom(name=FOREIGN, message=payload.message) if isinstance(payload, SystemMessage) else payload


def _str(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


_NAME = "sessions.db"


def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
    target.write(_NAME, [])
    with closing(sqlite3.connect(target.folder / _NAME)) as connection:
        connection.executescript(SCHEMA)
        for thread in threads:
            path = list(without_foreign_origins(journal.path(thread.id), thread, "zimaos", common=("message",)))
            row = _row(thread, path)
            connection.execute(f"INSERT OR REPLACE INTO sessions VALUES ({','.join('?' * len(COLUMNS))})", row)
            target.threads.append(thread.id)
            target.entries += len(path)
            note_other_branches(journal, thread, path, target)
        connection.commit()


def _row(thread: Thread, path: Sequence[Entry]) -> tuple[Any, ...]:
    window = window_of(path)
    shown = [entry for entry in (*window.tail, *window.after) if not isinstance(entry.payload, SystemMessage)]
    messages = [message for entry in shown if (message := chat_of(entry.payload)) is not None]
    prompt = next((e.payload.message.text for e in reversed(path) if isinstance(e.payload, SystemMessage)), None)
    key, origin, times = thread.key, thread.origin, thread.origin.get("times", {})
    return (
        thread.id,
        key.agent,
        key.channel,
        key.peer,
        key.thread if key.thread or origin.get("has_thread") else None,
        _state(thread),
        _metadata(thread, path, len(messages)),
        _go.encode({"messages": [_ordered(message) for message in messages]}).decode(),
        prompt,
        _time(thread.created_ns, times.get("created_at")),
        _time(thread.updated_ns, times.get("updated_at"), times.get("last_active_at")),
        _time(thread.updated_ns, times.get("last_active_at")),
        times.get("compacted_at"),
    )


def _state(thread: Thread) -> int:
    known: int = thread.origin.get("state", -1)
    if thread.is_archived:
        return STATES.index("archived")
    if thread.state in STATES:
        return STATES.index(thread.state)
    return max(known, 0)


def _metadata(thread: Thread, path: Sequence[Entry], count: int) -> str:
    boundary = window_of(path).boundary
    compaction = boundary.payload if boundary and isinstance(boundary.payload, Compaction) else Compaction()
    is_same = thread.leaf == thread.origin.get("leaf") and "counts" in thread.origin
    counts = thread.origin["counts"] if is_same else [count, thread.tokens, compaction.generation]
    metadata = Metadata(
        title=thread.title,
        summary=compaction.summary,
        tags=list(thread.tags),
        custom_data={
            name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for name, value in sorted(thread.custom.items())
        },
        message_count=counts[0],
        token_count=counts[1],
        compaction_count=counts[2],
    )
    return _go.encode(metadata).decode()


def _ordered(message: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = {
        name: message[name] for name in ("role", "content", "tool_calls", "tool_call_id") if name in message
    }
    return {**first, **{name: value for name, value in message.items() if name not in first}}


def _time(time_ns: int, written: Any, of: Any = None) -> str:
    """Return a time as text: the imported text if it names the same time, otherwise a new one."""
    if isinstance(written, str) and _go.nanoseconds_of_any(of if isinstance(of, str) else written) == time_ns:
        return written
    return _go.text(time_ns).replace("T", " ").replace("Z", "+00:00")
