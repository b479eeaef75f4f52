"""What was appended to a SQLite store stays, whoever opens, copies, forks and closes around it."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sessiontree as st
from known import present

COME_AND_GO = "import sys, sessiontree as st\nwith st.open(sys.argv[1]) as journal: journal.thread('t')"

FORK = """
import os, sys, sessiontree as st
journal = st.open(sys.argv[1])
journal.append("t", st.user("before"))
child_is_open, parent_is_closed = os.pipe(), os.pipe()
if child := os.fork():
    os.read(child_is_open[0], 1)
    journal.close()
    os.write(parent_is_closed[1], b"x")
    os.waitpid(child, 0)
    sys.exit()
own = st.open(sys.argv[1])
os.write(child_is_open[1], b"x")
os.read(parent_is_closed[0], 1)
own.append("t", st.user("after"))
os.kill(os.getpid(), 9)
"""

STRANGER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
connection.execute("ROLLBACK")
print("mine", flush=True)
sys.stdin.read()
"""


def run(script: str, path: Path) -> None:
    subprocess.run([sys.executable, "-c", script, path], check=True)


def texts(path: Path) -> list[str]:
    """What another process finds: connections of this one might know more than the files."""
    script = (
        "import sys, sessiontree as st\n"
        "with st.open(sys.argv[1]) as journal: print(*(entry.message.text for entry in journal.path('t')))"
    )
    return subprocess.check_output([sys.executable, "-c", script, path], text=True).split()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with st.open(tmp_path / "s.db") as journal:
        journal.create_thread("t")
    return tmp_path / "s.db"


def open_again(path: Path) -> None:
    st.open(path).close()


def copy(path: Path) -> None:
    shutil.copy(path, path.with_name("copy.db"))


def copy_folder(path: Path) -> None:
    shutil.copytree(path.parent, path.parent / "copies")


@pytest.mark.parametrize("disturb", [open_again, copy, copy_folder])
def test_appends_stay_after_the_process_touched_the_file_by_another_way(
    store: Path, disturb: Callable[[Path], None]
) -> None:
    with st.open(store) as journal:
        journal.append("t", st.user("before"))
        disturb(store)
        run(COME_AND_GO, store)
        journal.append("t", st.user("after"))
        assert texts(store) == ["before", "after"]


def test_appends_of_a_child_stay_when_its_parent_closes_the_store(store: Path) -> None:
    run(FORK, store)
    assert texts(store) == ["before", "after"]


def test_the_last_one_still_takes_the_log_along(store: Path) -> None:
    with st.open(store) as journal:
        with st.open(store) as another:
            another.append("t", st.user("one"))
        journal.append("t", st.user("two"))
    assert sorted(file.name for file in store.parent.iterdir()) == ["s.db", "s.db-gate"]
    assert texts(store) == ["one", "two"]


def test_a_program_that_keeps_the_file_for_itself_is_waited_for(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessiontree.stores.sqlite.schema.BUSY_SECONDS", 0.05)
    with subprocess.Popen(
        [sys.executable, "-c", STRANGER, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as stranger:
        assert present(stranger.stdout).readline() == b"mine\n"
        with pytest.raises(st.StoreUnavailableError):
            st.open(store)
        present(stranger.stdin).close()
        monkeypatch.undo()
        with st.open(store) as journal:
            journal.append("t", st.user("one"))
    assert texts(store) == ["one"]


def test_a_system_without_such_locks_opens_stores_all_the_same(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sessiontree.stores.sqlite.wal._SET_LOCK", 9999)
    with st.open(store) as journal:
        journal.append("t", st.user("one"))
    assert texts(store) == ["one"]
