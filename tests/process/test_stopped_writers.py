"""A process that is stopped in the middle of a write: others get an error that says so, and go on when it goes on."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.stores import _io


def address(tmp_path: Path, kind: str) -> str:
    return str(tmp_path / "journal.db") if kind == "sqlite" else f"jsonl:///{tmp_path / 'trees'}"


@contextmanager
def stopped_inside_a_write(url: str) -> Iterator[int]:
    """A process that stopped while it held the lock of writers."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            journal = st.open(url)
            with journal.store.backend._process_lock:  # type: ignore[attr-defined]
                os.write(writing, b"x")
                os.kill(os.getpid(), signal.SIGSTOP)
            _io.LOCK_SECONDS = 30.0
            journal.append("t", st.user("of the stopped one"))
        finally:
            os._exit(0)
    os.read(reading, 1)
    os.waitpid(child, os.WUNTRACED)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_writers_waited_for_ever_for_a_stopped_process(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_io, "LOCK_SECONDS", 0.2)
    url = address(tmp_path, kind)
    with st.open(url) as journal:
        journal.create_thread("t")
        errors: list[Exception] = []

        def append() -> None:
            try:
                journal.append("t", st.user("refused"), id="refused")
            except st.StoreUnavailableError as error:
                errors.append(error)

        with stopped_inside_a_write(url) as child:
            for _ in range(2):
                writer = threading.Thread(target=append, daemon=True)
                writer.start()
                writer.join(10)
                assert not writer.is_alive()
            assert [type(error) for error in errors] == [st.StoreUnavailableError] * 2
            assert "another process" in str(errors[0])
            assert list(journal.path("t")) == []
            monkeypatch.undo()
            os.kill(child, signal.SIGCONT)
            while not journal.path("t"):
                time.sleep(0.005)
            journal.append("t", st.user("mine"))
        texts = [entry.message.text for entry in journal.path("t") if entry.message]
        assert texts == ["of the stopped one", "mine"]
        assert journal.check() == []


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_lists_and_searches_failed_while_a_writer_was_stopped(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_io, "LOCK_SECONDS", 0.1)
    url = address(tmp_path, kind)
    with st.open(url) as reader, st.open(url) as writer:
        writer.create_thread("t")
        writer.append("t", st.user("a needle"))
        with stopped_inside_a_write(url):
            assert [thread.id for thread in reader.list_threads()] == ["t"]
            assert [hit.thread_id for hit in reader.search("needle").hits] == ["t"]


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_wait_that_was_given_up_does_not_keep_the_lock(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_io, "LOCK_SECONDS", 0.1)
    url = address(tmp_path, kind)
    with st.open(url) as journal, st.open(url) as other:
        journal.create_thread("t")
        with stopped_inside_a_write(url), pytest.raises(st.StoreUnavailableError):
            journal.append("t", st.user("refused"))
        monkeypatch.undo()
        # The stopped process is gone, and the wait that was given up gets the lock before others.
        for number in range(20):
            other.append("t", st.user(f"other {number}"))
            journal.append("t", st.user(f"mine {number}"))
        assert len(journal.path("t")) == 40
