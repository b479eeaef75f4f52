"""Read OpenCode's sessions: messages and their parts, in tables or in files of their own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import UNSET

from sessiontree.transfer.formats._files import size_of
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._sqlite import columns, opened, rows
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, kept, records_in, stamp_of, whole_json
from sessiontree.transfer.formats._wire import Json, decoded, mapping, objects, text, when
from sessiontree.transfer.formats.opencode.records import Said, said, summary_of
from sessiontree.transfer.formats.opencode.second_version import message_of as second_version_message

__all__ = ["detect", "session_files", "sessions", "size"]


class _Message(NamedTuple):
    info: Json
    parts: list[Json]


def _recognises(head: Head) -> bool:
    if head.data.startswith(b"SQLite format 3\x00"):
        session, message = columns(head.path, "session", "message")
        return {"id", "parent_id"} <= session and {"session_id", "data"} <= message
    if head.path.suffix != ".json" or not head.is_json:
        return False
    is_session = head.has("id", "version", "time") and b'"ses' in head.data and "session" in head.path.parts
    return is_session or (head.has("info", "messages", "parts") and b'"ses' in head.data)


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    if path.suffix == ".json":
        yield from _read_files(path, tally)
        return
    try:
        with opened(path) as connection:
            yield from _read_database(path, connection, tally)
    except (sqlite3.Error, OSError, UnicodeError) as error:
        tally.note("damage", str(path), f"the rest of the database cannot be read: {error}")


_format = FileFormat(_recognises, _read, "*.db", "*.json")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _read_database(path: Path, connection: sqlite3.Connection, tally: Tally) -> Iterator[ImportedSession]:
    calls = _calls_of_children(connection)
    for row in [*rows(connection, "SELECT * FROM session ORDER BY time_created, id"), *_lost_sessions(connection)]:
        name = text(row.get("id"))
        (number, length), *_ = connection.execute(
            "SELECT count(*), coalesce(sum(length(data)), 0) FROM part WHERE session_id = ?", (name,)
        )
        marks = [[row.get("time_updated"), number, length, row.get("revert")]]
        stamp = {"path": f"{path.absolute()}#{name}", "marks": marks}
        if tally.is_unchanged(stamp):
            tally.unchanged += 1
            continue
        info = {**row, "time": {"created": row.get("time_created"), "updated": row.get("time_updated")}}
        info |= {"revert": decoded(row.get("revert"))}
        session = _Session(path, tally, info, stamp, calls.get(name, ""))
        messages = _stored_messages(connection, name, session.mend) or _second_version(connection, name)
        yield session.session(messages)
    tally.advance(size_of(path))


def _calls_of_children(connection: sqlite3.Connection) -> dict[str, str]:
    """The call that started each child session."""
    found = {}
    for row in rows(
        connection, """SELECT data FROM part WHERE data LIKE '%"sessionId"%' OR data LIKE '%"sessionID"%'"""
    ):
        part = mapping(decoded(row["data"]))
        facts = mapping(mapping(part.get("state")).get("metadata"))
        child = text(facts.get("sessionId") or facts.get("sessionID"))
        if child:
            found[child] = text(part.get("callID"))
    return found


def _lost_sessions(connection: sqlite3.Connection) -> list[Json]:
    """A row for each session that only messages or parts name."""
    query = """SELECT session_id AS id FROM (SELECT session_id FROM message UNION SELECT session_id FROM part)
        WHERE session_id NOT IN (SELECT id FROM session) ORDER BY session_id"""
    return [{**row, "is_lost": True} for row in rows(connection, query)]


def _stored_messages(connection: sqlite3.Connection, session_id: str, mend: Callable[[str], None]) -> list[_Message]:
    query = "SELECT * FROM {} WHERE session_id = ? ORDER BY {}"
    parts: dict[str, list[Json]] = {}
    for row in rows(connection, query.format("part", "id"), session_id):
        parts.setdefault(row["message_id"], []).append({"id": row["id"], **mapping(decoded(row["data"]))})
    found = rows(connection, query.format("message", "time_created, id"), session_id)
    messages = [_Message({"id": row["id"], **mapping(decoded(row["data"]))}, parts.pop(row["id"], [])) for row in found]
    return [*messages, *_lost_messages(parts, mend)]


def _lost_messages(parts: dict[str, list[Json]], mend: Callable[[str], None]) -> Iterator[_Message]:
    """Parts whose message is missing, as messages at the end."""
    for name, lost in parts.items():
        mend(f"the message {name!r} is missing; its {len(lost)} parts were put at the end")
        is_answer = any(part.get("type") in ("tool", "reasoning", "step-start") for part in lost)
        yield _Message({"id": name, "role": "assistant" if is_answer else "user"}, lost)


def _second_version(connection: sqlite3.Connection, session_id: str) -> list[_Message]:
    """The messages of a newer table that has one row for each message with all of its content."""
    try:
        found = list(
            rows(connection, "SELECT * FROM session_message WHERE session_id = ? ORDER BY seq, id", session_id)
        )
    except sqlite3.Error:
        return []
    return [_Message(*second_version_message(row, mapping(decoded(row["data"])))) for row in found]


def _read_files(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    """A session's file with its messages in folders beside it, or the file of an export with all in one."""
    whole = mapping(whole_json(path, tally))
    if "messages" in whole:
        info = mapping(whole.get("info"))
        found = records_in(whole["messages"], path, tally)
        messages = [_Message(mapping(one.get("info")), records_in(one.get("parts"), path, tally)) for one in found]
    else:
        info = whole
        messages = _messages_in_files(path, text(info.get("id")), tally)
        _note_lost_files(path, tally)
    if not info:
        return
    yield _Session(path, tally, info, stamp_of(path), "").session(messages)


def _note_lost_files(path: Path, tally: Tally) -> None:
    """Note folders of messages without a session, and of parts without a message, once for each store."""
    store = next((above for above in path.parents if (above / "message").is_dir()), None)
    if store is None or not tally.claim(store / "message"):
        return
    sessions = {file.stem for file in (store / "session").rglob("*.json")}
    messages = {file.stem for file in (store / "message").glob("*/*.json")}
    for kind, owner, known in (("message", "session", sessions), ("part", "message", messages | sessions)):
        for folder in sorted((store / kind).glob("*")):
            if folder.is_dir() and folder.name not in known:
                number = len(list(folder.rglob("*.json")))
                problem = (
                    f"{number} {kind}s belong to the {owner} {folder.name!r}, which is missing; they were left out"
                )
                tally.note("damage", str(folder), problem)


def _messages_in_files(path: Path, name: str, tally: Tally) -> list[_Message]:
    found = []
    for store in (
        path.parents[1].parent,
        path.parents[1],
        path.parents[2].parent if len(path.parents) > 3 else path.parent,
    ):
        files = sorted((store / "message" / name).glob("*.json")) if name else []
        for file in files:
            info = mapping(whole_json(file, tally))
            message = text(info.get("id")) or file.stem
            folders = (store / "part" / message, store / "part" / name / message)
            parts = [whole_json(part, tally) for folder in folders for part in sorted(folder.glob("*.json"))]
            found.append(_Message({"id": message, **info}, objects(parts) or objects(info.get("parts"))))
        if found:
            break
    found.sort(key=lambda one: (when(mapping(one.info.get("time")).get("created")) or 0, text(one.info.get("id"))))
    return found


class _Session:
    """One session while it is read."""

    def __init__(self, path: Path, tally: Tally, info: Json, stamp: Json, call: str) -> None:
        times = mapping(info.get("time"))
        created = when(times.get("created")) or 0
        recorder = Recorder(path, tally, id=text(info.get("id")) or path.stem, created_ns=created, stamp=stamp)
        recorder.workspace = text(info.get("directory"))
        title = text(info.get("title"))
        recorder.title = "" if title.startswith(("New session - ", "Child session - ")) else title
        recorder.parent_thread = text(info.get("parent_id") or info.get("parentID"))
        recorder.is_archived = bool(info.get("time_archived") or times.get("archived"))
        recorder.custom |= {"call": call} if call else {}
        self._recorder = recorder
        self.mend = recorder.mend
        if info.get("is_lost"):
            self.mend("the session itself is missing; its messages were kept")
        self._reverted = text(mapping(info.get("revert")).get("messageID"))
        self._entries: dict[str, str] = {}
        self._tip: str | None = None
        self._leaf: str | None = None
        self._has_reverted = False

    def session(self, messages: Iterable[_Message]) -> ImportedSession:
        return self._recorder.session(self._items(messages), leaf=lambda: self._leaf if self._has_reverted else UNSET)

    def _items(self, messages: Iterable[_Message]) -> Iterator[ImportedRecord]:
        boundary: Json | None = None
        for info, parts in messages:
            if text(info.get("id")) == self._reverted and self._reverted:
                self._leaf, self._has_reverted = self._tip, True
            time_ns = self._recorder.time(when(mapping(info.get("time")).get("created")))
            if info.get("role") == "user":
                boundary = next((part for part in parts if part.get("type") == "compaction"), None)
            for name, payload in self._said(info, parts, boundary):
                yield ImportedRecord(payload, name, time_ns, self._tip)
                self._entries.setdefault(text(info.get("id")), name)
                self._tip = name

    def _said(self, info: Json, parts: list[Json], boundary: Json | None) -> Iterator[Said]:
        if info.get("role") == "assistant" and info.get("summary") is True:
            first = self._entries.get(text((boundary or {}).get("tail_start_id")), "")
            summary = summary_of(info, parts, first, self._tip or "")
            yield Said(text(info.get("id")), kept(summary, {"info": info, "parts": parts}))
        elif info.get("role") in ("user", "assistant"):
            yield from said(info, parts, self._recorder)
        else:
            name = text(info.get("id")) or self._recorder.ids.next(b"")
            yield Said(name, self._recorder.unknown(f"role {text(info.get('role'))}", {"info": info, "parts": parts}))
