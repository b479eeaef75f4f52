"""Batches that write to many trees of a JSONL store share one sync, and lose nothing by it."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from jsonl_commands import all_bytes, append, create, delete, do, fork, ids
from sessiontree.errors import StoreError, ThreadNotFoundError
from sessiontree.stores.commands import Command
from sessiontree.stores.jsonl import JsonlBackend, commit_log
from sessiontree.testing.faults import FaultyFiles, VolatileFiles

TREES = tuple(f"t{number}" for number in range(8))


class CountedFiles(VolatileFiles):
    """Counts the syncs."""

    def __init__(self) -> None:
        super().__init__()
        self.syncs = 0

    def sync(self, file: int) -> None:
        self.syncs += 1
        super().sync(file)


def survivors(files: VolatileFiles, folder: Path, cut: Callable[[bytes], bytes]) -> JsonlBackend:
    """The store as it is opened after a power cut now."""
    after = folder.with_name("after")
    shutil.rmtree(after, ignore_errors=True)
    files.survivors(folder, after, cut)
    return JsonlBackend(after)


def paths(store: JsonlBackend) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in (*TREES, "fork"):
        with suppress(ThreadNotFoundError):
            found[name] = ids(store, name)
    return found


def test_a_batch_of_many_trees_took_a_sync_for_each(tmp_path: Path) -> None:
    files = CountedFiles()
    store = JsonlBackend(tmp_path / "s", files=files)
    do(store, *(create(name) for name in TREES))
    before = files.syncs
    for number in range(5):
        do(store, *(append(name, f"{name} {number}") for name in TREES))
    assert files.syncs - before == 5
    store.close()


@pytest.mark.parametrize("seed", range(12))
def test_a_power_cut_after_a_batch_of_many_trees_loses_nothing(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two stores write in turns to some trees at a time; after each write, and before each call, the power goes."""
    monkeypatch.setattr(commit_log, "_MOST_BYTES", 6_000)
    source = random.Random(seed)
    files = VolatileFiles()
    folder = tmp_path / "s"
    stores = [JsonlBackend(folder, files=files) for _ in range(2)]
    do(stores[0], *(create(name) for name in TREES))
    states: list[dict[str, list[str]]] = [paths(stores[0])]

    def cut(rest: bytes) -> bytes:
        return source.choice([b"", rest, rest[: source.randint(0, len(rest))], b"\0" * len(rest)])

    seen: list[dict[str, list[str]]] = []

    def look() -> None:
        if source.random() < 0.15:
            after = survivors(files, folder, cut)
            seen.append(paths(after))
            after.close()

    for number in range(25):
        store = source.choice(stores)
        group: list[Command] = [
            append(name, f"{name} {number}") for name in source.sample(TREES, source.choice((1, 1, 2, 5, 8)))
        ]
        if number == 12:
            group = [fork(TREES[0], "fork")]
        if number == 18:
            group = [delete("fork")]
        files.before = look
        do(store, *group)
        files.before = lambda: None
        states.append(paths(store))
        after = survivors(files, folder, cut)
        assert paths(after) == states[-1], "an acknowledged line is gone"
        assert [finding for finding in after.inspect() if finding.kind not in ("torn", "erasure")] == []
        after.write([append(TREES[0], "next")])
        after.close()
        for name in (*TREES, "fork"):
            versions = [state.get(name) for state in states[-2:]]
            assert all(each.get(name) in versions for each in seen), "neither the old state nor the new one"
        seen.clear()
    for store in stores:
        store.close()
    assert (folder / "commits.log").read_bytes() == b""


def test_a_store_at_rest_has_an_empty_log_and_no_deleted_text(tmp_path: Path) -> None:
    store = JsonlBackend(tmp_path / "s")
    do(store, *(create(name) for name in TREES))
    do(store, *(append(name, f"{name} correct-horse") for name in TREES))
    assert b"correct-horse" in (tmp_path / "s" / "commits.log").read_bytes()
    do(store, delete(TREES[0]))
    assert b"t0 correct-horse" not in all_bytes(tmp_path / "s")
    do(store, *(append(name, f"{name} more") for name in TREES[1:]))
    store.close()
    assert (tmp_path / "s" / "commits.log").read_bytes() == b""


def test_a_log_beside_files_that_were_put_back_from_elsewhere_changes_nothing(tmp_path: Path) -> None:
    """As after ``git checkout`` of an older version: the lines of the log belong to other files."""
    files = VolatileFiles()
    folder = tmp_path / "s"
    store = JsonlBackend(folder, files=files)
    do(store, *(create(name) for name in TREES))
    store.close()
    store = JsonlBackend(folder, files=files)
    for name in TREES:
        do(store, append(name, f"{name} first"))
    before = {path: path.read_bytes() for path in (folder / "trees").iterdir()}
    for number in range(2):
        do(store, *(append(name, f"{name} {number}") for name in TREES))
    shutil.copytree(folder, tmp_path / "copy")
    changed = [tmp_path / "copy" / path.relative_to(folder) for path in before]
    changed[0].unlink()
    other = changed[1].read_bytes().replace(b"text of", b"Text of")
    changed[1].write_bytes(other)
    changed[2].write_bytes(before[folder / changed[2].relative_to(tmp_path / "copy")][:-40])
    short = changed[2].read_bytes()
    JsonlBackend(tmp_path / "copy").close()
    assert not changed[0].exists()
    assert (changed[1].read_bytes(), changed[2].read_bytes()) == (other, short)
    store.close()


@pytest.mark.parametrize("kind", ["append", "sync"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_log_that_cannot_be_written_acknowledges_nothing_and_loses_nothing(
    tmp_path: Path, kind: str, code: int
) -> None:
    setup = JsonlBackend(tmp_path / "s")
    do(setup, *(create(name) for name in TREES))
    setup.close()
    failed = 0
    for at in range(1, 60):
        folder = tmp_path / str(at)
        shutil.copytree(tmp_path / "s", folder)
        files = FaultyFiles(kind, at, code, keep=7)  # type: ignore[arg-type]
        store = JsonlBackend(folder, files=files)
        acknowledged = 0
        for number in range(3):
            try:
                do(store, *(append(name, f"{name} {number}") for name in TREES))
                acknowledged += 1
            except StoreError:
                failed += 1
                break
        store.close()
        again = JsonlBackend(folder)
        assert all(len(found) in (acknowledged, acknowledged + 1) for found in paths(again).values())
        do(again, *(append(name, f"{name} next") for name in TREES))
        assert [finding for finding in again.inspect() if finding.kind != "torn"] == []
        again.close()
        if acknowledged == 3 and files.calls[kind] < at:
            break
    assert failed > 2
