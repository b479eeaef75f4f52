"""The ``openrouter`` format: the JSON file in which openrouter-agent-sdk keeps all its sessions (seed 004).

A checkpoint of the SDK is a copy of all messages. Here messages with the same history are the same entries, so a
checkpoint becomes a labelled mark after one of them, and a rewind a move of the leaf to it. A file snapshot of the SDK,
a text for each path, becomes a checkpoint with a manifest and blobs.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import field

from sessiontree.context.dialects.stored_chat import chat_of, payload_of_chat
from sessiontree.errors import ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.model import (
    Blob,
    Checkpoint,
    Custom,
    Entry,
    Label,
    Manifest,
    ManifestItem,
    Thread,
    ThreadFields,
    Tree,
    blob_of,
    decode_manifest,
    encode_manifest,
    patched,
)
from sessiontree.model.manifest import UNKNOWN_MODE
from sessiontree.sessions.checkpointed import (
    FORK_IDS_OF,
    MARK,
    STATE,
    files_of,
    fork_counter,
    fork_ids_thread,
    mark_of,
    marks_of,
    user_turns_of,
)
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import (
    ExportTarget,
    blob_data,
    head_of,
    modified_ns,
    size_of,
    whole_of,
    without_foreign_origins,
)
from sessiontree.transfer.formats._records import (
    ImportedRecord,
    ImportedSession,
    Tally,
    chain_id,
    whole_number,
    with_origin,
)

__all__ = [
    "Files",
    "OpenrouterSession",
    "State",
    "Texts",
    "checkpoint_of",
    "detect",
    "sessions",
    "size",
    "texts_of",
    "write",
]


Chat = list[dict[str, Any]]


class OpenrouterSession(msgspec.Struct, kw_only=True):
    id: str = field(name="ID", default="")
    created_at: str = field(name="CreatedAt", default=_go.ZERO)
    updated_at: str = field(name="UpdatedAt", default=_go.ZERO)
    messages: Chat | None = field(name="Messages", default=None)
    user_turns: int = field(name="UserTurns", default=0)
    checkpoints: dict[str, Chat | None] = field(name="Checkpoints", default={})
    file_checkpoints: dict[str, dict[str, str | None] | None] = field(name="FileCheckpoints", default={})


class State(msgspec.Struct, kw_only=True):
    sessions: dict[str, OpenrouterSession]
    fork_counters: dict[str, int]


Files = Mapping[str, str | None]
"""Path to text; ``None`` means that the file does not exist."""

_FOLDER = ManifestItem("folder", UNKNOWN_MODE, 0, b"")


class Texts(NamedTuple):
    """The files of a checkpoint that the SDK can keep, and the paths of those that it cannot."""

    files: dict[str, str | None]
    left_out: list[str]


def checkpoint_of(name: str, target: str, given: Files | None) -> tuple[Checkpoint, tuple[Blob, ...]]:
    """The checkpoint for a snapshot, and the blobs that it needs.

    Files of git and of sessiontree itself are never restored; they are kept in the origin for an export. A path that
    leads out of the folder stays in the manifest, so that a restore is refused before it changes anything.
    """
    files = given or {}
    texts = {path: text.encode() for path, text in files.items() if text is not None and not _is_private(path)}
    beside = {path: text for path, text in files.items() if path not in texts}
    blobs = {path: blob_of(data) for path, data in texts.items()}
    tree = {
        path: ManifestItem("file", UNKNOWN_MODE, blob.size, bytes.fromhex(blob.hash)) for path, blob in blobs.items()
    }
    listed = blob_of(encode_manifest(Manifest(changed={**dict.fromkeys(_folders(tree), _FOLDER), **tree})))
    checkpoint = Checkpoint(
        target=target,
        manifest=listed.hash,
        files=len(tree),
        size=sum(map(len, texts.values())),
        label=name,
        origin={"is_null": True} if given is None else {"beside": beside} if beside else {},
    )
    return checkpoint, (listed, *blobs.values())


def texts_of(journal: Journal, checkpoint: Checkpoint) -> Texts:
    """The snapshot for a checkpoint; files that are not text are left out."""
    found: dict[str, str | None] = dict(checkpoint.origin.get("beside", {}))
    left_out: list[str] = []
    for path, item in _tree_of(journal, checkpoint.manifest).items():
        text = _text(journal, item)
        if text is not None:
            found[path] = text
        elif item.kind != "folder":
            left_out.append(path)
    return Texts({path: found[path] for path in sorted(found, key=str.encode)}, left_out)


def _is_private(path: str) -> bool:
    parts = path.casefold().split("/")
    return ".." not in parts and (".git" in parts or parts[0] == ".sessiontree")


def _folders(paths: Iterable[str]) -> set[str]:
    """The folders that the paths are in."""
    found: set[str] = set()
    for path in paths:
        parts = path.split("/")
        if all(part not in {"", ".", ".."} for part in parts):
            found.update("/".join(parts[:depth]) for depth in range(1, len(parts)))
    return found


def _tree_of(journal: Journal, manifest: str) -> Tree:
    if not manifest:
        return {}
    found = decode_manifest(blob_data(journal, manifest), f"blob {manifest}")
    return patched(_tree_of(journal, found.base), found)


def _text(journal: Journal, item: ManifestItem) -> str | None:
    if not item.hash:
        return None
    try:
        return blob_data(journal, item.hash).decode()
    except UnicodeDecodeError:
        return None


_HEAD = 64 * 1024


def detect(source: Path) -> bool:
    head = head_of(source, _HEAD)
    return head.lstrip().startswith(b"{") and b'"sessions"' in head[:200]


def size(source: Path) -> int:
    return size_of(source)


def sessions(source: Path, tally: Tally) -> Iterator[ImportedSession]:
    body = whole_of(source, tally) or b""
    tally.advance(len(body))
    if not body.strip():
        return
    try:
        found = _go.decode(body)
    except _go.JsonError as error:
        tally.note("damage", str(source), f"the file cannot be read: {error}", size=len(body))
        yield from _salvaged(body, source, tally)
        return
    state = _go.folded(found) if isinstance(found, dict) else {}
    if not isinstance(found, dict | None):
        tally.note("damage", str(source), "the file is not a JSON object", size=len(body))
    counters = state.get("fork_counters")
    counters = counters if isinstance(counters, dict) else {}
    kept = state.get("sessions")
    kept = kept if isinstance(kept, dict) else {}
    for key, value in kept.items():
        yield from _one(key, value, counters, source, tally)
    for key, counter in counters.items():
        if key not in kept and whole_number(counter):
            yield _fork_ids(key or "default", whole_number(counter) or 0, source)


def _salvaged(body: bytes, source: Path, tally: Tally) -> Iterator[ImportedSession]:
    """The sessions before the place where the file is cut off."""
    text = _go.decode_text(body)
    at = text.find('"sessions"')
    at = text.find("{", at) + 1 if at >= 0 else 0
    decoder = _go.ValueReader(text, at)
    while at and (pair := decoder.pair()) is not None:
        key, value = pair
        tally.note("repair", str(source), f"session {key!r} is complete; the file is cut off after it")
        yield from _one(key, value, {}, source, tally)


def _one(key: str, value: Any, counters: dict[str, Any], source: Path, tally: Tally) -> Iterator[ImportedSession]:
    place = f"{source}, session {key!r}"
    try:
        session = _go.as_type(_go.encode_plain(value), OpenrouterSession)
    except (_go.JsonError, UnicodeError, RecursionError) as error:
        tally.note("damage", place, f"the session cannot be read: {error}", thread_id=key)
        return
    if value is None:
        tally.note("repair", place, "the session is null; it was imported empty", thread_id=key)
    counter = counters.get(key, 0)
    yield _Reader(key, session, whole_number(counter) or 0, place, source).session()


def _fork_ids(base: str, counter: int, source: Path) -> ImportedSession:
    """The count of fork ids of a base that has no session."""
    return ImportedSession(
        id=fork_ids_thread(base),
        place=f"{source}, fork counter {base!r}",
        created_ns=modified_ns(source),
        updated_ns=modified_ns(source),
        fields={"title": f"fork ids of {base}", "is_archived": True, "origin": {FORK_IDS_OF: base}},
        items=iter(()),
        leaf=lambda: None,
        finish=lambda thread: {
            "origin": {**thread.origin, FORK_IDS_OF: base, "fork_counter": max(counter, fork_counter(thread))}
        },
    )


class _Reader:
    """One session."""

    def __init__(self, key: str, session: OpenrouterSession, counter: int, place: str, source: Path) -> None:
        self._key = key
        self._session = session
        self._counter = counter
        self._place = place
        self._leaf: str | None = None
        self._marks: dict[str, str] = {}
        modified = modified_ns(source)
        self._created_ns = _go.nanoseconds(session.created_at) or modified
        self._updated_ns = _go.nanoseconds(session.updated_at) or self._created_ns

    def session(self) -> ImportedSession:
        return ImportedSession(
            id=self._key or "default",
            place=self._place,
            created_ns=self._created_ns,
            updated_ns=self._updated_ns,
            fields={"origin": {"key": self._key, **self._facts(0)}},
            items=self._items(),
            leaf=lambda: self._leaf,
            finish=self._finish,
        )

    def _facts(self, counted: int) -> dict[str, Any]:
        """What a thread has no field for; the fork counter never goes back, so that fork ids stay unique."""
        return {
            "inner_id": self._session.id,
            "user_turns": self._session.user_turns,
            "fork_counter": max(self._counter, counted),
        }

    def _items(self) -> Iterator[ImportedRecord]:
        """The messages and marks of the checkpoints first, so that the leaf is the last message."""
        written: set[str] = set()
        marks = self._marks
        for name, messages in self._session.checkpoints.items():
            tip = yield from self._chain(messages or [], written)
            marks[name] = chain_id(tip, b"checkpoint " + name.encode())
            null = {"is_null": True} if messages is None else {}
            mark = with_origin(mark_of(name), is_imported=True, **null)
            yield ImportedRecord(mark, marks[name], self._updated_ns, tip or None)
            yield self._under(marks[name], Label(target=marks[name], label=name))
        for name, files in self._session.file_checkpoints.items():
            checkpoint, blobs = checkpoint_of(name, marks.get(name, ""), files)
            yield self._under(marks.get(name, ""), checkpoint)._replace(blobs=blobs)
        self._leaf = (yield from self._chain(self._session.messages or [], written)) or None

    def _chain(self, messages: Chat, written: set[str]) -> Generator[ImportedRecord, None, str]:
        previous = ""
        for message in messages:
            entry_id = chain_id(previous, msgspec.json.encode(message, order="sorted"))
            if entry_id not in written:
                written.add(entry_id)
                yield ImportedRecord(payload_of_chat(message), entry_id, self._updated_ns, previous or None)
            previous = entry_id
        return previous

    def _under(self, mark: str, payload: Label | Checkpoint) -> ImportedRecord:
        entry_id = chain_id(mark, msgspec.json.encode(payload))
        return ImportedRecord(payload, entry_id, self._updated_ns, mark or None)

    def _finish(self, thread: Thread) -> ThreadFields:
        times = {"created_at": self._session.created_at, "updated_at": self._session.updated_at}
        is_null = {"has_null_messages": True} if self._session.messages is None else {}
        facts = self._facts(thread.origin.get("fork_counter", 0))
        return {"origin": {**thread.origin, **facts, "times": times, "marks": self._marks, **is_null}}


def write(journal: Journal, threads: Iterator[Thread], target: ExportTarget) -> None:
    state = State(sessions={}, fork_counters={})
    for thread in threads:
        if thread.is_register:
            state.fork_counters.setdefault(str(thread.origin[FORK_IDS_OF]), fork_counter(thread))
            continue
        key = str(thread.origin.get("key", thread.id))
        entries = list(
            without_foreign_origins(
                journal.entries(thread.id), thread, "openrouter", common=("message", "beside", "is_null", "is_imported")
            )
        )
        state.sessions[key] = _session(journal, thread, entries, target)
        counter = max(fork_counter(thread), _counted(journal, thread.id))
        if counter:
            state.fork_counters[key] = counter
        target.threads.append(thread.id)
        target.entries += len(entries)
        _note_losses(journal, thread, entries, target)
    body = _go.encode(State(sessions=_by_key(state.sessions), fork_counters=_by_key(state.fork_counters)))
    target.write("sessions.json", [_go.indented(body)])


def _counted(journal: Journal, base: str) -> int:
    try:
        return fork_counter(journal.thread(fork_ids_thread(base)))
    except ThreadNotFoundError:
        return 0


def _session(journal: Journal, thread: Thread, entries: list[Entry], target: ExportTarget) -> OpenrouterSession:
    origin, times = thread.origin, thread.origin.get("times", {})
    known = {entry.id: entry for entry in entries}
    path = [known[entry.id] for entry in journal.path(thread.id)]
    messages = _messages(path)
    return OpenrouterSession(
        id=origin.get("inner_id", thread.id),
        created_at=_time(thread.created_ns, times.get("created_at")),
        updated_at=_time(thread.updated_ns, times.get("updated_at")),
        messages=None if not messages and origin.get("has_null_messages") else messages,
        user_turns=_user_turns(thread, path, messages),
        checkpoints=_by_key(_checkpoints(journal, thread, known)),
        file_checkpoints=_by_key(_file_checkpoints(journal, thread, entries, target)),
    )


def _user_turns(thread: Thread, path: list[Entry], messages: Chat) -> int:
    if "user_turns" in thread.origin or any(_is_named(entry, STATE) for entry in path):
        return user_turns_of(thread, path)
    return sum(message.get("role") == "user" for message in messages)


def _checkpoints(journal: Journal, thread: Thread, known: dict[str, Entry]) -> dict[str, Any]:
    """The newest mark of each name, and our own labels."""
    targets = {name: known[at] for name, at in journal.labels(thread.id).items() if at in known}
    targets |= marks_of(thread, known.values())
    return {
        name: None if _is_null(at) else _messages([known[one.id] for one in journal.path(thread.id, at.id)])
        for name, at in targets.items()
    }


def _file_checkpoints(journal: Journal, thread: Thread, entries: list[Entry], target: ExportTarget) -> dict[str, Any]:
    """The newest checkpoint of each name. Those that turns and rewinds took automatically have none."""
    found = [entry.payload for entry in entries if isinstance(entry.payload, Checkpoint)]
    newest = {name: held[-1].payload for name, held in files_of(entries, marks_of(thread, entries)).items()}
    named = {name: checkpoint for name, checkpoint in newest.items() if isinstance(checkpoint, Checkpoint)}
    texts = {name: texts_of(journal, checkpoint) for name, checkpoint in named.items()}
    for name, one in texts.items():
        if one.left_out:
            problem = f"{len(one.left_out)} files of checkpoint {name!r} were left out: the SDK keeps text only"
            target.note("loss", problem, thread_id=thread.id)
    if len(found) > len(named):
        problem = f"{len(found) - len(named)} checkpoints of files that have no name or were replaced were left out"
        target.note("loss", problem, thread_id=thread.id)
    return {name: None if named[name].origin.get("is_null") else one.files for name, one in texts.items()}


def _by_key(found: dict[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in sorted(found, key=str.encode)}


def _is_null(mark: Entry) -> bool:
    """Whether the checkpoint was ``null``, which means the same to the SDK as an empty one."""
    return isinstance(mark.payload, Custom) and bool(mark.payload.origin.get("is_null"))


def _is_named(entry: Entry, name: str) -> bool:
    return isinstance(entry.payload, Custom) and entry.payload.name == name


def _messages(path: list[Entry]) -> list[dict[str, Any]]:
    found = (chat_of(entry.payload) for entry in path)
    return [_sorted(message) for message in found if message is not None]


def _sorted(value: Any) -> Any:
    """The value as Go writes it: with the keys of every object sorted, and floats in its form."""
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value, key=str.encode)}
        case list():
            return [_sorted(item) for item in value]
        case float():
            return msgspec.Raw(_go.float_text(value).encode())
        case _:
            return value


def _time(time_ns: int, written: Any) -> str:
    is_same = isinstance(written, str) and _go.nanoseconds(written) == time_ns
    return written if is_same else _go.text(time_ns)


def _note_losses(journal: Journal, thread: Thread, entries: list[Entry], target: ExportTarget) -> None:
    tips = [
        thread.leaf,
        *journal.labels(thread.id).values(),
        *(entry.id for entry in entries if _is_named(entry, MARK)),
    ]
    seen = {entry.id for entry in entries}
    shown = {entry.id for tip in tips if tip in seen for entry in journal.path(thread.id, tip)}
    left = sum(entry.id not in shown and chat_of(entry.payload) is not None for entry in entries)
    if left:
        problem = f"{left} entries on branches that no checkpoint leads to were left out"
        target.note("loss", problem, thread_id=thread.id)
    others = [entry for entry in entries if not _is_named(entry, MARK) and not _is_named(entry, STATE)]
    kinds = sorted({entry.type for entry in others if chat_of(entry.payload) is None} - {"label", "checkpoint"})
    if kinds:
        target.note("loss", f"the SDK cannot hold entries of type {', '.join(kinds)}", thread_id=thread.id)
