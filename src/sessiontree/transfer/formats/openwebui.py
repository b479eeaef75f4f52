"""The ``openwebui`` format: Open WebUI's chats, as its export or in its database, with every branch."""

from __future__ import annotations

import html
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.model import (
    Custom,
    FilePart,
    ImagePart,
    Part,
    Payload,
    ReasoningPart,
    RunFailure,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from sessiontree.transfer.formats._blocks import image_part
from sessiontree.transfer.formats._files import size_of
from sessiontree.transfer.formats._messages import by_role, parents_first, split_results
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._sqlite import columns, opened, rows
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, kept, records_in, whole_json
from sessiontree.transfer.formats._wire import (
    Json,
    array,
    as_text,
    decoded,
    first_text,
    mapping,
    objects,
    text,
    usage,
    when,
)

__all__ = ["detect", "session_files", "sessions", "size"]


_DETAILS = re.compile(r'<details type="(reasoning|tool_calls)"([^>]*)>(.*?)</details>', re.DOTALL)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
_BESIDE = ("sources", "citations", "statusHistory", "annotation")
_COUNTS = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens", "total_tokens": "total_tokens"}


def _recognises(head: Head) -> bool:
    if head.data.startswith(b"SQLite format 3\x00"):
        (chat,) = columns(head.path, "chat")
        return {"chat", "title", "user_id"} <= chat
    is_tree = head.has("history", "messages") and (head.has("currentId") or head.has("childrenIds"))
    is_list = head.has("chat", "messages", "role") and (head.has("user_id") or head.has("models"))
    return head.path.suffix == ".json" and head.is_json and (is_tree or is_list)


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    if path.suffix == ".json":
        whole = whole_json(path, tally)
        for row in [whole] if isinstance(whole, dict) else records_in(whole, path, tally):
            yield _session(path, row, tally)
        return
    try:
        with opened(path) as connection:
            for row in rows(connection, "SELECT * FROM chat ORDER BY created_at, id"):
                yield _session(path, {**row, "chat": decoded(row.get("chat"))}, tally)
            tally.advance(size_of(path))
    except (sqlite3.Error, OSError, UnicodeError) as error:
        tally.note("damage", str(path), f"the rest of the database cannot be read: {error}")


_format = FileFormat(_recognises, _read, "*.json", "*.db")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _session(path: Path, row: Json, tally: Tally) -> ImportedSession:
    chat = mapping(row.get("chat")) or row
    history = mapping(chat.get("history"))
    created = when(row.get("created_at")) or when(chat.get("timestamp")) or 0
    recorder = Recorder(path, tally, id=first_text(row, "id") or text(chat.get("id")) or path.stem, created_ns=created)
    recorder.title = text(row.get("title")) or text(chat.get("title"))
    recorder.is_archived = bool(row.get("archived"))
    recorder.model = next((text(model) for model in array(chat.get("models"))), "")
    tags = [
        text(tag) if isinstance(tag, str) else text(mapping(tag).get("name"))
        for tag in array(mapping(row.get("meta")).get("tags"))
    ]
    recorder.tags = tuple(filter(None, tags))
    listed = mapping(history.get("messages")) or _in_line(records_in(chat.get("messages"), path, tally), recorder)
    messages = {name: message for name, message in listed.items() if isinstance(message, dict)}
    for name in listed.keys() - messages.keys():
        tally.note("damage", str(path), f"message {name!r} is not an object; it was left out", thread_id=recorder.id)
    entries: dict[str, str] = {}
    current = text(history.get("currentId"))
    leaf: Any = {"leaf": lambda: entries.get(current)} if current in messages else {}
    system = text(chat.get("system"))
    return recorder.session(_items(messages, system, recorder, entries), **leaf)


def _in_line(messages: list[Json], recorder: Recorder) -> dict[str, Json]:
    """The messages of a chat without a tree, as a tree: each follows the one before it unless it names its parent."""
    found: dict[str, Json] = {}
    before: str | None = None
    for number, message in enumerate(messages):
        name = text(message.get("id")) or f"{recorder.id}.{number}"
        found[name] = {"parentId": before, **message}
        before = name
    return found


def _items(
    messages: dict[str, Json], system: str, recorder: Recorder, entries: dict[str, str]
) -> Iterator[ImportedRecord]:
    root: str | None = None
    if system:
        root = f"{recorder.id}.system"
        yield ImportedRecord(by_role("system", [TextPart(text=system)])[0], root, recorder.created_ns, None)
    parents = {name: text(message.get("parentId")) or None for name, message in messages.items()}
    for name in parents_first(parents):
        wire = messages[name]
        parent = parents[name]
        above = entries.get(parent, parent) if parent else root
        time = recorder.time(when(wire.get("timestamp")))
        for number, payload in enumerate(_payloads(wire, recorder)):
            entry_id = name + (f".{number}" if number else "")
            yield ImportedRecord(kept(payload, wire) if not number else payload, entry_id, time, above)
            above = entries[name] = entry_id


def _payloads(wire: Json, recorder: Recorder) -> list[Payload]:
    said = _said(wire, recorder)
    error = wire.get("error")
    if error and error is not True:
        words = text(mapping(error).get("content")) or as_text(error)
        said.append(RunFailure(error=words))
    beside = {name: wire[name] for name in _BESIDE if wire.get(name)}
    return [*said, Custom(name="beside the message", data=beside)] if beside else said


def _said(wire: Json, recorder: Recorder) -> list[Payload]:
    role = text(wire.get("role")) or "user"
    parts = [*_parts(text(wire.get("content"))), *_files(wire)]
    if role != "assistant":
        return by_role(role, parts)
    recorder.model = text(wire.get("model")) or recorder.model
    spent = usage(wire.get("usage"), _COUNTS)
    found: list[Payload] = []
    step: list[Part] = []
    for part in parts:
        step.append(part)
        if isinstance(part, ToolResultPart):
            results, said = split_results(step)
            found += [*by_role(role, said, model=recorder.model), *by_role("user", results)]
            step = []
    if step or not found:
        found += by_role(role, step, model=recorder.model, usage=spent)
    return found


def _parts(content: str) -> list[Part]:
    """The text, with reasoning and calls taken out of the markup that the page shows them by."""
    found: list[Part] = []
    at = 0
    for match in _DETAILS.finditer(content):
        found += _text(content[at : match.start()])
        found += _detail(match[1], dict(_ATTRIBUTE.findall(match[2])), match[3])
        at = match.end()
    return [*found, *_text(content[at:])]


def _text(words: str) -> list[Part]:
    return [TextPart(text=words.strip("\n"))] if words.strip() else []


def _detail(kind: str, facts: dict[str, str], inner: str) -> list[Part]:
    if kind == "reasoning":
        words = re.sub(r"(?s)<summary>.*?</summary>", "", inner)
        lines = (line.removeprefix("> ").removeprefix(">") for line in html.unescape(words).strip().splitlines())
        return [ReasoningPart(provider="openwebui", text="\n".join(lines))]
    name, call = html.unescape(facts.get("name", "")), facts.get("id", "")
    made = ToolCallPart(id=call, name=name, arguments=html.unescape(facts.get("arguments", "")) or "{}")
    result = html.unescape(facts.get("result", ""))
    return [made, ToolResultPart(call_id=call, name=name, parts=(TextPart(text=result),))] if result else [made]


def _files(wire: Json) -> list[Part]:
    found: list[Part] = []
    for file in objects(wire.get("files")):
        url, name = (
            text(file.get("url")),
            first_text(file, "name", "id") or text(mapping(file.get("file")).get("filename")),
        )
        if file.get("type") == "image":
            found.append(image_part({"url": url}) or ImagePart(url=url))
        else:
            found.append(FilePart(url=url, name=name))
    return found
