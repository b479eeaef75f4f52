"""Writing a ZimaOS-Blue database. Its sessions are flat: the active path is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec

from sessiontree.chat import chat_of
from sessiontree.context import window_of
from sessiontree.formats import gojson, gotime
from sessiontree.formats.writing import Target, without_foreign_origins
from sessiontree.formats.zimaos.rows import COLUMNS, SCHEMA, STATES, Metadata
from sessiontree.journal import Journal
from sessiontree.model import Compaction, Entry, SystemMessage, Thread

__all__ = ["write"]

_NAME = "sessions.db"


def write(journal: Journal, threads: Iterator[Thread], target: Target) -> None:
    target.write(_NAME, [])
    with closing(sqlite3.connect(target.folder / _NAME)) as connection:
        connection.executescript(SCHEMA)
        for thread in threads:
            path = list(without_foreign_origins(journal.path(thread.id), thread, "zimaos", common=("message",)))
            row = _row(thread, path)
            connection.execute(f"INSERT OR REPLACE INTO sessions VALUES ({','.join('?' * len(COLUMNS))})", row)
            target.threads.append(thread.id)
            target.entries += len(path)
            others = len(journal.entries(thread.id)) - len(path)
            if others:
                target.note("loss", f"{others} entries on other branches are left out", thread_id=thread.id)
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
        gojson.encode({"messages": [_ordered(message) for message in messages]}).decode(),
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
    return gojson.encode(metadata).decode()


def _ordered(message: dict[str, Any]) -> dict[str, Any]:
    first: dict[str, Any] = {
        name: message[name] for name in ("role", "content", "tool_calls", "tool_call_id") if name in message
    }
    return {**first, **{name: value for name, value in message.items() if name not in first}}


def _time(time_ns: int, written: Any, of: Any = None) -> str:
    """The text that the origin had, as long as the moment is the same."""
    if isinstance(written, str) and gotime.nanoseconds_of_any(of if isinstance(of, str) else written) == time_ns:
        return written
    return gotime.text(time_ns).replace("T", " ").replace("Z", "+00:00")
