"""CheckpointedSessions changed by two writers at once: what is left is what one after the other leaves."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, Self

import pytest
from checkpoint_worker import do, talk
from processes import at_once, ready, receive, send

import sessiontree as st
from opened import open_store, url_of
from property_settings import IS_DEEP

WORKER = Path(__file__).with_name("checkpoint_worker.py")
STORES = ["memory", "sqlite", "jsonl", "postgres"]
VERBS = ["set_state", "snapshot", "rewind", "clone", "fork", "snapshot_files", "rewind_with_files"]
PAIRS = list(combinations_with_replacement(VERBS, 2))

State = tuple[tuple[dict[str, Any], ...], int]
"""Messages and user turns."""
Chat = tuple[State, dict[str, State], set[str]]
"""The state, the checkpoints, and the names of those of files."""
Seen = tuple[State, dict[str, State], set[str], list[Chat]]
"""A chat, and its clones."""


def rounds(store: str) -> list[tuple[str, str]]:
    """The pairs of verbs to race; a server takes longer for each."""
    if IS_DEEP:
        return PAIRS * 200
    plain = list(combinations_with_replacement(VERBS[:5], 2))
    return PAIRS + plain * 2 if store == "postgres" else PAIRS * 3 + plain * 8


class Model:
    """A session as plain data."""

    def __init__(self) -> None:
        self.state: State = (tuple(talk(2)), 2)
        self.marks: dict[str, State] = {"u0": (tuple(talk(1)), 1)}
        self.files = {"u0"}
        self.clones: list[Chat] = []

    def do(self, verb: str, number: int) -> Self:
        match verb:
            case "set_state":
                self.state = (tuple(talk(number)), number)
            case "snapshot":
                self.marks["m"] = self.state
            case "rewind" | "rewind_with_files":
                self.state = self.marks["u0"]
            case "clone" | "fork":
                self.clones.append((self.state, dict(self.marks), set(self.files)))
            case "snapshot_files":
                self.files.add("files")
        return self

    def seen(self) -> Seen:
        return (self.state, self.marks, self.files, sorted(self.clones, key=repr))


def begun(sessions: st.CheckpointedSessions, chat: str, root: Path) -> None:
    sessions.set_state(chat, talk(1), user_turns=1)
    sessions.snapshot(chat, "u0")
    sessions.snapshot_files(chat, "u0", root)
    sessions.set_state(chat, talk(2), user_turns=2)


def seen(sessions: st.CheckpointedSessions, chat: str) -> Seen:
    """What is there, as the model shows it."""
    clones = []
    for name in (f"{chat}/clone-3", f"{chat}/clone-4", f"{chat}#fork-1", f"{chat}#fork-2"):
        with suppress(st.ThreadNotFoundError):
            clones.append(one(sessions, name))
    return (*one(sessions, chat), sorted(clones, key=repr))


def one(sessions: st.CheckpointedSessions, chat: str) -> Chat:
    session = sessions.get(chat)
    marks = {name: sessions.rewind(chat, name) for name in session.checkpoints}
    assert {name: back.messages for name, back in marks.items()} == dict(session.checkpoints)
    return (
        (session.messages, session.user_turns),
        {name: (back.messages, back.user_turns) for name, back in marks.items()},
        set(session.file_checkpoints),
    )


def allowed(first: str, second: str) -> list[Seen]:
    """What the two verbs leave one after the other, in both orders."""
    return [
        Model().do(first, 3).do(second, 4).seen(),
        Model().do(second, 4).do(first, 3).seen(),
    ]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "file").write_text("text")
    return folder


@pytest.mark.parametrize("store", STORES)
def test_two_threads_leave_what_one_after_the_other_leaves(store: str, tmp_path: Path, root: Path) -> None:
    with open_store(store, tmp_path, durability="process_crash") as journal, ThreadPoolExecutor(2) as pool:
        sessions = st.CheckpointedSessions(journal)
        for number, (first, second) in enumerate(rounds(store)):
            chat = f"chat{number}"
            begun(sessions, chat, root)
            running = [pool.submit(do, sessions, verb, chat, turns, root) for verb, turns in ((first, 3), (second, 4))]
            for future in running:
                future.result()
            assert seen(sessions, chat) in allowed(first, second), (first, second)
        assert journal.check() == []


@pytest.mark.parametrize("store", STORES[1:])
def test_two_processes_leave_what_one_after_the_other_leaves(store: str, tmp_path: Path, root: Path) -> None:
    url = url_of(store, tmp_path)
    with (
        open_store(store, tmp_path, durability="process_crash") as journal,
        ready(WORKER, *[(url, root)] * 2) as workers,
    ):
        sessions = st.CheckpointedSessions(journal)
        for number, (first, second) in enumerate(rounds(store)):
            chat = f"chat{number}"
            begun(sessions, chat, root)
            at_once(workers, [f"{first} {chat} 3", f"{second} {chat} 4"])
            assert seen(sessions, chat) in allowed(first, second), (first, second)
        assert journal.check() == []


@pytest.mark.parametrize("store", STORES[1:])
def test_processes_never_get_the_same_fork_id(store: str, tmp_path: Path, root: Path) -> None:
    url = url_of(store, tmp_path)
    with open_store(store, tmp_path) as journal, ready(WORKER, *[(url, root)] * 3) as workers:
        given = []
        for number in range(40):
            if number % 10 == 5:
                st.CheckpointedSessions(journal).get_or_create("base")
            if number % 10 == 9:
                journal.delete_thread("base")
            for process in workers:
                send(process, "new_fork_id base 0")
            given += [receive(process) for process in workers]
        assert sorted(given) == sorted(f"base#fork-{number}" for number in range(1, 121))
