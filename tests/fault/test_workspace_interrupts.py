"""A restore that is interrupted, cancelled, or found half done by a user who goes on working."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.workspace.disk import Disk, StateDir
from sessiontree.workspace.open_workspace import OpenWorkspace
from trees import contents

FILES = 12


def write_all(root: Path, text: str) -> None:
    for number in range(FILES):
        (root / str(number)).write_text(text)


def read_all(root: Path) -> set[str]:
    return {(root / str(number)).read_text() for number in range(FILES)}


class Interrupting(Disk):
    """Does something before the nth rename of a restore."""

    def __init__(self, number: int) -> None:
        self.left = number

    def rename(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
        self.left -= 1
        if self.left == 0:
            self.interrupt()
        super().rename(from_fd, from_name, to_fd, to_name)

    def interrupt(self) -> None:
        raise KeyboardInterrupt


class Killing(Interrupting):
    def interrupt(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    write_all(folder, "one")
    return folder


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/journal.db"


def prepare(journal: st.Journal, root: Path) -> str:
    journal.create_thread("t")
    entry = journal.append("t", st.user("one")).id
    journal.workspace.snapshot("t", entry, root)
    write_all(root, "two")
    return entry


@pytest.mark.parametrize("number", [1, 2, 5, FILES, FILES + 1])
def test_an_interrupted_rewind_leaves_the_old_files_and_no_lease(root: Path, address: str, number: int) -> None:
    with st.open(address) as journal:
        entry = prepare(journal, root)
        journal.workspace.cache.disk = Interrupting(number)
        with pytest.raises(KeyboardInterrupt):
            journal.rewind("t", entry, files=root)
        assert read_all(root) == {"two"}
        assert journal.active_lease("t") is None
        assert journal.workspace.recover(root) == ""
        journal.workspace.cache.disk = Disk()
        journal.rewind("t", entry, files=root)
        assert read_all(root) == {"one"}


def kill_in_the_middle(address: str, root: Path, entry: str, number: int) -> None:
    child = os.fork()
    if child == 0:
        with st.open(address) as journal:
            journal.workspace.cache.disk = Killing(number)
            journal.rewind("t", entry, files=root)
        os._exit(0)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_what_the_user_does_after_a_crash_is_not_undone_with_it(root: Path, address: str) -> None:
    with st.open(address) as journal:
        entry = prepare(journal, root)
    kill_in_the_middle(address, root, entry, FILES // 2)
    half_done = [str(number) for number in range(FILES) if (root / str(number)).read_text() == "one"]
    assert 2 < len(half_done) < FILES
    edited, replaced, removed = half_done[:3]
    (root / edited).write_text("mine")
    (root / "fresh").write_text("mine, too")
    (root / "fresh").rename(root / replaced)
    (root / removed).unlink()
    with st.open(address) as journal:
        assert journal.workspace.recover(root) == "old"
        assert (root / edited).read_text() == "mine"
        assert (root / replaced).read_text() == "mine, too"
        assert (root / removed).read_text() == "two"
        assert read_all(root) == {"two", "mine", "mine, too"}
        assert journal.workspace.recover(root) == ""


def test_a_folder_that_the_user_took_away_after_a_crash_does_not_stop_the_next_start(root: Path, address: str) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "gone").write_text("one")
    with st.open(address) as journal:
        entry = prepare(journal, root)
        (root / "sub" / "gone").write_text("two")
    kill_in_the_middle(address, root, entry, FILES + 2)
    (root / "sub" / "gone").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to("/")
    with st.open(address) as journal:
        assert journal.workspace.recover(root) == "old"
        assert read_all(root) == {"two"}
        assert (root / "sub").is_symlink()


def test_files_in_a_folder_that_the_restore_made_survive_taking_it_back(root: Path, address: str) -> None:
    (root / "thing").mkdir()
    with st.open(address) as journal:
        entry = prepare(journal, root)
        (root / "thing").rmdir()
        (root / "thing").write_text("a file")
    kill_in_the_middle(address, root, entry, 4)
    assert (root / "thing").is_dir()
    (root / "thing" / "mine").write_text("mine")
    with st.open(address) as journal:
        assert journal.workspace.recover(root) == "old"
        assert (root / "thing" / "mine").read_text() == "mine"


class Gate(Interrupting):
    """Stops in the middle until it is let go."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def interrupt(self) -> None:
        self.reached.set()
        self.go_on.wait()


def test_a_cancelled_rewind_ends_what_it_does_to_the_files_and_takes_it_back(root: Path, address: str) -> None:
    async def scene() -> None:
        async with st.open_async(address) as journal:
            await journal.create_thread("t")
            entry = (await journal.append("t", st.user("one"))).id
            await journal.workspace.snapshot("t", entry, root)
            write_all(root, "two")
            before = contents(root)
            gate = journal.workspace.cache.disk = Gate(5)
            task = asyncio.create_task(journal.rewind("t", entry, files=root))
            await asyncio.to_thread(gate.reached.wait)
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
            gate.go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert contents(root) == before
            assert await journal.active_lease("t") is None
            assert await journal.workspace.recover(root) == ""

    asyncio.run(scene())


def test_a_task_cancelled_while_waiting_for_a_folder_does_not_keep_it(
    root: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_come = threading.Event()
    lock = StateDir.lock

    def announced(state: StateDir) -> None:
        has_come.set()
        lock(state)

    async def scene() -> None:
        async with st.open_async(address) as journal:
            await journal.create_thread("t")
            entry = (await journal.append("t", st.user("one"))).id
            busy = OpenWorkspace(journal.workspace.cache, root)
            busy.open()
            monkeypatch.setattr(StateDir, "lock", announced)
            task = asyncio.create_task(journal.workspace.snapshot("t", entry, root))
            await asyncio.to_thread(has_come.wait)
            task.cancel()
            busy.close()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(journal.workspace.snapshot("t", entry, root), 30)

    asyncio.run(scene())
