"""A stale lease is cleared once, and a time that is set is not lost, whoever else is at work."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import sessiontree as st
from opened import open_store, url_of

ROUNDS = 70
NAMES = [f"t{number:03}" for number in range(ROUNDS)]
CLEAR = """
import sys
import sessiontree as st
with st.open(sys.argv[1]) as journal:
    print("ready", flush=True)
    sys.stdin.readline()
    for name in sys.argv[3:]:
        if journal.clear_expired_lease(name, created_before_ns=int(sys.argv[2])) is not None:
            print(name, flush=True)
"""


def leased(journal: st.Journal) -> int:
    """Threads with a lease each; the cut-off that is right after them."""
    leases = [
        journal.acquire_lease(journal.create_thread(name).id, owner="gone", ttl_seconds=3600).created_ns
        for name in NAMES
    ]
    return max(leases) + 1


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl", "postgres"])
def test_of_two_threads_one_clears_a_stale_lease(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path) as journal:
        cutoff = leased(journal)
        start = Barrier(2)

        def clear() -> list[str]:
            start.wait()
            return [name for name in NAMES if journal.clear_expired_lease(name, created_before_ns=cutoff)]

        with ThreadPoolExecutor(2) as pool:
            first, second = (future.result() for future in [pool.submit(clear), pool.submit(clear)])
        assert sorted(first + second) == NAMES
        assert journal.stats().leases == 0


@pytest.mark.parametrize("kind", ["sqlite", "jsonl", "postgres"])
def test_of_two_processes_one_clears_a_stale_lease(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path) as journal:
        cutoff = leased(journal)
        arguments = [sys.executable, "-c", CLEAR, url_of(kind, tmp_path), str(cutoff), *NAMES]
        workers = [
            subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]
        assert [worker.stdout.readline() for worker in workers if worker.stdout] == ["ready\n"] * 2
        for worker in workers:
            assert worker.stdin
            worker.stdin.write("go\n")
            worker.stdin.flush()
        cleared = [name for worker in workers for name in worker.communicate(timeout=60)[0].split()]
        assert sorted(cleared) == NAMES
        assert [worker.returncode for worker in workers] == [0, 0]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl", "postgres"])
def test_titles_and_times_that_are_set_at_once_are_both_kept(kind: str, tmp_path: Path) -> None:
    with open_store(kind, tmp_path) as journal, ThreadPoolExecutor(2) as pool:
        journal.create_thread("t")
        for number in range(1, ROUNDS):
            both = [
                pool.submit(journal.update_thread, "t", title=f"title {number}"),
                pool.submit(journal.update_thread, "t", updated_ns=number),
            ]
            versions = {future.result().version for future in both}
            thread = journal.thread("t")
            assert (thread.title, thread.updated_ns, len(versions)) == (f"title {number}", number, 2)
