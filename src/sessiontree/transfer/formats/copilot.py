"""The ``copilot`` format: the event logs of GitHub Copilot CLI."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.model import (
    Compaction,
    FilePart,
    ModelChange,
    Part,
    Payload,
    ReasoningPart,
    RunFailure,
    TextPart,
    ToolCallPart,
)
from sessiontree.model.builders import system, tool_result, user
from sessiontree.transfer.formats._blocks import arguments_text
from sessiontree.transfer.formats._files import modified_ns
from sessiontree.transfer.formats._messages import answer
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, json_records, kept, stamp_of
from sessiontree.transfer.formats._wire import Json, array, as_text, count, first_text, mapping, objects, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


_SPACES = frozenset({"session", "user", "assistant", "tool", "subagent", "hook", "skill", "system", "abort"})


def _recognises(head: Head) -> bool:
    return any(_is_ours(record) for record in head.records[:5])


def _is_ours(record: Json) -> bool:
    kind = text(record.get("type"))
    return "data" in record and "timestamp" in record and "." in kind and kind.partition(".")[0] in _SPACES


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    name = path.parent.name if path.name == "events.jsonl" else path.stem
    recorder = Recorder(path, tally, id=name, created_ns=modified_ns(path), stamp=stamp_of(path))
    facts = _workspace(path.with_name("workspace.yaml"))
    recorder.workspace, recorder.title = facts.get("cwd", ""), facts.get("summary", "") or facts.get("name", "")
    recorder.created_ns = when(facts.get("created_at")) or recorder.created_ns
    yield recorder.session(_Reader(path, recorder).items())


_format = FileFormat(_recognises, _read, "*.jsonl")
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _workspace(path: Path) -> dict[str, str]:
    """The plain ``name: value`` lines of the file beside the log."""
    if not path.is_file():
        return {}
    lines = (
        line.partition(": ")
        for line in path.read_text(errors="replace").splitlines()
        if not line.startswith((" ", "#"))
    )
    return {name.strip(): value.strip().strip("\"'") for name, _, value in lines}


class _Reader:
    """The events of one log. Calls that a message asks for are not repeated when they start."""

    def __init__(self, path: Path, recorder: Recorder) -> None:
        self._path = path
        self._recorder = recorder
        self._tip: str | None = None
        self._parents: dict[str, str | None] = {}
        self._asked: set[str] = set()

    def items(self) -> Iterator[ImportedRecord]:
        for wire, line, problem in json_records(self._path, self._recorder):
            if wire is None:
                yield self._follow(self._recorder.broken(line, problem, self._tip))
                continue
            data = mapping(wire.get("data"))
            time = self._recorder.time(when(wire.get("timestamp")))
            if wire.get("type") == "session.snapshot_rewind":
                self._tip = self._parents.get(text(data.get("upToEventId")), self._tip)
            payload = self._payload(text(wire.get("type")), data, wire)
            entry_id = text(wire.get("id")) or self._recorder.ids.next(line.body)
            yield self._follow(ImportedRecord(payload, entry_id, time, self._tip))

    def _follow(self, record: ImportedRecord) -> ImportedRecord:
        self._parents[record.id] = self._tip
        self._tip = record.id
        return record

    def _payload(self, kind: str, data: Json, wire: Json) -> Payload:
        recorder = self._recorder
        match kind:
            case "user.message":
                return kept(user([TextPart(text=text(data.get("content"))), *_attachments(data)]), wire)
            case "system.message":
                return kept(system(text(data.get("content"))), wire)
            case "assistant.message":
                return kept(self._answer(data), wire)
            case "assistant.reasoning":
                return recorder.remark(kind, first_text(data, "content", "text"), wire)
            case "tool.execution_start" | "tool.user_requested" if text(data.get("toolCallId")) not in self._asked:
                self._asked.add(text(data.get("toolCallId")))
                return kept(answer([_call(data)], model=recorder.model), wire)
            case "tool.execution_complete":
                return kept(_result(data), wire)
            case "session.start" | "session.resume":
                self._learn(data)
                return recorder.side(kind, wire)
            case "session.model_change":
                recorder.model = text(data.get("newModel"))
                return kept(ModelChange(model=recorder.model), wire)
            case "session.compaction_complete" if text(data.get("summaryContent")):
                summary = text(data.get("summaryContent"))
                before = count(data.get("preCompactionTokens"))
                found = Compaction(summary=summary, tokens_before=before, tail_after_entry_id=self._tip or "")
                return kept(found, wire)
            case "session.error":
                return kept(RunFailure(error=text(data.get("message")) or as_text(data)), wire)
            case "session.info" | "session.warning":
                return recorder.remark(kind, text(data.get("message")), wire)
            case "tool.execution_start" | "tool.user_requested" | "assistant.turn_start" | "assistant.turn_end":
                return recorder.side(kind, wire)
            case _ if kind.partition(".")[0] in _SPACES:
                return recorder.remark(kind, data, wire)
            case _:
                return recorder.unknown(kind or "no type", wire)

    def _learn(self, data: Json) -> None:
        recorder, context = self._recorder, mapping(data.get("context"))
        recorder.workspace = text(context.get("cwd")) or recorder.workspace
        recorder.model = text(data.get("selectedModel")) or recorder.model
        branch = text(context.get("branch"))
        recorder.custom |= {"git_branch": branch} if branch else {}

    def _answer(self, data: Json) -> Payload:
        self._recorder.model = text(data.get("model")) or self._recorder.model
        requests = objects(data.get("toolRequests"))
        self._asked.update(text(request.get("toolCallId")) for request in requests)
        thought = text(data.get("reasoningText"))
        said = text(data.get("content"))
        parts: list[Part] = [
            *([ReasoningPart(provider="copilot", text=thought)] if thought else []),
            *([TextPart(text=said)] if said else []),
            *(_call(request) for request in requests),
        ]
        return answer(parts, model=self._recorder.model)


def _attachments(data: Json) -> list[Part]:
    """The files and selections that a user attached: their names, and the text of a selection."""
    found: list[Part] = []
    for one in objects(data.get("attachments")):
        found.append(FilePart(name=first_text(one, "path", "filePath", "displayName", "name")))
        words = first_text(one, "text", "content")
        found += [TextPart(text=words)] if words else []
    return found


def _call(data: Json) -> ToolCallPart:
    name = first_text(data, "name", "toolName")
    return ToolCallPart(id=text(data.get("toolCallId")), name=name, arguments=arguments_text(data.get("arguments")))


def _result(data: Json) -> Payload:
    result = data.get("result")
    said: Any = mapping(result).get("content") if isinstance(result, dict) else result
    if isinstance(said, list):
        said = "\n".join(text(block.get("text")) for block in objects(array(said)))
    failed = mapping(data.get("error")).get("message") or data.get("error")
    words = as_text(said if said is not None else failed)
    return tool_result(text(data.get("toolCallId")), words, is_error=data.get("success") is False)
