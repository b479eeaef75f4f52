"""SQLite: what is acknowledged was synced, and no other process had to wait for that sync."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import pytest

import sessiontree as st
from sessiontree.stores import _io
from sessiontree.stores._io import FileLock

Sync = Callable[[int], None]
Write = Callable[[int, bytes, int], int]


class Disk:
    """Counts syncs of WALs, and what was written to them in Python; ``before`` is called before each sync."""

    def __init__(self, sync: Sync, write: Write) -> None:
        self.syncs = 0
        self.written: list[tuple[int, bytes]] = []
        self.before: Callable[[], None] = lambda: None
        self._sync = sync
        self._write = write

    def sync(self, file: int) -> None:
        if _is_wal(file):
            self.before()
            self.syncs += 1
        self._sync(file)

    def write(self, file: int, data: bytes, offset: int) -> int:
        if _is_wal(file):
            self.written.append((offset, bytes(data)))
        return self._write(file, data, offset)

    def fail(self) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def _is_wal(file: int) -> bool:
    return Path(f"/proc/self/fd/{file}").readlink().name.endswith("-wal")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk(os.fdatasync, os.pwrite)
    monkeypatch.setattr(os, "fdatasync", made.sync)
    monkeypatch.setattr(os, "pwrite", made.write)
    return made


@pytest.fixture
def journal(tmp_path: Path, disk: Disk) -> Iterator[st.Journal]:
    with st.open(tmp_path / "a.db") as opened:
        opened.create_thread("t")
        disk.syncs = 0
        yield opened


def test_an_append_is_synced_once_and_others_can_write_meanwhile(
    journal: st.Journal, disk: Disk, tmp_path: Path
) -> None:
    def take_the_lock() -> None:
        with (tmp_path / "a.db-gate").open() as gate:
            fcntl.flock(gate, fcntl.LOCK_EX | fcntl.LOCK_NB)

    disk.before = take_the_lock
    journal.append("t", st.user("hello"))
    assert disk.syncs == 1


def test_a_repeated_append_is_synced_again_because_the_first_writer_may_have_died_before(
    journal: st.Journal, disk: Disk
) -> None:
    journal.append("t", st.user("hello"), id="once")
    journal.append("t", st.user("hello"), id="once")
    assert disk.syncs == 2


def test_what_a_dead_process_left_is_synced_when_the_store_is_opened(
    journal: st.Journal, disk: Disk, tmp_path: Path
) -> None:
    with st.open(tmp_path / "a.db"):
        assert disk.syncs == 1


def test_a_refused_append_costs_no_sync(journal: st.Journal, disk: Disk) -> None:
    with pytest.raises(st.StaleLeafError):
        journal.append("t", st.user("hello"), expect_leaf="another")
    assert disk.syncs == 0


def test_a_failed_sync_leaves_the_outcome_open_and_nothing_more_is_acknowledged(
    journal: st.Journal, disk: Disk
) -> None:
    disk.before = disk.fail
    with pytest.raises(st.CommitUnknownError, match="SyncFailedError"):
        journal.append("t", st.user("hello"), id="open")
    disk.before = lambda: None
    with pytest.raises(st.StorePoisonedError):
        journal.append("t", st.user("again"))


@pytest.mark.parametrize("durability", ["power_loss", "process_crash"])
def test_what_a_failed_sync_left_in_memory_is_written_again_by_the_next_that_opens_the_store(
    journal: st.Journal, disk: Disk, tmp_path: Path, durability: Literal["power_loss", "process_crash"]
) -> None:
    disk.before = disk.fail
    with pytest.raises(st.CommitUnknownError):
        journal.append("t", st.user("hello"), id="open")
    disk.before = lambda: None
    disk.syncs = 0
    with st.open(tmp_path / "a.db", durability=durability) as again:
        assert b"".join(data for _, data in disk.written) == (tmp_path / "a.db-wal").read_bytes()
        assert disk.syncs > 0
        again.append("t", st.user("hello"), id="open")
    disk.written.clear()
    with st.open(tmp_path / "a.db"):
        assert disk.written == []


def test_a_failed_sync_of_a_repair_poisons_too(journal: st.Journal, disk: Disk, tmp_path: Path) -> None:
    journal.append("t", st.user("hello"))
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as other:
        other.execute("UPDATE thread SET newest = 0, leaf = NULL")
    disk.before = disk.fail
    with pytest.raises(st.StorePoisonedError):
        journal.repair()
    disk.before = lambda: None
    with pytest.raises(st.StorePoisonedError):
        journal.append("t", st.user("again"))


def test_a_lock_that_cannot_be_released_does_not_make_a_commit_look_failed(
    journal: st.Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(lock: FileLock) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(FileLock, "_release", fail)
        with pytest.raises(st.CommitUnknownError) as unknown:
            journal.append("t", st.user("hello"), id="open")
    assert unknown.value.entry_ids == ("open",)
    assert [entry.id for entry in journal.path("t")] == ["open"]


def test_the_names_of_new_folders_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    sync = os.fsync

    def note(file: int) -> None:
        synced.append(Path(f"/proc/self/fd/{file}").readlink())
        sync(file)

    monkeypatch.setattr(os, "fsync", note)
    with st.open(tmp_path / "new" / "deep" / "a.db"):
        assert synced[:2] == [tmp_path, tmp_path / "new"]


def test_a_store_that_need_not_survive_power_cuts_does_not_sync(disk: Disk, tmp_path: Path) -> None:
    with st.open(tmp_path / "b.db", durability="process_crash") as journal:
        journal.append("t", st.user("hello"), create=True)
        assert disk.syncs == 0


def test_macos_has_a_call_of_its_own_that_empties_the_cache_of_the_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    synced: list[str] = []

    def call(file: int, number: int) -> None:
        assert number == 51
        synced.append(Path(f"/proc/self/fd/{file}").readlink().name)

    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(_io, "_FULL_SYNC", 51)
    monkeypatch.setattr(_io, "fcntl", SimpleNamespace(**(vars(fcntl) | {"fcntl": call})))
    with st.open(tmp_path / "a.db") as journal:
        synced.clear()
        journal.append("t", st.user("hello"), create=True)
        assert synced == ["a.db-wal"]
