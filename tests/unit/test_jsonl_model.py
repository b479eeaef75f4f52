"""Random commands: the JSONL store answers like the memory store, before and after it is read again."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from jsonl_commands import EVERYTHING, append, create, delete, draft, fork, portrait
from sessiontree.errors import SessionTreeError
from sessiontree.model import Thread
from sessiontree.stores.commands import (
    AcquireLease,
    Append,
    ClearLease,
    Command,
    MoveLeaf,
    Redo,
    ReleaseLease,
    RenewLease,
    Undo,
    UpdateThread,
)
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.memory import MemoryBackend
from sessiontree.stores.protocol import Outcome

THREADS = ("a", "b", "c", "A", "d/../e")


class Author:
    """Makes commands that often, but not always, fit."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.entries = 0
        self.known: list[str] = []
        self.now = 100

    def command(self) -> Command:
        pick = self.random
        self.now += pick.randrange(-5, 20)
        one, two = pick.choice(THREADS), pick.choice(THREADS)
        some = pick.choice(self.known) if self.known and pick.random() < 0.8 else None
        make: list[Callable[[], Command]] = [
            lambda: create(one, self.now, title=f"title {self.now}"),
            lambda: fork(one, two, some, self.now),
            lambda: delete(one) if pick.random() < 0.15 else create(one, self.now),
            lambda: self.append(one, some),
            lambda: self.append(one, some),
            lambda: self.append(one, some),
            lambda: MoveLeaf(thread_id=one, to_entry=some, reason="rewind", at_ns=self.now),
            lambda: Undo(thread_id=one, at_ns=self.now),
            lambda: Redo(thread_id=one, at_ns=self.now),
            lambda: AcquireLease(
                thread_id=one, turn_id=f"t{self.now}", owner="o", now_ns=self.now, expires_ns=self.now + 30
            ),
            lambda: RenewLease(thread_id=one, token=self.now - 5, expires_ns=self.now + 50),
            lambda: ReleaseLease(thread_id=one, token=self.now - 7),
            lambda: ClearLease(thread_id=one, now_ns=self.now),
            lambda: UpdateThread(
                thread_id=one,
                changed=Thread(id=one, tree=one, created_ns=0, updated_ns=0, title=f"new {self.now}", tags=("x",)),
                fields=("title", "tags"),
            ),
        ]
        return pick.choice(make)()

    def append(self, thread_id: str, parent: str | None) -> Append:
        if self.known and self.random.random() < 0.1:
            return append(thread_id, draft(self.random.choice(self.known)))
        drafts = []
        for _ in range(self.random.randrange(1, 4)):
            self.entries += 1
            drafts.append(draft(f"e{self.entries}", at=self.now + self.random.randrange(-9, 9)))
            self.known.append(drafts[-1].id)
        if self.random.random() < 0.3:
            return append(thread_id, *drafts, parent=parent)
        return append(thread_id, *drafts)


@pytest.mark.parametrize("seed", range(25))
def test_random_commands_give_what_the_memory_store_gives(tmp_path: Path, seed: int) -> None:
    author = Author(seed)
    memory = MemoryBackend()
    files = JsonlBackend(tmp_path / "store", durability="process_crash")
    for number in range(60):
        group = [author.command() for _ in range(author.random.randrange(1, 5))]
        assert plain(files.write(group)) == plain(memory.write(group)), group
        if number % 8 == 0:
            assert portrait(files) == portrait(memory)
    assert memory.stats().entries > 5
    again = JsonlBackend(tmp_path / "store")
    assert again.erase_copies()
    assert portrait(again) == portrait(memory)
    assert again.inspect() == []
    assert again.threads(EVERYTHING) == memory.threads(EVERYTHING)
    mine, theirs = again.stats(), memory.stats()
    assert (mine.threads, mine.entries, mine.moves, mine.leases) == (
        theirs.threads, theirs.entries, theirs.moves, theirs.leases
    )  # fmt: skip
    again.close()
    files.close()


def plain(outcomes: list[Outcome]) -> list[object]:
    return [str(item) if isinstance(item, SessionTreeError) else item for item in outcomes]
