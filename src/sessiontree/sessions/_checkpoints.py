"""Pure rules of CheckpointedSessions: what a session is, given its thread and its entries.

A session is a thread. Each message is an entry, and so is each change of the number of user turns. A checkpoint of
messages is a mark, an entry that a rewind returns to; a checkpoint of files is a workspace checkpoint that is labelled
with the id of the same user message.

>>> thread = Thread(id="chat", tree="chat", created_ns=0, updated_ns=0, leaf="b")
>>> def entry(name, parent, payload):
...     return Entry(id=name, thread_id="chat", parent=parent, created_ns=0, payload=payload)
>>> said = entry("a", None, payload_of_chat({"role": "user", "content": "hello"}))
>>> history = History(thread, [said, entry("b", "a", mark_of("u1"))])
>>> dict(history.session().checkpoints)
{'u1': ({'role': 'user', 'content': 'hello'},)}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType, json
from msgspec.structs import replace

from sessiontree.context.dialects.stored_chat import chat_of, payload_of_chat
from sessiontree.errors import InvalidInputError, NoCheckpointError
from sessiontree.model import Checkpoint, Custom, Entry, Label, Payload, Thread
from sessiontree.model._base import Record
from sessiontree.model.thread import FORK_IDS_OF

__all__ = [
    "FORK_IDS_OF",
    "MARK",
    "STATE",
    "CheckpointedSession",
    "Copy",
    "History",
    "SessionCheckpoint",
    "checkpoint_in",
    "clone_messages",
    "files_of",
    "fork_counter",
    "fork_ids_thread",
    "is_own",
    "mark_of",
    "marks_of",
    "own_origin",
    "state_entry",
    "user_turns_of",
]

STATE = "session_state"
"""The name of a custom entry whose data is the number of user turns."""

MARK = "session_checkpoint"
"""The name of a custom entry that a rewind returns to; its data is the id of a user message."""

_KIND = "sessions"
_OURS = "checkpointed"

Messages = tuple[dict[str, Any], ...]


def mark_of(message_id: str) -> Custom:
    """Return the entry that a rewind to a user message returns to."""
    return Custom(name=MARK, data=message_id)


def state_entry(user_turns: int) -> Custom:
    """Return the entry that stores the number of user turns."""
    if type(user_turns) is not int:
        raise InvalidInputError(f"user_turns must be an integer, not {user_turns!r}")
    return Custom(name=STATE, data={"user_turns": user_turns})


def is_own(thread: Thread) -> bool:
    """Whether a thread is a session of CheckpointedSessions: made by it, or imported from a file of the SDK."""
    return thread.origin.get(_KIND) == _OURS or thread.origin.get("format") == "openrouter"


def own_origin(thread: Thread | None = None) -> dict[str, Any]:
    """Return the origin that makes a thread a session of CheckpointedSessions."""
    return {**(thread.origin if thread else {}), _KIND: _OURS}


def fork_ids_thread(base: str) -> str:
    """Return the id of the thread that counts the fork ids of a base, which outlives the session."""
    return f"fork-ids:{base}"


def fork_counter(thread: Thread | None) -> int:
    """Return how many fork ids were given out, as far as a thread knows: that of the count or an imported session."""
    return int(thread.origin.get("fork_counter", 0)) if thread else 0


def clone_messages(messages: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a copy of messages that shares nothing with them, also not what is nested."""
    return deepcopy(list(messages))


def marks_of(thread: Thread, entries: Iterable[Entry]) -> dict[str, Entry]:
    """Return the mark in force for each message id: the newest one, or an older one that an import names."""
    known: dict[str, Entry] = {}
    newest: dict[str, Entry] = {}
    for entry in entries:
        if isinstance(entry.payload, Custom) and entry.payload.name == MARK:
            known[entry.id] = newest[str(entry.payload.data)] = entry
    named: dict[str, str] = thread.origin.get("marks", {})
    return {
        message_id: known.get(named.get(message_id, ""), mark) if _is_imported(mark) else mark
        for message_id, mark in newest.items()
    }


def _is_imported(mark: Entry) -> bool:
    return isinstance(mark.payload, Custom) and "is_imported" in mark.payload.origin


def files_of(entries: Iterable[Entry], marks: Mapping[str, Entry]) -> dict[str, list[Entry]]:
    """Return the checkpoints of files for each message id, the newest last.

    One without a label is for the message whose mark is its target. Those that turns and moves take are for none.
    """
    names = {mark.id: message_id for message_id, mark in marks.items()}
    found: dict[str, list[Entry]] = {}
    for entry in entries:
        checkpoint = entry.payload
        if isinstance(checkpoint, Checkpoint) and not checkpoint.moment:
            message_id = checkpoint.label or names.get(checkpoint.target)
            if message_id is not None:
                found.setdefault(message_id, []).append(entry)
    return found


def user_turns_of(thread: Thread, path: Sequence[Entry]) -> int:
    """Return the number of user turns stored last on a path."""
    for entry in reversed(path):
        if isinstance(entry.payload, Custom) and _is_state(entry):
            return int(entry.payload.data["user_turns"])
    return int(thread.origin.get("user_turns", 0))


class SessionCheckpoint(Record, frozen=True, kw_only=True):
    """What a session can be rewound to with the id of a user message.

    ``messages`` counts the messages, or is ``None`` if only the files were stored. ``files`` is ``None`` if no folder was.
    """

    message_id: str
    created_ns: int
    messages: int | None = None
    files: Checkpoint | None = None


class CheckpointedSession(Record, frozen=True, kw_only=True):
    """A session of CheckpointedSessions at one moment; a copy that later changes do not affect.

    ``checkpoints`` has the messages, ``file_checkpoints`` the folder, number and size of files, each by the id of the
    user message.
    """

    id: str
    created_ns: int
    updated_ns: int
    messages: Messages = ()
    user_turns: int = 0
    checkpoints: Mapping[str, Messages] = {}
    file_checkpoints: Mapping[str, Checkpoint] = {}


class MessagesByCheckpoint(Mapping[str, Messages]):
    """The messages of each checkpoint, put together when they are asked for: all of them would be quadratic."""

    def __init__(self, history: History, marks: Mapping[str, Entry]) -> None:
        self._history = history
        self._marks = marks

    def __getitem__(self, message_id: str) -> Messages:
        return self._history.messages(self._marks[message_id].id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._marks)

    def __len__(self) -> int:
        return len(self._marks)

    def __repr__(self) -> str:
        return repr(dict(self))


class Change(NamedTuple):
    """Entries to append, and the parent of the first one."""

    contents: list[Payload]
    parent: str | UnsetType | None


class Copy(NamedTuple):
    """An entry that a clone needs of its own. Without a time, it is new."""

    id: str
    parent: str | None
    payload: Payload
    created_ns: int | None = None


class History:
    """A session as it was read: the thread, and the entries of all its branches in the order of their commits."""

    def __init__(self, thread: Thread, entries: Iterable[Entry]) -> None:
        self.thread = thread
        self.entries = {entry.id: entry for entry in entries}

    @property
    def is_whole(self) -> bool:
        """Whether the leaf is among the entries: it is not if the thread was replaced between the two reads."""
        return self.thread.leaf is None or self.thread.leaf in self.entries

    def path(self, tip: str | None) -> list[Entry]:
        """Return the entries from the root to one of them."""
        found: list[Entry] = []
        while tip is not None:
            found.append(self.entries[tip])
            tip = found[-1].parent
        return found[::-1]

    def messages(self, tip: str | None) -> Messages:
        """Return the messages from the root to an entry."""
        return tuple(message for _, message in _chat(self.path(tip)))

    def user_turns(self) -> int:
        """Return the number of user turns at the leaf."""
        return user_turns_of(self.thread, self.path(self.thread.leaf))

    def marks(self) -> dict[str, Entry]:
        """Return the mark in force for each message id."""
        return marks_of(self.thread, self.entries.values())

    def files(self) -> dict[str, list[Entry]]:
        """Return the checkpoints of files for each message id, the newest last."""
        return files_of(self.entries.values(), self.marks())

    def files_for(self, message_id: str) -> list[Entry]:
        """Return the checkpoints of files for a message id, the newest last; NoCheckpointError if there is none."""
        found = self.files().get(message_id)
        if not found:
            raise NoCheckpointError(self.thread.id, message_id)
        return found

    def files_in(self, message_id: str, root: str) -> Entry:
        """Return the newest checkpoint of a folder for a message id; if there is none, the newest of any folder."""
        found = self.files_for(message_id)
        return next((entry for entry in reversed(found) if checkpoint_in(entry).root in {"", root}), found[-1])

    def session(self) -> CheckpointedSession:
        """Return the session."""
        marks = self.marks()
        files = files_of(self.entries.values(), marks)
        return CheckpointedSession(
            id=self.thread.id,
            created_ns=self.thread.created_ns,
            updated_ns=self.thread.updated_ns,
            messages=self.messages(self.thread.leaf),
            user_turns=self.user_turns(),
            checkpoints=MessagesByCheckpoint(self, marks),
            file_checkpoints={name: checkpoint_in(found[-1]) for name, found in files.items()},
        )

    def checkpoints(self) -> list[SessionCheckpoint]:
        """Return what the session can be rewound to, oldest first."""
        marks, counts = self.marks(), self._message_counts()
        files = {name: found[-1] for name, found in files_of(self.entries.values(), marks).items()}
        order = {name: number for number, name in enumerate(self.entries)}
        newest = {**files, **marks}
        return [
            SessionCheckpoint(
                message_id=name,
                created_ns=newest[name].created_ns,
                messages=counts[marks[name].id] if name in marks else None,
                files=checkpoint_in(files[name]) if name in files else None,
            )
            for name in sorted(newest, key=lambda name: order[newest[name].id])
        ]

    def change_to(self, messages: Sequence[dict[str, Any]], user_turns: int) -> Change:
        """Return what to append so that these are the messages: only those that differ from the stored ones."""
        stored = _chat(self.path(self.thread.leaf))
        same = _shared_length([message for _, message in stored], messages)
        contents = [*map(_payload, messages[same:]), state_entry(user_turns)]
        if same == len(stored):
            return Change(contents, UNSET)
        return Change(contents, stored[same - 1][0] if same else None)

    def after(self, moved: Thread | Sequence[Entry]) -> History:
        """Return the history after a command: the moved thread, or the appended entries."""
        if isinstance(moved, Thread):
            return History(moved, self.entries.values())
        leaf, changed_ns = moved[-1].id, max(entry.created_ns for entry in moved)
        thread = replace(self.thread, leaf=leaf, updated_ns=max(self.thread.updated_ns, changed_ns))
        return History(thread, [*self.entries.values(), *moved])

    def has_turns(self, mark: Entry) -> bool:
        """Whether the number of user turns was stored with a mark; the SDK does not store it."""
        return any(map(_is_state, self.path(mark.id)))

    def copies(self, new_id: Callable[[], str]) -> list[Copy]:
        """Return what a clone needs of its own: the checkpoints that are not on the path that it shares.

        The last copy stores the user turns under the shared path, so that it becomes the leaf of the clone.
        """
        path = self.path(self.thread.leaf)
        copying = _Copying(self, path, new_id)
        marks = self.marks()
        shared = marks_of(Thread(id="", tree="", created_ns=0, updated_ns=0), path)
        for message_id, mark in marks.items():
            if shared.get(message_id) is not mark:
                copying.add_mark(message_id, mark)
        for entries in self.files().values():
            by_root = {checkpoint_in(entry).root: entry for entry in entries}
            for entry in by_root.values():
                copying.add_files(entry)
        turns = state_entry(user_turns_of(self.thread, path))
        return [*copying.copies, Copy(new_id(), self.thread.leaf, turns)]

    def _message_counts(self) -> dict[str | None, int]:
        counts: dict[str | None, int] = {None: 0}
        for entry in self.entries.values():
            counts[entry.id] = counts[entry.parent] + (chat_of(entry.payload) is not None)
        return counts


class _Copying:
    """Collects copies, each entry once. ``ids`` leads from an entry to what a clone sees in its place."""

    def __init__(self, history: History, path: Sequence[Entry], new_id: Callable[[], str]) -> None:
        self.copies: list[Copy] = []
        self._history = history
        self._new_id = new_id
        self._shared = {entry.id for entry in path}
        self._ids: dict[str | None, str | None] = {None: None, **{name: name for name in self._shared}}

    def add_mark(self, message_id: str, mark: Entry) -> None:
        """Copy a mark, and the messages and user turns that lead to it."""
        for entry in self._history.path(mark.parent):
            if entry.id in self._ids:
                continue
            if chat_of(entry.payload) is not None or _is_state(entry):
                self._add(entry, entry.payload, self._ids[entry.parent])
            else:
                self._ids[entry.id] = self._ids[entry.parent]
        copied = self._add(mark, mark.payload, self._ids[mark.parent])
        if message_id:
            label = Label(target=copied, label=message_id)
            self.copies.append(Copy(self._new_id(), copied, label, mark.created_ns))

    def add_files(self, entry: Entry) -> None:
        """Copy a checkpoint of files; its files are shared."""
        if entry.id not in self._shared:
            checkpoint = checkpoint_in(entry)
            target = self._ids.get(checkpoint.target)
            self._add(entry, replace(checkpoint, target=target or ""), target or self._history.thread.leaf)

    def _add(self, entry: Entry, payload: Payload, parent: str | None) -> str:
        name = self._ids[entry.id] = self._new_id()
        self.copies.append(Copy(name, parent, payload, entry.created_ns))
        return name


def _is_state(entry: Entry) -> bool:
    return isinstance(entry.payload, Custom) and entry.payload.name == STATE


def checkpoint_in(entry: Entry) -> Checkpoint:
    """Return the checkpoint of files in an entry that holds one."""
    assert isinstance(entry.payload, Checkpoint), "only checkpoints of files are collected"
    return entry.payload


def _chat(path: Iterable[Entry]) -> list[tuple[str, dict[str, Any]]]:
    """Return the messages of a path in the chat format, each with the id of its entry."""
    found = ((entry.id, chat_of(entry.payload)) for entry in path)
    return [(entry_id, message) for entry_id, message in found if message is not None]


def _payload(message: dict[str, Any]) -> Payload:
    if not isinstance(message, dict):
        raise InvalidInputError(f"a message must be a dict in the chat format, not {message!r}")
    return payload_of_chat(message)


def _shared_length(stored: Sequence[dict[str, Any]], wanted: Sequence[dict[str, Any]]) -> int:
    """Return how many messages from the beginning are equal, as JSON text: 1 and 1.0 differ."""
    for number, (old, new) in enumerate(zip(stored, wanted, strict=False)):
        if json.encode(old, order="sorted") != json.encode(new, order="sorted"):
            return number
    return min(len(stored), len(wanted))
