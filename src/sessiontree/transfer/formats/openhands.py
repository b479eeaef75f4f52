"""The ``openhands`` format: OpenHands' conversations, a file to each event, and the trajectories of its first version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sessiontree.model import Compaction, Part, Payload, ReasoningPart, RunFailure, TextPart, ToolCallPart, UserMessage
from sessiontree.model.builders import assistant, system, tool_result, user
from sessiontree.transfer.formats._blocks import arguments_text
from sessiontree.transfer.formats._chat import chat_payloads
from sessiontree.transfer.formats._files import modified_ns
from sessiontree.transfer.formats._messages import answer
from sessiontree.transfer.formats._records import ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._transcript import (
    FileFormat,
    Head,
    Recorder,
    json_records,
    kept,
    records_in,
    stamp_of,
    whole_json,
)
from sessiontree.transfer.formats._wire import Json, array, as_text, first_text, mapping, objects, text, when

__all__ = ["detect", "session_files", "sessions", "size"]


_NUMBER = re.compile(r"(\d+)")
_ROOT = "__root__"
_ENVELOPE = frozenset({"id", "kind", "source", "timestamp", "parent_id"})
_SILENT_KINDS = frozenset({"ConversationStateUpdateEvent", "PauseEvent", "TokenEvent", "CondensationRequest"})
_QUIET = frozenset({"change_agent_state", "agent_state_changed", "recall", "null", ""})


def _recognises(head: Head) -> bool:
    name = head.path.name
    if name == "base_state.json":
        return head.is_json and head.has("agent", "id")
    if head.path.suffix == ".jsonl":
        return any("kind" in record and "source" in record for record in head.records[:3])
    if head.path.parent.name == "events":
        return name == "0.json" and head.is_json and head.has("source")
    is_event = head.has("source") and (head.has("action") or head.has("observation")) and head.has("id", "timestamp")
    return head.data.lstrip()[:1] == b"[" and is_event


def _parts_on_disk(path: Path) -> list[Path]:
    """The state, and the events in the folder beside it: each of them may come late."""
    if path.name not in ("base_state.json", "0.json"):
        return [path]
    return [path, *(file for file in _event_files(path) if file != path)]


def _event_files(path: Path) -> list[Path]:
    folder = path.parent if path.parent.name == "events" else path.parent / "events"
    return sorted(folder.glob("*.json"), key=lambda file: [int(part) for part in _NUMBER.findall(file.stem)[:1]] or [0])


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    state: Json = {}
    recorder = Recorder(
        path, tally, id=_name(path), created_ns=modified_ns(path), stamp=stamp_of(*_parts_on_disk(path))
    )
    broken: list[ImportedRecord] = []
    if path.suffix == ".jsonl":
        events = []
        for wire, line, problem in json_records(path, recorder):
            if wire is None:
                broken.append(recorder.broken(line, problem, None))
            else:
                events.append(wire)
    elif path.name in ("base_state.json", "0.json"):
        state = mapping(whole_json(path, tally)) if path.name == "base_state.json" else {}
        events = [mapping(whole_json(file, tally)) for file in _event_files(path)]
    else:
        whole = whole_json(path, tally)
        events = records_in(mapping(whole).get("trajectory") if isinstance(whole, dict) else whole, path, tally)
    recorder.id = text(state.get("id")) or recorder.id
    recorder.origin["session"] = recorder.id
    recorder.model = text(mapping(mapping(state.get("agent")).get("llm")).get("model"))
    recorder.workspace = text(mapping(state.get("workspace")).get("working_dir"))
    recorder.title = text(state.get("title"))
    created = next((found for event in events if (found := when(event.get("timestamp")))), None)
    recorder.created_ns = recorder.last_ns = created or recorder.created_ns
    reader = _Reader(recorder, state)
    leaf: Any = {"leaf": lambda: reader.leaf} if text(state.get("leaf_event_id")) else {}
    yield recorder.session(reader.items(events, broken), **leaf)


_format = FileFormat(_recognises, _read, "*.json", "*.jsonl", parts=_parts_on_disk)
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _name(path: Path) -> str:
    if path.parent.name == "events":
        return path.parent.parent.name
    return path.parent.name if path.name in ("base_state.json", "events.jsonl") else path.stem


class _Reader:
    """The events of one conversation: a tree of events by parent, or a list in the first version."""

    def __init__(self, recorder: Recorder, state: Json) -> None:
        self._recorder = recorder
        self._wanted = text(state.get("leaf_event_id"))
        self._entries: dict[str, str] = {}
        self._users: list[str] = []
        self._order: list[str] = []

    @property
    def leaf(self) -> str | None:
        return self._entries.get(self._wanted) or (self._order[-1] if self._order else None)

    def items(self, events: list[Json], broken: list[ImportedRecord]) -> Iterator[ImportedRecord]:
        yield from broken
        tip: str | None = broken[-1].id if broken else None
        for number, event in enumerate(events):
            is_first_version = "kind" not in event
            name = as_text(event.get("id")) if "id" in event else self._recorder.ids.next(as_text(event).encode())
            parent = text(event.get("parent_id"))
            above = None if parent == _ROOT else self._entries.get(parent, tip)
            time = self._recorder.time(when(event.get("timestamp")))
            payloads = self._first_version(event) if is_first_version else self._payloads(event)
            for index, payload in enumerate(payloads):
                entry_id = (f"event-{name}" if is_first_version else name or f"event-{number}") + (
                    f".{index}" if index else ""
                )
                yield ImportedRecord(kept(payload, event), entry_id, time, above)
                if isinstance(payload, UserMessage):
                    self._users.append(entry_id)
                self._order.append(entry_id)
                above = tip = self._entries[name] = entry_id

    def _payloads(self, event: Json) -> list[Payload]:
        kind = text(event.get("kind"))
        call = text(event.get("tool_call_id"))
        match kind:
            case "SystemPromptEvent":
                prompt = event.get("system_prompt")
                words = text(mapping(prompt).get("text")) or text(prompt)
                return [system(words + text(mapping(event.get("dynamic_context")).get("text")))]
            case "MessageEvent":
                message = mapping(event.get("llm_message"))
                return chat_payloads(message, self._recorder.model)
            case "ActionEvent":
                return [self._action(event, call)]
            case "ObservationEvent":
                observation = mapping(event.get("observation"))
                failed = observation.get("is_error") is True
                return [tool_result(call, _words(observation), name=text(event.get("tool_name")), is_error=failed)]
            case "UserRejectObservation" | "AgentErrorEvent":
                words = first_text(event, "rejection_reason", "error")
                return [tool_result(call, words, name=text(event.get("tool_name")), is_error=True)]
            case "Condensation":
                return [self._condensation(event)]
            case "ConversationErrorEvent" | "ServerErrorEvent":
                return [RunFailure(error=first_text(event, "detail", "error", "code"))]
            case "":
                return [self._recorder.unknown("no kind", event)]
            case _ if kind in _SILENT_KINDS:
                return [self._recorder.side(kind, None)]
            case _:
                facts = {name: value for name, value in event.items() if name not in _ENVELOPE}
                return [self._recorder.remark(kind, facts, None)]

    def _action(self, event: Json, call: str) -> Payload:
        thought = "".join(text(part.get("text")) for part in objects(event.get("thought")))
        reasoning = text(event.get("reasoning_content"))
        blocks = [text(block.get("thinking")) for block in objects(event.get("thinking_blocks"))]
        made = mapping(event.get("tool_call"))
        function = mapping(made.get("function")) or made
        arguments = function.get("arguments") if function.get("arguments") is not None else event.get("action")
        name = text(event.get("tool_name")) or text(function.get("name"))
        said = reasoning or "\n".join(filter(None, blocks))
        parts: list[Part] = [
            *([ReasoningPart(provider="openhands", text=said)] if said else []),
            *([TextPart(text=thought)] if thought else []),
            ToolCallPart(id=call or text(event.get("id")), name=name, arguments=arguments_text(arguments)),
        ]
        return answer(parts, model=self._recorder.model)

    def _condensation(self, event: Json) -> Compaction:
        forgotten = {self._entries.get(text(name), text(name)) for name in array(event.get("forgotten_event_ids"))}
        last = max((index for index, name in enumerate(self._order) if name in forgotten), default=-1)
        kept_users = [name for name in self._users if name not in forgotten and name in self._order[: last + 1]]
        return Compaction(
            id=text(event.get("id")),
            summary=text(event.get("summary")),
            kept_user_entry_ids=tuple(kept_users),
            tail_after_entry_id=self._order[last] if last >= 0 else "",
        )

    def _first_version(self, event: Json) -> list[Payload]:
        """An event of the first version. Results name the action that caused them: ids of calls were used twice."""
        arguments, name = mapping(event.get("args")), as_text(event.get("id"))
        action, observation = text(event.get("action")), text(event.get("observation"))
        is_user = event.get("source") == "user"
        if action == "message" or (action == "finish" and is_user):
            words = text(arguments.get("content")) or text(event.get("message"))
            return [user(words) if is_user else assistant(words, model=self._recorder.model)]
        if action == "system":
            return [system(text(arguments.get("content")))]
        if action == "condensation" and text(arguments.get("summary")):
            return [
                Compaction(summary=arguments["summary"], tail_after_entry_id=self._order[-1] if self._order else "")
            ]
        if action and action not in _QUIET and not is_user:
            thought = text(arguments.get("thought"))
            call = ToolCallPart(
                id=f"call-{name}",
                name=action,
                arguments=as_text({k: v for k, v in arguments.items() if k != "thought"}),
            )
            return [answer([*([TextPart(text=thought)] if thought else []), call], model=self._recorder.model)]
        if observation and observation not in _QUIET and "cause" in event:
            failed = observation == "error" or mapping(mapping(event.get("extras")).get("metadata")).get(
                "exit_code"
            ) not in (0, None)
            return [
                tool_result(
                    f"call-{as_text(event['cause'])}", text(event.get("content")), name=observation, is_error=failed
                )
            ]
        words = text(event.get("content")) or text(event.get("message")) or text(arguments.get("content"))
        return [self._recorder.remark(action or observation or "event", words, None)]


def _words(observation: Json) -> str:
    content = observation.get("content")
    said = (
        "".join(text(block.get("text")) for block in objects(content)) if isinstance(content, list) else text(content)
    )
    return (
        said
        or first_text(observation, "output", "text")
        or as_text({k: v for k, v in observation.items() if k != "kind"})
    )
