"""A power cut at any step of a write: what was acknowledged is there, what was not is there wholly or not at all."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.testing.faults import VolatileFiles

Picture = dict[str, tuple[list[str], int]]
"""For each thread the ids of its path and how often its leaf moved."""


def picture(journal: st.Journal) -> Picture:
    return {
        thread.id: ([entry.id for entry in journal.path(thread.id)], len(journal.reflog(thread.id)))
        for thread in journal.list_threads(limit=1000)
    }


class Outage:
    """A store on a disk with a cache, and a look at what each step would leave behind if the power went."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder / "store"
        self.copy = folder / "after"
        self.random = random.Random(seed)
        self.files = VolatileFiles()
        self.journal = st.Journal(EmbeddedStore(JsonlBackend(self.folder, files=self.files)))
        self.seen: list[Picture] = []
        self.findings: list[st.Finding] = []

    def look(self) -> None:
        """Never raises: it runs in the middle of a write, and the store would take an error for one of the disk."""
        shutil.rmtree(self.copy, ignore_errors=True)
        self.files.survivors(self.folder, self.copy, lambda rest: rest[: self.random.randint(0, len(rest))])
        with st.open(f"jsonl:///{self.copy}") as journal:
            self.seen.append(picture(journal))
            journal.create_thread("after the cut")
            journal.append("after the cut", st.user("it goes on"))
            # A torn last line is reported until the next write to its file cuts it off.
            self.findings += [finding for finding in journal.check() if finding.kind != "torn"]

    def run(self, step: Callable[[st.Journal], object]) -> None:
        old = picture(self.journal)
        self.seen.clear()
        self.files.before = self.look
        try:
            step(self.journal)
        finally:
            self.files.before = lambda: None
        new = picture(self.journal)
        assert all(seen in (old, new) for seen in self.seen), "neither the old state nor the new one"
        self.look()
        assert self.findings == []
        assert self.seen[-1] == new, "an acknowledged change is gone"


def steps(source: random.Random, journal: st.Journal, count: int) -> Callable[[st.Journal], object]:
    """A random change that is possible now."""
    threads = [thread.id for thread in journal.list_threads(limit=1000)]
    if not threads or source.random() < 0.15:
        return lambda j: j.create_thread(f"thread {count}")
    thread = source.choice(threads)
    path = [entry.id for entry in journal.path(thread)]
    choices: list[Callable[[st.Journal], object]] = [
        lambda j: j.append(thread, st.user(f"text {count}")),
        lambda j: j.append_many(thread, [st.user("call"), st.assistant("x" * source.randint(0, 9000))]),
        lambda j: j.fork(thread, new_id=f"fork {count}"),
        lambda j: j.reset(thread),
    ]
    if path:
        choices.append(lambda j: j.rewind(thread, source.choice(path)))
    if journal.reflog(thread) and journal.reflog(thread)[-1].reason != "undo":
        choices.append(lambda j: j.undo(thread))
    if len(threads) > 2:
        choices.append(lambda j: j.delete_thread(thread))
    return source.choice(choices)


@pytest.mark.parametrize("seed", range(6))
def test_a_power_cut_leaves_the_old_state_or_the_new_one(tmp_path: Path, seed: int) -> None:
    outage = Outage(tmp_path, seed)
    with outage.journal as journal:
        for count in range(20):
            outage.run(steps(outage.random, journal, count))


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(100, 200))
def test_a_hundred_power_cuts_at_every_step(tmp_path: Path, seed: int) -> None:
    outage = Outage(tmp_path, seed)
    with outage.journal as journal:
        for count in range(40):
            outage.run(steps(outage.random, journal, count))


class ForgetfulFiles(VolatileFiles):
    """Never syncs, as a store would that promises too much."""

    def sync(self, file: int) -> None:
        self.before()


def test_a_store_that_does_not_sync_would_be_caught(tmp_path: Path) -> None:
    files = ForgetfulFiles()
    with st.Journal(EmbeddedStore(JsonlBackend(tmp_path / "store", files=files))) as journal:
        journal.create_thread("t")
        journal.append("t", st.user("acknowledged, and gone"))
    files.survivors(tmp_path / "store", tmp_path / "after", lambda rest: b"")
    with st.open(f"jsonl:///{tmp_path / 'after'}") as journal:
        assert picture(journal) == {}
