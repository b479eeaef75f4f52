"""Retention: which threads go by age, number, size, tag and workspace, and what that gives back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from cli_shell import Shell
from opened import open_store
from sessiontree.testing import ManualClock

DAY = 86_400 * 10**9
START = 1_700_000_000 * 10**9


@pytest.fixture(params=["memory", "sqlite-async", "jsonl"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    """Ten archived threads, one each day; t0 is the oldest."""
    clock = ManualClock(START)
    with open_store(request.param, tmp_path, clock=clock) as journal:
        for number in range(10):
            tags = ("even",) if number % 2 == 0 else ("odd",)
            journal.create_thread(f"t{number}", is_archived=True, tags=tags, workspace=f"/w{number % 3}")
            journal.append(f"t{number}", st.user("x" * 1000))
            clock.now_ns += DAY
        yield journal


def names(expired: tuple[st.Expired, ...]) -> list[str]:
    return [one.thread.id for one in expired]


@pytest.mark.parametrize("journal", ["memory", "sqlite", "jsonl", "postgres"], indirect=True)
def test_threads_go_by_age_number_size_tag_and_workspace(journal: st.Journal) -> None:
    def found(**fields: Any) -> list[str]:
        return names(journal.find_expired(st.Retention(**fields)))

    assert found(updated_before_ns=START + 3 * DAY) == ["t0", "t1", "t2"]
    assert found(keep_newest=7) == ["t0", "t1", "t2"]
    assert found(keep_newest=70) == []
    assert found(tags=("even",), keep_newest=2) == ["t0", "t2", "t4"]
    assert found(workspace="/w1") == ["t1", "t4", "t7"]
    assert found(is_archived=False) == []
    assert found(max_bytes=journal.stats().bytes) == []
    each = journal.find_expired(st.Retention())[0].bytes
    assert found(max_bytes=journal.stats().bytes - 2 * each - 1) == ["t0", "t1", "t2"]
    assert len(found(max_bytes=0)) == 10
    assert all(one.bytes > 1000 for one in journal.find_expired(st.Retention()))
    assert journal.stats().threads == 10
    with pytest.raises(st.InvalidInputError):
        found(keep_newest=-1)


def test_labelled_and_running_threads_stay(journal: st.Journal) -> None:
    journal.label("t0", journal.path("t0")[0].id, "good")
    journal.acquire_lease("t1", owner="worker", turn_id="turn")
    assert names(journal.find_expired(st.Retention())) == [f"t{number}" for number in range(2, 10)]
    found = names(journal.find_expired(st.Retention(includes_labelled=True)))
    assert ("t0" in found, "t1" in found) == (True, False)


def test_a_thread_that_changes_after_it_was_shown_stays(journal: st.Journal) -> None:
    retention = st.Retention(keep_newest=7)
    shown = journal.find_expired(retention)
    journal.append("t1", st.user("still in use"))
    journal.delete_thread("t2")
    report = journal.delete_expired(retention, shown)
    assert names(report.expired) == ["t0"]
    assert set(report.changed) == {"t1", "t2"}
    assert {thread.id for thread in journal.iter_threads(is_archived=None)} == {
        f"t{n}" for n in (1, 3, 4, 5, 6, 7, 8, 9)
    }
    assert journal.check() == []


def test_the_room_of_small_threads_is_given_back_to_the_disk(tmp_path: Path) -> None:
    with st.open(tmp_path / "journal.db") as journal:
        for number in range(24):
            journal.create_thread(f"t{number}", is_archived=True)
            journal.append_many(f"t{number}", [st.user("words " * 400) for _ in range(10)])
        before = journal.stats().bytes
        report = journal.delete_expired(st.Retention(keep_newest=4))
        assert len(report.expired) == 20
        assert journal.stats().bytes < before / 2
        assert journal.check() == []
        journal.append("t23", st.user("it goes on"))
    assert (tmp_path / "journal.db").stat().st_size < before / 2


def test_prune_shows_bytes_first_and_frees_them_when_confirmed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with st.open(tmp_path / "j.db") as journal:
        for number in range(8):
            journal.create_thread(f"thread-{number}", tags=("nightly",), is_archived=True)
            journal.append(f"thread-{number}", st.user("x" * 150_000))
    shown = shell.json("prune", "--keep", "2", "--tag", "nightly", "--dry-run")
    assert len(shown["expired"]) == 6
    assert shown["bytes"] > 900_000
    assert "6 threads, 90" in shell.run("prune", "--keep", "2", "--dry-run").stderr
    report = shell.json("prune", "--max-size", "700KB", "--yes")["report"]
    assert len(report["expired"]) >= 4
    assert (tmp_path / "j.db").stat().st_size <= 700_000
    shell.run("prune", "--tag", "nightly", "--yes", code=2)
    shell.run("prune", "--max-size", "much", "--yes", code=2)
