"""SQLite: what is acknowledged was synced, and no other process had to wait for that sync."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sessiontree as st

Sync = Callable[[int], None]


class Disk:
    """Counts syncs of WALs; ``before`` is called before each one."""

    def __init__(self, sync: Sync) -> None:
        self.syncs = 0
        self.before: Callable[[], None] = lambda: None
        self._sync = sync

    def sync(self, file: int) -> None:
        if Path(f"/proc/self/fd/{file}").readlink().name.endswith("-wal"):
            self.before()
            self.syncs += 1
        self._sync(file)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk(os.fdatasync)
    monkeypatch.setattr(os, "fdatasync", made.sync)
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
    def fail() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    disk.before = fail
    with pytest.raises(st.CommitUnknownError, match="SyncFailedError"):
        journal.append("t", st.user("hello"), id="open")
    disk.before = lambda: None
    with pytest.raises(st.StorePoisonedError):
        journal.append("t", st.user("again"))


def test_a_store_that_need_not_survive_power_cuts_does_not_sync(disk: Disk, tmp_path: Path) -> None:
    with st.open(tmp_path / "b.db", durability="process_crash") as journal:
        journal.append("t", st.user("hello"), create=True)
        assert disk.syncs == 0
