"""What operators do to backups and stores: clocks set back, damaged manifests, stray files, full disks, two at once."""

from __future__ import annotations

import os
import resource
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
        assert third.removed == (first.id,)
        # Nobody knows which pieces the damaged one needs.
        assert st.verify_backup(tmp_path / "backups", third.id) == []
    assert st.restore_backup(tmp_path / "backups", tmp_path / "third.db").threads == 2


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
