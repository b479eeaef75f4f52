"""JSONL: what a failed sync left in the memory of the kernel is written again before anything else is acknowledged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import sessiontree as st
from jsonl_commands import append, create, do, ids
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.testing.faults import FaultyFiles


class Disk(FaultyFiles):
    """A disk that never gets what was written before a failed sync, unless it is written again.

    ``lost`` has the files with such bytes.
    """

    def __init__(self) -> None:
        super().__init__("sync", at=-1)
        self.lost: set[str] = set()

    def fail_next_sync(self, *, but: int = 0) -> None:
        self.at = self.calls["sync"] + 1 + but

    def truncate(self, file: int, size: int) -> None:
        self.lost.discard(_name(file))
        super().truncate(file, size)

    def write_at(self, file: int, offset: int, data: bytes) -> None:
        assert offset == 0
        assert len(data) == os.fstat(file).st_size
        self.lost.discard(_name(file))
        super().write_at(file, offset, data)

    def sync(self, file: int) -> None:
        try:
            super().sync(file)
        except OSError:
            self.lost.add(_name(file))
            raise


def _name(file: int) -> str:
    return Path(f"/proc/self/fd/{file}").readlink().name


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def store(tmp_path: Path, disk: Disk) -> JsonlBackend:
    made = JsonlBackend(tmp_path / "j", files=disk)
    do(made, create("t"), create("u"))
    return made


def test_an_append_that_is_repeated_after_the_store_was_opened_again(
    store: JsonlBackend, disk: Disk, tmp_path: Path
) -> None:
    disk.fail_next_sync()
    with pytest.raises(st.StorePoisonedError):
        store.write([append("t", "e1")])
    assert disk.lost
    again = JsonlBackend(tmp_path / "j", files=disk)
    do(again, append("t", "e1"))
    assert (disk.lost, ids(again, "t")) == (set(), ["e1"])


def test_an_append_of_a_process_that_had_the_store_open(store: JsonlBackend, disk: Disk, tmp_path: Path) -> None:
    other = JsonlBackend(tmp_path / "j", files=disk)
    disk.fail_next_sync()
    with pytest.raises(st.StorePoisonedError):
        store.write([append("t", "e1")])
    do(other, append("t", "e2"))
    assert (disk.lost, ids(other, "t")) == (set(), ["e1", "e2"])


def test_a_batch_of_many_trees_whose_log_could_not_be_synced(store: JsonlBackend, disk: Disk, tmp_path: Path) -> None:
    do(store, append("t", "e1"), append("u", "u1"))
    disk.fail_next_sync()
    with pytest.raises(st.StorePoisonedError):
        store.write([append("t", "e2"), append("u", "u2")])
    assert disk.lost == {"commits.log"}
    other = JsonlBackend(tmp_path / "j", files=disk)
    do(other, append("t", "e2"), append("u", "u2"))
    assert (disk.lost, ids(other, "t"), ids(other, "u")) == (set(), ["e1", "e2"], ["u1", "u2"])


def test_a_log_that_could_not_be_emptied(store: JsonlBackend, disk: Disk, tmp_path: Path) -> None:
    do(store, append("t", "e1"), append("u", "u1"))
    other = JsonlBackend(tmp_path / "j", files=disk)
    disk.fail_next_sync()
    store.close()
    assert disk.lost
    do(other, append("t", "e2"))
    assert (disk.lost, ids(other, "t")) == (set(), ["e1", "e2"])


def test_a_commit_of_several_threads(disk: Disk, tmp_path: Path) -> None:
    with st.Journal(EmbeddedStore(JsonlBackend(tmp_path / "j", files=disk))) as journal:
        journal.create_thread("t")
        journal.create_thread("u")
        disk.fail_next_sync(but=1)  # the first one is of the plan
        with pytest.raises(st.CommitUnknownError):
            journal.commit(st.Changes().append("t", st.user("a")).append("u", st.user("b")))
        assert disk.lost
        journal.append("t", st.user("c"))
        assert disk.lost == set()
        assert [len(journal.path(thread)) for thread in "tu"] == [2, 1]
