"""A crowd of callers on shared threads, what was acknowledged, and whether the store kept it.

Run as a program in each process: ``python postgres_load.py URL SECONDS CALLERS THREADS REPORT``.
"""

import logging
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import psycopg

import sessiontree as st
from postgres_server import with_options

THREADS = 100


def make_threads(url: str, count: int = THREADS) -> None:
    with st.open(url) as journal:
        for number in range(count):
            journal.create_thread(f"shared-{number}")


class Report(msgspec.Struct, frozen=True):
    """What a caller did."""

    acknowledged: list[tuple[str, str]]
    """Threads and entries."""
    tokens: list[tuple[str, int]]
    """Threads and the tokens of the leases on them."""
    refused: dict[str, int]
    fault: str


class Caller:
    """One thread of one process; remembers what was acknowledged."""

    def __init__(self, journal: st.Journal, name: str, threads: int) -> None:
        self.journal = journal
        self.name = name
        self.random = random.Random(name)
        self.threads = threads
        self.acknowledged: list[tuple[str, str]] = []
        self.tokens: list[tuple[str, int]] = []
        self.refused = Counter[str]()
        self.fault = ""

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                self.step()
            except st.ConflictError as error:
                self.refused[type(error).__name__] += 1
            except st.CommitUnknownError as error:
                # A rewind whose answer was lost, over which another caller wrote: reported. Appends are settled.
                self.fault = str(error) if error.entry_ids else self.fault
                self.refused[type(error).__name__] += 1
            except Exception as error:  # noqa: BLE001  it is part of the report
                self.fault = f"{type(error).__name__}: {error}"
                return

    def step(self) -> None:
        thread = f"shared-{self.random.randrange(self.threads)}"
        match self.random.choices(["append", "batch", "cas", "turn", "fork", "rewind"], [50, 10, 15, 15, 5, 5])[0]:
            case "append":
                self.keep(self.journal.append(thread, st.user(self.name)))
            case "batch":
                self.keep(*self.journal.append_many(thread, [st.user(self.name), st.assistant("yes")]))
            case "cas":
                leaf = self.journal.thread(thread).leaf
                self.keep(self.journal.append(thread, st.user(self.name), expect_leaf=leaf))
            case "turn":
                lease = self.journal.acquire_lease(thread, owner=self.name, ttl_seconds=5)
                self.tokens.append((thread, lease.token))
                self.keep(self.journal.append(thread, st.assistant(self.name), lease=lease))
                self.journal.release_lease(lease)
            case "fork":
                fork = self.journal.fork(thread)
                self.keep(self.journal.append(fork.id, st.user(self.name)))
            case "rewind":
                path = self.journal.path(thread, limit=5)
                if path:
                    self.journal.rewind(thread, path[0].id)

    def keep(self, *entries: st.Entry) -> None:
        self.acknowledged += [(entry.thread_id, entry.id) for entry in entries]

    def report(self) -> Report:
        return Report(acknowledged=self.acknowledged, tokens=self.tokens, refused=dict(self.refused), fault=self.fault)


def patient(url: str) -> str:
    """The address with more patience than a restart takes on a busy machine."""
    return with_options(url, open_retry_seconds=60, retry_seconds=60, pool_timeout_seconds=60)


def crowd(url: str, seconds: float, callers: int, threads: int = THREADS) -> list[Report]:
    """Several callers in this process; their reports."""
    with st.open(patient(url)) as journal:
        crew = [Caller(journal, f"{time.time_ns()}-{number}", threads) for number in range(callers)]
        workers = [threading.Thread(target=caller.run, args=(seconds,)) for caller in crew]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return [caller.report() for caller in crew]


def start_processes(
    url: str, seconds: float, processes: int, callers: int, folder: Path, threads: int = THREADS
) -> Callable[[], list[Report]]:
    """Several processes with several callers each; call the result to wait for their reports."""
    reports = [folder / f"report-{number}.json" for number in range(processes)]
    running = [
        subprocess.Popen([sys.executable, __file__, url, str(seconds), str(callers), str(threads), str(report)])
        for report in reports
    ]

    def finish() -> list[Report]:
        codes = [process.wait(timeout=seconds + 120) for process in running]
        assert codes == [0] * processes, codes
        return [report for file in reports for report in msgspec.json.decode(file.read_bytes(), type=list[Report])]

    return finish


def verify(url: str, reports: list[Report]) -> int:
    """Nothing acknowledged is lost or doubled, chains are whole, tokens only grow."""
    faults = [report.fault for report in reports if report.fault]
    assert not faults, faults
    acknowledged = [pair for report in reports for pair in report.acknowledged]
    assert len(acknowledged) == len(set(acknowledged))
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT convert_from(h.id, 'UTF8'), convert_from(e.id, 'UTF8') FROM sessiontree.entry e"
            " JOIN sessiontree.head h ON h.tree = e.tree AND h.key = e.owner"
        ).fetchall()
    stored = Counter(rows)
    assert [pair for pair in acknowledged if stored[pair] != 1] == []
    assert max(stored.values(), default=1) == 1
    with st.open(url) as journal:
        assert journal.check() == []
    granted = Counter(token for report in reports for token in report.tokens)
    assert max(granted.values(), default=1) == 1, "a token was given to two holders"
    for report in reports:
        last: dict[str, int] = {}
        for thread, token in report.tokens:
            assert token > last.get(thread, 0)
            last[thread] = token
    return len(acknowledged)


if __name__ == "__main__":
    _, target, span, callers, threads, place = sys.argv
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    Path(place).write_bytes(msgspec.json.encode(crowd(target, float(span), int(callers), int(threads))))
