"""The ``chat-log`` format: a conversation with a message to each line, as gptme and Mistral Vibe write it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import UNSET

from sessiontree.transfer.formats._chat import chat_payloads
from sessiontree.transfer.formats._files import modified_ns
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._transcript import (
    FileFormat,
    Head,
    Recorder,
    json_records,
    kept,
    stamp_of,
    whole_json,
)
from sessiontree.transfer.formats._wire import Json, first_text, mapping, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


def _recognises(head: Head) -> bool:
    return bool(head.records) and all(_is_ours(record) for record in head.records[:5])


def _is_ours(record: Json) -> bool:
    return (
        text(record.get("role")) in _ROLES and "content" in record and not {"type", "uuid", "created"} & record.keys()
    )


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    beside = path.with_name("meta.json")
    meta = mapping(whole_json(beside, Tally())) if beside.is_file() else {}
    name = text(meta.get("session_id")) or (
        path.parent.name if path.stem in ("conversation", "messages") else path.stem
    )
    created = when(meta.get("start_time")) or _first_time(path) or modified_ns(path)
    recorder = Recorder(path, tally, id=name, created_ns=created, stamp=stamp_of(path))
    recorder.title = text(meta.get("title"))
    recorder.model = text(meta.get("model"))
    recorder.workspace = text(mapping(meta.get("environment")).get("working_directory"))
    recorder.parent_thread = text(meta.get("parent_session_id"))
    branch = text(meta.get("git_branch"))
    recorder.custom |= {"git_branch": branch} if branch else {}
    yield recorder.session(_items(path, recorder))


_format = FileFormat(_recognises, _read, "*.jsonl")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _first_time(path: Path) -> int | None:
    recorder = Recorder(path, Tally(), id="", created_ns=0)
    first = next(json_records(path, recorder), (None, None, ""))[0]
    return when((first or {}).get("timestamp"))


def _items(path: Path, recorder: Recorder) -> Iterator[ImportedRecord]:
    for wire, line, problem in json_records(path, recorder):
        if wire is None or "role" not in wire:
            yield recorder.broken(line, problem or "the record has no role", UNSET)
            continue
        entry_id = recorder.ids.next(line.body)
        time = recorder.time(when(wire.get("timestamp")))
        recorder.model = first_text(mapping(wire.get("metadata")), "model") or recorder.model
        for number, payload in enumerate(chat_payloads(wire, recorder.model)):
            yield ImportedRecord(kept(payload, wire), entry_id + (f".{number}" if number else ""), time)
