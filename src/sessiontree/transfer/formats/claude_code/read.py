"""Read Claude Code's files: a session to a file, its subagents in files or sidechains of their own."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import UNSET, to_builtins

from sessiontree.model import Blob, Compaction, Custom, Event, Payload, ToolResultMessage, Usage
from sessiontree.model.builders import user
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import Line, lines_of, modified_ns
from sessiontree.transfer.formats._records import GoesOn, ImportedRecord, ImportedSession, Tally
from sessiontree.transfer.formats._resume import LooksBackError, ResumePoint
from sessiontree.transfer.formats._transcript import (
    FileFormat,
    Recorder,
    json_records,
    kept,
    records_in,
    stamp_of,
    whole_json,
)
from sessiontree.transfer.formats._wire import Json, as_text, count, first_text, mapping, objects, parse, text, when
from sessiontree.transfer.formats.claude_code.agents import calls_of_agents, parent_of, session_file_of, sidechains
from sessiontree.transfer.formats.claude_code.chain import Chain
from sessiontree.transfer.formats.claude_code.file_history import backup_folder, checkpoint_of
from sessiontree.transfer.formats.claude_code.forks import Fork, fork_of, is_marked
from sessiontree.transfer.formats.claude_code.outputs import whole_output, with_full_output
from sessiontree.transfer.formats.claude_code.recognise import (
    CHAIN_TYPES,
    ENVELOPE,
    REMARK_TYPES,
    SIDE_TYPES,
    recognises,
)
from sessiontree.transfer.formats.claude_code.records import (
    Response,
    is_summary,
    message_id,
    said_by_agent,
    summary_text,
    usage_of,
    user_payloads,
)

__all__ = ["detect", "session_files", "sessions", "size"]


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_LINE_ID = re.compile(rb'"uuid"\s*:\s*"([^"]+)"')
_TITLES = ("custom-title", "ai-title", "summary", "summary of another")
_LONGEST_TURN = 2000
Lines = Iterable[tuple[Json | None, Line, str]]


def _order(path: Path) -> tuple[int, str]:
    """Sessions first, then forks of them, then subagents."""
    if path.name.startswith("agent-"):
        return 2, str(path)
    return int(is_marked(path)), str(path)


def _read(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    if path.suffix == ".json":
        yield from _read_export(path, tally)
        return
    first = _first_facts(path)
    session_id = _session_id(path, first, tally)
    if path.name.startswith("agent-"):
        reader = _Reader(path, tally, session_id, first)
        reader.start_as_agent(path)
        yield reader.session(json_records(path, reader.recorder))
        return
    yield from _sidechains(path, tally, session_id)

    def whole() -> ImportedSession:
        reader = _Reader(path, tally, session_id, first, leaves_sidechains=True)
        return reader.session(json_records(path, reader.recorder))

    fork = fork_of(path)
    if fork is None or fork.source == session_id:
        yield whole()
        return
    reader = _Reader(path, tally, session_id, first, leaves_sidechains=True)
    yield reader.forked_session(fork)._replace(alone=whole)


def _resume(path: Path, tally: Tally, point: ResumePoint) -> ImportedSession:
    is_agent = path.name.startswith("agent-")
    return _Reader(path, tally, point.session, {}, leaves_sidechains=not is_agent).resumed_session(point)


_format = FileFormat(recognises, _read, "*.jsonl", "*.json", order=_order, resume=_resume)
detect, size, sessions, session_files = _format.detect, _format.size, _format.sessions, _format.files


def _first_facts(path: Path) -> Json:
    """The session id and the time of the first records that have them."""
    found: Json = {}
    for number, line in enumerate(lines_of(path, Tally())):
        if number == 50 or found.keys() >= {"sessionId", "timestamp"}:
            break
        try:
            record = mapping(parse(line.body))
        except _go.JsonError:
            continue
        for name in ("sessionId", "timestamp", "forkedFrom"):
            if name in record:
                found.setdefault(name, record[name])
    return found


def _session_id(path: Path, first: Json, tally: Tally) -> str:
    if path.name.startswith("agent-"):
        return f"{parent_of(path) or text(first.get('sessionId'))}.{path.stem}".lstrip(".")
    named = text(first.get("sessionId"))
    if _UUID.fullmatch(path.stem) or not named or named in tally.sessions:
        return path.stem
    tally.sessions.add(named)
    return named


class _Reader:
    """The records of one file, in its order."""

    def __init__(
        self, path: Path, tally: Tally, session_id: str, first: Json, *, leaves_sidechains: bool = False
    ) -> None:
        created = when(first.get("timestamp")) or modified_ns(path)
        stamp = stamp_of(path) if path.is_file() else None
        self.recorder = Recorder(path, tally, id=session_id, created_ns=created, stamp=stamp)
        self._path = path
        outputs = path.with_suffix("") / "tool-results"
        self._outputs = outputs if outputs.is_dir() else None
        self._leaves_sidechains = leaves_sidechains
        self._chain = Chain()
        self._response = Response()
        self._boundary: tuple[Json, str, str | None] | None = None
        self._sums: dict[str, int] = {}
        self._spent: dict[str, Usage] = {}
        self._titles: Json = {}
        self._has_begun = False
        self._root: str | None = None
        self._is_flat = False
        self._later: set[str] | None = None
        self._is_resumed = False
        self._titled = ""

    def session(self, lines: Lines) -> ImportedSession:
        return self.recorder.session(self._items(lines), has_head=False)

    def forked_session(self, fork: Fork) -> ImportedSession:
        """The session without the lines that it shares with the one that it was forked from."""
        self._chain.add(fork.entry, fork.line_id, fork.entry)
        self._has_begun, self._root = True, fork.entry
        lines = (found for found in json_records(self._path, self.recorder) if found[1].offset >= fork.end)
        return self.recorder.session(self._items(lines), fork=(fork.source, fork.entry))

    def resumed_session(self, point: ResumePoint) -> ImportedSession:
        """The session from a point on."""
        state = point.reader
        self.recorder.resume(point)
        self._chain, self._is_resumed = Chain(state["chain"]), True
        self._has_begun, self._root, self._is_flat = state["has_begun"], state["root"], state["is_flat"]
        self._spent = {name: Usage(**spent) for name, spent in state["spent"].items()}
        self._titled = state["titled"]
        entries = (*filter(None, [self._root]), *state["chain"]["turn"].values(), *filter(None, [self._chain.tip]))
        goes_on = GoesOn(entries, tuple)
        return self.recorder.session(self._items(self.recorder.lines(self._path)), goes_on=goes_on)

    def _remember_point(self, line: Line, wire: Json | None) -> None:
        """Remember a place to go on from, unless the line there goes on with what was read before it."""
        is_half_read = self._response.has_begun(wire or {}) or self._boundary is not None
        if is_half_read or self._chain.turn_size > _LONGEST_TURN:
            return
        self.recorder.remember_point(
            line,
            {
                "chain": self._chain.state,
                "has_begun": self._has_begun,
                "root": self._root,
                "is_flat": self._is_flat,
                "spent": {name: to_builtins(self._spent[name]) for name in list(self._spent)[-1:]},
                "titled": self._title_kind() or self._titled,
            },
        )

    def start_as_agent(self, path: Path) -> None:
        """Link a subagent to the session and the call that started it."""
        recorder = self.recorder
        meta_path = path.with_name(path.stem + ".meta.json")
        meta = mapping(whole_json(meta_path, Tally())) if meta_path.is_file() else {}
        parent = parent_of(path) or text(_first_facts(path).get("sessionId"))
        agent = path.stem.removeprefix("agent-")
        call = first_text(meta, "toolUseId", "toolUseID", "parentToolUseId")
        call = call or calls_of_agents(session_file_of(path, parent)).get(agent, "")
        recorder.parent_thread = parent
        recorder.custom |= {"agent": agent, "call": call, "agent_type": text(meta.get("agentType"))}
        recorder.custom = {name: value for name, value in recorder.custom.items() if value}

    def _items(self, lines: Lines) -> Iterator[ImportedRecord]:
        for wire, line, problem in lines:
            if line.offset >= self.recorder.next_point:
                self._remember_point(line, wire)
            if wire is None or not ("type" in wire or "message" in wire):
                broken = self.recorder.broken(line, problem or "the record has no type", self._chain.tip)
                self._chain.add(broken.id)
                yield broken
            elif not (self._leaves_sidechains and wire.get("isSidechain") is True):
                yield from self._record(wire, line)
            elif self._is_resumed:
                raise LooksBackError(text(wire.get("uuid")))
        self._name()

    def _record(self, wire: Json, line: Line) -> Iterator[ImportedRecord]:
        """The entries of a line. None depends on a later line, so a file that grows gives the same entries."""
        kind = text(wire.get("type")) or text(mapping(wire.get("message")).get("role"))
        line_id = text(wire.get("uuid")) if kind in CHAIN_TYPES else ""
        if line_id and self._is_repeated(line_id, line):
            return
        entry_id = line_id or self.recorder.ids.next(line.body)
        if kind == "assistant" and isinstance(wire.get("message"), dict):
            yield self._answer(wire, entry_id)
        elif kind in ("user", "assistant"):
            self._response = Response()
            yield from self._user(wire, entry_id)
        else:
            yield self._aside(wire, entry_id)
        if not (kind == "system" and wire.get("subtype") == "compact_boundary"):
            self._boundary = None

    def _is_repeated(self, line_id: str, line: Line) -> bool:
        """Whether the same line was read before, as after two writers at once."""
        checksum = zlib.crc32(line.body)
        if self._sums.setdefault(line_id, checksum) != checksum or not self._chain.has_read(line_id):
            return False
        self.recorder.mend(f"the line {line_id!r} occurs twice; the second one was left out", line.offset)
        return True

    def _answer(self, wire: Json, entry_id: str) -> ImportedRecord:
        """What a line adds to a response of the model, which may be split over several lines."""
        parent = self._parent(wire, is_answer=True)
        payload = self._response.answer(wire, self._spent_since(wire))
        model = text(mapping(wire.get("message")).get("model"))
        if model and not model.startswith("<"):
            self.recorder.model, self.recorder.provider = model, "anthropic"
        raw = payload if isinstance(payload, Event) else kept(payload, wire)
        return self._put(raw, entry_id, wire, parent, entry_id)

    def _spent_since(self, wire: Json) -> Usage | None:
        """The usage of a response, less what an earlier line of the same response was given."""
        spent, name = usage_of(wire), message_id(wire)
        if spent is None or not name:
            return spent
        before = self._spent.get(name)
        self._spent[name] = spent
        return spent if before is None else _difference(spent, before)

    def _user(self, wire: Json, entry_id: str) -> Iterator[ImportedRecord]:
        if is_summary(wire):
            yield self._compaction(wire, entry_id)
            return
        payloads = user_payloads(wire)
        is_result = isinstance(payloads[0], ToolResultMessage)
        parent = self._parent(wire, is_answer=is_result)
        starts = not is_result and wire.get("isMeta") is not True
        record = self._put(kept(payloads[0], wire), entry_id, wire, parent, entry_id, starts_turn=starts)
        record = with_full_output(record, self._outputs) if self._outputs else record
        yield record
        for payload in payloads[1:]:
            yield self._put(payload, f"{entry_id}+", wire, entry_id, entry_id)
        whole = whole_output(record, wire)
        if whole:
            remark = Custom(name="full output", data=whole)
            yield self._put(remark, f"{entry_id}.output", wire, self._chain.tip, entry_id)

    def _compaction(self, wire: Json, entry_id: str) -> ImportedRecord:
        boundary, boundary_id, before = self._boundary or ({}, None, self._chain.tip)
        facts = mapping(boundary.get("compactMetadata"))
        segment = mapping(facts.get("preservedSegment"))
        head = text(segment.get("headUuid"))
        payload = Compaction(
            id=entry_id,
            summary=summary_text(wire),
            trigger=text(facts.get("trigger")),
            tokens_before=count(facts.get("preTokens")),
            first_kept_entry_id=self._chain.entry(head) if self._chain.knows(head) else "",
            tail_after_entry_id=before or "",
        )
        return self._put(kept(payload, wire), entry_id, wire, boundary_id or before, entry_id)

    def _begin_compaction(self, wire: Json, entry_id: str) -> ImportedRecord:
        """The line that a summary follows: it stands where the summary goes."""
        declared = first_text(wire, "logicalParentUuid")
        parent = self._declared(declared) if declared else self._chain.tip
        self._boundary = (wire, entry_id, parent)
        return self._put(self._remark(wire), entry_id, wire, parent, entry_id)

    def _aside(self, wire: Json, entry_id: str) -> ImportedRecord:
        """A line that is no message: kept where it stands, and what it tells about the session."""
        kind = text(wire.get("type"))
        if kind == "system" and wire.get("subtype") == "compact_boundary":
            return self._begin_compaction(wire, entry_id)
        prompt = _queued_prompt(wire)
        if prompt:
            parent = self._parent(wire, is_answer=False)
            return self._put(kept(user(prompt), wire), entry_id, wire, parent, entry_id)
        self._learn(kind, wire)
        blobs: tuple[Blob, ...] = ()
        match kind:
            case "file-history-snapshot" if mapping(mapping(wire.get("snapshot")).get("trackedFileBackups")):
                payload, blobs = self._checkpoint(wire)
            case "system" | "attachment":
                payload = self._remark(wire)
            case "queue-operation" if text(wire.get("content")):
                payload = self.recorder.remark(kind, wire["content"], wire)
            case _ if kind in REMARK_TYPES:
                said = {name: value for name, value in wire.items() if name not in ENVELOPE}
                payload = self.recorder.remark(kind, said, wire)
            case "progress" if words := said_by_agent(wire):
                payload = self.recorder.remark("subagent", words, wire)
            case "progress":
                payload = self.recorder.side(kind, wire)
            case _ if kind in SIDE_TYPES:
                payload = self.recorder.side(kind, wire)
            case _:
                payload = self.recorder.unknown(kind, wire)
        return self._put_aside(payload, entry_id, wire)._replace(blobs=blobs)

    def _checkpoint(self, wire: Json) -> tuple[Payload, tuple[Blob, ...]]:
        line_id = text(wire.get("messageId"))
        target = self._chain.entry_or_line(line_id)
        snapshot, root = mapping(wire.get("snapshot")), self.recorder.workspace
        found, blobs = checkpoint_of(snapshot, backup_folder(self._path, self.recorder.id), target=target, root=root)
        return kept(found, wire), blobs

    def _remark(self, wire: Json) -> Payload:
        if wire.get("type") == "attachment":
            attachment = mapping(wire.get("attachment"))
            return self.recorder.remark(f"attachment {text(attachment.get('type'))}".strip(), attachment, wire)
        said = wire.get("content") or {name: value for name, value in wire.items() if name not in ENVELOPE}
        return self.recorder.remark(f"system {text(wire.get('subtype'))}".strip(), said, wire)

    def _put(
        self, payload: Payload, entry_id: str, wire: Json, parent: str | None, *line_ids: str, starts_turn: bool = False
    ) -> ImportedRecord:
        self._learn_place(wire)
        self._chain.add(entry_id, *line_ids, starts_turn=starts_turn)
        return ImportedRecord(payload, entry_id, self.recorder.time(when(wire.get("timestamp"))), parent)

    def _put_aside(self, payload: Payload, entry_id: str, wire: Json) -> ImportedRecord:
        """Put what is no message behind the last record, whatever it names as its parent."""
        tip = self._chain.tip
        self._chain.add(entry_id, entry_id)
        return ImportedRecord(payload, entry_id, self.recorder.time(when(wire.get("timestamp"))), tip)

    def _parent(self, wire: Json, *, is_answer: bool) -> str | None:
        declared = wire.get("parentUuid", UNSET)
        if isinstance(declared, str) and declared:
            return self._declared(declared)
        tip = self._chain.tip
        if not self._has_begun:
            self._has_begun, self._root = True, tip
            return tip
        if declared is None and not (is_answer or self._is_flat):
            logical = text(wire.get("logicalParentUuid"))
            return self._declared(logical) if logical else self._root
        if declared is None and is_answer and not self._is_flat:
            self._is_flat = True
            self.recorder.mend("the records name no parents; each one follows the one before it")
        return tip

    def _declared(self, line_id: str) -> str | None:
        if self._chain.knows(line_id):
            return self._chain.under(line_id)
        if self._comes_later(line_id):
            return line_id
        tip = self._chain.tip
        self.recorder.mend(f"the parent {line_id!r} is missing; the record follows the one before it, {tip!r}")
        return tip

    def _comes_later(self, line_id: str) -> bool:
        """Whether a parent that was not read yet is further down in the file."""
        if self._later is None:
            later = (
                (_LINE_ID.search(line.body) for line in lines_of(self._path, Tally())) if self._path.is_file() else ()
            )
            self._later = {found[1].decode("utf-8", "replace") for found in later if found}
        return line_id in self._later

    def _learn_place(self, wire: Json) -> None:
        recorder = self.recorder
        if not recorder.workspace:
            recorder.workspace = text(wire.get("cwd"))
        branch = wire.get("gitBranch")
        if isinstance(branch, str) and branch:
            recorder.custom["git_branch"] = branch

    def _learn(self, kind: str, wire: Json) -> None:
        """Titles and tags: the last one wins."""
        match kind:
            case "custom-title" | "ai-title":
                self._titles[kind] = first_text(wire, "customTitle", "aiTitle")
            case "summary":
                is_own = self._chain.knows(text(wire.get("leafUuid")))
                self._titles["summary" if is_own else "summary of another"] = text(wire.get("summary"))
            case "tag":
                tag = text(wire.get("tag"))
                self.recorder.tags = (tag,) if tag else ()

    def _title_kind(self) -> str:
        return next((name for name in _TITLES if self._titles.get(name)), "")

    def _name(self) -> None:
        """Set the title, unless an earlier import found one of a better kind."""
        kind = self._title_kind()
        if kind and (not self._titled or _TITLES.index(kind) <= _TITLES.index(self._titled)):
            self.recorder.title = self._titles[kind]


def _queued_prompt(wire: Json) -> str:
    """What the user typed while the model worked."""
    attachment = mapping(wire.get("attachment"))
    if wire.get("type") != "attachment" or attachment.get("type") != "queued_command":
        return ""
    prompt = attachment.get("prompt")
    blocks = [text(block.get("text")) for block in objects(prompt)]
    return "\n".join(filter(None, blocks)) or (as_text(prompt) if isinstance(prompt, str) else "")


def _difference(spent: Usage, before: Usage) -> Usage | None:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    rest = {name: max(getattr(spent, name) - getattr(before, name), 0) for name in names}
    return Usage(**rest) if any(rest.values()) else None


def _sidechains(path: Path, tally: Tally, session_id: str) -> Iterator[ImportedSession]:
    for root, call, lines in sidechains(path):
        reader = _Reader(path, tally, f"{session_id}.sidechain-{root}", lines[0][0])
        reader.recorder.origin.pop("file", None)
        reader.recorder.parent_thread = session_id
        reader.recorder.custom |= {"call": call} if call else {}
        yield reader.session((wire, line, "") for wire, line in lines)


def _read_export(path: Path, tally: Tally) -> Iterator[ImportedSession]:
    """One JSON file with the lines of a session in it, as the web version hands them out."""
    whole = mapping(whole_json(path, tally))
    lines = records_in(whole.get("loglines"), path, tally)
    if not lines:
        return
    reader = _Reader(path, tally, first_text(whole, "id", "session_id", "uuid") or path.stem, lines[0])
    reader.recorder.title = text(whole.get("title"))
    bodies = [(wire, Line(as_text(wire).encode(), 0, True), "") for wire in lines]
    yield reader.session(bodies)
