"""Many writers at once, and how long the slowest of them waits."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.case import WITHOUT_ADAPTERS, Case, Sample
from benchmarks.crowd import burst, processes
from benchmarks.system import System
from benchmarks.texts import text

BURST_SECONDS = 0.6


def writers(system: System, size: int) -> Iterator[Sample]:
    jobs = [[(f"chat-{number}", text(number))] * 60 for number in range(size)]
    while True:
        yield {"rate": burst(system, jobs, BURST_SECONDS).rate}


def latency(system: System, size: int) -> Iterator[Sample]:
    """The other core is busy with something else, as on a machine that also runs the agents."""
    jobs = [[(f"chat-{number}", text(number))] * 100 for number in range(size)]
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            while True:
                yield _percentiles(burst(system, jobs, 2 * BURST_SECONDS).latencies)
        finally:
            busy.kill()


def _percentiles(latencies: list[float]) -> Sample:
    cuts = statistics.quantiles(latencies, n=1000, method="inclusive")
    return {
        "p50": cuts[499] * 1e3,
        "p99": cuts[989] * 1e3,
        "p99.9": cuts[998] * 1e3,
        "p99 : p50": cuts[989] / cuts[499],
    }


def chats(system: System, size: int) -> Iterator[Sample]:
    """Each chat appends a question and an answer per turn; a system that is too slow is stopped in the middle."""
    round_number = 0
    while True:
        round_number += 1
        names = [f"chat-{round_number}-{number}" for number in range(size)]
        jobs = [[(name, text(turn)) for turn in range(10)] for name in names]
        yield {"rate": burst(system, jobs, 1.5).rate}


def many_processes(system: System, size: int) -> Iterator[Sample]:
    with processes(system, size, 1.0) as run:
        while True:
            counts = run()
            yield {"rate": sum(counts), "slowest : fastest": max(counts) / max(1, min(counts))}


CASES = [
    Case(
        families=WITHOUT_ADAPTERS,
        name="writers",
        about="Writers in one process, each with a conversation of its own: tasks where the system is async, threads where not.",
        run=writers,
        metrics={"rate": "1/s"},
        sizes=(8, 64),
        size_means="writers",
        is_higher_better=True,
    ),
    Case(
        families=WITHOUT_ADAPTERS,
        name="latency",
        about="How long one append of 64 writers takes, while another program keeps one core busy.",
        run=latency,
        metrics={"p50": "ms", "p99": "ms", "p99.9": "ms", "p99 : p50": "x"},
        sizes=(64,),
        size_means="writers",
        is_quick=False,
        rounds=5,
    ),
    Case(
        families=WITHOUT_ADAPTERS,
        name="1,000 chats",
        about="A server with 1,000 conversations at once, five turns each: 10,000 appends, or those of 1.5 seconds.",
        run=chats,
        metrics={"rate": "1/s"},
        sizes=(1_000,),
        size_means="conversations",
        is_higher_better=True,
        is_quick=False,
        rounds=3,
    ),
    Case(
        families=WITHOUT_ADAPTERS,
        name="processes",
        about="Processes write to one store, each to a conversation of its own.",
        run=many_processes,
        metrics={"rate": "1/s", "slowest : fastest": "x"},
        sizes=(8, 64),
        size_means="processes",
        is_higher_better=True,
        rounds=3,
    ),
]
