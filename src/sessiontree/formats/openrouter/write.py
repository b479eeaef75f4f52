"""Writing the file of the openrouter SDK: messages of the active path, marks and labels as checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sessiontree.chat import chat_of
from sessiontree.checkpointed_sessions import MARK, STATE, mark_in_force, user_turns_of
from sessiontree.formats import gojson, gotime
from sessiontree.formats.openrouter import wire
from sessiontree.formats.openrouter.files import texts_of
from sessiontree.formats.writing import Target, without_foreign_origins
from sessiontree.journal import Journal
from sessiontree.model import Checkpoint, Custom, Entry, Thread

__all__ = ["write"]


def write(journal: Journal, threads: Iterator[Thread], target: Target) -> None:
    state = wire.State(sessions={}, fork_counters={})
    for thread in threads:
        key = str(thread.origin.get("key", thread.id))
        entries = list(
            without_foreign_origins(
                journal.entries(thread.id), thread, "openrouter", common=("message", "beside", "is_null", "is_imported")
            )
        )
        state.sessions[key] = _session(journal, thread, entries, target)
        counter = thread.origin.get("fork_counter", 0)
        if counter:
            state.fork_counters[key] = counter
        target.threads.append(thread.id)
        target.entries += len(entries)
        _mind_losses(journal, thread, entries, target)
    body = gojson.encode(state)
    target.write("sessions.json", [gojson.indented(body)])


def _session(journal: Journal, thread: Thread, entries: list[Entry], target: Target) -> wire.Session:
    origin, times = thread.origin, thread.origin.get("times", {})
    known = {entry.id: entry for entry in entries}
    path = [known[entry.id] for entry in journal.path(thread.id)]
    messages = _messages(path)
    return wire.Session(
        id=origin.get("inner_id", thread.id),
        created_at=_time(thread.created_ns, times.get("created_at")),
        updated_at=_time(thread.updated_ns, times.get("updated_at")),
        messages=None if not messages and origin.get("has_null_messages") else messages,
        user_turns=_user_turns(thread, path, messages),
        checkpoints=_by_key(_checkpoints(journal, thread, known)),
        file_checkpoints=_by_key(_file_checkpoints(journal, thread, entries, target)),
    )


def _user_turns(thread: Thread, path: list[Entry], messages: wire.Chat) -> int:
    if "user_turns" in thread.origin or any(_is_named(entry, STATE) for entry in path):
        return user_turns_of(thread, path)
    return sum(message.get("role") == "user" for message in messages)


def _checkpoints(journal: Journal, thread: Thread, known: dict[str, Entry]) -> dict[str, Any]:
    """The newest mark of each name, and our own labels."""
    targets = {name: known[at] for name, at in journal.labels(thread.id).items() if at in known}
    for entry in known.values():
        if isinstance(entry.payload, Custom) and _is_named(entry, MARK):
            targets[str(entry.payload.data)] = known[mark_in_force(thread, entry)]
    return {
        name: None if _is_null(at) else _messages([known[one.id] for one in journal.path(thread.id, at.id)])
        for name, at in targets.items()
    }


def _file_checkpoints(journal: Journal, thread: Thread, entries: list[Entry], target: Target) -> dict[str, Any]:
    """The newest one of each name. Those that turns and rewinds took by themselves are of no use to the SDK."""
    found = [entry.payload for entry in entries if isinstance(entry.payload, Checkpoint)]
    named = {checkpoint.label: checkpoint for checkpoint in found if checkpoint.label and not checkpoint.moment}
    texts = {name: texts_of(journal, checkpoint) for name, checkpoint in named.items()}
    for name, one in texts.items():
        if one.left_out:
            problem = f"{len(one.left_out)} files of checkpoint {name!r} are no text, which is all that the SDK keeps"
            target.note("loss", problem, thread_id=thread.id)
    if len(found) > len(named):
        problem = f"{len(found) - len(named)} checkpoints of files without a name, or replaced later, are left out"
        target.note("loss", problem, thread_id=thread.id)
    return {name: None if named[name].origin.get("is_null") else one.files for name, one in texts.items()}


def _by_key(found: dict[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in sorted(found, key=str.encode)}


def _is_null(mark: Entry) -> bool:
    """Whether a checkpoint was written as null, which for the SDK is the same as an empty one."""
    return isinstance(mark.payload, Custom) and bool(mark.payload.origin.get("is_null"))


def _is_named(entry: Entry, name: str) -> bool:
    return isinstance(entry.payload, Custom) and entry.payload.name == name


def _messages(path: list[Entry]) -> list[dict[str, Any]]:
    found = (chat_of(entry.payload) for entry in path)
    return [_sorted(message) for message in found if message is not None]


def _sorted(value: Any) -> Any:
    """Go writes the keys of a map in order."""
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value, key=str.encode)}
        case list():
            return [_sorted(item) for item in value]
        case _:
            return value


def _time(time_ns: int, written: Any) -> str:
    is_same = isinstance(written, str) and gotime.nanoseconds(written) == time_ns
    return written if is_same else gotime.text(time_ns)


def _mind_losses(journal: Journal, thread: Thread, entries: list[Entry], target: Target) -> None:
    tips = [
        thread.leaf,
        *journal.labels(thread.id).values(),
        *(entry.id for entry in entries if _is_named(entry, MARK)),
    ]
    seen = {entry.id for entry in entries}
    shown = {entry.id for tip in tips if tip in seen for entry in journal.path(thread.id, tip)}
    left = sum(entry.id not in shown and chat_of(entry.payload) is not None for entry in entries)
    if left:
        problem = f"{left} entries on other branches, to which no checkpoint goes back, are left out"
        target.note("loss", problem, thread_id=thread.id)
    others = [entry for entry in entries if not _is_named(entry, MARK) and not _is_named(entry, STATE)]
    kinds = sorted({entry.type for entry in others if chat_of(entry.payload) is None} - {"label", "checkpoint"})
    if kinds:
        target.note("loss", f"the SDK has no place for entries of type {', '.join(kinds)}", thread_id=thread.id)
