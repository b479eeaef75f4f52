"""Folders as an enemy would lay them out: odd names, odd ignore files, things that no checkpoint can hold."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.workspace import Settings
from sessiontree.workspace.cache import StatCache
from sessiontree.workspace.disk import Disk
from trees import contents


def say(journal: st.Journal, text: str = "x") -> str:
    return journal.append("t", st.user(text)).id


def snap(journal: st.Journal, root: Path) -> str:
    entry = say(journal)
    journal.workspace.snapshot("t", entry, root)
    return entry


def would_create(journal: st.Journal, entry: str, root: Path) -> tuple[str, ...]:
    return journal.workspace.plan("t", entry, root).create


def test_what_is_left_out_may_have_a_name_that_is_not_text(plain: st.Journal, root: Path) -> None:
    os.mkfifo(os.fsencode(root) + b"/pipe\xff")
    entry = say(plain)
    for _ in range(2):
        taken = plain.workspace.snapshot("t", entry, root)
        assert [(os.fsencode(out.path), out.reason) for out in taken.left_out] == [(b"pipe\xff", "special")]


def test_a_root_whose_path_is_not_text_is_refused_with_a_reason(plain: st.Journal, tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/root\xff")
    Path(odd).mkdir()
    with pytest.raises(st.WorkspaceError, match="not valid Unicode"):
        plain.workspace.snapshot("t", say(plain), odd)


@pytest.mark.parametrize("name", [".GIT", ".Sessiontree", "sub/.Git"])
def test_a_name_that_no_restore_would_bring_back_is_not_taken(plain: st.Journal, root: Path, name: str) -> None:
    (root / name).mkdir(parents=True)
    (root / name / "x").write_text("x")
    (root / "a").write_text("one")
    entry = say(plain)
    taken = plain.workspace.snapshot("t", entry, root)
    assert [(out.path, out.reason) for out in taken.left_out] == [(name, "unsafe_name")]
    (root / "a").write_text("other")
    plain.rewind("t", entry, files=root)
    assert (root / "a").read_text() == "one"
    assert (root / name / "x").read_text() == "x"


def test_a_rule_for_folders_does_not_hide_a_file_that_takes_the_place_of_one(plain: st.Journal, root: Path) -> None:
    (root / ".gitignore").write_text("build/\n")
    (root / "build").mkdir()
    (root / "build" / "x").write_text("x")
    snap(plain, root)
    shutil.rmtree(root / "build")
    (root / "build").write_text("a file")
    entry = snap(plain, root)
    (root / "build").unlink()
    assert would_create(plain, entry, root) == ("build",)


def test_a_file_that_becomes_an_ignored_folder_is_ignored(plain: st.Journal, root: Path) -> None:
    (root / ".gitignore").write_text("build/\n")
    (root / "build").write_text("a file")
    snap(plain, root)
    (root / "build").unlink()
    (root / "build").mkdir()
    (root / "build" / "x").write_text("x")
    entry = snap(plain, root)
    shutil.rmtree(root / "build")
    assert would_create(plain, entry, root) == ()


@pytest.mark.parametrize("line", ["!", "\\", "[z-a]", "a\\"])
def test_a_line_that_is_not_a_pattern_is_skipped(plain: st.Journal, root: Path, line: str) -> None:
    (root / ".gitignore").write_text(f"{line}\n*.log\n")
    (root / "a.log").write_text("x")
    (root / "a").write_text("x")
    entry = snap(plain, root)
    for path in root.glob("a*"):
        path.unlink()
    assert would_create(plain, entry, root) == ("a",)


def test_many_stars_in_a_pattern_cost_no_time(plain: st.Journal, root: Path) -> None:
    """Tried in every way, this pattern would take longer than the test suite may."""
    (root / ".gitignore").write_text("*a" * 40 + "*b\n")
    (root / ("a" * 250)).write_text("x")
    (root / ("a" * 249 + "b")).write_text("x")
    entry = snap(plain, root)
    for path in root.glob("a*"):
        path.unlink()
    assert would_create(plain, entry, root) == ("a" * 250,)


def put_git(lib: Path) -> None:
    (lib / ".git").mkdir()
    (lib / ".git" / "HEAD").write_text("ref")


def put_pipe(lib: Path) -> None:
    os.mkfifo(lib / "pipe")


def put_large(lib: Path) -> None:
    (lib / "large.bin").write_bytes(bytes(2000))


@pytest.mark.parametrize("put", [put_git, put_pipe, put_large])
def test_force_stops_at_what_no_checkpoint_can_hold(root: Path, put: Callable[[Path], None]) -> None:
    """Overwriting is what force is for; losing is not: undo could not bring these back."""
    with st.open("memory:", workspace_settings=Settings(max_total_bytes=1000)) as journal:
        journal.create_thread("t")
        (root / ".gitignore").write_text("*.bin\n")
        (root / "lib").write_text("a file")
        entry = snap(journal, root)
        (root / "lib").unlink()
        (root / "lib").mkdir()
        (root / "lib" / "a").write_text("a")
        put(root / "lib")
        before = sorted(path for path in root.rglob("*") if ".sessiontree" not in path.parts)
        with pytest.raises(st.WorkspaceError, match="lib"):
            journal.rewind("t", entry, files=root, conflicts="force")
        assert sorted(path for path in root.rglob("*") if ".sessiontree" not in path.parts) == before
        assert journal.active_lease("t") is None


def test_a_file_that_arrives_in_a_folder_that_becomes_a_file_stops_the_restore(plain: st.Journal, root: Path) -> None:
    (root / "lib").write_text("a file")
    entry = snap(plain, root)
    (root / "lib").unlink()
    (root / "lib").mkdir()
    (root / "lib" / "a").write_text("a")

    class Arriving(Disk):
        def rename(self, from_fd: int, from_name: str, to_fd: int, to_name: str) -> None:
            super().rename(from_fd, from_name, to_fd, to_name)
            if (root / "lib").is_dir():
                (root / "lib" / "late").write_text("late")

    plain.workspace.cache.disk = Arriving()
    with pytest.raises(st.WorkspaceError):
        plain.rewind("t", entry, files=root)
    assert (root / "lib" / "late").read_text() == "late"
    assert (root / "lib" / "a").read_text() == "a"


def test_a_closed_folder_that_becomes_a_file_leaves_its_mode_behind(plain: st.Journal, root: Path) -> None:
    (root / "lib").write_text("a file")
    (root / "lib").chmod(0o640)
    entry = snap(plain, root)
    (root / "lib").unlink()
    (root / "lib").mkdir()
    (root / "lib" / "a").write_text("a")
    (root / "lib").chmod(0o555)
    before = contents(root)
    plain.rewind("t", entry, files=root)
    assert (root / "lib").stat().st_mode & 0o777 == 0o640
    plain.undo("t")
    assert contents(root) == before


def test_what_force_took_along_is_ignored_again_afterwards(plain: st.Journal, root: Path) -> None:
    (root / ".env").write_text("old")
    first = snap(plain, root)
    (root / ".gitignore").write_text(".env\n")
    (root / ".env").write_text("secret")
    snap(plain, root)
    plain.rewind("t", first, files=root, conflicts="force")
    plain.undo("t")
    assert (root / ".env").read_text() == "secret"
    entry = snap(plain, root)
    (root / ".env").unlink()
    assert would_create(plain, entry, root) == ()


def test_a_store_that_is_the_folder_itself_is_refused(root: Path) -> None:
    with st.open(f"jsonl:///{root}") as journal:
        journal.create_thread("t")
        with pytest.raises(st.WorkspaceError, match="a directory of its own"):
            journal.workspace.snapshot("t", say(journal), root)


def test_a_store_under_a_name_that_begins_with_dots_is_not_taken(root: Path) -> None:
    with st.open(f"jsonl:///{root}/..store") as journal:
        journal.create_thread("t")
        assert journal.workspace.snapshot("t", say(journal), root).checkpoint.files == 0


@pytest.mark.parametrize("moment", ["begins", "ends"])
def test_a_turn_whose_folder_is_gone_ends_all_the_same(plain: st.Journal, root: Path, moment: str) -> None:
    say(plain)
    if moment == "begins":
        shutil.rmtree(root)
    with pytest.raises(st.WorkspaceError), plain.turn("t", files=root):
        shutil.rmtree(root)
    assert plain.active_lease("t") is None
    assert plain.resume("t").interrupted == ()


def test_an_async_turn_whose_folder_is_gone_ends_all_the_same(tmp_path: Path, root: Path) -> None:
    async def scene() -> None:
        async with st.open_async(f"sqlite:///{tmp_path}/async.db") as journal:
            await journal.create_thread("t")
            await journal.append("t", st.user("x"))
            with pytest.raises(st.WorkspaceError):
                async with journal.turn("t", files=root):
                    shutil.rmtree(root)
            assert await journal.active_lease("t") is None
            with pytest.raises(st.WorkspaceError):
                async with journal.turn("t", files=root):
                    pass
            assert await journal.active_lease("t") is None
            assert (await journal.resume("t")).interrupted == ()

    asyncio.run(scene())


def test_what_the_user_changes_after_a_rewind_is_the_users(plain: st.Journal, root: Path) -> None:
    (root / "a").write_text("one")
    question = say(plain)
    with plain.turn("t", files=root) as turn:
        (root / "a").write_text("two")
        turn.append(st.assistant("done"))
    plain.rewind("t", question, files=root)
    (root / "a").write_text("mine")
    with pytest.raises(st.RestoreConflictError):
        plain.undo("t")
    assert (root / "a").read_text() == "mine"
    plain.undo("t", conflicts="force")
    assert (root / "a").read_text() == "two"


def test_a_cache_that_cannot_be_written_stops_nothing(
    plain: st.Journal, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a").write_text("one")
    entry = snap(plain, root)
    (root / "a").write_text("other")

    def full(state_fd: int, cache: StatCache) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("sessiontree.workspace.open_workspace.save_cache", full)
    plain.rewind("t", entry, files=root)
    assert (root / "a").read_text() == "one"
    assert plain.thread("t").leaf == entry
    assert not (root / ".sessiontree" / "cache").exists()
    plain.undo("t")
    assert (root / "a").read_text() == "other"


def test_a_diff_of_many_changed_names_ends(plain: st.Journal, root: Path) -> None:
    """Comparing each of these pairs line by line in order would take hours."""
    for number in range(40):
        (root / f"a{number}").write_text("".join(f"{line * number % 97}\n" for line in range(4_000)))
    entry = snap(plain, root)
    for number in range(40):
        (root / f"a{number}").unlink()
        (root / f"b{number}").write_text("".join(f"{line * number % 89} b\n" for line in range(4_000)))
    assert len(plain.workspace.diff("t", entry, root)) == 80
