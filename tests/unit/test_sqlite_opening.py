"""Opening a SQLite store: all or nothing, also where it was cut short before."""

import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.stores._io import FileDescriptor, ProcessLock
from sessiontree.stores.commands import Command, DeleteThread
from sessiontree.stores.group_commit import Committer
from sessiontree.stores.protocol import Outcome
from sessiontree.stores.sqlite import schema
from stores import sqlite_backend

NEEDS_PROC = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the list of open files")


def open_files() -> list[str]:
    """By name: other threads of the test run may have files of their own."""
    return [os.path.realpath(link) for link in Path("/proc/self/fd").iterdir()]


@NEEDS_PROC
@pytest.mark.parametrize("step", ["prepare_writer", "create"])
def test_an_open_that_fails_keeps_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def fail(*arguments: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(schema, step, fail)
    with pytest.raises(st.StoreUnavailableError):
        st.open(tmp_path / "s.db")
    assert not [name for name in open_files() if name.startswith(str(tmp_path))]


@NEEDS_PROC
def test_an_unclosed_file_is_closed_with_its_owner(tmp_path: Path) -> None:
    """As after an interrupt in the middle of an open or a close."""
    gate = ProcessLock(tmp_path / "gate", of=tmp_path)
    gate.__enter__()
    del gate
    with ProcessLock(tmp_path / "gate", of=tmp_path):
        assert open_files().count(str(tmp_path / "gate")) == 1


def test_a_file_is_closed_once(tmp_path: Path) -> None:
    """The number of a file that was closed may be somebody else's by then."""
    first = FileDescriptor(tmp_path / "first", os.O_RDWR | os.O_CREAT)
    first.close()
    second = FileDescriptor(tmp_path / "second", os.O_RDWR | os.O_CREAT)
    first.close()
    assert os.write(second.number, b"text") == 4
    second.close()


def test_a_store_whose_creation_was_cut_short_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    st.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with st.open(path) as journal:
        journal.create_thread("t")
        assert sqlite_backend(journal)._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_command_behind_the_last_one_waits_until_the_store_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came in before the close, and into the queue behind it."""
    steps: list[str] = []
    is_closing, may_close = threading.Event(), threading.Event()

    def write(commands: Sequence[Command]) -> list[Outcome]:
        steps.append("written")
        return [None for _ in commands]

    def close_store() -> None:
        is_closing.set()
        may_close.wait()
        steps.append("closed")

    committer = Committer(write, "place")
    monkeypatch.setattr(committer, "check_open", lambda: None)
    closing_thread = threading.Thread(target=committer.close, args=(close_store,))
    closing_thread.start()
    assert is_closing.wait(10)
    late = threading.Thread(target=committer.commit, args=(DeleteThread(thread_id="t"),))
    late.start()
    while not committer._is_serving:
        pass
    may_close.set()
    closing_thread.join()
    late.join()
    assert steps == ["closed", "written"]


def test_a_repair_and_a_command_never_run_at_the_same_time() -> None:
    steps: list[str] = []
    is_repairing, may_finish = threading.Event(), threading.Event()

    def write(commands: Sequence[Command]) -> list[Outcome]:
        steps.append("written")
        return [None for _ in commands]

    def repair() -> None:
        is_repairing.set()
        may_finish.wait()
        steps.append("repaired")

    committer = Committer(write, "place")
    repairing = threading.Thread(target=committer.run_alone, args=(repair,))
    repairing.start()
    assert is_repairing.wait(10)
    writing = threading.Thread(target=committer.commit, args=(DeleteThread(thread_id="t"),))
    writing.start()
    while not committer._is_serving:
        pass
    may_finish.set()
    repairing.join()
    writing.join()
    assert steps == ["repaired", "written"]


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
@pytest.mark.parametrize("name", ["x" * 300, "loop", "loop/store"])
def test_a_path_that_cannot_be_was_called_safe_to_try_again(tmp_path: Path, kind: str, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(st.StoreError) as raised:
        st.open(f"{kind}:///{tmp_path}/{name}")
    assert not isinstance(raised.value, st.StoreUnavailableError)
