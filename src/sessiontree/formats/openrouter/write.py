"""Writing the file of the openrouter SDK: messages of the active path, labels as checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiontree.formats import gojson, gotime
from sessiontree.formats.chat import chat_of
from sessiontree.formats.openrouter import wire
from sessiontree.formats.writing import Target, without_foreign_origins
from sessiontree.journal import Journal
from sessiontree.model import Checkpoint, Entry, Label, Thread

__all__ = ["write"]


def write(journal: Journal, threads: Iterator[Thread], target: Target) -> None:
    state = wire.State(sessions={}, fork_counters={})
    for thread in threads:
        key = str(thread.origin.get("key", thread.id))
        entries = list(without_foreign_origins(journal.entries(thread.id), thread, "openrouter"))
        state.sessions[key] = _session(journal, thread, entries)
        counter = thread.origin.get("fork_counter", 0)
        if counter:
            state.fork_counters[key] = counter
        target.threads.append(thread.id)
        target.entries += len(entries)
        _mind_losses(thread, entries, target)
    body = gojson.encode(state)
    target.write("sessions.json", [gojson.indented(body)])


def _session(journal: Journal, thread: Thread, entries: list[Entry]) -> wire.Session:
    origin, times = thread.origin, thread.origin.get("times", {})
    known = {entry.id: entry for entry in entries}
    messages = _messages([known[entry.id] for entry in journal.path(thread.id)])
    checkpoints: dict[str, Any] = {}
    files: dict[str, Any] = {}
    for entry in entries:
        match entry.payload:
            case Label(target=tip, label=name) if name:
                checkpoints[name] = _messages([known[one.id] for one in journal.path(thread.id, tip)]) if tip else []
            case Checkpoint(label=name, origin=facts) if "files" in facts:
                files[name] = facts["files"]
    return wire.Session(
        id=origin.get("inner_id", thread.id),
        created_at=_time(thread.created_ns, times.get("created_at")),
        updated_at=_time(thread.updated_ns, times.get("updated_at")),
        messages=None if not messages and origin.get("has_null_messages") else messages,
        user_turns=origin.get("user_turns", sum(message.get("role") == "user" for message in messages)),
        checkpoints=dict(sorted(checkpoints.items(), key=lambda pair: pair[0].encode())),
        file_checkpoints=dict(sorted(files.items(), key=lambda pair: pair[0].encode())),
    )


def _messages(path: list[Entry]) -> list[dict[str, Any]]:
    found = (chat_of(entry.payload) for entry in path)
    return [_sorted(message) for message in found if message is not None]


def _sorted(value: Any) -> Any:
    """Go writes the keys of a map in order."""
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value, key=str.encode)}
        case list():
            return [_sorted(item) for item in value]
        case _:
            return value


def _time(time_ns: int, written: Any) -> str:
    is_same = isinstance(written, str) and gotime.nanoseconds(written) == time_ns
    return written if is_same else gotime.text(time_ns)


def _mind_losses(thread: Thread, entries: list[Entry], target: Target) -> None:
    kinds = sorted({entry.type for entry in entries if chat_of(entry.payload) is None} - {"label", "checkpoint"})
    if kinds:
        target.note("loss", f"the SDK has no place for entries of type {', '.join(kinds)}", thread_id=thread.id)
