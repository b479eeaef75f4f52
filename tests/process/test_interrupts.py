"""Ctrl-C at any moment of an append: the store goes on, and nothing is half written."""

from __future__ import annotations

import asyncio
import gc
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from known import of_kind
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.sqlite import SqliteBackend, schema
from stores import sqlite_backend

ROUNDS = 150


class Armed:
    """Interrupts once, and only while it is on."""

    is_on = False

    def interrupt(self, *_: object) -> None:
        if self.is_on:
            self.is_on = False
            raise KeyboardInterrupt


@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "memory"])
def test_an_interrupt_at_any_moment_leaves_a_store_that_works(tmp_path: Path, kind: str) -> None:
    url = "memory:" if kind == "memory" else f"{kind}:///{tmp_path / 'store'}"
    armed = Armed()
    gc.disable()  # callbacks of the collector swallow exceptions, and would swallow the interrupt
    before = signal.signal(signal.SIGALRM, armed.interrupt)
    interrupts = 0
    try:
        with st.open(url, durability="process_crash") as journal:
            journal.create_thread("t")
            for number in range(ROUNDS):
                try:
                    armed.is_on = True
                    signal.setitimer(signal.ITIMER_REAL, (number % 30 + 1) * 2e-5)
                    for step in range(3):
                        journal.append("t", st.user("hello"), id=f"{number}-{step}")
                    armed.is_on = False
                except KeyboardInterrupt:
                    interrupts += 1
                journal.append("t", st.user("still here"), id=f"after-{number}")
            texts = {entry.id for entry in journal.path("t")}
            assert {f"after-{number}" for number in range(ROUNDS)} <= texts
            assert journal.check() == []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert interrupts > 0


class InterruptedAfterCommit:
    """A connection whose next commit goes through and is interrupted then."""

    def __init__(self, backend: SqliteBackend) -> None:
        self._backend = backend
        self._connection = backend._writer

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, statement: str) -> object:
        done = self._connection.execute(statement)
        if statement == "COMMIT":
            self._backend._writer = self._connection
            raise KeyboardInterrupt
        return done


def test_what_an_interrupted_delete_deleted_is_erased_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with st.open(tmp_path / "s.db") as journal:
        journal.create_thread("stays")
        journal.create_thread("goes")
        journal.append("goes", st.user("the secret"))
        assert b"the secret" in (tmp_path / "s.db-wal").read_bytes()
        backend = sqlite_backend(journal)
        monkeypatch.setattr(backend, "_writer", InterruptedAfterCommit(backend))
        with pytest.raises(KeyboardInterrupt):
            journal.delete_thread("goes")
        of_kind(EmbeddedStore, journal.store).eraser.wait(1, timeout=60)
        journal.append("stays", st.user("next"))
        assert [file.name for file in tmp_path.iterdir() if b"the secret" in file.read_bytes()] == []
        with pytest.raises(st.ThreadNotFoundError):
            journal.thread("goes")


class InterruptedAtBegin(sqlite3.Connection):
    """A connection whose first read is interrupted when its transaction has just begun."""

    is_armed = True

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        done = super().execute(statement, *values)
        if statement == "BEGIN" and InterruptedAtBegin.is_armed:
            InterruptedAtBegin.is_armed = False
            raise KeyboardInterrupt
        return done


def test_an_interrupted_read_leaves_no_reader_behind_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with st.open(tmp_path / "s.db") as journal:
        journal.create_thread("t")
        monkeypatch.setattr(
            schema, "connect", lambda path: sqlite3.connect(path, isolation_level=None, factory=InterruptedAtBegin)
        )
        with pytest.raises(KeyboardInterrupt):
            journal.thread("t")
        assert journal.thread("t").id == "t"
        assert journal.check() == []


def test_what_is_wrong_with_one_command_does_not_fail_its_neighbours(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        async with st.open_async(url) as journal:
            await journal.create_thread("t")
            good = [journal.append("t", st.user("x"), id=f"g{number}") for number in range(3)]
            bad = [journal.append("t", st.user("x"), parent="nowhere"), journal.append("missing", st.user("x"))]
            answers = await asyncio.gather(*good, *bad, return_exceptions=True)
            assert [getattr(answer, "id", None) for answer in answers[:3]] == ["g0", "g1", "g2"]
            assert isinstance(answers[3], st.InvalidParentError)
            assert isinstance(answers[4], st.ThreadNotFoundError)
            assert len(await journal.path("t")) == 3

    for url in ("memory:", f"sqlite:///{tmp_path}/j.db", f"jsonl:///{tmp_path}/j"):
        asyncio.run(run(url))
