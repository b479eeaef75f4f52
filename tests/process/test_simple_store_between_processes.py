"""Two real processes change the same sessions of a SimpleStore: no change is lost."""

from pathlib import Path

import pytest
from processes import at_once, ready

import sessiontree as st
from opened import url_of
from sessiontree.sessions.simple_store import SimpleStore
from simple_races import PAIRS, outcomes, prepare, state_of

WORKER = Path(__file__).with_name("simple_store_worker.py")
KINDS = ("sqlite", "jsonl", "postgres")
ROUNDS = 8
MANY = 200


def race_in_processes(kind: str, folder: Path, rounds: int) -> None:
    url = url_of(kind, folder)
    with st.open(url, durability="process_crash") as journal, ready(WORKER, (url, 0), (url, 1)) as workers:
        store = SimpleStore(journal)
        for pair in PAIRS:
            for number in range(rounds):
                key = f"{pair[0]} {pair[1]} {number}"
                prepare(store, key)
                at_once(workers, [f"{change}\t{key}" for change in pair])
                assert state_of(store, key) in outcomes(pair), (pair, key)
        assert journal.check() == []


@pytest.mark.parametrize("kind", KINDS)
def test_two_changes_in_two_processes_are_made_one_after_the_other(kind: str, tmp_path: Path) -> None:
    race_in_processes(kind, tmp_path, ROUNDS)


@pytest.mark.deep
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_races_in_two_processes_lose_nothing(kind: str, tmp_path: Path) -> None:
    race_in_processes(kind, tmp_path, MANY)
