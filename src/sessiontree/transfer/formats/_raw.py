"""Write imported sessions back from the raw records that were kept: every branch, and nothing translated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec.structs import replace

from sessiontree.journal import Journal
from sessiontree.model import Entry, Event, Thread
from sessiontree.model.artifacts import artifacts_of
from sessiontree.transfer.formats._artifacts import with_contents
from sessiontree.transfer.formats._files import pages
from sessiontree.transfer.formats._records import unreadable_bytes
from sessiontree.transfer.formats._wire import Json, mapping, objects, text

__all__ = ["raw_document"]


def raw_document(journal: Journal, thread: Thread, format_name: str) -> tuple[str, bytes] | None:
    """The name and the content of the file of an imported session; ``None`` if it was not imported from there, or if
    something was added to it here."""
    if thread.origin.get("format") != format_name:
        return None
    entries = [_whole(journal, entry) for entry in pages(journal, thread.id)]
    raws = [(entry, raw) for entry in entries if (raw := _raws(entry)) is not None]
    names = {_base(entry.id) for entry, _ in raws}
    if any(_base(entry.id) not in names for entry in entries):
        return None
    stem = PurePath(mapping(thread.origin.get("file")).get("path", thread.id)).name.partition(".")[0]
    match format_name:
        case "claude-code" | "codex":
            return f"{stem}.jsonl", b"".join(line for _, raw in raws for line in raw)
        case "gemini":
            return f"{stem}.jsonl", b"".join(_gemini(thread, entries))
        case "opencode":
            return f"{thread.id}.json", _opencode(thread, entries)
        case "goose":
            return f"{thread.id}.json", _goose(thread, entries)
        case _:
            return None


def _whole(journal: Journal, entry: Entry) -> Entry:
    """The entry with the data of images and files back in its raw record."""
    origin: Json = getattr(entry.payload, "origin", {})
    if not artifacts_of(entry.payload) or "raw" not in origin:
        return entry
    raw = with_contents(origin["raw"], journal.read_artifact)
    payload: Any = entry.payload
    return replace(entry, payload=replace(payload, origin={**origin, "raw": raw}))


def _base(entry_id: str) -> str:
    """The id of the record that an entry was made of."""
    return entry_id.partition("+")[0].partition(".")[0].partition("~")[0]


def _raws(entry: Entry) -> list[bytes] | None:
    """The lines of an entry; ``None`` if it was not made of a record of its own."""
    broken = unreadable_bytes(entry.payload)
    if broken is not None:
        is_cut = mapping(getattr(entry.payload, "origin", None)).get("unended") is True
        return [broken if is_cut else broken + b"\n"]
    raw = _raw(entry)
    if raw is None:
        return None
    return [msgspec.json.encode(one) + b"\n" for one in (raw if isinstance(raw, list) else [raw])]


def _raw(entry: Entry) -> Any:
    origin: Json = getattr(entry.payload, "origin", {})
    if "raw" in origin:
        return origin["raw"]
    return entry.payload.data if isinstance(entry.payload, Event) else None


def _messages(entries: list[Entry]) -> Iterator[tuple[Entry, Json]]:
    """Each raw record once, with the first entry that was made of it."""
    seen: set[str] = set()
    for entry in entries:
        raw = _raw(entry)
        if isinstance(raw, dict) and _base(entry.id) not in seen:
            seen.add(_base(entry.id))
            yield entry, raw


def _forms(entries: list[Entry]) -> Iterator[tuple[Entry, Json]]:
    """Each raw record in every form that it was written in, with the first entry that was made of that form."""
    last: dict[str, Json] = {}
    for entry in entries:
        raw, name = _raw(entry), _base(entry.id)
        if isinstance(raw, dict) and last.get(name) != raw:
            last[name] = raw
            yield entry, raw


def _gemini(thread: Thread, entries: list[Entry]) -> Iterator[bytes]:
    """A log: where a message does not follow the last one, the log goes back to before what followed its parent.

    A message that was written again is written again: its last form counts.
    """
    facts = {"sessionId": thread.origin.get("session", thread.id), "projectHash": "", "kind": "main"}
    if thread.title:
        facts["summary"] = thread.title
    yield msgspec.json.encode(facts | {"startTime": f"{thread.created_at:%Y-%m-%dT%H:%M:%S.%fZ}"}) + b"\n"
    history: list[str] = []
    owner = {entry.id: _base(entry.id) for entry in entries}
    for entry, raw in _forms(entries):
        name = text(raw.get("id")) or owner[entry.id]
        if name not in history:
            on_path = _followed(history, owner.get(entry.parent or ""))
            if len(on_path) < len(history):
                yield msgspec.json.encode({"$rewindTo": history[len(on_path)]}) + b"\n"
            history = [*on_path, name]
        yield msgspec.json.encode(raw) + b"\n"
    active = owner.get(thread.leaf or "")
    on_path = _followed(history, active)
    if len(on_path) < len(history):
        yield msgspec.json.encode({"$rewindTo": history[len(on_path)]}) + b"\n"


def _followed(history: list[str], name: str | None) -> list[str]:
    """The history up to and with a message."""
    return history[: history.index(name) + 1] if name in history else []


def _opencode(thread: Thread, entries: list[Entry]) -> bytes:
    found = [raw for _, raw in _messages(entries) if "info" in raw]
    leaf = next(
        (index for index, (entry, _) in enumerate(_messages(entries)) if entry.id == _after(thread, entries)), None
    )
    info: Json = {
        "id": thread.id,
        "version": "1",
        "directory": thread.workspace,
        "title": thread.title,
        "parentID": thread.parent_thread or None,
        "time": {"created": thread.created_ns // 1_000_000, "updated": thread.updated_ns // 1_000_000},
    }
    if leaf is not None:
        info["revert"] = {"messageID": mapping(found[leaf].get("info")).get("id")}
    return msgspec.json.encode({"info": info, "messages": found})


def _after(thread: Thread, entries: list[Entry]) -> str:
    """The entry that follows the leaf, if the last messages were reverted."""
    names = [entry.id for entry in entries]
    at = names.index(thread.leaf) if thread.leaf in names else -1
    return names[at + 1] if at + 1 < len(names) else ""


def _goose(thread: Thread, entries: list[Entry]) -> bytes:
    messages = [
        {
            "id": raw.get("message_id") or raw.get("id"),
            "created": raw.get("created_timestamp", raw.get("created")),
            **_visible(raw),
            "role": raw.get("role"),
            "content": raw.get("content"),
        }
        for _, raw in _messages(entries)
        if "role" in raw
    ]
    facts = {"id": str(thread.origin.get("session", thread.id)).removeprefix("goose-"), "name": thread.title}
    facts |= {"provider_name": thread.vendor}
    times = {
        "created_at": f"{thread.created_at:%Y-%m-%dT%H:%M:%SZ}",
        "updated_at": f"{thread.updated_at:%Y-%m-%dT%H:%M:%SZ}",
    }
    return msgspec.json.encode(
        {
            **facts,
            **times,
            "working_dir": thread.workspace,
            "model_config": {"model_name": thread.model},
            "conversation": objects(messages),
        }
    )


def _visible(raw: Json) -> Json:
    found = raw.get("metadata") or raw.get("metadata_json")
    return {"metadata": msgspec.json.decode(found) if isinstance(found, str) else found} if found else {}
