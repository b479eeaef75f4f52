"""The JSONL store: what an append to a thread that is loaded already does not do again."""

from __future__ import annotations

from pathlib import Path

import pytest

from jsonl_commands import append, create, do, ids
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.jsonl.tree import Tree
from sessiontree.testing.faults import FaultyFiles


def test_a_file_is_opened_once_however_often_it_is_appended_to(tmp_path: Path) -> None:
    files = FaultyFiles("open_append", at=-1)
    store = JsonlBackend(tmp_path / "s", files=files)
    do(store, create("t"))
    for number in range(5):
        do(store, append("t", f"e{number}"))
    assert files.calls["open_append"] == 1
    store.close()


def test_a_thread_that_was_just_created_goes_on_without_a_look_into_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = JsonlBackend(tmp_path / "s")
    reads: list[str] = []
    monkeypatch.setattr(Tree, "catch_up", lambda tree: reads.append(tree.name))
    do(store, create("t"), append("t", "e1"))
    do(store, append("t", "e2"))
    assert (ids(store, "t"), reads) == (["e1", "e2"], [])
    monkeypatch.undo()
    store.close()
    again = JsonlBackend(tmp_path / "s")
    assert (ids(again, "t"), again.inspect()) == (["e1", "e2"], [])
    again.close()
