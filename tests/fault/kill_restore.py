"""Kill a rewind of 200 files at given steps, again and again, and look at what the next start makes of it.

    python kill_restore.py WORK disk 1,2,3     kill before the nth change to the disk
    python kill_restore.py WORK count          print how many changes there are
    python kill_restore.py WORK rewind         only do the rewind (for strace, which does the killing)
    python kill_restore.py WORK settle         only settle and check, print old or new

Children are forked from this process, which has one thread, so that each costs milliseconds.
"""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import sessiontree as st
from sessiontree.workspace.disk import Disk
from trees import Contents, contents

# A killed process loses nothing that it gave to the system, so waiting for the disk would only cost time here.
os.fsync = lambda fd: None


class KillingDisk(Disk):
    """Counts the changes to the disk and ends the process before the one with a given number."""

    def __init__(self, kill_at: int) -> None:
        self.count = 0
        self.kill_at = kill_at

    def step(self) -> None:
        self.count += 1
        if self.count == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def _stepping(name: str) -> Callable[..., Any]:
    plain = getattr(Disk, name)

    def method(self: KillingDisk, *arguments: Any) -> Any:
        self.step()
        return plain(self, *arguments)

    return method


for _name in [name for name in vars(Disk) if not name.startswith("_")]:
    setattr(KillingDisk, _name, _stepping(_name))


def prepare(work: Path) -> None:
    """A template: a folder whose checkpoint differs from it in 200 files, in every way there is."""
    root = work / "now" / "root"
    root.mkdir(parents=True)
    for number in range(200):
        path = root / f"folder{number % 10}" / f"file{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"one {number}\n" * 20)
    (root / "closed").mkdir()
    (root / "closed" / "inner").write_text("inner")
    (root / "link").symlink_to("folder1")
    with st.open(f"sqlite:///{work}/now/journal.db") as journal:
        journal.create_thread("t")
        journal.append("t", st.user("one"), id="one")
        journal.workspace.snapshot("t", "one", root)
        journal.append("t", st.user("two"), id="two")
    for number in range(120):
        (root / f"folder{number % 10}" / f"file{number}.txt").write_text(f"two {number}\n")
    for number in range(120, 160):
        (root / f"folder{number % 10}" / f"file{number}.txt").unlink()
    for number in range(160, 170):
        (root / f"folder{number % 10}" / f"file{number}.txt").chmod(0o755)
    for number in range(170, 180):
        path = root / f"folder{number % 10}" / f"file{number}.txt"
        path.unlink()
        path.mkdir()
        (path / "inside").write_text("a folder now")
    (root / "new").mkdir()
    for number in range(30):
        (root / "new" / f"{number}").write_text("new")
    (root / "link").unlink()
    (root / "link").mkdir()
    (root / "closed").chmod(0o555)
    (root / "closed" / "inner").chmod(0o600)
    (work / "now").rename(work / "template")


def fresh(work: Path) -> None:
    shutil.rmtree(work / "now", ignore_errors=True)
    shutil.copytree(work / "template", work / "now", symlinks=True)


def rewind(work: Path, disk: Disk) -> None:
    with st.open(f"sqlite:///{work}/now/journal.db", durability="process_crash") as journal:
        journal.workspace.cache.disk = disk
        journal.rewind("t", "one", files=work / "now" / "root")


def states(work: Path) -> tuple[Contents, Contents]:
    """The folder as it is before a rewind and as it is after one; found out once."""
    kept = work / "states"
    if kept.exists():
        before, after = pickle.loads(kept.read_bytes())
        return before, after
    fresh(work)
    old = contents(work / "now" / "root")
    rewind(work, Disk())
    new = contents(work / "now" / "root")
    kept.write_bytes(pickle.dumps((old, new)))
    return old, new


def settle(work: Path, old: Contents, new: Contents, settling: Disk | None = None) -> str:
    """What the next start finds and makes of it; both the files and the conversation must be one of the two."""
    root = work / "now" / "root"
    with st.open(f"sqlite:///{work}/now/journal.db", durability="process_crash") as journal:
        journal.workspace.cache.disk = settling or Disk()
        journal.workspace.recover(root)
        found = contents(root)
        leaf = journal.thread("t").leaf
        which = "new" if leaf == "one" else "old"
        expected = new if which == "new" else old
        if found != expected:
            wrong = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
            raise AssertionError(f"a mix: the leaf says {which}, wrong are {wrong[:5]} ({len(wrong)})")
        leftovers = [path.name for path in (root / ".sessiontree").iterdir() if path.name.startswith("restore")]
        if leftovers:
            raise AssertionError(f"left behind: {leftovers}")
        if journal.check():
            raise AssertionError(str(journal.check()))
    return which


def in_child(action: Callable[[], object]) -> int:
    """Run in a fork; the status tells how it ended."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except BaseException:  # noqa: BLE001  the status reports it to the parent
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def kill_at(work: Path, number: int, old: Contents, new: Contents) -> str:
    fresh(work)
    status = in_child(lambda: rewind(work, KillingDisk(number)))
    if not os.WIFSIGNALED(status):
        raise AssertionError(f"step {number} was never reached")
    # The next start is killed too, somewhere in its own work: settling must be as safe as what it settles.
    in_child(lambda: settle(work, old, new, KillingDisk(1 + number % 37)))
    return settle(work, old, new)


def main() -> None:
    work, mode = Path(sys.argv[1]), sys.argv[2]
    if not (work / "template").exists():
        prepare(work)
    match mode:
        case "count":
            states(work)
            fresh(work)
            disk = KillingDisk(0)
            rewind(work, disk)
            print(disk.count)
        case "rewind":
            rewind(work, Disk())
        case "settle":
            print(settle(work, *states(work)))
        case "disk":
            old, new = states(work)
            found = [kill_at(work, int(number), old, new) for number in sys.argv[3].split(",")]
            print(f"old {found.count('old')} new {found.count('new')}")


if __name__ == "__main__":
    main()
