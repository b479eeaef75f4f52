"""Reading a ZimaOS-Blue database without touching it."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sessiontree.chat import FOREIGN, payload_of_chat
from sessiontree.formats import gojson, gotime
from sessiontree.formats.lines import head_of, size_of
from sessiontree.formats.report import Tally
from sessiontree.formats.session import Item, Session, chain_id
from sessiontree.formats.zimaos.rows import COLUMNS, STATES, Metadata
from sessiontree.messages import system
from sessiontree.model import Compaction, Custom, Payload, SessionKey, SystemMessage, Thread, ThreadFields

__all__ = ["detect", "sessions", "size"]

Row = dict[str, Any]

_LOG_ENDINGS = ("-wal", "-journal")
_COPIES = 5


def detect(source: Path) -> bool:
    """An SQLite file with a table of sessions that has the seed's columns."""
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


def sessions(source: Path, tally: Tally) -> Iterator[Session]:
    try:
        with _opened(source) as connection:
            for values in connection.execute(f"SELECT {', '.join(COLUMNS)} FROM sessions ORDER BY rowid"):
                row = {name: _text(value) for name, value in zip(COLUMNS, values, strict=True)}
                tally.advance(sum(len(value) for value in row.values() if isinstance(value, str)))
                yield _Row(row, f"{source}, session {row['id']!r}", tally).session()
    except (sqlite3.Error, OSError, UnicodeError) as error:
        tally.note("damage", str(source), f"the database cannot be read on: {error}")


@contextmanager
def _opened(source: Path) -> Iterator[sqlite3.Connection]:
    """A connection that creates no file beside the source and takes no lock on it.

    Where a log or a rollback journal lies beside it, the database alone is not the truth: then a copy is opened.
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
    """What SQLite needs to bring the database up to date, or back to its last commit."""
    beside = (source.with_name(source.name + ending) for ending in _LOG_ENDINGS)
    return [path for path in beside if path.is_file() and path.stat().st_size]


def _copy(source: Path, copy: Path) -> None:
    """Copy the database with its logs; again if somebody wrote meanwhile, so that they belong together."""
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
    return gojson.decode_text(value) if isinstance(value, bytes) else value


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

    def session(self) -> Session:
        metadata, row = self._metadata, self._row
        state = row["state"] if isinstance(row["state"], int) else 0
        name = STATES[state] if 0 <= state < len(STATES) else "unknown"
        key = SessionKey(
            agent=_str(row["agent_id"]),
            channel=_str(row["channel_id"]),
            peer=_str(row["peer_id"]),
            thread=_str(row["thread_id"]),
        )
        return Session(
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
            return gojson.as_type(_str(text).encode(), Metadata)
        except gojson.JsonError as error:
            self._damage("metadata", f"the metadata cannot be read: {error}")
            return empty

    def _items(self) -> Iterator[Item]:
        """The prompt, what an earlier compaction left as a summary, then the messages."""
        previous = ""
        if self._row["system_prompt"] is not None:
            prompt = _str(self._row["system_prompt"])
            previous = chain_id(previous, b"prompt " + prompt.encode())
            yield Item(system(prompt), previous, self._active_ns)
        if self._metadata.summary:
            previous = chain_id(previous, b"summary " + self._metadata.summary.encode())
            summary = Compaction(
                id=previous,
                summary=self._metadata.summary,
                first_kept_entry_id=previous,
                generation=self._metadata.compaction_count,
            )
            yield Item(summary, previous, self._active_ns)
        for message in self._messages():
            previous = chain_id(previous, gojson.encode(message))
            yield Item(_said(payload_of_chat(message)), previous, self._active_ns)

    def _messages(self) -> list[dict[str, Any]]:
        text = self._row["messages"]
        if not text:
            if text is None:
                self._damage("messages", "the messages are missing")
            return []
        try:
            found = gojson.decode(_str(text).encode())
        except gojson.JsonError as error:
            self._damage("messages", f"the messages cannot be read: {error}")
            return []
        listed = found.get("messages") if isinstance(found, dict) else None
        return [_folded(message) for message in listed if isinstance(message, dict)] if isinstance(listed, list) else []

    def _time(self, name: str) -> int:
        text = self._row[name]
        found = gotime.nanoseconds_of_any(text) if isinstance(text, str) else None
        if found is None:
            self._damage(name, f"{name} is no time: {text!r}")
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
    """A system message among the others is no new prompt: the prompt has a column of its own."""
    return Custom(name=FOREIGN, message=payload.message) if isinstance(payload, SystemMessage) else payload


def _folded(message: dict[str, Any]) -> dict[str, Any]:
    """Keys in the case that we write."""
    return {key.casefold(): value for key, value in message.items()}


def _str(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
