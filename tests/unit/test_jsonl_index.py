"""The listing cache: it may vanish or rot, lists stay right, and no transcript is read for one."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from jsonl_commands import EVERYTHING, append, create, do, fork
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.jsonl.tree import Tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = JsonlBackend(tmp_path / "store")
    for number in range(5):
        do(store, create(f"t{number}", at=number), append(f"t{number}", "e1"))
    do(store, fork("t1", "f"))
    store.threads(EVERYTHING)
    store.close()
    return tmp_path / "store"


def listed(folder: Path) -> set[str]:
    store = JsonlBackend(folder)
    found = {thread.id for thread in store.threads(EVERYTHING).threads}
    store.close()
    return found


ALL = {"t0", "t1", "t2", "t3", "t4", "f"}


def spoil_with_garbage(index: Path) -> None:
    index.write_bytes(b"this is no database" * 1000)


def spoil_with_another_version(index: Path) -> None:
    with sqlite3.connect(index) as database:
        database.execute("PRAGMA user_version=99")
    database.close()


def spoil_with_bad_rows(index: Path) -> None:
    with sqlite3.connect(index) as database:
        database.execute("UPDATE tree SET summary = 'nonsense'")
    database.close()


def spoil_by_cutting(index: Path) -> None:
    os.truncate(index, 5000)


@pytest.mark.parametrize(
    "spoil",
    [Path.unlink, spoil_with_garbage, spoil_with_another_version, spoil_with_bad_rows, spoil_by_cutting],
)
def test_a_missing_or_broken_index_is_rebuilt(folder: Path, spoil: Callable[[Path], None]) -> None:
    spoil(folder / "index.db")
    assert listed(folder) == ALL
    with sqlite3.connect(folder / "index.db") as database:
        assert database.execute("SELECT count(*) FROM tree").fetchone() == (5,)
    database.close()


def test_a_list_reads_only_the_files_that_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    original = Tree.read

    def counting(name: str, path: Path) -> Tree:
        read.append(name)
        return original(name, path)

    monkeypatch.setattr(Tree, "read", counting)
    assert listed(folder) == ALL
    assert read == []
    writer = JsonlBackend(folder)
    do(writer, append("t3", "e2"))
    writer.close()
    read.clear()
    assert listed(folder) == ALL
    assert [name.partition("-")[0] for name in read] == ["t3"]


def test_an_index_that_vanishes_while_the_store_is_open_does_no_harm(folder: Path) -> None:
    store = JsonlBackend(folder)
    store.threads(EVERYTHING)
    (folder / "index.db").unlink()
    do(store, create("late"))
    assert {thread.id for thread in store.threads(EVERYTHING).threads} == ALL | {"late"}
    store.close()


def test_a_copied_tree_file_does_not_list_its_threads_twice(folder: Path) -> None:
    (original,) = (folder / "trees").glob("t1-*.jsonl")
    (folder / "trees" / "copy.jsonl").write_bytes(original.read_bytes())
    store = JsonlBackend(folder)
    assert sorted(thread.id for thread in store.threads(EVERYTHING).threads) == sorted(ALL)
    assert [finding.kind for finding in store.inspect()] == ["name"]
    store.close()
