"""Whatever is in a folder and whatever happens to it: rewind and undo give back the same bytes, modes and links."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

import sessiontree as st
from property_settings import examples
from trees import Script, contents, perform, scripts

some_trees = examples(30, deep=600)
"""A tree costs a hundred times what other examples cost: real files, and a store that syncs."""


@contextlib.contextmanager
def workshop(kind: str) -> Iterator[tuple[st.Journal, Path]]:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "root"
        root.mkdir()
        url = {"memory": "memory:", "sqlite": f"sqlite:///{place}/journal.db", "jsonl": f"jsonl:///{place}/journal"}[
            kind
        ]
        with st.open(url, durability="process_crash") as journal:
            yield journal, root
            assert journal.check() == []


@some_trees
@given(first=scripts, second=scripts, third=scripts, kind=some.sampled_from(["memory", "sqlite", "jsonl"]))
def test_rewind_and_undo_give_back_identical_trees(first: Script, second: Script, third: Script, kind: str) -> None:
    with workshop(kind) as (journal, root):
        thread = journal.create_thread("t").id
        perform(root, first)
        one = journal.append(thread, st.user("one")).id
        journal.workspace.snapshot(thread, one, root)
        at_one = contents(root)
        perform(root, second)
        two = journal.append(thread, st.user("two")).id
        journal.workspace.snapshot(thread, two, root)
        at_two = contents(root)
        perform(root, third)
        at_end = contents(root)

        journal.rewind(thread, one, files=root)
        assert contents(root) == at_one
        assert journal.thread(thread).leaf == one
        journal.undo(thread)
        assert contents(root) == at_end
        journal.rewind(thread, two, files=root)
        assert contents(root) == at_two
        journal.undo(thread)
        assert contents(root) == at_end
        journal.redo(thread)
        assert contents(root) == at_two
        journal.delete_thread(thread)


@some_trees
@given(first=scripts, second=scripts)
def test_the_stat_cache_never_hides_an_edit(first: Script, second: Script) -> None:
    """Edits follow each other within one tick of the clock; a journal without a cache must see the same."""
    with workshop("memory") as (journal, root):
        thread = journal.create_thread("t").id
        for script in (first, second, first):
            perform(root, script)
            entry = journal.append(thread, st.user("x")).id
            with_cache = journal.workspace.snapshot(thread, entry, root).checkpoint
            cache = root / ".sessiontree" / "cache"
            cache.unlink()
            journal.workspace.cache._stat_caches.clear()
            without = journal.workspace.snapshot(thread, entry, root).checkpoint
            assert with_cache.manifest == without.manifest


@pytest.mark.deep
def test_files_of_fifty_megabytes_come_back(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    data = random.Random(3).randbytes(50 * 1024 * 1024)
    (root / "big.bin").write_bytes(data)
    (root / "zeros.bin").write_bytes(bytes(50 * 1024 * 1024))
    for url in ("memory:", f"sqlite:///{tmp_path}/j.db", f"jsonl:///{tmp_path}/j"):
        with st.open(url) as journal:
            thread = journal.create_thread("t").id
            entry = journal.append(thread, st.user("x")).id
            before = contents(root)
            journal.workspace.snapshot(thread, entry, root)
            (root / "big.bin").write_bytes(data[: 1 << 20] + b"!" + data[1 << 20 :])
            (root / "zeros.bin").unlink()
            after = contents(root)
            journal.rewind(thread, entry, files=root)
            assert contents(root) == before
            journal.undo(thread)
            assert contents(root) == after
            journal.redo(thread)
            assert contents(root) == before
