"""Commits of several threads and documents: a power cut or a kill at any step leaves all of the changes, or none."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

import sessiontree as st
from property_settings import IS_DEEP
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.testing.contract.base import is_on_disk
from sessiontree.testing.faults import FaultyFiles, FileCall, VolatileFiles

NEEDLE = "battery-staple"
EVERY = 1 if IS_DEEP else 12
"""How many steps there are from one kill, cut or failure to the next."""
WATCHED = {"execute", "executemany", "fsync", "fdatasync", "replace", "unlink", "write", "ftruncate", "open", "mkdir"}


def fill(journal: st.Journal) -> None:
    journal.create_thread("a", contents=[st.NewEntry(content=st.user("one"), id="1")])
    journal.fork("a", new_id="fork")
    journal.append("fork", st.user(NEEDLE), id="2")
    journal.create_thread("b", contents=[st.user("two")])
    journal.create_thread("c", contents=[st.user(NEEDLE)])
    journal.documents.put("app", "k", 1)
    journal.documents.put("app", "gone", 1)


def changes() -> st.Changes:
    return (
        st.Changes()
        .append("a", st.NewEntry(content=st.user("three"), id="3"))
        .delete_thread("fork")
        .append("b", st.user("four"))
        .delete_thread("c")
        .create_thread("c", contents=[st.user("five")])
        .create_thread("new", contents=[st.user("six")])
        .put_document("app", "k", 2)
        .put_document("user", "k", 3)
        .delete_document("app", "gone")
    )


def picture(journal: st.Journal) -> object:
    threads = sorted(journal.list_threads(limit=100), key=lambda thread: thread.id)
    texts = {thread.id: [entry.message and entry.message.text for entry in journal.path(thread)] for thread in threads}
    scopes = journal.documents.scopes()
    return texts, {scope: [(one.key, one.value) for one in journal.documents.list(scope)] for scope in scopes}


def both_pictures() -> tuple[object, object]:
    with st.open("memory:") as journal:
        fill(journal)
        old = picture(journal)
        journal.commit(changes())
        return old, picture(journal)


def test_a_power_cut_at_any_step_leaves_all_or_nothing(tmp_path: Path) -> None:
    old, new = both_pictures()
    files = VolatileFiles()
    seen: list[object] = []
    steps = itertools.count()

    def look() -> None:
        if next(steps) % (EVERY // 4 or 1) == 0:
            look_closer()

    def look_closer() -> None:
        shutil.rmtree(tmp_path / "after", ignore_errors=True)
        files.survivors(tmp_path / "store", tmp_path / "after", lambda rest: rest[: len(rest) // 2])
        with st.open(f"jsonl:///{tmp_path / 'after'}") as journal:
            seen.append(picture(journal))
            assert journal.append("b", st.user("on")).parent
            assert [found for found in journal.check() if found.kind != "torn"] == []

    with st.Journal(EmbeddedStore(JsonlBackend(tmp_path / "store", files=files))) as journal:
        fill(journal)
        files.before = look
        journal.commit(changes())
        files.before = lambda: None
        look_closer()
    assert all(one in (old, new) for one in seen)
    assert seen[0] == old
    assert seen[-1] == new


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_a_kill_at_any_step_leaves_all_or_nothing(tmp_path: Path, kind: str) -> None:
    old, new = both_pictures()
    step = 1 - EVERY
    outcomes: list[tuple[bool, object]] = []
    while not outcomes or outcomes[-1][0]:
        step += EVERY
        folder = tmp_path / str(step)
        folder.mkdir()
        address = str(folder / "journal.db") if kind == "sqlite" else f"jsonl:///{folder / 'trees'}"
        with st.open(address) as journal:
            fill(journal)
        with st.open(address) as bystander:  # another process that has the store open, and goes on
            was_killed = _killed(address, step)
            bystander.create_thread("x")
            bystander.delete_thread("x")
            found = picture(bystander)
            assert bystander.check() == []
        outcomes.append((was_killed, found))
        assert found in (old, new), f"after a kill at step {step}"
        assert found == old or not is_on_disk(folder, NEEDLE), f"after a kill at step {step}"
    found_pictures = [found for _, found in outcomes]
    assert found_pictures[0] == old
    assert found_pictures[-1] == new


def _killed(address: str, limit: int) -> bool:
    """Commit in another process, which kills itself before the n-th call that reaches the files."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)
    calls = 0

    def before_call(frame: object, event: str, function: object) -> None:
        nonlocal calls
        if event == "c_call" and getattr(function, "__name__", "") in WATCHED:
            calls += 1
            if calls == limit:
                os.kill(os.getpid(), signal.SIGKILL)

    journal = st.open(address, durability="process_crash")
    sys.setprofile(before_call)
    journal.commit(changes())
    sys.setprofile(None)
    os._exit(0)


@pytest.mark.parametrize("kind", ["write_new", "append", "sync", "sync_folder", "replace", "remove", "open_append"])
def test_a_failing_call_leaves_all_or_nothing_and_never_says_failed_if_it_is_all(
    tmp_path: Path, kind: FileCall
) -> None:
    old, new = both_pictures()
    number = 1 - (EVERY // 4 or 1)
    while True:
        number += EVERY // 4 or 1
        folder = tmp_path / str(number)
        with st.open(f"jsonl:///{folder}") as journal:
            fill(journal)
        files = FaultyFiles(kind, at=10_000, error=28)
        with st.Journal(EmbeddedStore(JsonlBackend(folder, files=files))) as journal:
            files.calls.clear()
            files.at = number
            try:
                journal.commit(changes())
            except st.StoreFullError:
                expected = [old]
            except st.StoreError:
                expected = [old, new]
            else:
                expected = [new]
            is_over = files.calls[kind] < number
        with st.open(f"jsonl:///{folder}") as journal:
            assert picture(journal) in expected, f"{kind} number {number}"
            assert journal.check() == []
        if is_over:
            return
