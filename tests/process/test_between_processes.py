"""Leases, watching and opening, between real processes."""

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import STORES, receive, send, url_of, worker

import sessiontree as st
from known import present

PATIENCE_SECONDS = 30


@pytest.mark.parametrize("store", STORES)
def test_a_holder_that_slept_through_its_lease_writes_nothing(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path)
    with st.open(url) as journal:
        journal.create_thread("t")
        with worker("run_a_turn", url, 0.5) as holder:
            token = int(receive(holder))
            os.kill(holder.pid, signal.SIGSTOP)
            taken = _take_over(journal)
            assert taken.token > token
            journal.append("t", st.assistant("from the new owner"), id="new", lease=taken)
            os.kill(holder.pid, signal.SIGCONT)
            send(holder)
            assert receive(holder) == f"fenced {token}"
            assert receive(holder) == "over"
        assert [entry.id for entry in journal.path("t")][1:] == ["new"]
        assert journal.check() == []


@pytest.mark.parametrize("store", STORES)
def test_a_watcher_sees_what_another_process_writes(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path)
    with st.open(url) as journal:
        journal.create_thread("t")
        watched = journal.watch("t")
        with worker("append_what_is_heard", url) as writer:
            assert receive(writer) == "ready"
            for text in ("one", "two", "three"):
                send(writer, text)
                assert receive(writer) == text
                assert next(watched).id == text


@pytest.mark.parametrize("store", STORES)
def test_processes_that_open_a_new_store_at_once_share_it(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path / "not" / "there" / "yet")
    names = ["a", "b", "c", "d"]
    with ExitStack() as stack:
        openers = [stack.enter_context(worker("open_at_the_same_time", url, name)) for name in names]
        for process in openers:
            assert receive(process) == "ready"
        for process in openers:
            send(process)
        assert [receive(process) for process in openers] == ["done"] * len(names)
    with st.open(url) as journal:
        assert sorted(present(thread.leaf) for thread in journal.list_threads()) == names
        assert journal.check() == []


@pytest.mark.parametrize("store", STORES)
def test_the_error_in_the_child_of_a_fork_says_to_open_the_store_again(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path)
    with worker("use_after_fork", url) as process:
        for _ in range(2):
            assert "open it again in the child" in receive(process)
        assert receive(process) == "parent parent"
        assert process.wait() == 0
    with st.open(url) as journal:
        assert [entry.id for entry in journal.path("t")] == ["parent"]
        assert journal.check() == []


@pytest.mark.parametrize("store", STORES)
def test_a_read_in_the_child_of_a_fork_does_not_wait_for_ever(store: str, tmp_path: Path) -> None:
    with worker("read_after_fork", url_of(store, tmp_path)) as process:
        assert "open it again in the child" in receive(process)
        assert process.wait() == 0


def _take_over(journal: st.Journal) -> st.Lease:
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return journal.acquire_lease("t", owner="new")
        except st.ActiveTurnError:
            assert time.monotonic() < end, "the lease never expired"
