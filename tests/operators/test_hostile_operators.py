"""What operators do to backups and stores: clocks set back, damaged manifests, stray files, full disks, two at once."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.stores._io import Files
from sessiontree.testing import ManualClock


def test_a_clock_that_was_set_back_does_not_make_the_new_backup_the_oldest(tmp_path: Path) -> None:
    clock = ManualClock()
    with st.open(tmp_path / "j.db", clock=clock) as journal:
        journal.create_thread("a")
        journal.backup(tmp_path / "backups")
        clock.advance(seconds=-86_400)
        journal.create_thread("b")
        report = journal.backup(tmp_path / "backups", keep=1)
    assert [backup.id for backup in st.list_backups(tmp_path / "backups")] == [report.id]
    assert st.restore_backup(tmp_path / "backups", tmp_path / "again.db").threads == 2


def test_a_damaged_manifest_stops_neither_new_backups_nor_older_ones(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("a")
        first = journal.backup(tmp_path / "backups")
        journal.create_thread("b")
        second = journal.backup(tmp_path / "backups")
        manifest = tmp_path / "backups" / "backups" / f"{second.id}.json"
        manifest.write_bytes(manifest.read_bytes().replace(b"sqlite", b"sqlitf"))
        assert [backup.id for backup in st.list_backups(tmp_path / "backups")] == [first.id]
        assert "damaged" in st.verify_backup(tmp_path / "backups", second.id)[0]
        with pytest.raises(st.BackupError, match="damaged"):
            st.restore_backup(tmp_path / "backups", tmp_path / "again.db")
        assert st.restore_backup(tmp_path / "backups", tmp_path / "first.db", backup_id=first.id).threads == 1
        third = journal.backup(tmp_path / "backups", keep=2)
        assert third.removed == ()
        # Nobody knows which pieces the damaged one needs.
        assert st.verify_backup(tmp_path / "backups", third.id) == []
        assert journal.backup(tmp_path / "backups", keep=2).removed == (first.id, second.id)
    assert st.restore_backup(tmp_path / "backups", tmp_path / "third.db").threads == 2


def test_a_damaged_backup_of_a_later_clock_took_the_place_of_the_new_one(tmp_path: Path) -> None:
    clock = ManualClock()
    with st.open(tmp_path / "j.db", clock=clock) as journal:
        journal.create_thread("a")
        damaged = journal.backup(tmp_path / "backups")
        (tmp_path / "backups" / "backups" / f"{damaged.id}.json").write_text("{}")
        clock.advance(seconds=-86_400)
        report = journal.backup(tmp_path / "backups", keep=1)
    assert report.removed == (damaged.id,)
    assert st.restore_backup(tmp_path / "backups", tmp_path / "again.db").backup.id == report.id


@pytest.mark.parametrize("name", ["notes.json", "99999999T000000.000000Z-0123456789abcdef.json"])
def test_a_stray_file_beside_the_manifests_was_kept_in_place_of_the_backups(tmp_path: Path, name: str) -> None:
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("a")
        journal.backup(tmp_path / "backups")
        (tmp_path / "backups" / "backups" / name).write_text("{}")
        report = journal.backup(tmp_path / "backups", keep=1)
    assert [backup.id for backup in st.list_backups(tmp_path / "backups")] == [report.id]
    assert (tmp_path / "backups" / "backups" / name).exists()


def test_stray_files_beside_the_pieces_made_every_removal_fail(tmp_path: Path) -> None:
    strays = [".DS_Store", "zz/Thumbs.db", "zz/folder/file"]
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("a")
        first = journal.backup(tmp_path / "backups")
        for name in strays:
            path = tmp_path / "backups" / "pieces" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("stray")
        journal.create_thread("b")
        assert journal.backup(tmp_path / "backups", keep=1).removed == (first.id,)
    pieces = tmp_path / "backups" / "pieces"
    assert all((pieces / name).exists() for name in strays)
    assert len(list(pieces.glob("??/" + "?" * 64))) == 1


def test_a_folder_of_backups_that_was_copied_without_its_empty_folders_could_not_be_used(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("a")
        journal.backup(tmp_path / "backups")
        for name in ("pieces", "backups"):
            shutil.rmtree(tmp_path / "backups" / name)
            journal.backup(tmp_path / "backups")
        assert st.verify_backup(tmp_path / "backups") == []


@pytest.mark.parametrize("path", ["x\0y", "x" * 300, "a file/x"])
def test_a_path_that_cannot_be_raised_an_error_of_python(tmp_path: Path, path: str) -> None:
    (tmp_path / "a file").write_text("")
    wrong = f"{tmp_path}/{path}"
    with st.open(tmp_path / "j.db") as journal:
        journal.backup(tmp_path / "backups")
        for use in (
            lambda: journal.backup(wrong),
            lambda: st.list_backups(wrong),
            lambda: st.verify_backup(wrong),
            lambda: st.restore_backup(wrong, tmp_path / "again.db"),
            lambda: st.restore_backup(tmp_path / "backups", wrong),
        ):
            with pytest.raises(st.StoreError) as caught:
                use()
            assert "safe to try again" not in str(caught.value)


def test_a_restore_of_a_file_into_a_folder_was_called_safe_to_try_again(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        journal.backup(tmp_path / "backups")
    (tmp_path / "empty").mkdir()
    with pytest.raises(st.BackupError, match="name a file in it"):
        st.restore_backup(tmp_path / "backups", tmp_path / "empty")
    assert not list(tmp_path.glob("empty-*"))


def test_a_backup_that_cannot_remove_older_ones_says_that_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Files, path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("a")
        journal.backup(tmp_path / "backups")
        with monkeypatch.context() as patched:
            patched.setattr(Files, "remove", refuse)
            with pytest.raises(st.BackupError, match="is complete, but older ones"):
                journal.backup(tmp_path / "backups", keep=1)
    assert len(st.list_backups(tmp_path / "backups")) == 2


def test_stray_files_in_the_folder_of_a_store_are_left_out(tmp_path: Path) -> None:
    with st.open(f"jsonl:///{tmp_path}/journal") as journal:
        journal.create_thread("a")
        for name in (".DS_Store", "copy of notes.txt", "x\n.jsonl", "sub folder/deep.jsonl"):
            path = tmp_path / "journal" / "trees" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("stray", encoding="utf-8")
        journal.backup(tmp_path / "backups")
    assert st.restore_backup(tmp_path / "backups", tmp_path / "again").threads == 1


def test_two_backups_at_once_wait_for_each_other(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("a")
        workers = [threading.Thread(target=journal.backup, args=(tmp_path / "backups",)) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    found = st.list_backups(tmp_path / "backups")
    assert len(found) == 4
    assert all(st.verify_backup(tmp_path / "backups", backup.id) == [] for backup in found)


FULL = """
import resource, sys
import sessiontree as st

with st.open(sys.argv[1]) as journal:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    try:
        journal.backup(sys.argv[2])
    except st.StoreError as error:
        print(type(error).__name__, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(journal.append("a", st.user("the store goes on")).type)
"""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_FSIZE)[1] != resource.RLIM_INFINITY, reason="has a limit already"
)
def test_a_full_target_is_named_and_the_store_goes_on(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("a")
        journal.append("a", st.user(os.urandom(300_000).hex()))
    script = FULL.replace("(200_000, 200_000)", "(200_000, resource.RLIM_INFINITY)")
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "j.db"), str(tmp_path / "backups")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    problem, after = done.stdout.splitlines()
    assert problem.startswith(("StoreFullError", "StoreUnavailableError"))
    assert str(tmp_path / "backups") in problem
    assert after == "user_message"
    with st.open(tmp_path / "j.db") as journal:
        journal.backup(tmp_path / "backups")


def test_a_size_limit_deletes_no_more_than_it_must_when_files_take_the_room(tmp_path: Path) -> None:
    with st.open(tmp_path / "j.db") as journal:
        for number in range(6):
            journal.create_thread(f"t{number}", is_archived=True)
            ref = journal.put_artifact(os.urandom(200_000), mime="image/png")
            journal.append(f"t{number}", st.Message(role="user", parts=(st.ImagePart(artifact=ref),)))
        report = journal.delete_expired(st.Retention(max_bytes=journal.stats().bytes - 300_000))
        assert 1 <= len(report.expired) <= 3
        assert report.freed_bytes > 200_000


def test_the_bar_of_a_backup_only_goes_forward(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/j.db", f"jsonl:///{tmp_path}/journal"):
        steps: list[tuple[int, int]] = []
        with st.open(url) as journal:
            journal.create_thread("a")
            journal.append_many("a", [st.user("x" * 5000) for _ in range(100)])
            journal.backup(tmp_path / url[:5], progress=lambda done, total: steps.append((done, total)))  # noqa: B023
        assert steps == sorted(steps)
        assert len({total for _, total in steps}) == 1
        assert steps[-1][0] == steps[-1][1] > 0
