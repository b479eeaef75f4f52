"""The ``crush`` format: the database that crush keeps in a project's folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.model import (
    Compaction,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from sessiontree.transfer.formats._blocks import arguments_text, image_part
from sessiontree.transfer.formats._files import size_of
from sessiontree.transfer.formats._messages import by_role
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally, amount
from sessiontree.transfer.formats._sqlite import columns, opened, rows, sessions_without_row
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, kept, marked
from sessiontree.transfer.formats._wire import Json, as_text, count, decoded, mapping, objects, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


_SILENT = frozenset({"finish"})


def _recognises(head: Head) -> bool:
    if not head.data.startswith(b"SQLite format 3\x00"):
        return False
    session, message = columns(head.path, "sessions", "messages")
    return {"parent_session_id", "prompt_tokens"} <= session and {"parts", "role", "session_id"} <= message


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    try:
        with opened(path) as connection:
            known = list(rows(connection, "SELECT * FROM sessions ORDER BY created_at, id"))
            lost = [{"id": name, "is_lost": True} for name in sessions_without_row(connection, known)]
            for row in (*known, *lost):
                found = _session(path, connection, row, tally)
                if found is not None:
                    yield found
            tally.advance(size_of(path))
    except (sqlite3.Error, OSError, UnicodeError) as error:
        tally.note("damage", str(path), f"the rest of the database cannot be read: {error}")


_format = FileFormat(_recognises, _read, "*.db")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _session(path: Path, connection: sqlite3.Connection, row: Json, tally: Tally) -> ImportedSession | None:
    name = text(row.get("id"))
    messages = list(rows(connection, "SELECT * FROM messages WHERE session_id = ? ORDER BY created_at, rowid", name))
    stamp = {"path": f"{path.absolute()}#{name}", "marks": [[row.get("updated_at"), len(messages)]]}
    if tally.is_unchanged(stamp):
        tally.unchanged += 1
        return None
    recorder = Recorder(path, tally, id=name, created_ns=when(row.get("created_at")) or 0, stamp=stamp)
    if row.get("is_lost"):
        recorder.mend("the session itself is missing; its messages were kept")
    recorder.title = text(row.get("title"))
    recorder.workspace = str(path.parent.parent) if path.parent.name == ".crush" else ""
    parent = text(row.get("parent_session_id"))
    recorder.parent_thread = parent
    if parent and "$$" in name:
        recorder.custom["call"] = name.rpartition("$$")[2]
    return recorder.session(_items(messages, row, recorder))


def _items(messages: list[Json], session: Json, recorder: Recorder) -> Iterator[ImportedRecord]:
    tip: str | None = None
    total = Usage(
        input_tokens=count(session.get("prompt_tokens")),
        output_tokens=count(session.get("completion_tokens")),
        cost=amount(session.get("cost")) or 0.0,
        currency="USD",
    )
    last = next((row.get("id") for row in reversed(messages) if row.get("role") == "assistant"), None)
    for row in messages:
        wire = {**row, "parts": decoded(row.get("parts"))}
        is_summary = bool(row.get("is_summary_message")) or row.get("id") == session.get("summary_message_id")
        payloads = _payloads(wire, recorder, total if row.get("id") == last else None)
        if is_summary and row.get("id"):
            payloads = [_summary(wire, tip or "")]
        time = recorder.time(when(row.get("created_at")))
        for number, payload in enumerate(payloads):
            name = marked(text(row.get("id")) + (f".{number}" if number else ""), payload)
            yield ImportedRecord(kept(payload, wire), name, time, tip)
            tip = name


def _summary(wire: Json, before: str) -> Compaction:
    words = "\n".join(part.text for part in _parts(wire) if isinstance(part, TextPart))
    return Compaction(id=text(wire.get("id")), summary=words, tail_after_entry_id=before)


def _payloads(wire: Json, recorder: Recorder, total: Usage | None) -> list[Payload]:
    role = text(wire.get("role"))
    if role != "assistant":
        return by_role(role, _parts(wire))
    recorder.model = text(wire.get("model")) or recorder.model
    recorder.provider = text(wire.get("provider")) or recorder.provider
    blocks = objects(wire.get("parts"))
    end = next((mapping(block.get("data")) for block in blocks if block.get("type") == "finish"), {})
    answered: Json = {"provider": recorder.provider, "model": recorder.model, "stop_reason": text(end.get("reason"))}
    return by_role(role, _parts(wire), usage=total, **answered)


def _parts(wire: Json) -> list[Part]:
    blocks = objects(wire.get("parts"))
    return [_part(block, mapping(block.get("data"))) for block in blocks if text(block.get("type")) not in _SILENT]


def _part(block: Json, data: Json) -> Part:
    match block.get("type"):
        case "text":
            return TextPart(text=text(data.get("text")))
        case "reasoning":
            return ReasoningPart(
                provider="anthropic", text=text(data.get("thinking")), signature=text(data.get("signature"))
            )
        case "tool_call":
            arguments = arguments_text(data.get("input")) or "{}"
            return ToolCallPart(id=text(data.get("id")), name=text(data.get("name")), arguments=arguments)
        case "tool_result":
            return _result(data)
        case "image_url":
            return image_part(data) or OpaquePart(provider="crush", block=block)
        case "binary":
            mime, content = (
                text(data.get("MIMEType") or data.get("mime_type")),
                text(data.get("Data") or data.get("data")),
            )
            if mime.startswith("image/"):
                return ImagePart(data=content, mime=mime)
            return FilePart(data=content, mime=mime, name=text(data.get("Path") or data.get("path")))
        case "shell_command":
            return TextPart(text=f"$ {text(data.get('command'))}\n{text(data.get('output'))}")
        case _:
            return OpaquePart(provider="crush", block=block)


def _result(data: Json) -> ToolResultPart:
    content: list[Any] = [TextPart(text=as_text(data.get("content")))]
    if text(data.get("mime_type")).startswith("image/") and text(data.get("data")):
        content.append(ImagePart(data=text(data.get("data")), mime=text(data.get("mime_type"))))
    return ToolResultPart(
        call_id=text(data.get("tool_call_id")),
        name=text(data.get("name")),
        parts=tuple(content),
        is_error=data.get("is_error") is True,
    )
