"""The ``cline`` format: the tasks of Cline, Roo Code and Kilo Code.

A task has the history that the model saw and the log that the screen showed. The first is the conversation; of the log,
what the history does not have is kept in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from sessiontree.model import (
    Compaction,
    Part,
    Payload,
    RunFailure,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    UsageReport,
)
from sessiontree.model.builders import assistant, user
from sessiontree.transfer.formats._blocks import parts_of
from sessiontree.transfer.formats._files import modified_ns
from sessiontree.transfer.formats._messages import by_role
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally, chain_id
from sessiontree.transfer.formats._transcript import FileFormat, Head, Recorder, kept, records_in, stamp_of, whole_json
from sessiontree.transfer.formats._wire import (
    Json,
    as_text,
    count,
    decoded,
    first_text,
    mapping,
    objects,
    text,
    usage,
    when,
)
from sessiontree.transfer.formats._xml_calls import XmlCalls

__all__ = ["detect", "session_files", "sessions", "size"]


_HISTORY = "api_conversation_history.json"
_LOG = "ui_messages.json"
_COUNTS = {
    "tokensIn": "input_tokens",
    "tokensOut": "output_tokens",
    "cacheReads": "cache_read_tokens",
    "cacheWrites": "cache_write_tokens",
}
_SILENT = frozenset(
    [
        "api_req_finished",
        "api_req_retried",
        "api_req_retry_delayed",
        "checkpoint_created",
        "checkpoint_saved",
        "shell_integration_warning",
        "deleted_api_reqs",
        "load_mcp_documentation",
        "mcp_server_request_started",
        "codebase_search_result",
        "hook_status",
    ]
)


def _recognises(head: Head) -> bool:
    if not head.is_json:
        return False
    name = head.path.name
    if name == _LOG:
        return not head.path.with_name(_HISTORY).is_file()
    return name == _HISTORY or (name.endswith(".messages.json") and head.has("role", "content"))


def _parts_on_disk(path: Path) -> tuple[Path, ...]:
    return (path, *(path.with_name(name) for name in (_HISTORY, _LOG) if name != path.name))


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    name = path.name.removesuffix(".messages.json") if path.name.endswith(".messages.json") else path.parent.name
    facts = _facts(path, name)
    log_path = path.with_name(_LOG)
    log = (
        [one for one in records_in(whole_json(log_path, tally), log_path, tally) if one.get("partial") is not True]
        if log_path.is_file()
        else []
    )
    whole = whole_json(path, tally) if path.name != _LOG else []
    history = records_in(mapping(whole).get("messages") if isinstance(whole, dict) else whole, path, tally)
    first = next((when(one.get("ts")) for one in [*log, *history] if when(one.get("ts"))), None)
    created = first or when(facts.get("started_at")) or modified_ns(path)
    recorder = Recorder(path, tally, id=name, created_ns=created, stamp=stamp_of(*_parts_on_disk(path)))
    recorder.workspace = first_text(facts, "cwdOnTaskInitialization", "workspace", "cwd")
    recorder.parent_thread = text(facts.get("parentTaskId"))
    recorder.custom |= {"mode": facts["mode"]} if isinstance(facts.get("mode"), str) else {}
    models = objects(facts.get("model_usage"))
    recorder.model = text(models[-1].get("model_id")) if models else first_text(facts, "model", "modelId")
    recorder.provider = text(models[-1].get("model_provider_id")) if models else text(facts.get("provider"))
    yield recorder.session(_Task(recorder).items(history, log))


_format = FileFormat(_recognises, _read, "*.json", parts=_parts_on_disk)
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _facts(path: Path, name: str) -> Json:
    """What files beside the task, and the list of all tasks, say about it."""
    found: Json = {}
    for beside in ("task_metadata.json", "history_item.json", f"{name}.json"):
        file = path.with_name(beside)
        found |= mapping(whole_json(file, Tally())) if file.is_file() else {}
    listed = _tasks(path.parent.parent.parent / "state" / "taskHistory.json")
    return {**listed.get(name, {}), **found}


@lru_cache(maxsize=8)
def _tasks(path: Path) -> dict[str, Json]:
    return {text(task.get("id")): task for task in objects(whole_json(path, Tally()))} if path.is_file() else {}


class _Task:
    """The records of one task."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._tip = recorder.id
        self._said: set[str] = set()
        self._has_prompt = False
        self._calls = XmlCalls()

    def items(self, history: list[Json], log: list[Json]) -> Iterator[ImportedRecord]:
        for message in history:
            self._said.update(
                part.text.strip() for part in parts_of(message.get("content")) if isinstance(part, TextPart)
            )
        whole = "\n".join(self._said)
        waiting = list(log)
        for index, message in enumerate(history):
            while waiting and _comes_before(waiting[0], index, message):
                yield from self._shown(waiting.pop(0), whole, has_history=True)
            yield from self._message(message)
        for one in waiting:
            yield from self._shown(one, whole, has_history=bool(history))

    def _message(self, message: Json) -> Iterator[ImportedRecord]:
        role, parts = text(message.get("role")) or "user", parts_of(message.get("content"))
        if message.get("isSummary") is True:
            words = "\n".join(part.text for part in parts if isinstance(part, TextPart))
            yield self._put(Compaction(summary=words, tail_after_entry_id=self._tip), message)
            return
        answered: Any = (
            {"provider": self._recorder.provider, "model": self._recorder.model} if role == "assistant" else {}
        )
        for payload in by_role(role, self._with_calls(role, parts), **answered):
            yield self._put(payload, message)

    def _with_calls(self, role: str, parts: Sequence[Part]) -> Sequence[Part]:
        """The parts with the calls and results that older versions wrote as text."""
        if any(isinstance(part, ToolCallPart | ToolResultPart) for part in parts):
            return parts
        if role != "assistant":
            return self._calls.results(parts)
        return [
            found
            for part in parts
            for found in (self._calls.answer(part.text) if isinstance(part, TextPart) else [part])
        ]

    def _shown(self, one: Json, whole: str, *, has_history: bool) -> Iterator[ImportedRecord]:
        kind = first_text(one, "say", "ask")
        words = text(one.get("text"))
        if kind == "api_req_started":
            facts = mapping(decoded(words))
            spent = usage(facts, _COUNTS, facts.get("cost"))
            yield (
                self._put(UsageReport(usage=spent, model=self._recorder.model), one)
                if spent
                else self._put(self._recorder.side(kind, one), None)
            )
        elif kind in _SILENT or not words.strip() or (has_history and words.strip() in whole):
            yield self._put(self._recorder.side(kind or "message", one), None)
        elif has_history:
            yield self._put(self._recorder.remark(kind, decoded(words) or words, one), None)
        else:
            yield self._put(self._spoken(kind, words), one)

    def _spoken(self, kind: str, words: str) -> Payload:
        """A line of the log as a message, where there is no other record of the conversation."""
        is_first = not self._has_prompt
        match kind:
            case "task" | "user_feedback" | "user_feedback_diff":
                self._has_prompt = True
                return user(words)
            case "text" if is_first:
                self._has_prompt = True
                return user(words)
            case "text" | "completion_result" | "plan_mode_respond":
                return assistant(words, model=self._recorder.model)
            case "reasoning":
                return assistant(reasoning=words, model=self._recorder.model)
            case "followup":
                return assistant(text(mapping(decoded(words)).get("question")) or words, model=self._recorder.model)
            case "error" | "diff_error" | "api_req_failed":
                return RunFailure(error=words)
            case _:
                return self._recorder.remark(kind or "message", decoded(words) or words, None)

    def _put(self, payload: Payload, raw: Any) -> ImportedRecord:
        body = as_text(raw if raw is not None else getattr(payload, "data", None))
        self._tip = chain_id(self._tip, f"{type(payload).__name__}{body}".encode())
        time = self._recorder.time(when(mapping(raw).get("ts")))
        return ImportedRecord(kept(payload, raw) if raw is not None else payload, self._tip, time)


def _comes_before(shown: Json, index: int, message: Json) -> bool:
    """Whether a line of the log stands before a message of the history: by its index, or by time."""
    if "conversationHistoryIndex" in shown:
        return count(shown["conversationHistoryIndex"]) < index
    at, written = when(shown.get("ts")), when(message.get("ts"))
    return bool(at and written and at < written)
