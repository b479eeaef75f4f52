"""The lowest rungs of the ladder: the first open, and a sample of everything else. ``make torture`` climbs all of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import sessiontree as st
from torture import calls, crowds, damage, ladder, scripts, soak, tracer, writers
from torture.rounds import Outcome, Round, Tally, url_of

pytestmark = pytest.mark.skipif(not tracer.is_possible(), reason="this system does not let a process trace its child")

ROUNDS = 8
CALLS = 150
IMAGES = 20
SEED = 17


def climb(*rounds: Round) -> Tally:
    return ladder.climb(rounds)


@pytest.mark.parametrize("store", ladder.FILES)
def test_a_kill_at_any_call_of_the_first_open_left_a_path_that_could_not_be_opened(store: str) -> None:
    tally = Tally()
    for number in range(1, calls.calls_of(store, "basics", steps=0) + 1):
        what = Round(store, "kill/basics", number)
        tally.add(what, calls.interfere(what, steps=0))
    assert tally.rounds[store, "kill"] > 10
    assert tally.failures == []


@pytest.mark.parametrize("store", ladder.FILES)
def test_a_call_that_fails_or_never_returns_loses_nothing_that_was_acknowledged(store: str) -> None:
    source = random.Random(SEED)
    names = source.sample([f"{action}/{name}" for name in scripts.SCRIPTS for action in calls.ACTIONS], ROUNDS)
    tally = climb(*(Round(store, name, source.randint(1, CALLS)) for name in names))
    assert tally.failures == []
    assert tally.acknowledged.total() > 0


@pytest.mark.parametrize("store", ladder.FILES)
def test_a_power_cut_at_any_moment_leaves_what_was_acknowledged(store: str) -> None:
    names = ("power/open", "power/basics")
    assert climb(*(Round(store, names[seed % 2], seed) for seed in range(IMAGES))).failures == []


@pytest.mark.parametrize("store", ladder.FILES)
def test_a_store_that_does_not_sync_would_be_caught(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = calls.record(store, "basics")
    unsynced = [change for change in recording.changes if change.kind != "sync"]
    monkeypatch.setattr(calls, "record", lambda *_: recording._replace(changes=unsynced))
    assert any(calls.cut_power(Round(store, "power/basics", seed)).problems for seed in range(IMAGES))


@pytest.mark.parametrize("store", ladder.FILES)
@pytest.mark.parametrize("fault", ["kill four writers", "stop a writer", "stop a holder", "clocks jump"])
def test_several_processes_lose_nothing_that_was_acknowledged(store: str, fault: str) -> None:
    tally = climb(Round(store, fault, SEED))
    assert tally.failures == []
    assert tally.acknowledged.total() > 0


@pytest.mark.parametrize("store", ladder.FILES)
def test_a_damaged_file_raises_our_errors_only_and_a_repair_loses_nothing(store: str) -> None:
    assert (
        climb(*(Round(store, "damage", seed) for seed in range(3)), Round(store, "damage an import", 1)).failures == []
    )


@pytest.mark.deep
@pytest.mark.parametrize("fault", [rung.fault for rung in ladder.RUNGS if "postgres" in rung.stores])
def test_a_server_that_fails_loses_nothing_that_was_acknowledged(fault: str) -> None:
    assert climb(Round("postgres", fault, SEED)).failures == []


def test_a_store_that_does_not_keep_its_word_is_caught(tmp_path: Path) -> None:
    told = scripts.Told(acknowledged=3, problem="")
    found = scripts.violations(scripts.BASICS, url_of("jsonl", tmp_path), tmp_path, told)
    assert [problem.kind for problem in found] == ["lost"]


def test_writers_whose_entries_are_lost_doubled_or_moved_are_caught(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store'}"
    with writers.Crowd(url, 1) as crowd:
        crowd.wait_for(30)
        crowd.kill()
        said = crowd.said()
    thread = next(name for name, entries in said.acknowledged.items() if entries)
    said.acknowledged[thread].append("0.9999")
    said.acknowledged[thread].reverse()
    said.refused.add(said.acknowledged[thread][1])
    kinds = {problem.kind for problem in writers.compare(url, said).problems}
    assert kinds == {"lost", "other"}


def test_an_error_of_python_and_a_repair_that_loses_entries_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(journal: st.Journal) -> None:
        journal.delete_thread("one")
        raise ZeroDivisionError

    monkeypatch.setattr(st.Journal, "repair", lose)
    monkeypatch.setattr(damage, "damaged", lambda content, _: content)
    outcome = damage.damage(Round("sqlite", "damage", 1))
    assert {problem.kind for problem in outcome.problems} == {"lost", "other"}


def test_a_child_that_does_not_end_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "_SECONDS", 0.1)
    outcome = damage._in_child(lambda _: __import__("time").sleep(60))
    assert [problem.kind for problem in outcome.problems] == ["hung"]


def test_the_table_has_a_row_for_each_store_and_fault_and_their_sum() -> None:
    tally = Tally()
    tally.add(Round("sqlite", "kill/erase", 1), Outcome(acknowledged=1000))
    tally.add(Round("sqlite", "damage", 1), Outcome(acknowledged=1))
    rows = tally.table().splitlines()[2:]
    assert rows[0].startswith("| sqlite | damage | 1 | 1 | 0 ")
    assert rows[2].startswith("| sqlite | **all** | 2 | 1,001 | 0 ")
    assert rows[-1] == "Rounds by what the process was doing: erase 1."


def test_a_figure_that_rises_all_the_time_is_not_flat() -> None:
    flat = [soak.Sample(second, 100e6 + second % 7, 30, 5e6, 0.001, 0.002) for second in range(60)]
    assert all(line.is_flat for line in soak.slopes(flat))
    rising = [sample._replace(memory=100e6 + sample.seconds * 1e6) for sample in flat]
    assert [line.name for line in soak.slopes(rising) if not line.is_flat] == ["memory"]
    slowing = [sample._replace(latency=0.001 * (1 + sample.seconds)) for sample in flat]
    assert [line.name for line in soak.slopes(slowing) if not line.is_flat] == ["latency"]


def test_sixteen_writers_each_get_their_turn() -> None:
    assert crowds.many(Round("jsonl", "sixteen writers", SEED)).problems == ()
