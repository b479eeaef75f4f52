"""Scenarios about rights, run by test_rights.py as a user who is bound by them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import sessiontree as st
from sessiontree.workspace.disk import Disk
from trees import contents

NOBODY = 65534


def closed(journal: st.Journal, root: Path) -> str:
    for name in ("change", "gone", "stay"):
        (root / name).mkdir()
        (root / name / "file").write_text("one")
        (root / name).chmod(0o555)
    (root / "empty").mkdir(mode=0o500)
    before = contents(root)
    entry = journal.append("t", st.user("x")).id
    journal.workspace.snapshot("t", entry, root)
    (root / "change").chmod(0o755)
    (root / "change" / "file").write_text("two")
    (root / "change" / "new").write_text("two")
    (root / "change").chmod(0o511)
    (root / "gone").chmod(0o755)
    (root / "gone" / "file").unlink()
    (root / "gone").rmdir()
    (root / "made").mkdir()
    (root / "made" / "in").write_text("two")
    (root / "made").chmod(0o555)
    (root / "nothing").mkdir(mode=0o500)
    after = contents(root)
    journal.rewind("t", entry, files=root)
    assert contents(root) == before
    journal.undo("t")
    assert contents(root) == after
    journal.redo("t")
    assert contents(root) == before
    return "ok"


class Failing(Disk):
    def __init__(self, room: int) -> None:
        self.room = room

    def rename(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
        self.room -= 1
        if self.room == 0:
            raise OSError(28, "No space left on device")
        super().rename(from_fd, from_name, to_fd, to_name)


def failing(journal: st.Journal, root: Path) -> str:
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / "file").write_text("one")
    entry = journal.append("t", st.user("x")).id
    journal.workspace.snapshot("t", entry, root)
    for name in ("a", "b"):
        (root / name / "file").write_text("two")
        (root / name / "new").write_text("two")
        (root / name).chmod(0o555)
    (root / "deep").mkdir()
    (root / "deep" / "in").write_text("x")
    (root / "deep").chmod(0o555)
    before = contents(root)
    for room in range(2, 8):
        journal.workspace.cache.disk = Failing(room)
        try:
            journal.rewind("t", entry, files=root)
        except st.WorkspaceError:
            assert contents(root) == before, room
        else:
            journal.undo("t")
            assert contents(root) == before, room
    return "ok"


def unreadable(journal: st.Journal, root: Path) -> str:
    (root / "file").write_text("x")
    (root / "file").chmod(0)
    (root / "a-folder").mkdir()
    (root / "a-folder" / "in").write_text("x")
    (root / "a-folder").chmod(0)
    (root / "plain").write_text("one")
    entry = journal.append("t", st.user("x")).id
    taken = journal.workspace.snapshot("t", entry, root)
    (root / "plain").write_text("two")
    (root / "file").chmod(0o644)
    (root / "a-folder").chmod(0o755)
    journal.rewind("t", entry, files=root)
    assert (root / "plain").read_text() == "one"
    assert (root / "file").read_text() == "x"
    assert (root / "a-folder" / "in").read_text() == "x"
    return " ".join(sorted(f"{out.path}:{out.reason}" for out in taken.left_out))


def read_only(journal: st.Journal, root: Path) -> str:
    root.chmod(0o555)
    entry = journal.append("t", st.user("x")).id
    try:
        journal.workspace.snapshot("t", entry, root)
    except st.WorkspaceError as error:
        return str(error)
    return "nothing was said"


def warm_up(journal: st.Journal, place: Path) -> None:
    """Load every module that is loaded on first use: the interpreter itself may be closed to other users."""
    journal.create_thread("warm up")
    entry = journal.append("warm up", st.user("x")).id
    (place / "warm").mkdir()
    journal.workspace.snapshot("warm up", entry, place / "warm")
    journal.rewind("warm up", entry, files=place / "warm")
    journal.undo("warm up")


def give_up_rights(root: Path) -> None:
    if os.geteuid() == 0:
        os.chown(root, NOBODY, NOBODY)
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def main() -> None:
    root = Path(sys.argv[1]) / "root"
    root.mkdir()
    scenarios = {"closed": closed, "failing": failing, "unreadable": unreadable, "read-only": read_only}
    with st.open("memory:") as journal:
        journal.create_thread("t")
        warm_up(journal, Path(sys.argv[1]))
        give_up_rights(root)
        print(scenarios[sys.argv[2]](journal, root))


if __name__ == "__main__":
    main()
