"""Compactions and appends of many producers, in two real processes on one store."""

from collections import defaultdict
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest
from processes import STORES, receive, send, started, url_of

import sessiontree as st
from known import present
from sessiontree.context import window_of

WORKER = Path(__file__).with_name("compaction_worker.py")
THREADS, PRODUCERS, MESSAGES = 3, 32, 12


@pytest.mark.parametrize("store", STORES)
def test_64_producers_and_two_compactors_lose_nothing_and_never_compact_twice_at_once(
    store: str, tmp_path: Path
) -> None:
    url, log = url_of(store, tmp_path), tmp_path / "log"
    with st.open(url) as journal:
        for number in range(THREADS):
            journal.create_thread(f"t{number}")
    run_both(url, log)
    with st.open(url) as journal:
        assert sent() == {entry.id for n in range(THREADS) for entry in journal.entries(f"t{n}") if entry.message}
        compactions = sum(check_thread(journal, f"t{number}") for number in range(THREADS))
        assert compactions >= 2
        assert journal.check() == []
    check_one_at_a_time(log)


def run_both(url: str, log: Path) -> None:
    with ExitStack() as stack:
        workers = [
            stack.enter_context(started(WORKER, url, name, THREADS, PRODUCERS, MESSAGES, log))
            for name in ("left", "right")
        ]
        for process in workers:
            assert receive(process) == "ready"
        for process in workers:
            send(process)
        for process in workers:
            assert int(receive(process)) > 0, "each process has installed compactions"
            assert receive(process) == "done"


def sent() -> set[str]:
    return {
        f"{name}-{number}-{message}"
        for name in ("left", "right")
        for number in range(PRODUCERS)
        for message in range(MESSAGES)
    }


def check_thread(journal: st.Journal, thread_id: str) -> int:
    """Every message on one path, compactions building on each other, and everything after the last one in sight."""
    path = journal.path(thread_id)
    assert {entry.id for entry in path} == {entry.id for entry in journal.entries(thread_id)}
    compactions = [entry.payload for entry in path if isinstance(entry.payload, st.Compaction)]
    assert [compaction.generation for compaction in compactions] == list(range(1, len(compactions) + 1))
    assert all(after.previous_id == before.id for before, after in pairwise(compactions))
    last = compactions[-1]
    positions = {entry.id: index for index, entry in enumerate(path)}
    later = [entry.id for entry in path[positions[last.through_entry_id] + 1 :] if entry.message]
    seen = {segment.entry_id for segment in journal.context(thread_id).segments}
    assert set(later) <= seen
    assert present(window_of(path).boundary).payload == last
    assert journal.thread(thread_id).compaction_claim is None
    return len(compactions)


def check_one_at_a_time(log: Path) -> None:
    spans = defaultdict(list)
    for line in log.read_text(encoding="utf-8").splitlines():
        thread_id, began, ended = line.split()
        spans[thread_id].append((int(began), int(ended)))
    for found in spans.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(found)))
