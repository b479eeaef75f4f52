"""Two writers change the same managed sessions at once: what is left is what one after the other leaves."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from processes import at_once, ready

import sessiontree as st
from opened import open_store, url_of
from session_races import PAIRS, make, manager_of, outcomes, prepare, state_of

WORKER = Path(__file__).with_name("session_race_worker.py")
STORES = ("memory", "sqlite", "jsonl", "postgres")
MANY = 200


def race_in_threads(store: str, folder: Path, pairs: list[tuple[str, str]]) -> None:
    with open_store(store, folder, durability="process_crash") as journal, ThreadPoolExecutor(2) as pool:
        manager = manager_of(journal)
        gate = threading.Barrier(2)

        def one(name: str, change: str, side: int) -> None:
            gate.wait()
            make(manager, name, change, side)

        for number, pair in enumerate(pairs):
            name = f"peer{number}"
            prepare(manager, name)
            for finished in [pool.submit(one, name, change, side) for side, change in enumerate(pair)]:
                finished.result()
            assert state_of(manager, name) in outcomes(pair), pair
        assert journal.check() == []


def race_in_processes(store: str, folder: Path, pairs: list[tuple[str, str]]) -> None:
    url = url_of(store, folder)
    with st.open(url, durability="process_crash") as journal, ready(WORKER, (url, 0), (url, 1)) as workers:
        manager = manager_of(journal)
        for number, pair in enumerate(pairs):
            name = f"peer{number}"
            prepare(manager, name)
            at_once(workers, [f"{change}\t{name}" for change in pair])
            assert state_of(manager, name) in outcomes(pair), pair
        assert journal.check() == []


def test_two_changes_in_two_threads_are_made_one_after_the_other(tmp_path: Path) -> None:
    race_in_threads("memory", tmp_path, [*PAIRS])


@pytest.mark.parametrize("store", STORES[1:])
def test_two_changes_in_two_processes_are_made_one_after_the_other(store: str, tmp_path: Path) -> None:
    race_in_processes(store, tmp_path, [*PAIRS])


@pytest.mark.deep
@pytest.mark.parametrize("store", STORES)
def test_thousands_of_races_in_two_threads_lose_nothing(store: str, tmp_path: Path) -> None:
    for number in range(MANY):
        race_in_threads(store, place(tmp_path, number), [*PAIRS])


@pytest.mark.deep
@pytest.mark.parametrize("store", STORES[1:])
def test_thousands_of_races_in_two_processes_lose_nothing(store: str, tmp_path: Path) -> None:
    for number in range(MANY):
        race_in_processes(store, place(tmp_path, number), [*PAIRS])


def place(folder: Path, number: int) -> Path:
    (found := folder / str(number)).mkdir()
    return found
