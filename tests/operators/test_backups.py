"""Backups of a store that is being used: complete, incremental, verified, and never in the way of anything else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

import pytest

import sessiontree as st
from cli_shell import Shell
from opened import open_store, url_of
from sessiontree.model.blobs import hash_of
from sessiontree.stores._io import Files
from sessiontree.stores.backup.folder import BackupFolder
from sessiontree.testing import ManualClock

FILE_STORES = ("sqlite", "jsonl")
ALL_STORES = [*FILE_STORES, "memory", "postgres"]


@pytest.fixture(params=FILE_STORES)
def store(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def journal(store: str, tmp_path: Path) -> Iterator[st.Journal]:
    with open_store(store, tmp_path) as journal:
        yield journal


def fill(journal: st.Journal, entries: int = 20) -> list[st.Entry]:
    """A bit of everything that a store keeps."""
    journal.create_thread("talk", title="a talk", tags=("a",), custom={"n": 1})
    written = journal.append_many("talk", [st.user(f"question {n} " * 50) for n in range(entries)])
    journal.rewind("talk", written[3].id)
    journal.append("talk", st.assistant("another way"))
    journal.fork("talk", at=written[2].id, new_id="fork")
    journal.append("fork", st.user("own"))
    journal.create_thread("gone")
    kept = journal.append("gone", st.user("kept by a fork"))
    journal.append("gone", st.user("seen by nobody"))
    journal.fork("gone", at=kept.id, new_id="keeper")
    journal.delete_thread("gone")
    journal.create_thread("gone", title="reborn")
    journal.append("gone", st.user("a new life"))
    journal.fork("gone", new_id="child\0of the reborn")
    journal.undo("talk")
    journal.append("talk", st.user("on a branch"), parent=written[0].id)
    journal.append("talk", st.user("beside"), parent=written[1].id, moves_leaf=False)
    journal.acquire_lease("fork", owner="worker", turn_id="turn")
    journal.documents.put("scope", "key", {"value": [1, 2]})
    ref = journal.put_artifact(b"bytes of a picture " * 1000, mime="image/png")
    journal.append("talk", st.Message(role="user", parts=(st.ImagePart(artifact=ref, mime="image/png"),)))
    return written


def content(journal: st.Journal) -> object:
    """Everything that a reader can see."""
    threads = sorted(journal.iter_threads(is_archived=None), key=lambda thread: thread.id)
    return [
        (
            thread,
            sorted(journal.entries(thread.id), key=lambda entry: entry.id),
            [entry.id for entry in journal.path(thread.id)],
            journal.reflog(thread.id),
        )
        for thread in threads
    ], [(document.key, document.value) for document in journal.documents.list("scope")]


@pytest.mark.parametrize("store", ALL_STORES, indirect=True)
def test_a_restored_backup_is_the_store(journal: st.Journal, tmp_path: Path) -> None:
    fill(journal)
    journal.backup(tmp_path / "backups")
    expected = content(journal)
    report = st.restore_backup(tmp_path / "backups", tmp_path / "again")
    assert report.findings == ()
    assert report.entries == journal.stats().entries
    with st.open(f"{report.backup.kind}:///{tmp_path}/again") as again:
        assert content(again) == expected
        assert again.check() == []
        again.append("talk", st.user("and it goes on"))


@pytest.mark.parametrize("store", ALL_STORES, indirect=True)
def test_a_backup_can_become_a_store_of_another_kind(journal: st.Journal, store: str, tmp_path: Path) -> None:
    fill(journal)
    journal.backup(tmp_path / "backups")
    other = f"jsonl:///{tmp_path}/other" if store == "sqlite" else f"sqlite:///{tmp_path}/other"
    assert st.restore_backup(tmp_path / "backups", other).threads == journal.stats().threads


def act(journal: st.Journal, random: Random, steps: int) -> None:
    """Do anything that changes the shape of trees."""
    journal.create_thread("t0")
    for number in range(1, steps):
        thread = random.choice(
            [one.id for one in journal.iter_threads(is_archived=None)] or [journal.create_thread().id]
        )
        seen = [entry.id for entry in journal.entries(thread)]
        with suppress(st.NotFoundError, st.ConflictError):
            match random.randrange(12):
                case 0:
                    journal.create_thread(f"t{random.randrange(6)}")
                case 1 | 2 if seen:
                    journal.fork(thread, at=random.choice(seen), new_id=f"t{random.randrange(12)}")
                case 3 if seen:
                    journal.rewind(thread, random.choice(seen))
                case 4:
                    journal.undo(thread)
                case 5:
                    journal.redo(thread)
                case 6 if seen:
                    journal.append(thread, st.user(f"aside {number}"), parent=random.choice(seen), moves_leaf=False)
                case 7 if seen:
                    journal.append(thread, st.user(f"branch {number}"), parent=random.choice(seen))
                case 8 if number % 3 == 0:
                    journal.delete_thread(thread)
                case 9:
                    journal.release_lease(journal.acquire_lease(thread, owner="w", turn_id=str(number)))
                case 10:
                    journal.reset(thread)
                case _:
                    journal.append(thread, st.user(f"text {number}"))


@pytest.mark.parametrize("seed", range(12))
def test_a_store_that_is_not_files_comes_back_whatever_its_trees_look_like(seed: int, tmp_path: Path) -> None:
    clock = ManualClock()  # stands still, so tokens grow by one
    with st.open("memory:", clock=clock) as journal:
        act(journal, Random(seed), 80)
        expected = content(journal)
        order = {
            one.id: [entry.id for entry in journal.entries(one.id)] for one in journal.iter_threads(is_archived=None)
        }
        with st.open(journal.freeze(tmp_path), clock=clock) as copy:
            assert content(copy) == expected
            for thread, entries in order.items():
                assert set(entries) == {entry.id for entry in copy.entries(thread)}
                # A token is never given out twice.
                assert copy.acquire_lease(thread, owner="x", turn_id="x").token == (
                    journal.acquire_lease(thread, owner="x", turn_id="x").token
                )
            assert copy.check() == []


def test_files_that_are_replaced_all_the_time_are_copied_while_writers_wait(tmp_path: Path) -> None:
    with st.open(f"jsonl:///{tmp_path}/journal") as journal:
        journal.create_thread("z0")
        lists: list[int] = []

        def replace_what_is_new(done: int, total: int) -> None:
            if not lists or total != lists[-1]:  # another list of files
                lists.append(total)
                journal.delete_thread(f"z{len(lists) - 1}")
                journal.create_thread(f"z{len(lists)}", title="x" * len(lists))

        journal.backup(tmp_path / "backups", progress=replace_what_is_new)
        assert len(lists) == 4
    report = st.restore_backup(tmp_path / "backups", tmp_path / "again")
    with st.open(tmp_path / "again") as again:
        assert [thread.id for thread in again.iter_threads()] == ["z3"]
    assert report.findings == ()


def test_an_async_journal_makes_the_same_backup(store: str, tmp_path: Path) -> None:
    async def run() -> st.BackupReport:
        async with st.open_async(url_of(store, tmp_path)) as journal:
            await journal.create_thread("t")
            await journal.append("t", st.user("hello"))
            return await journal.backup(tmp_path / "backups")

    assert asyncio.run(run()).bytes > 0
    assert st.restore_backup(tmp_path / "backups", tmp_path / "again").entries == 1


def test_the_second_backup_copies_only_what_changed(journal: st.Journal, tmp_path: Path) -> None:
    for number in range(40):
        journal.create_thread(f"t{number}")
        journal.append_many(f"t{number}", [st.user(os.urandom(20_000).hex())])
    first = journal.backup(tmp_path / "backups")
    assert first.copied_bytes >= first.bytes * 0.99
    assert journal.backup(tmp_path / "backups").copied_bytes == 0
    journal.append("t0", st.user("one more"))
    assert 0 < journal.backup(tmp_path / "backups").copied_bytes < first.bytes / 2
    assert len(st.list_backups(tmp_path / "backups")) == 3


def test_an_interrupted_backup_is_completed_by_the_next(
    journal: st.Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        journal.create_thread(f"t{number}")
        journal.append(f"t{number}", st.user(os.urandom(300_000).hex()))
    with _failing_files(monkeypatch, after=5), pytest.raises(st.StoreFullError):
        journal.backup(tmp_path / "backups")
    assert st.list_backups(tmp_path / "backups") == []
    with pytest.raises(st.BackupError, match="no complete backup"):
        st.restore_backup(tmp_path / "backups", tmp_path / "again")
    report = journal.backup(tmp_path / "backups")
    assert 0 < report.copied_bytes < report.bytes
    assert st.restore_backup(tmp_path / "backups", tmp_path / "again").entries == 8


@contextmanager
def _failing_files(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[None]:
    """A disk that is full after some files."""
    write_new = Files.write_new
    left = after

    def failing(self: Files, path: Path, data: bytes) -> None:
        nonlocal left
        if path.parent.parent.name == "pieces":
            left -= 1
            if left < 0:
                raise OSError(28, "No space left on device")
        write_new(self, path, data)

    with monkeypatch.context() as patched:
        patched.setattr(Files, "write_new", failing)
        yield


KILLED = """
import os, signal, sys
import sessiontree as st

left = 3
def kill(done, total):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

with st.open(sys.argv[1]) as journal:
    journal.backup(sys.argv[2], progress=kill)
"""


def test_a_backup_that_was_killed_is_completed_by_the_next(tmp_path: Path) -> None:
    url = f"jsonl:///{tmp_path}/journal"
    with st.open(url) as journal:
        for number in range(6):
            journal.create_thread(f"t{number}")
            journal.append(f"t{number}", st.user(f"text {number}"))
        done = subprocess.run([sys.executable, "-c", KILLED, url, str(tmp_path / "backups")], check=False)
        assert done.returncode == -signal.SIGKILL
        assert st.list_backups(tmp_path / "backups") == []
        report = journal.backup(tmp_path / "backups")
    assert 0 < report.copied_bytes < report.bytes
    assert st.restore_backup(tmp_path / "backups", tmp_path / "again").entries == 6


def test_damage_is_found_and_never_restored(journal: st.Journal, tmp_path: Path) -> None:
    fill(journal)
    journal.backup(tmp_path / "backups")
    assert st.verify_backup(tmp_path / "backups") == []
    piece = max(pieces_of(tmp_path / "backups"), key=lambda path: path.stat().st_size)
    flip(piece)
    assert len(st.verify_backup(tmp_path / "backups")) == 1
    with pytest.raises(st.BackupError, match="missing or damaged"):
        st.restore_backup(tmp_path / "backups", tmp_path / "again")
    piece.unlink()
    with pytest.raises(st.BackupError, match="missing or damaged"):
        st.restore_backup(tmp_path / "backups", tmp_path / "again")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("again")] == []


def pieces_of(folder: Path) -> list[Path]:
    return [path for path in (folder / "pieces").rglob("*") if path.is_file()]


def flip(path: Path) -> None:
    """Change one bit in the middle, as a failing disk does: the size stays."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("store", ALL_STORES, indirect=True)
@pytest.mark.parametrize("damage", [flip, lambda path: path.write_bytes(b"")], ids=["flipped", "emptied"])
def test_a_backup_relied_on_damaged_pieces_of_earlier_ones(
    journal: st.Journal, damage: Callable[[Path], object], tmp_path: Path
) -> None:
    fill(journal)
    first = journal.backup(tmp_path / "backups")
    assert first.repaired == ()
    for piece in pieces_of(tmp_path / "backups"):
        damage(piece)
    second = journal.backup(tmp_path / "backups")
    assert set(second.repaired) == {piece.name for piece in pieces_of(tmp_path / "backups")}
    assert [st.verify_backup(tmp_path / "backups", report.id) for report in (first, second)] == [[], []]
    assert st.restore_backup(tmp_path / "backups", tmp_path / "again").findings == ()
    assert journal.backup(tmp_path / "backups").repaired == ()


def test_the_command_says_that_pieces_of_earlier_backups_were_damaged(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell("append", shell("new", "-q"), "hello")
    shell("backup", "copies")
    for piece in pieces_of(tmp_path / "copies"):
        flip(piece)
    assert shell.run("backup", "copies").stderr.count("stored again") == 1
    assert "stored again" not in shell.run("backup", "copies").stderr


def test_a_file_that_is_replaced_before_its_damaged_piece_is_stored_again_makes_no_backup(tmp_path: Path) -> None:
    with st.open(f"jsonl:///{tmp_path}/journal") as journal:
        for thread in ("a0", "z"):
            journal.create_thread(thread)
        journal.backup(tmp_path / "backups")
        for piece in pieces_of(tmp_path / "backups"):
            flip(piece)
        lists: list[int] = []

        def replace_one_in_each_list(done: int, total: int) -> None:
            if not lists or total != lists[-1]:
                lists.append(total)
                journal.delete_thread("z" if len(lists) == 4 else f"a{len(lists) - 1}")
                journal.create_thread(f"a{len(lists)}", title="x" * len(lists))

        with pytest.raises(st.BackupError, match="try again"):
            journal.backup(tmp_path / "backups", progress=replace_one_in_each_list)
        assert len(st.list_backups(tmp_path / "backups")) == 1
        journal.backup(tmp_path / "backups")
    assert st.verify_backup(tmp_path / "backups") == []


@contextmanager
def _unsynced(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A disk that fails to sync a folder as soon as a name is in it."""
    sync_folder = Files.sync_folder

    def failing(self: Files, path: Path) -> None:
        if path == folder and any(folder.glob(name)):
            raise OSError(5, "Input/output error")
        sync_folder(self, path)

    with monkeypatch.context() as patched:
        patched.setattr(Files, "sync_folder", failing)
        yield


def test_a_complete_backup_was_reported_as_failed_if_its_name_was_not_synced(
    journal: st.Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(journal)
    journal.backup(tmp_path / "backups")
    with (
        _unsynced(tmp_path / "backups" / "backups", "*.json", monkeypatch),
        pytest.raises(st.BackupError, match="is complete, but") as raised,
    ):
        journal.backup(tmp_path / "backups")
    last = st.list_backups(tmp_path / "backups")[-1]
    assert last.id in str(raised.value)
    assert st.verify_backup(tmp_path / "backups", last.id) == []


def test_a_complete_restore_was_reported_as_failed_if_its_name_was_not_synced(
    journal: st.Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(journal)
    journal.backup(tmp_path / "backups")
    kind = st.list_backups(tmp_path / "backups")[0].kind
    with _unsynced(tmp_path / "new", "again", monkeypatch), pytest.raises(st.BackupError, match="is restored, but"):
        st.restore_backup(tmp_path / "backups", tmp_path / "new" / "again")
    with st.open(f"{kind}:///{tmp_path}/new/again") as again:
        assert content(again) == content(journal)


def test_a_restore_that_could_not_be_checked_was_called_safe_to_try_again(tmp_path: Path) -> None:
    with st.open(tmp_path / "journal.db") as journal:
        journal.create_thread("t")
        journal.backup(tmp_path / "backups")

    def be_in_the_way(done: int, total: int) -> None:
        (tmp_path / "again.db-wal").mkdir(exist_ok=True)

    with pytest.raises(st.BackupError, match=r"is restored, but could not be checked .* run `sessiontree doctor`"):
        st.restore_backup(tmp_path / "backups", tmp_path / "again.db", progress=be_in_the_way)
    (tmp_path / "again.db-wal").rmdir()
    with st.open(tmp_path / "again.db") as again:
        assert again.stats().threads == 1


def test_older_backups_go_with_their_pieces(journal: st.Journal, tmp_path: Path) -> None:
    journal.create_thread("t")
    for number in range(4):
        journal.append("t", st.user(os.urandom(200_000).hex()))
        last = journal.backup(tmp_path / "backups", keep=2)
        assert len(last.removed) == (1 if number >= 2 else 0)
    kept = st.list_backups(tmp_path / "backups")
    assert [one.id for one in kept][-1] == last.id
    assert [st.verify_backup(tmp_path / "backups", one.id) for one in kept] == [[], []]
    assert st.restore_backup(tmp_path / "backups", tmp_path / "older", backup_id=kept[0].id).entries == 3
    folder = BackupFolder(tmp_path / "backups")
    needed = {piece for one in kept for piece in folder.manifest(one.id)[1].pieces()}
    assert {path.name for path in pieces_of(tmp_path / "backups")} == needed


def test_a_folder_in_use_for_something_else_is_left_alone(journal: st.Journal, store: str, tmp_path: Path) -> None:
    journal.create_thread("t")
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(st.BackupError, match="not empty"):
        journal.backup(other)
    assert [path.name for path in other.iterdir()] == ["letter.txt"]
    with pytest.raises(st.BackupError, match="file"):
        journal.backup(other / "letter.txt")
    with pytest.raises(st.BackupError, match=r"inside the store|a folder"):
        journal.backup(journal.store.place)
    if store == "jsonl":
        with pytest.raises(st.BackupError, match="inside the store"):
            journal.backup(Path(journal.store.place) / "trees" / "backup")
    journal.backup(tmp_path / "mine")
    with st.open(f"sqlite:///{tmp_path}/second.db") as second, pytest.raises(st.BackupError, match="of its own"):
        second.backup(tmp_path / "mine")
    (tmp_path / "mine" / "sessiontree-backup.json").write_text('{"format":"sessiontree-backup","version":2}')
    with pytest.raises(st.NewerFormatError):
        journal.backup(tmp_path / "mine")


def test_a_restore_overwrites_nothing(journal: st.Journal, tmp_path: Path) -> None:
    journal.create_thread("t")
    journal.backup(tmp_path / "backups")
    for name in ("file", "folder"):
        place = tmp_path / name
        place.write_text("mine", encoding="utf-8") if name == "file" else (place / "sub").mkdir(parents=True)
        with pytest.raises(st.BackupError, match="something already"):
            st.restore_backup(tmp_path / "backups", place)
    (tmp_path / "log-wal").write_text("a log", encoding="utf-8")
    with pytest.raises(st.BackupError, match="move it away"):
        st.restore_backup(tmp_path / "backups", tmp_path / "log")
    with st.open(f"sqlite:///{tmp_path}/full.db") as full:
        full.create_thread("other")
    (tmp_path / "empty").mkdir()
    if st.list_backups(tmp_path / "backups")[0].kind == "jsonl":
        with pytest.raises(st.BackupError, match="not empty"):
            st.restore_backup(tmp_path / "backups", f"sqlite:///{tmp_path}/full.db")
        assert st.restore_backup(tmp_path / "backups", tmp_path / "empty").threads == 1


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "trees/../../outside", ".hidden", "a\0b", "a//b"])
def test_a_manifest_cannot_name_a_file_outside_the_store(tmp_path: Path, name: str) -> None:
    with st.open(f"jsonl:///{tmp_path}/journal") as journal:
        journal.create_thread("t")
        backup = journal.backup(tmp_path / "backups")
    path = tmp_path / "backups" / "backups" / f"{backup.id}.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest["files"][1]["name"] = name
    text = json.dumps(manifest).encode()
    path.unlink()
    path.with_name(f"{backup.id.partition('-')[0]}-{hash_of(text)[:16]}.json").write_bytes(text)
    with pytest.raises(st.BackupError, match="file name"):
        st.restore_backup(tmp_path / "backups", tmp_path / "again")
    path.with_name(f"{backup.id}.json").write_bytes(text)
    with pytest.raises(st.BackupError, match="damaged"):
        st.restore_backup(tmp_path / "backups", tmp_path / "again", backup_id=backup.id)


def test_a_damaged_store_does_not_become_a_backup(tmp_path: Path) -> None:
    with st.open(tmp_path / "journal.db") as journal:
        journal.create_thread("t")
        journal.append_many("t", [st.user("x" * 3000) for _ in range(200)])
    with (tmp_path / "journal.db").open("r+b") as file:
        file.seek(5 * 8192)
        file.write(os.urandom(3 * 8192))
    with st.open(tmp_path / "journal.db") as journal, pytest.raises(st.DamagedDataError, match="no backup was made"):
        journal.backup(tmp_path / "backups")
    assert st.list_backups(tmp_path / "backups") == []


def back_up_under_writers(url: str, folder: Path, *, backups: int, writers: int = 64) -> None:
    """Back up while threads append, delete and set documents; each backup must hold what was acknowledged before it."""
    with st.open(url) as journal:
        acknowledged: set[tuple[str, str]] = set()
        stop = threading.Event()
        allowed = threading.Semaphore(0)  # so that the store does not grow faster than it can be checked
        written = threading.Semaphore(0)

        def write(number: int) -> None:
            thread = f"writer-{number}"
            journal.create_thread(thread)
            count = 0
            while allowed.acquire() and not stop.is_set():
                entry = journal.append(thread, st.user(f"{number}: {count}"), id=f"{number}-{count}")
                acknowledged.add((thread, entry.id))
                written.release()
                count += 1
                if number % 16 == 0:
                    journal.create_thread(f"short-{number}-{count}")
                    journal.documents.put("counts", str(number), {"count": count})
                    journal.delete_thread(f"short-{number}-{count}")

        crowd = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
        for thread in crowd:
            thread.start()
        try:
            for number in range(backups):
                allowed.release(4 * writers)
                for _ in range(writers):
                    written.acquire()
                before = acknowledged.copy()
                journal.backup(folder / "backups", keep=2)
                restored = folder / f"restored-{number}"
                report = st.restore_backup(folder / "backups", restored)
                assert report.findings == ()
                with st.open(f"{report.backup.kind}:///{restored}") as copy:
                    found = {(one.id, entry.id) for one in copy.iter_threads() for entry in copy.entries(one.id)}
                assert before <= found, sorted(before - found)[:5]
        finally:
            stop.set()
            allowed.release(writers)
            for thread in crowd:
                thread.join()
        assert journal.check() == []


# A memory store has nothing to wait for, so 64 threads would only wait for each other.
@pytest.mark.parametrize("store", [*FILE_STORES, "postgres"], indirect=True)
def test_each_backup_holds_what_was_acknowledged_before_it_began(store: str, tmp_path: Path) -> None:
    back_up_under_writers(url_of(store, tmp_path), tmp_path, backups=2, writers=16)


def test_a_store_that_is_being_written_can_be_copied(journal: st.Journal, tmp_path: Path) -> None:
    journal.create_thread("t")
    stop = threading.Event()
    acknowledged: list[str] = []
    written = threading.Semaphore(0)

    def write(number: int) -> None:
        while not stop.is_set():
            entry = journal.append("t", st.user("more"))
            journal.rewind("t", entry.id)
            journal.update_thread("t", custom={"last": entry.id})
            acknowledged.append(entry.id)
            written.release()
            if number == 0:
                journal.delete_thread(journal.fork("t").id)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in writers:
        thread.start()
    try:
        for number in range(3):
            for _ in range(10):
                written.acquire()
            before = set(acknowledged)
            with st.open(f"sqlite:///{tmp_path}/copy-{number}.db") as copy:
                st.copy_store(journal, copy)
                assert before <= {entry.id for entry in copy.entries("t")}
                assert copy.check() == []
    finally:
        stop.set()
        for thread in writers:
            thread.join()


@pytest.mark.deep
@pytest.mark.parametrize("store", [*FILE_STORES, "postgres"], indirect=True)
def test_a_hundred_backups_under_64_writers(store: str, tmp_path: Path) -> None:
    back_up_under_writers(url_of(store, tmp_path), tmp_path, backups=100)


def test_the_commands_back_up_verify_and_restore(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell("append", shell("new", "-q"), "hello")
    report = shell.json("backup", "copies")["report"]
    assert report["copied_bytes"] == report["bytes"]
    assert next(one["id"] for one in shell.json("backup", "copies", "--list")["backups"]) == report["id"]
    assert shell.run("backup", "copies", "--verify").stderr.strip().endswith("1 backup: every hash fits")
    assert "would restore" in shell.run("restore", "copies", "again.db", "--dry-run").stderr
    shell.run("restore", "copies", "again.db", "--backup", "no-such-backup", "--dry-run", code=5)
    assert shell.json("restore", "copies", "again.db", "--backup", report["id"])["report"]["entries"] == 1
    shell.run("restore", "copies", "again.db", code=5)
    pieces_of(tmp_path / "copies")[0].write_bytes(b"damage")
    problem = shell.run("backup", "copies", "--verify", code=3).stdout
    assert "damaged" in problem
    assert "doctor" not in problem, "it repairs stores, not backups"


def test_a_backup_of_a_default_store_that_is_not_there_was_reported_as_done(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    del shell.environment["SESSIONTREE_STORE"]
    shell.environment |= {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    assert "There is no store at" in shell.run("backup", "copies", code=1).stderr
    assert not (tmp_path / "copies").exists()


def test_doctor_says_when_a_store_looks_like_a_copy_without_its_log(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("t")
        journal.append("t", st.user("hello"))
        journal.backup(tmp_path / "backups")
        (tmp_path / "copy.db").write_bytes((tmp_path / "j.db").read_bytes())
    st.restore_backup(tmp_path / "backups", tmp_path / "again.db")
    assert shell.json("doctor", "--store", "again.db")["looks_like_copy"] is False
    shell("ls", "--store", "copy.db")
    assert "the last entries are missing" in " ".join(shell.run("doctor", "--store", "copy.db").stderr.split())
    shell("doctor", "--repair", "--store", "copy.db")
    assert shell.json("doctor", "--store", "copy.db")["looks_like_copy"] is False


@pytest.mark.parametrize(
    "left", [[], ["pieces"], ["pieces", "backups"], ["pieces", "backups", "sessiontree-backup.json.new"]]
)
def test_a_first_backup_that_was_killed_left_a_folder_that_could_not_be_used(tmp_path: Path, left: list[str]) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    for name in left:
        (folder / name).write_bytes(b"{") if name.endswith(".new") else (folder / name).mkdir()
    with st.open(tmp_path / "journal.db") as journal:
        journal.create_thread("t")
        journal.backup(folder)
    assert len(st.list_backups(folder)) == 1
