"""The ``llm`` format: the log database of the command ``llm``."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.model import FilePart, ImagePart, Part, ReasoningPart, TextPart, ToolCallPart, Usage
from sessiontree.model.builders import system, tool_result, user
from sessiontree.transfer.formats._blocks import arguments_text
from sessiontree.transfer.formats._files import size_of
from sessiontree.transfer.formats._messages import answer
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._sqlite import columns, opened, rows
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, kept
from sessiontree.transfer.formats._wire import Json, count, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


def _recognises(head: Head) -> bool:
    if not head.data.startswith(b"SQLite format 3\x00"):
        return False
    conversations, responses = columns(head.path, "conversations", "responses")
    return {"id", "name"} <= conversations and {"prompt", "response", "conversation_id"} <= responses


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    try:
        with opened(path) as connection:
            yield from _conversations(path, connection, tally)
            tally.advance(size_of(path))
    except (sqlite3.Error, OSError, UnicodeError) as error:
        tally.note("damage", str(path), f"the rest of the database cannot be read: {error}")


_format = FileFormat(_recognises, _read, "*.db")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _conversations(path: Path, connection: sqlite3.Connection, tally: Tally) -> Iterator[ImportedSession]:
    named = {text(row.get("id")): row for row in rows(connection, "SELECT * FROM conversations")}
    query = "SELECT coalesce(conversation_id, id) AS conversation, count(*) AS number, max(id) AS newest FROM responses GROUP BY 1 ORDER BY min(rowid)"
    for group in list(rows(connection, query)):
        name = text(group["conversation"])
        stamp = {"path": f"{path.absolute()}#{name}", "marks": [[group["number"], group["newest"]]]}
        if tally.is_unchanged(stamp):
            tally.unchanged += 1
            continue
        where = "SELECT * FROM responses WHERE coalesce(conversation_id, id) = ? ORDER BY rowid"
        responses = list(rows(connection, where, name))
        if not responses:
            tally.note("damage", str(path), f"the responses of conversation {name!r} cannot be found")
            continue
        created = when(responses[0].get("datetime_utc")) or 0
        recorder = Recorder(path, tally, id=name, created_ns=created, stamp=stamp)
        recorder.title = text(named.get(name, {}).get("name"))
        yield recorder.session(list(_items(connection, responses, recorder)))


def _items(connection: sqlite3.Connection, responses: list[Json], recorder: Recorder) -> Iterator[ImportedRecord]:
    prompt = ""
    for row in responses:
        name = text(row.get("id")) or recorder.ids.next(text(row.get("prompt")).encode())
        time = recorder.time(when(row.get("datetime_utc")))
        recorder.model = text(row.get("model")) or recorder.model
        if text(row.get("system")) and row["system"] != prompt:
            prompt = text(row.get("system"))
            yield ImportedRecord(system(prompt), f"{name}.system", time)
        for result in _rows(connection, "tool_results", name):
            said = tool_result(
                text(result.get("tool_call_id")), text(result.get("output")), name=text(result.get("name"))
            )
            yield ImportedRecord(kept(said, result), f"{name}.result.{result.get('id')}", time)
        asked = [*([TextPart(text=row["prompt"])] if text(row.get("prompt")) else []), *_attachments(connection, name)]
        if asked:
            yield ImportedRecord(user(asked), f"{name}.prompt", time)
        yield ImportedRecord(kept(_answer(connection, row, name, recorder), row), name, time)


def _answer(connection: sqlite3.Connection, row: Json, name: str, recorder: Recorder) -> Any:
    calls = [
        ToolCallPart(
            id=text(call.get("tool_call_id")),
            name=text(call.get("name")),
            arguments=arguments_text(call.get("arguments")),
        )
        for call in _rows(connection, "tool_calls", name)
    ]
    thought = text(row.get("reasoning"))
    said = text(row.get("response"))
    parts: list[Part] = [
        *([ReasoningPart(provider="llm", text=thought)] if thought else []),
        *([TextPart(text=said)] if said else []),
        *calls,
    ]
    spent = Usage(input_tokens=count(row.get("input_tokens")), output_tokens=count(row.get("output_tokens")))
    return answer(parts, model=recorder.model, usage=spent if spent.context_tokens else None)


def _rows(connection: sqlite3.Connection, table: str, response: str) -> list[Json]:
    try:
        return list(rows(connection, f"SELECT * FROM {table} WHERE response_id = ? ORDER BY id", response))
    except sqlite3.Error:
        return []


def _attachments(connection: sqlite3.Connection, response: str) -> list[Part]:
    query = (
        "SELECT a.type, a.path, a.url, hex(a.content) AS content FROM prompt_attachments p"
        ' JOIN attachments a ON a.id = p.attachment_id WHERE p.response_id = ? ORDER BY p."order"'
    )
    try:
        found = list(rows(connection, query, response))
    except sqlite3.Error:
        return []
    return [_attachment(row) for row in found]


def _attachment(row: Json) -> Part:
    import base64  # noqa: PLC0415  only for attachments

    mime = text(row.get("type"))
    data = base64.b64encode(bytes.fromhex(text(row.get("content")))).decode()
    where: Json = {"data": data} if data else {"url": text(row.get("url")) or text(row.get("path"))}
    return (
        ImagePart(mime=mime, **where)
        if mime.startswith("image/")
        else FilePart(mime=mime, name=text(row.get("path")), **where)
    )
