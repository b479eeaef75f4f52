"""The ``goose`` format: goose's database of sessions, and the JSONL files of its earlier versions."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import UNSET

from sessiontree.model import Compaction, OpaquePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from sessiontree.transfer.formats._blocks import arguments_text, image_part, result_content
from sessiontree.transfer.formats._files import modified_ns, size_of
from sessiontree.transfer.formats._messages import by_role
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._sqlite import columns, opened, rows, sessions_without_row
from sessiontree.transfer.formats._transcript import (
    FileFormat,
    Head,
    Recorder,
    json_records,
    kept,
    records_in,
    stamp_of,
    whole_json,
)
from sessiontree.transfer.formats._wire import Json, array, as_text, decoded, mapping, objects, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


def _recognises(head: Head) -> bool:
    if head.data.startswith(b"SQLite format 3\x00"):
        session, message = columns(head.path, "sessions", "messages")
        return "working_dir" in session and "content_json" in message
    if head.path.suffix == ".json":
        return head.is_json and head.has("working_dir", "conversation")
    first = head.records[0] if head.records else {}
    is_header = "working_dir" in first and "role" not in first
    return is_header or any(_is_message(record) for record in head.records[:2])


def _is_message(record: Json) -> bool:
    kinds = {text(block.get("type")) for block in objects(record.get("content"))}
    return "role" in record and "created" in record and bool(kinds & {"text", "toolRequest", "toolResponse"})


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    if path.suffix == ".jsonl":
        yield _read_log(path, tally)
        return
    if path.suffix == ".json":
        whole = mapping(whole_json(path, tally))
        name = text(whole.get("id")) or path.stem
        recorder = Recorder(
            path, tally, id=f"goose-{name}", created_ns=when(whole.get("created_at")) or 0, stamp=stamp_of(path)
        )
        _learn(recorder, whole)
        messages = records_in(whole.get("conversation") or whole.get("messages"), path, tally)
        yield recorder.session(_exported(messages, recorder))
        return
    try:
        with opened(path) as connection:
            yield from _read_database(path, connection, tally)
    except (sqlite3.Error, OSError, UnicodeError) as error:
        tally.note("damage", str(path), f"the rest of the database cannot be read: {error}")


_format = FileFormat(_recognises, _read, "*.db", "*.jsonl", "*.json")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _read_database(path: Path, connection: sqlite3.Connection, tally: Tally) -> Iterator[ImportedSession]:
    known = list(rows(connection, "SELECT * FROM sessions ORDER BY created_at, id"))
    lost = sessions_without_row(connection, known)
    for row in (*known, *({"id": name} for name in lost)):
        name = text(row.get("id"))
        messages = list(rows(connection, "SELECT * FROM messages WHERE session_id = ? ORDER BY id", name))
        stamp = {"path": f"{path.absolute()}#{name}", "marks": [[text(row.get("updated_at")), len(messages)]]}
        if tally.is_unchanged(stamp):
            tally.unchanged += 1
            continue
        recorder = Recorder(path, tally, id=f"goose-{name}", created_ns=when(row.get("created_at")) or 0, stamp=stamp)
        if name in lost:
            recorder.mend("the session itself is missing; its messages were kept")
        _learn(recorder, row)
        yield recorder.session(_rows(messages, recorder))
    tally.advance(size_of(path))


def _learn(recorder: Recorder, facts: Json) -> None:
    recorder.title = text(facts.get("name")) or text(facts.get("description"))
    recorder.workspace = text(facts.get("working_dir"))
    recorder.provider = text(facts.get("provider_name"))
    recorder.is_archived = bool(facts.get("archived_at"))
    config = mapping(decoded(facts.get("model_config_json"))) or mapping(facts.get("model_config"))
    recorder.model = text(config.get("model_name"))
    kind = text(facts.get("session_type"))
    recorder.custom |= {"kind": kind} if kind not in ("", "user") else {}


def _rows(messages: list[Json], recorder: Recorder) -> Iterator[ImportedRecord]:
    writer = _Writer(recorder)
    for row in messages:
        content = decoded(row.get("content_json"))
        wire = {**row, "content": content if content is not None else row.get("content_json")}
        entry_id = text(row.get("message_id")) or f"{recorder.id}-{row.get('id')}"
        visible = mapping(decoded(row.get("metadata_json")))
        yield from writer.records(wire, entry_id, when(row.get("created_timestamp")), visible)


def _exported(messages: list[Json], recorder: Recorder) -> Iterator[ImportedRecord]:
    writer = _Writer(recorder)
    for number, wire in enumerate(messages):
        entry_id = text(wire.get("id")) or f"{recorder.id}-{number}"
        yield from writer.records(wire, entry_id, when(wire.get("created")), mapping(wire.get("metadata")))


def _read_log(path: Path, tally: Tally) -> ImportedSession:
    recorder = Recorder(path, tally, id=f"goose-{path.stem}", created_ns=modified_ns(path), stamp=stamp_of(path))
    return recorder.session(_lines(path, recorder))


def _lines(path: Path, recorder: Recorder) -> Iterator[ImportedRecord]:
    writer = _Writer(recorder)
    for wire, line, problem in json_records(path, recorder):
        if wire is None:
            yield recorder.broken(line, problem, UNSET)
        elif "role" not in wire:
            _learn(recorder, wire)
            side = recorder.side("session", wire)
            yield ImportedRecord(side, recorder.ids.next(line.body), recorder.last_ns)
        else:
            visible = mapping(wire.get("metadata"))
            entry_id = recorder.ids.next(line.body)
            yield from writer.records(wire, entry_id, when(wire.get("created")), visible)


class _Writer:
    """Puts the messages of one session in line; a message for the agent alone after hidden ones is a summary of them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._tip = ""
        self._has_hidden = False

    def records(self, wire: Json, entry_id: str, time_ns: int | None, visible: Json) -> Iterator[ImportedRecord]:
        recorder = self._recorder
        content = wire.get("content")
        parts = (
            [_part(block) for block in objects(content)]
            if isinstance(content, list)
            else [TextPart(text=as_text(content))]
        )
        role = text(wire.get("role"))
        answered: Any = {"provider": recorder.provider, "model": recorder.model} if role == "assistant" else {}
        payloads = by_role(role, parts, **answered)
        is_for_agent = visible.get("userVisible") is False and visible.get("agentVisible") is True
        if is_for_agent and self._has_hidden and role == "user":
            words = "\n".join(part.text for part in parts if isinstance(part, TextPart))
            payloads = [Compaction(id=entry_id, summary=words, tail_after_entry_id=self._tip)]
            self._has_hidden = False
        self._has_hidden |= visible.get("agentVisible") is False
        time = recorder.time(time_ns)
        for number, payload in enumerate(payloads):
            self._tip = entry_id + (f".{number}" if number else "")
            yield ImportedRecord(kept(payload, wire), self._tip, time)


def _part(block: Json) -> Part:
    match block.get("type"):
        case "text":
            return TextPart(text=text(block.get("text")))
        case "thinking":
            return ReasoningPart(
                provider="anthropic", text=text(block.get("thinking")), signature=text(block.get("signature"))
            )
        case "redactedThinking":
            return ReasoningPart(provider="anthropic", encrypted=text(block.get("data")))
        case "image":
            return image_part(block) or OpaquePart(provider="goose", block=block)
        case "toolRequest" | "frontendToolRequest":
            call = mapping(block.get("toolCall"))
            if text(call.get("error")):
                return TextPart(text=f"[call that could not be read: {text(call['error'])}]")
            value = mapping(call.get("value")) or call
            arguments = arguments_text(value.get("arguments"))
            return ToolCallPart(id=text(block.get("id")), name=text(value.get("name")), arguments=arguments)
        case "toolResponse":
            return _response(block)
        case "systemNotification" | "conversationCompacted" | "summarizationRequested" | "contextLengthExceeded":
            return TextPart(text=text(block.get("msg")))
        case _:
            return OpaquePart(provider="goose", block=block)


def _response(block: Json) -> ToolResultPart:
    result = mapping(block.get("toolResult"))
    value = result.get("value")
    content = mapping(value).get("content") if isinstance(value, dict) else value
    failed = text(result.get("error"))
    is_error = result.get("status") == "error" or mapping(value).get("isError") is True
    parts = result_content([{"type": "text", "text": failed}] if failed else _texts(content))
    return ToolResultPart(call_id=text(block.get("id")), parts=parts, is_error=is_error)


def _texts(content: Any) -> Any:
    """The content with the text of embedded resources taken out of them."""
    if not isinstance(content, list):
        return content
    found = []
    for block in array(content):
        resource = mapping(mapping(block).get("resource"))
        found.append({"type": "text", "text": resource["text"]} if isinstance(resource.get("text"), str) else block)
    return found
