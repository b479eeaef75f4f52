"""Read Codex's rollouts: a log of what the model saw and of what the screen showed."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from sessiontree.model import Compaction, Custom, ModelChange, Payload, RunFailure, TextPart, UsageReport
from sessiontree.model.builders import assistant, system, user
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import Line, lines_of, modified_ns
from sessiontree.transfer.formats._records import GoesOn, ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._resume import LooksBackError, ResumePoint
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
from sessiontree.transfer.formats._wire import Json, as_text, count, first_text, mapping, objects, parse, text, when
from sessiontree.transfer.formats.codex.forks import DEEPEST, home_of, rollout_of, shared_with
from sessiontree.transfer.formats.codex.records import (
    answer_of,
    answer_parts,
    content_parts,
    is_injected,
    message_payload,
    result_payload,
    usage_of,
)

__all__ = ["detect", "session_files", "sessions", "size"]


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_TYPES = frozenset(
    [
        "session_meta",
        "turn_context",
        "response_item",
        "event_msg",
        "compacted",
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "security_risk_score",
        "history_mutation",
    ]
)
_ITEMS = frozenset(
    [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "local_shell_call",
        "local_shell_call_output",
        "web_search_call",
        "image_generation_call",
        "tool_search_call",
        "tool_search_output",
        "ghost_snapshot",
        "agent_message",
        "compaction",
        "context_compaction",
        "other",
    ]
)
_RESULTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
_STEPS = (
    "exec_command", "patch_apply", "mcp_tool_call", "web_search", "image_generation", "collab_agent_spawn",
    "collab_agent_interaction", "collab_waiting", "collab_close", "collab_resume",
)  # fmt: skip
_BOOKKEEPING = frozenset(
    {"task_started", "turn_started", "thread_settings_applied", "context_compacted", "session_configured"}
    | {"agent_reasoning_section_break", "raw_response_item", "agent_message_delta", "agent_reasoning_delta"}
    | {f"{name}_{step}" for name in _STEPS for step in ("begin", "end")}
)
"""Events without words, or with those of the model's items."""
_SHOWN = {"UserMessage": "user_message", "AgentMessage": "agent_message"}
_REPEATED = frozenset(
    {
        "Reasoning",
        "CommandExecution",
        "FileChange",
        "McpToolCall",
        "DynamicToolCall",
        "WebSearch",
        "ImageView",
        "ImageGeneration",
        "ContextCompaction",
    }
)
_TURNS_KEPT = 20
_TEXTS_KEPT = 200


def _recognises(head: Head) -> bool:
    if head.path.suffix == ".json":
        return head.is_json and head.has("session", "items", "instructions")
    return any(_is_ours(record) for record in head.records)


def _is_ours(record: Json) -> bool:
    if text(record.get("type")) in _TYPES:
        return isinstance(record.get("payload"), dict)
    has_header = {"id", "timestamp", "instructions"} <= record.keys() and "type" not in record
    return has_header or record.get("record_type") == "state"


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    if path.suffix == ".json":
        whole = mapping(whole_json(path, tally))
        wires = [mapping(whole.get("session")), *records_in(whole.get("items"), path, tally)]
        lines = [(wire, Line(as_text(wire).encode(), 0, True), "") for wire in wires]
        yield _Reader(path, tally, wires[0]).session(iter(lines))
        return
    meta = _first_meta(path)

    def alone() -> ImportedSession:
        reader = _Reader(path, tally, meta)
        return reader.session(reader.lines())

    before = _source_reader(path, meta)
    if before is None:
        yield alone()
    else:
        source, own = before
        yield _Reader(path, tally, meta).forked_session(source, own)._replace(alone=alone)


def _source_reader(path: Path, meta: Json, forks: tuple[Path, ...] = ()) -> tuple[_Reader, int] | None:
    """The reader of the rollout that this one was forked from, where it was then; and where what is new here begins.

    ``forks`` are the rollouts that build on this one.
    """
    source = rollout_of(path, text(meta.get("forked_from_id"))) if len(forks) < DEEPEST else None
    if source in forks:
        return None
    shared = shared_with(path, source) if source is not None else None
    if source is None or shared is None:
        return None
    found = _first_meta(source)
    before = _source_reader(source, found, (*forks, path))
    reader = _Reader(source, Tally(), found)
    lines = reader.lines() if before is None else reader.continue_from(*before)
    reader.read_up_to(shared.end_there, lines)
    return reader, shared.end_here


def _resume(path: Path, tally: Tally, point: ResumePoint) -> ImportedSession:
    return _Reader(path, tally, _first_meta(path)).resumed_session(point)


_format = FileFormat(_recognises, _read, "*.jsonl", "*.jsonl.zst", "rollout-*.json", resume=_resume)
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _first_meta(path: Path) -> Json:
    """The header of a rollout: its first record, in or without an envelope."""
    for line in lines_of(path, Tally()):
        try:
            record = mapping(parse(line.body))
        except _go.JsonError:
            continue
        meta = mapping(record.get("payload")) if record.get("type") == "session_meta" else {}
        is_bare = "type" not in record and "id" in record
        return {"timestamp": record.get("timestamp"), **(meta or (record if is_bare else {}))}
    return {}


Lines = Iterator[tuple[Json | None, Line, str]]


class _Turn(NamedTuple):
    """A prompt of a person: the entry that it went under."""

    parent: str | None


class _Shown(NamedTuple):
    """A message of the screen's log that no item has said yet."""

    kind: str
    words: str
    entry_id: str


class _Reader:
    """The records of one rollout, in its order."""

    def __init__(self, path: Path, tally: Tally, meta: Json) -> None:
        found = _UUID.findall(path.name)
        session_id = first_text(meta, "id", "session_id") or (found[0] if found else path.stem)
        created = when(meta.get("timestamp")) or modified_ns(path)
        stamp = stamp_of(path) if path.is_file() else None
        self.recorder = Recorder(path, tally, id=session_id, created_ns=created, stamp=stamp)
        self._path = path
        self._meta = meta
        self.tip: str | None = None
        self._turns: list[_Turn] = []
        self._users: dict[str, str] = {}
        self._said: dict[int, None] = {}
        self._is_resumed = False
        self._shown: list[_Shown] = []
        self._totals: object = None
        self._learn_meta(meta)

    def lines(self) -> Iterator[tuple[Json | None, Line, str]]:
        base = mapping(self._meta.get("history_base"))
        return chain(_base_lines(self._path, base, self.recorder, 0), json_records(self._path, self.recorder))

    def session(self, lines: Iterator[tuple[Json | None, Line, str]]) -> ImportedSession:
        return self.recorder.session(self._items(lines))

    def forked_session(self, source: _Reader, own: int) -> ImportedSession:
        """The session without the records that it shares with the one that it was forked from."""
        lines = self.continue_from(source, own)
        assert source.tip is not None
        return self.recorder.session(self._items(lines), fork=(source.recorder.id, source.tip))

    def continue_from(self, source: _Reader, own: int) -> Lines:
        """Know what another reader knows, and return the records that are not in its rollout: the header, and the end."""
        self.tip, self._turns, self._users = source.tip, list(source._turns), dict(source._users)
        self._said, self._totals, self.recorder.model = dict(source._said), source._totals, source.recorder.model
        first = True
        for found in json_records(self._path, self.recorder):
            if first or found[1].offset >= own:
                yield found
            first = False

    def read_up_to(self, end: int, lines: Lines) -> None:
        """Read the records before an offset."""
        for _ in self._items(found for found in lines if found[1].offset < end):
            pass

    def resumed_session(self, point: ResumePoint) -> ImportedSession:
        """The session from a point on."""
        state, self._is_resumed = point.reader, True
        self.recorder.resume(point)
        self.tip, self._totals = state["tip"], state["totals"]
        self._turns = [_Turn(parent) for parent in state["turns"]]
        self._said = dict.fromkeys(state["said"])
        entries = (*filter(None, state["turns"]), *filter(None, [self.tip]))
        return self.recorder.session(self._items(self.recorder.lines(self._path)), goes_on=GoesOn(entries, tuple))

    def _remember_point(self, line: Line) -> None:
        """Remember a place to go on from, if nothing is half read there."""
        if self._shown or self._path.suffix == ".zst":
            return
        self.recorder.remember_point(
            line,
            {
                "tip": self.tip,
                "totals": self._totals,
                "turns": [turn.parent for turn in self._turns[-_TURNS_KEPT:]],
                "said": list(self._said)[-_TEXTS_KEPT:],
            },
        )

    def _learn_meta(self, meta: Json) -> None:
        recorder, git = self.recorder, mapping(meta.get("git"))
        recorder.workspace = text(meta.get("cwd"))
        recorder.provider = text(meta.get("model_provider"))
        source = mapping(mapping(mapping(meta.get("source")).get("subagent")).get("thread_spawn"))
        recorder.parent_thread = first_text(meta, "parent_thread_id") or text(source.get("parent_thread_id"))
        facts = {
            "git_branch": git.get("branch"),
            "forked_from": meta.get("forked_from_id"),
            "agent": meta.get("agent_nickname"),
            "agent_type": meta.get("agent_role"),
        }
        recorder.custom |= {name: value for name, value in facts.items() if isinstance(value, str) and value}
        recorder.title = _names(home_of(self._path)).get(recorder.id, "")

    def _items(self, lines: Iterator[tuple[Json | None, Line, str]]) -> Iterator[ImportedRecord]:
        for wire, line, problem in lines:
            if line.offset >= self.recorder.next_point:
                self._remember_point(line)
            if wire is None:
                yield self._follow(self.recorder.broken(line, problem, self.tip))
            else:
                yield from self._record(wire, self.recorder.ids.next(line.body))
        yield from self._say_what_was_shown()

    def _record(self, wire: Json, entry_id: str) -> Iterator[ImportedRecord]:
        self.recorder.time(when(wire.get("timestamp")))
        kind, payload = text(wire.get("type")), mapping(wire.get("payload"))
        match kind:
            case "response_item":
                yield from self._item(payload, wire, entry_id)
            case "event_msg":
                yield from self._event(payload, wire, entry_id)
            case "compacted":
                yield from self._compaction(payload, wire, entry_id)
            case "turn_context":
                yield self._put(self._context(payload, wire), entry_id)
            case "session_meta":
                yield self._put(self._header(payload, wire), entry_id)
            case "inter_agent_communication":
                yield self._put(self.recorder.remark(kind, _facts_of(payload), wire), entry_id)
            case "history_mutation":
                for number, item in enumerate(objects(payload.get("items"))):
                    yield from self._item(item, item, f"{entry_id}.{number}")
            case _ if kind in _TYPES or wire.get("record_type"):
                yield self._put(self.recorder.side(text(kind) or "state", wire), entry_id)
            case _ if kind in _ITEMS or "role" in wire:
                yield from self._item(wire, wire, entry_id)
            case "" if "id" in wire:
                yield self._put(self._header(wire, wire), entry_id)
            case _:
                yield self._put(self.recorder.unknown(text(kind) or "no type", wire), entry_id)

    def _header(self, meta: Json, wire: Json) -> Payload:
        said = text(mapping(meta.get("base_instructions")).get("text")) or text(meta.get("instructions"))
        return kept(system(said), wire) if said else self.recorder.side("session_meta", wire)

    def _context(self, payload: Json, wire: Json) -> Payload:
        model = text(payload.get("model"))
        if not model or model == self.recorder.model:
            return self.recorder.side("turn_context", wire)
        self.recorder.model = model
        return kept(ModelChange(provider=self.recorder.provider, model=model), wire)

    def _item(self, item: Json, wire: Json, entry_id: str) -> Iterator[ImportedRecord]:
        parts = answer_parts(item)
        if parts is not None:
            self._said |= dict.fromkeys(_fingerprint(part.text) for part in parts if isinstance(part, TextPart))
            message = answer_of(parts, self.recorder.provider, self.recorder.model)
            yield self._put(kept(message, wire), entry_id)
            return
        kind = text(item.get("type"))
        if kind in _RESULTS:
            yield self._put(kept(result_payload(item), wire), entry_id)
        elif kind in ("message", "") and "role" in item:
            yield from self._message(item, wire, entry_id)
        elif kind == "agent_message":
            yield self._put(kept(message_payload({**item, "role": "user"}), wire), entry_id)
        elif kind in _ITEMS:
            yield self._put(self.recorder.remark(text(kind), {"type": kind}, wire), entry_id)
        else:
            yield self._put(self.recorder.unknown(text(kind) or "no type", wire), entry_id)

    def _message(self, item: Json, wire: Json, entry_id: str) -> Iterator[ImportedRecord]:
        words = "".join(part.text for part in content_parts(item.get("content")) if isinstance(part, TextPart))
        if item.get("role") == "user" and not is_injected(words):
            yield from self._say_what_was_shown(but=words)
            self._turns.append(_Turn(self.tip))
            self._users[words] = entry_id
        self._said[_fingerprint(words)] = None
        yield self._put(kept(message_payload(item), wire), entry_id)

    def _event(self, payload: Json, wire: Json, entry_id: str) -> Iterator[ImportedRecord]:
        kind = text(payload.get("type"))
        match kind:
            case "user_message" | "agent_message":
                words = text(payload.get("message"))
                yield self._show(kind, words, wire, entry_id)
            case "token_count":
                info = mapping(payload.get("info"))
                spent = usage_of(info) if info.get("total_token_usage") != self._totals else None
                self._totals = info.get("total_token_usage", self._totals)
                model = text(info.get("model")) or self.recorder.model
                report = UsageReport(usage=spent, model=model, provider=self.recorder.provider) if spent else None
                yield self._put(kept(report, wire) if report else self.recorder.side(kind, wire), entry_id)
            case "thread_rolled_back":
                yield from self._say_what_was_shown()
                self._roll_back(count(payload.get("num_turns")))
                yield self._put(self.recorder.side(kind, wire), entry_id)
            case "error" if isinstance(payload.get("message"), str):
                yield self._put(kept(RunFailure(error=payload["message"]), wire), entry_id)
            case "agent_reasoning" | "agent_reasoning_raw_content":
                yield self._put(self.recorder.remark(kind, text(payload.get("text")), wire), entry_id)
            case "task_complete" | "turn_complete" | "turn_aborted":
                yield from self._say_what_was_shown()
                yield self._put(self.recorder.side(kind, wire), entry_id)
            case "item_completed":
                yield from self._turn_item(mapping(payload.get("item")), wire, entry_id)
            case _ if kind in _BOOKKEEPING:
                yield self._put(self.recorder.side(kind, wire), entry_id)
            case _:
                yield self._put(self.recorder.remark(kind, _facts_of(payload), wire), entry_id)

    def _turn_item(self, item: Json, wire: Json, entry_id: str) -> Iterator[ImportedRecord]:
        """What the screen showed, as newer versions log it: mostly what the model's items say, too."""
        kind = text(item.get("type"))
        words = "\n".join(filter(None, (text(block.get("text")) for block in objects(item.get("content")))))
        if kind in _SHOWN:
            yield self._show(_SHOWN[kind], words, wire, entry_id)
        elif kind in _REPEATED:
            yield self._put(self.recorder.side("item_completed", wire), entry_id)
        else:
            yield self._put(self.recorder.remark(f"item {kind}", _facts_of(item), wire), entry_id)

    def _roll_back(self, turns: int) -> None:
        """Go back to before the prompt of the n-th last turn; what followed it stays, as a branch."""
        if self._is_resumed and turns > len(self._turns):
            raise LooksBackError(f"{turns} turns")
        for _ in range(min(turns, len(self._turns))):
            self.tip = self._turns.pop().parent

    def _show(self, kind: str, words: str, wire: Json, entry_id: str) -> ImportedRecord:
        """Put a message of the screen's log, and remember it if no item has said it yet: its item may still come."""
        if words and _fingerprint(words) not in self._said:
            self._shown.append(_Shown(kind, words, entry_id))
        return self._put(self.recorder.side(kind, wire), entry_id)

    def _say_what_was_shown(self, but: str = "") -> Iterator[ImportedRecord]:
        """Messages that only the screen's log has become messages; those that are in both are left to the other log."""
        shown, self._shown = self._shown, []
        for kind, words, entry_id in shown:
            if _fingerprint(words) in self._said or words == but:
                continue
            if kind == "user_message":
                self._turns.append(_Turn(self.tip))
                yield self._put(user(words), f"{entry_id}+")
            else:
                yield self._put(assistant(words, model=self.recorder.model), f"{entry_id}+")

    def _compaction(self, payload: Json, wire: Json, entry_id: str) -> Iterator[ImportedRecord]:
        """The compaction, after a remark with the words of its history that stand nowhere else."""
        if self._is_resumed:
            raise LooksBackError(entry_id)
        history = objects(payload.get("replacement_history"))
        texts = [
            "".join(part.text for part in content_parts(item.get("content")) if isinstance(part, TextPart))
            for item in history
        ]
        summary = text(payload.get("message")) or (texts[-1] if texts else "")
        users = tuple(self._users[words] for words in dict.fromkeys(texts) if words in self._users)
        others = [words for words in dict.fromkeys(texts) if words not in self._users and words not in ("", summary)]
        if others:
            yield self._put(Custom(name="replacement history", data=others), f"{entry_id}+")
        found = Compaction(id=entry_id, summary=summary, kept_user_entry_ids=users, tail_after_entry_id=self.tip or "")
        yield self._put(kept(found, wire), entry_id)

    def _put(self, payload: Payload, entry_id: str) -> ImportedRecord:
        return self._follow(ImportedRecord(payload, entry_id, self.recorder.last_ns, self.tip))

    def _follow(self, record: ImportedRecord) -> ImportedRecord:
        self.tip = record.id
        return record


def _facts_of(payload: Json) -> Json:
    return {name: value for name, value in payload.items() if name != "type"}


def _fingerprint(words: str) -> int:
    """A number for a text that tells it from others: texts themselves are not kept."""
    return len(words) << 32 | zlib.crc32(words.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=64)
def _names(home: Path) -> dict[str, str]:
    """The names that people gave to threads; the last one wins."""
    found: dict[str, str] = {}
    for line in lines_of(home / "session_index.jsonl", Tally()) if (home / "session_index.jsonl").is_file() else ():
        try:
            record = mapping(parse(line.body))
        except _go.JsonError:
            continue
        found[text(record.get("id"))] = text(record.get("thread_name"))
    return found


def _base_lines(path: Path, base: Json, recorder: Recorder, depth: int) -> Iterator[tuple[Json | None, Line, str]]:
    """The lines of another rollout that this one continues without a copy of them."""
    name = text(base.get("thread_id"))
    if not name or depth > DEEPEST:
        return
    found = rollout_of(path, name)
    if found is None:
        recorder.mend(f"the rollout {name!r} that this one continues is missing")
        return
    before = mapping(_first_meta(found).get("history_base"))
    yield from _base_lines(found, before, recorder, depth + 1)
    end = count(base.get("end_byte_offset"))
    last = count(base.get("end_ordinal_exclusive"))
    for number, (wire, line, problem) in enumerate(json_records(found, recorder)):
        ordinal = count((wire or {}).get("ordinal")) or number
        if (end and line.offset >= end) or (not end and last and ordinal >= last):
            return
        yield wire, line._replace(checksum=None), problem
