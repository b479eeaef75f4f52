"""Old threads are swept while they are used again: no message that was acknowledged is deleted."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import receive, send, worker

import sessiontree as st
from known import present
from opened import url_of
from sessiontree.model.ids import system_clock

STORES = ["memory", "sqlite", "jsonl", "postgres"]
ROUNDS = 200
OLD = 1_000


def fill(journal: st.Journal, rounds: int = ROUNDS) -> list[str]:
    """Old threads, one for each round of the race."""
    return [journal.create_thread(f"t{number:04}", created_ns=OLD).id for number in range(rounds)]


def from_both_ends(names: list[str]) -> list[str]:
    """Half of them side by side with the sweep, which begins with the first; half long before it comes to them."""
    return list(dict.fromkeys(itertools.chain.from_iterable(zip(names, reversed(names), strict=True))))


def use(journal: st.Journal, names: list[str]) -> set[str]:
    """Append to each thread; return those that acknowledged the message."""
    used = set()
    for name in names:
        try:
            journal.append(name, st.user("still here"))
        except st.ThreadNotFoundError:
            continue
        used.add(name)
    return used


def assert_kept(journal: st.Journal, used: set[str], swept: set[str], names: list[str]) -> None:
    assert used.isdisjoint(swept)
    assert used | swept == set(names)
    for name in used:
        assert [present(entry.message).text for entry in journal.path(name)] == ["still here"]
    assert {thread.id for thread in journal.iter_threads(limit=500)} == used
    assert journal.check() == []


def with_delete_older_than(journal: st.Journal) -> set[str]:
    return {thread.id for thread in journal.delete_older_than(system_clock() - 10**9)}


def with_delete_thread(journal: st.Journal) -> set[str]:
    old = st.ThreadQuery(updated_before_ns=system_clock() - 10**9, limit=500)
    swept = set()
    for thread in journal.list_threads(old):
        try:
            journal.delete_thread(thread.id, expect_match=old)
        except (st.ThreadChangedError, st.ThreadNotFoundError):
            continue
        swept.add(thread.id)
    return swept


@pytest.mark.parametrize("sweep", [with_delete_older_than, with_delete_thread])
@pytest.mark.parametrize("store", STORES)
def test_a_sweep_spares_threads_that_another_thread_uses_again(
    store: str, sweep: Callable[[st.Journal], set[str]], tmp_path: Path
) -> None:
    with st.open(url_of(store, tmp_path), durability="process_crash") as journal:
        names = fill(journal)
        swept: set[str] = set()
        start = threading.Barrier(2)

        def sweeping() -> None:
            start.wait()
            swept.update(sweep(journal))

        sweeper = threading.Thread(target=sweeping)
        sweeper.start()
        start.wait()
        used = use(journal, from_both_ends(names))
        sweeper.join()
        assert_kept(journal, used, swept, names)


@pytest.mark.parametrize("store", ["sqlite", "jsonl", "postgres"])
def test_a_sweep_spares_threads_that_another_process_uses_again(store: str, tmp_path: Path) -> None:
    race_of_processes(store, tmp_path, ROUNDS)


@pytest.mark.deep
@pytest.mark.parametrize("store", ["sqlite", "jsonl", "postgres"])
def test_a_sweep_spares_threads_that_another_process_uses_again_many_times(store: str, tmp_path: Path) -> None:
    for number in range(10):
        race_of_processes(store, tmp_path / str(number), 500)


def race_of_processes(store: str, folder: Path, rounds: int) -> None:
    folder.mkdir(exist_ok=True)
    url = url_of(store, folder)
    with st.open(url, durability="process_crash") as journal:
        names = fill(journal, rounds)
        with worker("sweep_old", url) as sweeper:
            assert receive(sweeper) == "ready"
            send(sweeper)
            used = use(journal, from_both_ends(names))
            swept = set(itertools.takewhile(lambda name: name != "done", iter(lambda: receive(sweeper), "")))
        assert_kept(journal, used, swept, names)
