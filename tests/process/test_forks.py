"""A process that forks while its threads use a store: the child can open the store again, and the parent loses nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sessiontree as st

_FORKS = 10


def address(tmp_path: Path, kind: str) -> str:
    return str(tmp_path / "journal.db") if kind == "sqlite" else f"jsonl:///{tmp_path / 'trees'}"


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a child that runs ``work``; it is ended by SIGALRM if it takes long."""
    child = os.fork()
    if child == 0:
        signal.alarm(8)
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@contextmanager
def busy(journal: st.Journal, counts: list[int]) -> Iterator[None]:
    """Four threads append and read all the time."""
    may_go_on = True

    def work(number: int) -> None:
        while may_go_on:
            journal.append(f"{number}", st.user("hello"))
            counts[number] += 1
            if counts[number] % 5 == 0:
                journal.path(f"{number}", limit=3)

    crew = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for member in crew:
        member.start()
    try:
        yield
    finally:
        may_go_on = False
        for member in crew:
            member.join()


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_child_waited_for_locks_of_threads_that_it_does_not_have(tmp_path: Path, kind: str) -> None:
    url = address(tmp_path, kind)
    counts = [0] * 4

    def append_again() -> None:
        with st.open(url) as journal:
            journal.append("child", st.user("from the child"))

    with st.open(url) as journal:
        for name in ("0", "1", "2", "3", "child"):
            journal.create_thread(name)
        with busy(journal, counts):
            codes = []
            for number in range(_FORKS):
                seen = sum(counts)
                while sum(counts) < seen + 20 + number:
                    time.sleep(0.001)
                codes.append(in_child(append_again))
        assert codes == [0] * _FORKS
        assert [len(journal.entries(str(number))) for number in range(4)] == counts
        assert len(journal.entries("child")) == _FORKS
        assert journal.check() == []


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_child_outlives_its_parent_with_a_store_of_its_own(tmp_path: Path, kind: str) -> None:
    url = address(tmp_path, kind)
    going, told = os.pipe()
    journal = st.open(url)
    journal.create_thread("t")

    def append_later() -> None:
        with st.open(url) as own:
            own.append("t", st.user("before"))
            os.write(told, b"x")
            time.sleep(0.2)
            own.append("t", st.user("after"))

    waiter = threading.Thread(target=lambda: codes.append(in_child(append_later)))
    codes: list[int] = []
    waiter.start()
    os.read(going, 1)
    journal.close()
    # Another process opens and closes the store: it must not take the child's log for one that nobody uses.
    with st.open(url) as other:
        other.append("t", st.user("other"))
    waiter.join()
    assert codes == [0]
    with st.open(url) as again:
        texts = {entry.message.text for entry in again.path("t") if entry.message}
        assert texts == {"before", "other", "after"}
        assert again.check() == []


def test_a_fork_inside_a_callback_of_the_store_does_not_wait_for_itself() -> None:
    codes: list[int] = []

    def fork_once(done: int, total: int) -> None:
        if not codes:
            codes.append(in_child(lambda: None))

    with st.open("memory:") as journal:
        journal.create_thread("t")
        journal.append("t", st.user("x"))
        journal.check(progress=fork_once)
    assert codes == [0]
