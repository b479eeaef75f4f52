"""Rewinding files: together with the conversation or not at all, and never over somebody else's work."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from known import of_kind
from opened import open_store
from sessiontree.stores.commands import Command, Result
from sessiontree.workspace import Settings
from trees import contents


def say(journal: st.Journal, text: str = "x") -> str:
    return journal.append("t", st.user(text)).id


def test_conversation_and_files_go_back_together_and_undo_brings_both_back(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = say(journal, "one")
    journal.workspace.snapshot("t", one, root)
    journal.append("t", st.assistant("done"))
    (root / "a").write_text("two")
    (root / "made").write_text("by the agent")
    journal.rewind("t", one, files=root)
    assert contents(root) == {b"a": ("file", 0o644, b"one")}
    assert journal.thread("t").leaf == one
    journal.undo("t")
    assert (root / "a").read_text() == "two"
    assert (root / "made").read_text() == "by the agent"
    assert [message.text for message in journal.context("t").messages] == ["one", "done"]
    journal.redo("t")
    assert (root / "a").read_text() == "one"
    assert [message.text for message in journal.context("t").messages] == ["one"]
    assert [move.reason for move in journal.reflog("t")] == ["rewind", "undo", "redo"]


def test_undo_of_a_move_without_files_leaves_the_files_alone(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    (root / "a").write_text("two")
    journal.rewind("t", one, files=root)
    journal.undo("t")
    (root / "a").write_text("three")
    journal.rewind("t", one)
    journal.undo("t")
    assert (root / "a").read_text() == "three"


def test_an_unknown_answer_to_conflicts_is_refused_before_a_file_changes(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    (root / "a").write_text("two")
    unknown: Any = "overwrite"
    with pytest.raises(st.InvalidInputError, match="'stop', 'force' or 'keep_mine', not 'overwrite'"):
        journal.rewind("t", one, files=root, conflicts=unknown)
    with pytest.raises(st.InvalidInputError):
        journal.workspace.plan("t", one, root, conflicts=unknown)
    assert (root / "a").read_text() == "two"


def test_when_the_leaf_cannot_move_the_files_stay(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    (root / "a").write_text("two")
    journal.acquire_lease("t", owner="somebody else")
    with pytest.raises(st.ActiveTurnError):
        journal.rewind("t", one, files=root)
    assert (root / "a").read_text() == "two"
    assert journal.reflog("t") == []


def test_when_the_store_refuses_the_move_the_files_come_back(
    plain: st.Journal, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("one")
    one = say(plain)
    plain.workspace.snapshot("t", one, root)
    (root / "a").write_text("two")
    before = contents(root)
    commit = plain.store.commit

    def refusing(command: Command) -> Result:
        if type(command).__name__ == "MoveLeaf":
            assert (root / "a").read_text() == "one"
            raise st.StaleLeafError("t", "a", "b")
        return commit(command)

    monkeypatch.setattr(plain.store, "commit", refusing)
    with pytest.raises(st.StaleLeafError):
        plain.rewind("t", one, files=root)
    monkeypatch.undo()
    assert contents(root) == before
    assert plain.active_lease("t") is None
    plain.rewind("t", one, files=root)
    assert (root / "a").read_text() == "one"


def test_a_checkpoint_is_restored_by_its_id_although_a_later_one_is_for_it(journal: st.Journal, root: Path) -> None:
    say(journal)
    taken = []
    for text in ("one", "two", "three"):
        (root / "a").write_text(text)
        taken.append(journal.workspace.snapshot("t", None, root))
    assert [checkpoint.checkpoint.target for checkpoint in taken[1:]] == [taken[0].id, taken[1].id]
    for checkpoint, text in zip(taken, ("one", "two", "three"), strict=True):
        journal.workspace.restore("t", checkpoint.id, root, conflicts="force")
        assert (root / "a").read_text() == text
        assert journal.workspace.diff("t", checkpoint.id, root).files == ()
    journal.rewind("t", taken[0].id, files=root, conflicts="force")
    assert (root / "a").read_text() == "one"
    journal.undo("t")
    assert (root / "a").read_text() == "three"
    fork = journal.fork("t", new_id="fork")
    journal.workspace.restore(fork.id, taken[0].id, root, conflicts="force")
    assert (root / "a").read_text() == "one"


def test_a_folder_that_was_renamed_is_restored_by_the_id_of_its_checkpoint(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    entry = say(journal)
    taken = journal.workspace.snapshot("t", entry, root)
    (root / "a").write_text("two")
    renamed = root.rename(root.with_name("renamed"))
    with pytest.raises(st.NoCheckpointError):
        journal.workspace.restore("t", entry, renamed)
    journal.workspace.restore("t", taken.id, renamed)
    assert (renamed / "a").read_text() == "one"


def test_an_entry_without_a_checkpoint_is_refused(journal: st.Journal, root: Path, tmp_path: Path) -> None:
    one = say(journal)
    with pytest.raises(st.NoCheckpointError):
        journal.rewind("t", one, files=root)
    journal.workspace.snapshot("t", one, root)
    other = tmp_path / "another folder"
    other.mkdir()
    with pytest.raises(st.NoCheckpointError):
        journal.rewind("t", one, files=other)
    with pytest.raises(st.EntryNotFoundError):
        journal.rewind("t", "never", files=root)
    with pytest.raises(st.WorkspaceError):
        journal.workspace.snapshot("t", one, "  ")
    with pytest.raises(st.WorkspaceError):
        journal.workspace.snapshot("t", one, tmp_path / "missing")


def test_a_plan_says_what_would_happen_and_changes_nothing(journal: st.Journal, root: Path) -> None:
    for name in ("changed", "deleted", "mode", "same"):
        (root / name).write_text(name)
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    (root / "changed").write_text("else")
    (root / "deleted").unlink()
    (root / "mode").chmod(0o755)
    (root / "made").write_text("made")
    before, size = contents(root), journal.stats().entries
    plan = journal.workspace.plan("t", one, root)
    assert (plan.create, plan.change, plan.delete, plan.mode) == (("deleted",), ("changed",), ("made",), ("mode",))
    assert plan.conflicts == ()
    assert journal.workspace.restore("t", one, root, dry_run=True) == plan
    assert contents(root) == before
    assert journal.stats().entries == size


def test_a_restore_without_the_conversation_keeps_what_was_there(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    (root / "a").write_text("two")
    two = say(journal)
    done = journal.workspace.restore("t", one, root)
    assert (root / "a").read_text() == "one"
    assert journal.path("t")[-2].id == two
    journal.workspace.restore("t", done.before, root)
    assert (root / "a").read_text() == "two"


def test_files_that_are_ignored_or_too_large_are_left_alone(tmp_path: Path, root: Path) -> None:
    settings = Settings(max_file_bytes=1000)
    with open_store("sqlite", tmp_path, workspace_settings=settings) as journal:
        journal.create_thread("t")
        (root / ".gitignore").write_text("*.log\n")
        (root / "big").write_bytes(bytes(2000))
        (root / "a").write_text("one")
        one = say(journal)
        taken = journal.workspace.snapshot("t", one, root)
        assert [(out.path, out.reason, out.size) for out in taken.left_out] == [("big", "too_large", 2000)]
        assert taken.checkpoint.left_out == 1
        (root / "x.log").write_text("mine")
        (root / "node_modules").mkdir()
        (root / "node_modules" / "m.js").write_text("mine")
        (root / "big").write_bytes(b"small now")
        (root / "a").write_text("two")
        plan = journal.workspace.plan("t", one, root)
        assert plan.left_alone == ("big",)
        journal.rewind("t", one, files=root)
        assert (root / "a").read_text() == "one"
        assert (root / "x.log").read_text() == "mine"
        assert (root / "node_modules" / "m.js").read_text() == "mine"
        assert (root / "big").read_bytes() == b"small now"


def test_what_the_checkpoints_own_ignore_rules_hid_is_not_deleted_later(plain: st.Journal, root: Path) -> None:
    (root / ".gitignore").write_text("data/\n")
    (root / "data").mkdir()
    (root / "data" / "set").write_text("mine")
    one = say(plain)
    plain.workspace.snapshot("t", one, root)
    (root / ".gitignore").write_text("")
    plain.rewind("t", one, files=root)
    assert (root / "data" / "set").read_text() == "mine"
    assert (root / ".gitignore").read_text() == "data/\n"


def test_an_untracked_file_in_the_way_is_a_conflict(journal: st.Journal, root: Path) -> None:
    (root / "notes.log").write_text("tracked")
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    (root / ".gitignore").write_text("*.log\n")
    (root / "notes.log").write_text("the user's own")
    before = contents(root)
    plan = journal.workspace.plan("t", one, root)
    assert [(conflict.path, conflict.reason) for conflict in plan.conflicts] == [("notes.log", "untracked")]
    with pytest.raises(st.RestoreConflictError) as caught:
        journal.rewind("t", one, files=root)
    assert caught.value.paths == ("notes.log",)
    assert contents(root) == before
    assert journal.reflog("t") == []

    journal.rewind("t", one, files=root, conflicts="keep_mine")
    assert (root / "notes.log").read_text() == "the user's own"
    assert not (root / ".gitignore").exists()
    journal.undo("t")
    assert contents(root) == before
    journal.rewind("t", one, files=root, conflicts="force")
    assert (root / "notes.log").read_text() == "tracked"
    journal.undo("t")
    assert contents(root) == before


def test_a_foreign_change_after_the_turn_is_a_conflict(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    (root / "b").write_text("one")
    one = say(journal)
    with journal.turn("t", files=root) as turn:
        (root / "a").write_text("by the agent")
        (root / "b").write_text("by the agent")
        (root / "made").write_text("by the agent")
        turn.append(st.assistant("done"))
    (root / "a").write_text("by the user")
    (root / "own").write_text("by the user")
    plan = journal.workspace.plan("t", one, root)
    assert [(conflict.path, conflict.reason) for conflict in plan.conflicts] == [("a", "changed")]
    assert plan.left_alone == ("own",)
    with pytest.raises(st.RestoreConflictError):
        journal.rewind("t", one, files=root)
    journal.rewind("t", one, files=root, conflicts="keep_mine")
    assert (root / "a").read_text() == "by the user"
    assert (root / "own").read_text() == "by the user"
    assert (root / "b").read_text() == "one"
    assert not (root / "made").exists()


def test_what_another_thread_did_in_the_folder_is_a_conflict(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    journal.create_thread("other")
    theirs = journal.append("other", st.user("x")).id
    (root / "a").write_text("by the other thread")
    journal.workspace.snapshot("other", theirs, root)
    with pytest.raises(st.RestoreConflictError):
        journal.rewind("t", one, files=root)
    assert (root / "a").read_text() == "by the other thread"


def test_a_turn_takes_checkpoints_and_its_user_message_can_be_rewound_to(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = say(journal)
    with journal.turn("t", files=root):
        (root / "a").write_text("two")
    moments = [of_kind(st.Checkpoint, entry.payload).moment for entry in journal.workspace.checkpoints("t")]
    assert moments == ["before_turn", "after_turn"]
    journal.rewind("t", one, files=root)
    assert (root / "a").read_text() == "one"


def test_a_fork_at_a_message_finds_its_checkpoint(journal: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    one = say(journal)
    journal.workspace.snapshot("t", one, root)
    (root / "a").write_text("two")
    journal.fork("t", at=one, new_id="f")
    journal.rewind("f", one, files=root, conflicts="force")
    assert (root / "a").read_text() == "one"


def test_sockets_pipes_and_devices_are_reported_and_left_alone(plain: st.Journal, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        here = Path.cwd()
        os.chdir(root)
        bound.bind("socket")
        os.chdir(here)
        (root / "a").write_text("one")
        one = say(plain)
        taken = plain.workspace.snapshot("t", one, root)
        assert [(out.path, out.reason) for out in taken.left_out] == [("pipe", "special"), ("socket", "special")]
        (root / "a").write_text("two")
        plain.rewind("t", one, files=root)
        assert {path.name for path in root.iterdir()} == {".sessiontree", "a", "pipe", "socket"}


def test_a_file_that_changes_at_the_last_moment_stops_the_restore(plain: st.Journal, root: Path) -> None:
    from sessiontree.workspace.disk import Disk  # noqa: PLC0415

    for name in "abc":
        (root / name).write_text("one")
    one = say(plain)
    plain.workspace.snapshot("t", one, root)
    for name in "abc":
        (root / name).write_text("two")

    class Meddling(Disk):
        def link(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
            super().link(from_fd, from_name, to_fd, to_name)
            (root / "c").write_text("meddled")

    plain.workspace.cache.disk = Meddling()
    with pytest.raises(st.FolderChangedError):
        plain.rewind("t", one, files=root)
    assert {name: (root / name).read_text() for name in "abc"} == {"a": "two", "b": "two", "c": "meddled"}
    plain.workspace.cache.disk = Disk()
    plain.rewind("t", one, files=root)
    assert {(root / name).read_text() for name in "abc"} == {"one"}


@pytest.mark.parametrize("paths", [["README", "readme"], ["aux.txt"], ["COM1"], ["dot."], ["a:b"]])
def test_portable_names_are_asked_for_and_checked(plain: st.Journal, root: Path, paths: list[str]) -> None:
    for path in paths:
        (root / path).write_text("x")
    one = say(plain)
    plain.workspace.snapshot("t", one, root)
    (root / paths[0]).write_text("y")
    before = contents(root)
    place = plain.workspace.cache.place
    with st.open(f"sqlite:///{place}", workspace_settings=Settings(names="portable")) as strict:
        with pytest.raises(st.UnsafePathError):
            strict.rewind("t", one, files=root)
        assert contents(root) == before
        taken = strict.workspace.snapshot("t", say(strict), root)
        assert [(out.path, out.reason) for out in taken.left_out] == [(paths[-1], "unsafe_name")]


def test_our_own_folder_that_is_a_link_is_refused(plain: st.Journal, root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / ".sessiontree").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(st.WorkspaceError):
        plain.workspace.snapshot("t", say(plain), root)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_interrupted_restore_of_another_store_is_not_decided_here(tmp_path: Path, root: Path) -> None:
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    script = """
import os, signal, sys
import sessiontree as st
from sessiontree.workspace.disk import Disk
class Dying(Disk):
    def link(self, *arguments):
        super().link(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)
with st.open(sys.argv[1]) as journal:
    journal.create_thread("t")
    one = journal.append("t", st.user("x")).id
    root = sys.argv[2]
    open(root + "/a", "w").write("one")
    journal.workspace.snapshot("t", one, root)
    open(root + "/a", "w").write("two")
    journal.workspace.cache.disk = Dying()
    journal.rewind("t", one, files=root)
"""
    first = f"sqlite:///{tmp_path}/first.db"
    assert subprocess.run([sys.executable, "-c", script, first, root], check=False).returncode < 0
    with open_store("sqlite", tmp_path) as journal:
        journal.create_thread("t")
        with pytest.raises(st.PendingRestoreError) as caught:
            journal.workspace.snapshot("t", say(journal), root)
        assert caught.value.thread_id == "t"
    with st.open(first) as journal:
        assert journal.workspace.recover(root) == "old"
        assert journal.workspace.recover(root) == ""
    assert (root / "a").read_text() == "two"


def test_the_async_journal_does_not_block_its_loop(tmp_path: Path, root: Path) -> None:
    """While a snapshot reads files, other tasks go on."""
    (root / "big").write_bytes(os.urandom(30_000_000))

    async def scenario() -> int:
        ticks = 0
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")
            entry = await journal.append("t", st.user("x"))
            task = asyncio.create_task(journal.workspace.snapshot("t", entry.id, root))
            while not task.done():
                await asyncio.sleep(0)
                ticks += 1
            assert task.result().checkpoint.files == 1
        return ticks

    assert asyncio.run(scenario()) > 20


def two_folders(journal: st.Journal, root: Path) -> str:
    """A checkpoint with two files in folders, both gone since, one more changed and one more made."""
    (root / "a").mkdir()
    (root / "b").mkdir()
    for name in ("a/one", "b/two", "top"):
        (root / name).write_text("old")
    first = say(journal)
    journal.workspace.snapshot("t", first, root)
    for name in ("a/one", "b/two"):
        (root / name).unlink()
    (root / "a").rmdir()
    (root / "b").rmdir()
    (root / "top").write_text("new")
    (root / "made").write_text("new")
    return first


def test_one_file_is_restored_with_the_folder_that_it_needs_and_nothing_else(journal: st.Journal, root: Path) -> None:
    first = two_folders(journal, root)
    plan = journal.workspace.plan("t", first, root, paths=["a/one"])
    assert [(step.kind, step.path) for step in plan.steps] == [("create", "a"), ("create", "a/one")]
    done = journal.workspace.restore("t", first, root, paths=["a/one"])
    assert done.steps == plan.steps
    assert set(contents(root)) == {b"a", b"a/one", b"made", b"top"}
    assert (root / "top").read_text() == "new"
    journal.workspace.restore("t", done.before, root, paths=["a"], conflicts="force")
    assert set(contents(root)) == {b"made", b"top"}


def test_a_folder_stands_for_everything_in_it(journal: st.Journal, root: Path) -> None:
    first = two_folders(journal, root)
    plan = journal.workspace.restore("t", first, root, paths=["b/", Path("made")])
    assert [step.path for step in plan.steps] == ["b", "b/two", "made"]
    assert set(contents(root)) == {b"b", b"b/two", b"top"}


def test_a_conflict_of_a_file_that_is_not_wanted_does_not_stop_the_others(journal: st.Journal, root: Path) -> None:
    (root / "mine").write_text("one")
    (root / "yours").write_text("one")
    with journal.turn("t", owner="w", files=root) as turn:
        (root / "yours").write_text("two")
        turn.append(st.assistant("done"))
    first = journal.workspace.checkpoints("t")[0]
    (root / "mine").write_text("my own work")
    with pytest.raises(st.RestoreConflictError):
        journal.workspace.restore("t", first.id, root, paths=["mine"])
    journal.workspace.restore("t", first.id, root, paths=["yours"])
    assert ((root / "mine").read_text(), (root / "yours").read_text()) == ("my own work", "one")
    with pytest.raises(st.RestoreConflictError, match="mine"):
        journal.workspace.restore("t", first.id, root)


@pytest.mark.parametrize("unknown", ["tpo", "../top", "/top", "", "."])
def test_a_path_that_neither_checkpoint_nor_folder_has_is_refused(
    journal: st.Journal, root: Path, unknown: str
) -> None:
    first = two_folders(journal, root)
    with pytest.raises(st.InvalidInputError, match="nothing to restore at"):
        journal.workspace.restore("t", first, root, paths=["top", unknown])
    assert (root / "top").read_text() == "new"


def test_one_text_is_not_taken_for_a_list_of_paths(journal: st.Journal, root: Path) -> None:
    first = two_folders(journal, root)
    with pytest.raises(st.InvalidInputError, match="list of paths"):
        journal.workspace.plan("t", first, root, paths="top")
