"""A rewind of 200 files, killed at any step: the next start finds the old state or the new one, never a mix."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.workspace.disk import Disk
from trees import contents

SCRIPT = Path(__file__).with_name("kill_restore.py")


def fresh(work: Path) -> None:
    shutil.rmtree(work / "now", ignore_errors=True)
    shutil.copytree(work / "template", work / "now", symlinks=True)


def run(work: Path, *arguments: str, under: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*under, sys.executable, str(SCRIPT), str(work), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run_child(work: Path, *arguments: str) -> str:
    done = run(work, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def kill_at_every(work: Path, numbers: range) -> None:
    answer = run_child(work, "disk", ",".join(map(str, numbers)))
    old, new = (int(word) for word in answer.split() if word.isdigit())
    assert old + new == len(numbers)
    assert old > 0
    assert new > 0


def test_a_kill_between_two_changes_to_the_disk_leaves_old_or_new(tmp_path: Path) -> None:
    steps = int(run_child(tmp_path, "count"))
    assert steps > 600
    kill_at_every(tmp_path, range(1, steps + 1, steps // 4))


@pytest.mark.deep
def test_a_kill_between_any_two_changes_to_the_disk_leaves_old_or_new(tmp_path: Path) -> None:
    kill_at_every(tmp_path, range(1, int(run_child(tmp_path, "count")) + 1))


CHANGING = (
    "write,pwrite64,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,openat,chmod,fchmod,"
    "fchmodat,symlink,symlinkat,ftruncate,fdatasync,fsync,utimensat,flock,fcntl,close"
)
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")


def count_calls(work: Path) -> dict[str, int]:
    """How often a rewind makes each system call that can change something."""
    fresh(work)
    log = work / "calls"
    done = run(work, "rewind", under=("strace", "-qq", "-o", str(log), "-e", f"trace={CHANGING}"))
    assert done.returncode == 0, done.stderr
    return Counter(line.split("(")[0] for line in log.read_text().splitlines())


def strace_kill(work: Path, call: str, number: int) -> str:
    fresh(work)
    inject = ("strace", "-qq", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={number}")
    done = run(work, "rewind", under=inject)
    return run_child(work, "settle") if done.returncode else "done"


@needs_strace
def test_a_kill_at_a_system_call_leaves_old_or_new(tmp_path: Path) -> None:
    run_child(tmp_path, "count")
    calls = count_calls(tmp_path)
    renames = next(name for name in calls if name.startswith("rename"))
    assert strace_kill(tmp_path, renames, calls[renames] // 2) == "old"
    assert strace_kill(tmp_path, "pwrite64", calls["pwrite64"] - 3) in {"old", "new"}
    assert strace_kill(tmp_path, renames, calls[renames] - 1) in {"old", "new"}


@needs_strace
@pytest.mark.deep
def test_a_kill_at_any_system_call_leaves_old_or_new(tmp_path: Path) -> None:
    run_child(tmp_path, "count")
    stride = int(os.environ.get("SESSIONTREE_STRACE_STRIDE", "1"))
    points = [(name, number) for name, count in count_calls(tmp_path).items() for number in range(1, count + 1)]
    for name, number in points[::stride]:
        assert strace_kill(tmp_path, name, number) in {"old", "new"}, (name, number)


class FullDisk(Disk):
    """A disk that has room for so many more files."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write_file(self, fd: int, name: str, data: bytes, mode: int) -> None:
        self._use()
        super().write_file(fd, name, data, mode)

    def make_folder(self, fd: int, name: str) -> None:
        self._use()
        super().make_folder(fd, name)

    def rename(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
        self._use()
        super().rename(from_fd, from_name, to_fd, to_name)

    def _use(self) -> None:
        self.room -= 1
        if self.room == 0:
            raise OSError(28, "No space left on device")


@pytest.mark.parametrize("room", range(1, 28))
def test_a_full_disk_at_any_step_leaves_everything_as_it_was(tmp_path: Path, room: int) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for number in range(6):
        (root / f"{number}").write_text("one")
    with st.open("memory:") as journal:
        journal.create_thread("t")
        entry = journal.append("t", st.user("one")).id
        journal.workspace.snapshot("t", entry, root)
        for number in range(3):
            (root / f"{number}").write_text("two")
        (root / "3").unlink()
        (root / "4").unlink()
        (root / "4").mkdir()
        (root / "4" / "in").write_text("in")
        before, leaf = contents(root), journal.thread("t").leaf
        journal.workspace.cache.disk = FullDisk(room)
        try:
            journal.rewind("t", entry, files=root)
        except st.WorkspaceError:
            assert contents(root) == before
            assert [move.reason for move in journal.reflog("t")] == []
            assert journal.active_lease("t") is None
        journal.workspace.cache.disk = Disk()
        journal.rewind("t", entry, files=root)
        assert journal.thread("t").leaf == entry != leaf
        assert {path.read_text() for path in root.glob("[0-9]")} == {"one"}
