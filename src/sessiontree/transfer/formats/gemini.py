"""The ``gemini`` format: the chats of Gemini CLI, as one JSON document or as a log with rewinds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import UNSET

from sessiontree.model import (
    Custom,
    FilePart,
    ImagePart,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    RunFailure,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
)
from sessiontree.model.builders import user
from sessiontree.model.message import Message
from sessiontree.transfer.formats._blocks import arguments_text
from sessiontree.transfer.formats._files import modified_ns
from sessiontree.transfer.formats._head import head
from sessiontree.transfer.formats._messages import answer
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._transcript import (
    FileFormat,
    Head,
    Recorder,
    json_records,
    kept,
    marked,
    records_in,
    stamp_of,
    whole_json,
)
from sessiontree.transfer.formats._wire import Json, as_text, first_text, mapping, objects, text, usage, when

__all__ = ["detect", "session_files", "sessions", "size"]


_PROVIDER = "gemini"
_COUNTS = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cache_read_tokens",
    "thoughts": "reasoning_tokens",
    "total": "total_tokens",
}


def _is_document(found: Head) -> bool:
    """Whether it is one JSON document, whatever its name says: its lines are no records."""
    return found.path.suffix == ".json" or not found.records


def _recognises(found: Head) -> bool:
    if _is_document(found):
        return found.is_json and found.has("sessionId", "messages") and _has_any(found, "projectHash", "startTime")
    return any(
        "sessionId" in record and ("projectHash" in record or "startTime" in record) for record in found.records[:1]
    )


def _has_any(found: Head, *names: str) -> bool:
    return any(found.has(name) for name in names)


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    log = _Log()
    recorder = Recorder(path, tally, id=path.stem, created_ns=modified_ns(path), stamp=stamp_of(path))
    broken: list[ImportedRecord] = []
    if _is_document(head(path)):
        log.set(_with_records(mapping(whole_json(path, tally)), path, tally))
    else:
        for wire, line, problem in json_records(path, recorder):
            if wire is None:
                broken.append(recorder.broken(line, problem, None))
            else:
                log.add(wire)
    if not log.facts and not log.messages:
        tally.note("damage", str(path), "there is no session in it")
        return
    _learn(recorder, log.facts, path)
    entries: dict[str | None, str | None] = {}
    yield recorder.session(
        _items(log, recorder, broken, entries), leaf=lambda: entries.get(log.leaf) if log.was_rewound else UNSET
    )


_format = FileFormat(_recognises, _read, "*.json", "*.jsonl")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


_FACTS = frozenset(
    {"sessionId", "projectHash", "startTime", "lastUpdated", "summary", "directories", "kind", "messages"}
)


class _Log:
    """The messages that were written, each in its last form, with the one that it followed."""

    def __init__(self) -> None:
        self.facts: Json = {}
        self.messages: dict[str, Json] = {}
        self.parents: dict[str, str | None] = {}
        self.earlier: dict[str, list[Json]] = {}
        self._history: list[str] = []

    @property
    def leaf(self) -> str | None:
        return self._history[-1] if self._history else None

    @property
    def was_rewound(self) -> bool:
        """Whether the conversation goes on from an earlier message than the last one that was written."""
        return self.leaf != next(reversed(self.messages), None)

    def add(self, wire: Json) -> None:
        if "$rewindTo" in wire:
            name = text(wire["$rewindTo"])
            self._history = self._history[: self._history.index(name)] if name in self._history else []
        elif "$set" in wire:
            self.set(mapping(wire["$set"]))
        elif "type" in wire or "content" in wire:
            self._put(wire)
        elif _FACTS & wire.keys():
            self.set(wire)
        else:
            self._put({"type": next(iter(wire), ""), **wire})

    def set(self, facts: Json) -> None:
        """Take metadata; a list of messages in it is the whole history from now on."""
        self.facts |= {name: value for name, value in facts.items() if name != "messages"}
        if isinstance(facts.get("messages"), list):
            self._history = []
            for message in objects(facts["messages"]):
                self._put(message)

    def _put(self, message: Json) -> None:
        name = text(message.get("id")) or f"message-{len(self.messages)}"
        if name not in self.messages:
            self.parents[name] = self.leaf
        if self.messages.get(name, message) != message:
            self.earlier.setdefault(name, []).append(self.messages[name])
        self.messages[name] = message
        if name not in self._history:
            self._history.append(name)


def _learn(recorder: Recorder, facts: Json, path: Path) -> None:
    recorder.id = text(facts.get("sessionId")) or recorder.id
    recorder.origin["session"] = recorder.id
    recorder.created_ns = when(facts.get("startTime")) or recorder.created_ns
    recorder.last_ns = recorder.created_ns
    recorder.title = text(facts.get("summary"))
    folders = [text(folder) for folder in facts.get("directories") or [] if isinstance(folder, str)]
    marker = path.parent.parent / ".project_root"
    root = marker.read_text(errors="replace").strip() if path.parent.name == "chats" and marker.is_file() else ""
    recorder.workspace = root or (folders[0] if folders else "")
    recorder.provider = "google"
    if facts.get("kind") == "subagent":
        recorder.parent_thread = path.parent.name


def _items(
    log: _Log, recorder: Recorder, broken: list[ImportedRecord], last: dict[str | None, str | None]
) -> Iterator[ImportedRecord]:
    """The messages; ``last`` gets the entry with which each of them ends."""
    yield from broken
    last[None] = None
    for name, wire in log.messages.items():
        parent = last.get(log.parents[name])
        time_ns = recorder.time(when(wire.get("timestamp")))
        for earlier in log.earlier.get(name, ()):
            payload = _earlier_form(earlier, wire, recorder)
            entry_id = marked(f"{name}.earlier", payload)
            yield ImportedRecord(payload, entry_id, time_ns, parent)
            parent = entry_id
        for payload in _payloads(wire, recorder):
            entry_id = marked(name, payload)
            yield ImportedRecord(kept(payload, wire), entry_id, time_ns, parent)
            parent = entry_id
        last[name] = parent


def _earlier_form(earlier: Json, wire: Json, recorder: Recorder) -> Payload:
    """A message as it was before it was written again: found by search if it said something else."""
    is_part = _words(earlier.get("content")) in _words(wire.get("content"))
    name = "earlier form"
    return recorder.side(name, earlier) if is_part else recorder.remark(name, earlier.get("content"), earlier)


def _with_records(facts: Json, path: Path, tally: Tally) -> Json:
    return {**facts, "messages": records_in(facts["messages"], path, tally)} if "messages" in facts else facts


def _payloads(wire: Json, recorder: Recorder) -> list[Payload]:
    kind = text(wire.get("type"))
    match kind:
        case "user":
            shown = _words(wire.get("displayContent"))
            said: list[Payload] = [user(_parts(wire.get("content")))]
            return said if shown in _words(wire.get("content")) else [*said, Custom(name="shown as", data=shown)]
        case "gemini" | "model" | "assistant":
            return _answer(wire, recorder)
        case "info" | "warning":
            return [Custom(name=kind, data=_words(wire.get("content")))]
        case "error":
            return [RunFailure(error=_words(wire.get("content")))]
        case _:
            return [recorder.unknown(kind or "no type", wire)]


def _answer(wire: Json, recorder: Recorder) -> list[Payload]:
    thoughts = [
        ReasoningPart(
            provider=_PROVIDER, text=": ".join(filter(None, (text(one.get("subject")), text(one.get("description")))))
        )
        for one in objects(wire.get("thoughts"))
    ]
    made = objects(wire.get("toolCalls"))
    names = [text(call.get("id")) or f"{text(wire.get('id'))}-{number}" for number, call in enumerate(made)]
    calls = [
        ToolCallPart(id=name, name=text(call.get("name")), arguments=arguments_text(call.get("args")))
        for name, call in zip(names, made, strict=True)
    ]
    recorder.model = text(wire.get("model")) or recorder.model
    message = answer(
        [*thoughts, *_parts(wire.get("content")), *calls],
        provider="google",
        model=recorder.model,
        usage=usage(wire.get("tokens"), _COUNTS),
    )
    results = tuple(_result(name, call) for name, call in zip(names, made, strict=True) if _is_done(call))
    found: list[Payload] = [message]
    return [*found, ToolResultMessage(message=Message(role="tool", parts=results))] if results else found


def _is_done(call: Json) -> bool:
    return (
        call.get("result") is not None
        or bool(call.get("resultDisplay"))
        or call.get("status") in ("error", "cancelled")
    )


def _result(name: str, call: Json) -> ToolResultPart:
    return ToolResultPart(
        call_id=name,
        name=text(call.get("name")),
        parts=(TextPart(text=_result_text(call)),),
        is_error=call.get("status") in ("error", "cancelled"),
    )


def _result_text(call: Json) -> str:
    """What the tool said: the response in the result, or what the screen showed."""
    result = call.get("result")
    if isinstance(result, str):
        return result
    said = []
    for part in objects(result):
        response = mapping(mapping(part.get("functionResponse")).get("response"))
        said.append(
            first_text(response, "output", "error", "content") or text(part.get("text")) or as_text(response or part)
        )
    return "\n".join(said) or as_text(call.get("resultDisplay"))


def _parts(content: Any) -> tuple[Part, ...]:
    if isinstance(content, str):
        return (TextPart(text=content),) if content else ()
    if isinstance(content, dict):
        return (_part(content),)
    return tuple(_part(part) if isinstance(part, dict) else TextPart(text=as_text(part)) for part in content or [])


def _part(part: Json) -> Part:
    if isinstance(part.get("text"), str):
        return (
            ReasoningPart(provider=_PROVIDER, text=part["text"])
            if part.get("thought") is True
            else TextPart(text=part["text"])
        )
    data = mapping(part.get("inlineData"))
    if isinstance(data.get("data"), str):
        mime = text(data.get("mimeType"))
        kind = ImagePart if mime.startswith("image/") else FilePart
        return kind(data=data["data"], mime=mime)
    file = mapping(part.get("fileData"))
    if isinstance(file.get("fileUri"), str):
        return FilePart(url=file["fileUri"], mime=text(file.get("mimeType")))
    return OpaquePart(provider=_PROVIDER, block=part)


def _words(content: Any) -> str:
    return "".join(part.text for part in _parts(content) if isinstance(part, TextPart))
