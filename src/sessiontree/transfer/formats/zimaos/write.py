"""Write sessions into a database of ZimaOS-Blue. Sessions are flat there, so a row holds the active path.

Messages that a compaction replaced stay in the row, before the ones that it kept: ZimaOS-Blue has no other place for
them, and reads them as part of the conversation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any, NamedTuple

import msgspec

from sessiontree.context import window_of
from sessiontree.journal import Journal
from sessiontree.model import Compaction, Entry, SystemMessage, Thread
from sessiontree.sessions.keys import generation_of
from sessiontree.sessions.states import last_interaction_ns, without_manager_data
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import ExportTarget, note_other_branches, without_foreign_origins
from sessiontree.transfer.formats.zimaos.records import (
    COLUMNS,
    FIRST_KEPT,
    SCHEMA,
    STATES,
    Metadata,
    messages_text,
    metadata_text,
    written,
)

__all__ = ["write"]

_NAME = "sessions.db"
_FORMAT = "zimaos"


def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
    target.write(_NAME, [])
    with closing(sqlite3.connect(target.folder / _NAME)) as connection:
        connection.executescript(SCHEMA)
        ids = _Ids(connection)
        for thread in threads:
            path = list(without_foreign_origins(journal.path(thread.id), thread, _FORMAT, common=("message",)))
            row = (ids.take(thread), *_row(thread, path))
            connection.execute(f"INSERT INTO sessions VALUES ({','.join('?' * len(COLUMNS))})", row)
            target.threads.append(thread.id)
            target.entries += len(path)
            note_other_branches(journal, thread, path, target)
        connection.commit()


class _Owner(NamedTuple):
    """Who has an id, the highest rank first: what is in use, then what is archived; of both, what was imported.

    ZimaOS-Blue finds a session by the id of its key, so the conversation in use has it.
    """

    rank: int
    otherwise: str


class _Ids:
    """The ids of rows. A key has one row in ZimaOS-Blue, so of several conversations only one can have the key's id."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._owners: dict[str, _Owner] = {}

    def take(self, thread: Thread) -> str:
        """The id for a thread; the row that has it now gets another one if the thread has the better claim."""
        wanted, owner = _claim(thread)
        held = self._owners.get(wanted)
        if held is None:
            self._owners[wanted] = owner
            return wanted
        if held.rank >= owner.rank:
            return self._free(owner)
        moved = self._free(held)
        self._connection.execute("UPDATE sessions SET id = ? WHERE id = ?", (moved, wanted))
        self._owners[wanted] = owner
        return wanted

    def _free(self, owner: _Owner) -> str:
        name, number = owner.otherwise, 1
        while name in self._owners:
            number += 1
            name = f"{owner.otherwise}-{number}"
        self._owners[name] = owner
        return name


def _claim(thread: Thread) -> tuple[str, _Owner]:
    generation = generation_of(thread)
    in_use = 0 if thread.is_archived else 2
    if not generation:
        own = thread.origin.get("id", thread.id) if thread.origin.get("format") == _FORMAT else thread.id
        return own, _Owner(in_use + 1, f"{own}#0")
    key = thread.key
    wanted = ":".join((key.agent, key.channel, key.peer, *((key.thread,) if key.thread else ())))
    return wanted, _Owner(in_use, f"{wanted}#{generation}")


def _row(thread: Thread, path: Sequence[Entry]) -> tuple[Any, ...]:
    """All columns but the id."""
    prompt = next((e.payload.message.text for e in reversed(path) if isinstance(e.payload, SystemMessage)), None)
    boundary = window_of(path).boundary
    key, origin = thread.key, thread.origin
    times = origin.get("times", {})
    return (
        key.agent,
        key.channel,
        key.peer,
        key.thread if key.thread or origin.get("has_thread") else None,
        _state(thread),
        _metadata(thread, path),
        _messages(thread, path),
        prompt,
        _time(thread.created_ns, times.get("created_at")),
        _time(thread.updated_ns, times.get("updated_at"), times.get("last_active_at")),
        _time(last_interaction_ns(thread), times.get("last_active_at")),
        _time(boundary.created_ns, None) if boundary and _is_ours(boundary) else times.get("compacted_at"),
    )


def _state(thread: Thread) -> int:
    known: int = thread.origin.get("state", -1)
    if thread.is_archived:
        return STATES.index("archived")
    if thread.state in STATES:
        return STATES.index(thread.state)
    return max(known, 0)


def _messages(thread: Thread, path: Sequence[Entry]) -> str | None:
    origin = thread.origin
    if thread.leaf == origin.get("leaf") and "messages" in origin.get("texts", {}):
        text: str | None = origin["texts"]["messages"]
        return text
    window = window_of(path)
    head, kept = _all_written(window.head), _all_written((*window.tail, *window.after))
    beside = origin.get("rest", {}) | ({FIRST_KEPT: len(head)} if head else {})
    return messages_text([*head, *kept], beside)


def _all_written(entries: Sequence[Entry]) -> list[bytes]:
    return [
        text for entry in entries if not isinstance(entry.payload, SystemMessage) for text in written(entry.payload)
    ]


def _metadata(thread: Thread, path: Sequence[Entry]) -> str | None:
    boundary = window_of(path).boundary
    counts = _counts(thread, path)
    metadata = Metadata(
        title=thread.title,
        summary=boundary.payload.summary if boundary and isinstance(boundary.payload, Compaction) else "",
        tags=list(thread.tags),
        custom_data={
            name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
            for name, value in sorted(without_manager_data(thread.custom).items())
        },
        message_count=counts[0],
        token_count=counts[1],
        compaction_count=counts[2],
    )
    texts = thread.origin.get("texts", {})
    if "metadata" not in texts:
        return metadata_text(metadata, {})
    return _as_imported(texts["metadata"], metadata)


def _as_imported(text: Any, metadata: Metadata) -> str | None:
    """The text that was imported if it still says the same; else a new one with the keys that are not ours."""
    known: set[str] = set(Metadata.__struct_fields__)
    if not isinstance(text, str) or not text:
        unchanged = Metadata(message_count=0, token_count=0, compaction_count=0)
        return text if metadata == unchanged else metadata_text(metadata, {})
    try:
        if _go.as_type(text.encode(), Metadata) == metadata:
            return text
        decoded = _go.decode(text.encode())
    except _go.JsonError:
        return metadata_text(metadata, {})
    return metadata_text(metadata, {name: value for name, value in decoded.items() if name.casefold() not in known})


def _counts(thread: Thread, path: Sequence[Entry]) -> list[int]:
    """Messages, tokens and compactions: the imported counts go on as long as the imported history is on the path."""
    boundary = window_of(path).boundary
    compactions = boundary.payload.generation if boundary and isinstance(boundary.payload, Compaction) else 0
    counts: list[int] | None = thread.origin.get("counts")
    ids = [entry.id for entry in path]
    leaf = thread.origin.get("leaf")
    if counts is None or (leaf is not None and leaf not in ids):
        return [len(_all_written(path)), thread.tokens, compactions]
    new = path[ids.index(leaf) + 1 :] if leaf is not None else path
    if not new:
        return counts
    return [counts[0] + len(_all_written(new)), thread.tokens, max(counts[2], compactions)]


def _is_ours(boundary: Entry) -> bool:
    """Whether a compaction was made here; an imported one has no trigger."""
    return isinstance(boundary.payload, Compaction) and bool(boundary.payload.trigger)


def _time(time_ns: int, imported: Any, of: Any = None) -> str:
    """Return a time as text: the imported text if it names the same time, otherwise a new one."""
    if isinstance(imported, str) and _go.nanoseconds_of_any(of if isinstance(of, str) else imported) == time_ns:
        return imported
    return _go.text(time_ns).replace("T", " ").replace("Z", "+00:00")
