"""The ``claude-ai`` format: the data export of claude.ai, and the conversation that its web page loads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.model import FilePart, ImagePart, Part, ReasoningPart, TextPart
from sessiontree.transfer.formats._archive import documents
from sessiontree.transfer.formats._blocks import parts_of
from sessiontree.transfer.formats._messages import by_role, parents_first
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, kept, records_in
from sessiontree.transfer.formats._wire import Json, as_text, first_text, objects, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


_NO_PARENT = "00000000-0000-4000-8000-000000000000"


def _recognises(head: Head) -> bool:
    if head.is_zip:
        return any(b'"chat_messages"' in start for start in head.members("conversations"))
    return head.is_json and head.has("chat_messages", "uuid")


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    for place, document in documents(path, "conversations", tally):
        found = [document] if isinstance(document, dict) else records_in(document, place, tally)
        for conversation in found:
            if isinstance(conversation.get("chat_messages"), list):
                yield _session(place, conversation, tally)
            else:
                name = first_text(conversation, "name", "uuid") or as_text(conversation)[:80]
                tally.note("damage", str(place), f"the conversation {name!r} has no messages; it was left out")


_format = FileFormat(_recognises, _read, "*.json", "*.zip")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _session(place: Path, wire: Json, tally: Tally) -> ImportedSession:
    recorder = Recorder(
        place, tally, id=text(wire.get("uuid")) or place.stem, created_ns=when(wire.get("created_at")) or 0
    )
    recorder.title = text(wire.get("name"))
    recorder.model = text(wire.get("model"))
    recorder.provider = "anthropic"
    recorder.origin["raw"] = {key: value for key, value in wire.items() if key != "chat_messages"}
    entries: dict[str, str] = {}
    current = text(wire.get("current_leaf_message_uuid"))
    leaf: Any = {"leaf": lambda: entries.get(current) or next(reversed(entries.values()), None)} if current else {}
    return recorder.session(_items(records_in(wire["chat_messages"], place, tally), recorder, entries), **leaf)


def _items(messages: list[Json], recorder: Recorder, entries: dict[str, str]) -> Iterator[ImportedRecord]:
    named = {text(message.get("uuid")) or f"message-{number}": message for number, message in enumerate(messages)}
    order = list(named)
    parents = {name: _parent(named[name], order[number - 1] if number else None) for number, name in enumerate(order)}
    for name in parents_first(parents):
        wire, parent = named[name], parents[name]
        above = entries.get(parent, parent) if parent else None
        role = {"human": "user"}.get(text(wire.get("sender")), text(wire.get("sender")) or "user")
        answered: Any = {"provider": "anthropic", "model": recorder.model} if role == "assistant" else {}
        time = recorder.time(when(wire.get("created_at")))
        for number, payload in enumerate(by_role(role, _parts(wire), **answered)):
            entry_id = name + (f".{number}" if number else "")
            yield ImportedRecord(kept(payload, wire), entry_id, time, above)
            above = entries[name] = entry_id


def _parent(message: Json, before: str | None) -> str | None:
    if "parent_message_uuid" not in message:
        return before
    parent = text(message.get("parent_message_uuid"))
    return None if parent in ("", _NO_PARENT) else parent


def _parts(wire: Json) -> list[Part]:
    blocks = objects(wire.get("content"))
    found = [part for block in blocks if block.get("type") != "token_budget" for part in _with_summaries(block)]
    if not any(isinstance(part, TextPart) and part.text for part in found) and text(wire.get("text")):
        found.append(TextPart(text=text(wire.get("text"))))
    for attachment in objects(wire.get("attachments")):
        name, content = text(attachment.get("file_name")), text(attachment.get("extracted_content"))
        found.append(TextPart(text=f"<file name={name!r}>\n{content}\n</file>"))
    seen = set()
    for file in [*objects(wire.get("files")), *objects(wire.get("files_v2"))]:
        name = first_text(file, "file_name", "file_uuid")
        if name and name not in seen:
            seen.add(name)
            is_image = file.get("file_kind") == "image"
            found.append(ImagePart(url=first_text(file, "preview_url") or name) if is_image else FilePart(name=name))
    return found


def _with_summaries(block: Json) -> list[Part]:
    """The part of a block; thinking that is hidden is kept as the summaries of it."""
    said = [text(one.get("summary")) for one in objects(block.get("summaries"))]
    if block.get("type") == "thinking" and said and not text(block.get("thinking")):
        return [ReasoningPart(provider="claude-ai", text="\n".join(said))]
    return list(parts_of(block))
