"""What an observer costs: CPU time of an append without one, with an empty one, with logging, and with OpenTelemetry.

The kinds take turns, so that load on the machine falls on all of them. OpenTelemetry is measured without an SDK, which is
what a program pays that has not set one up.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import sessiontree as st
from sessiontree.model.observed import Observed, Observer
from sessiontree.observe import log_observer
from sessiontree.observe.otel import otel_observer

ROUNDS = 9
APPENDS = 1000


def ignore(event: Observed) -> None:
    """Do nothing."""


KINDS: dict[str, Observer | None] = {
    "none": None,
    "empty": ignore,
    "logging": log_observer(),
    "otel": otel_observer(),
}


def main() -> None:
    """Print microseconds of CPU per append."""
    with tempfile.TemporaryDirectory() as folder:
        for store in ("memory", "sqlite"):
            times: dict[str, list[float]] = {kind: [] for kind in KINDS}
            for number in range(ROUNDS):
                for kind, observer in KINDS.items():
                    url = "memory:" if store == "memory" else f"sqlite:///{Path(folder) / f'{kind}-{number}.db'}"
                    times[kind].append(measure(url, observer))
            print(store, {kind: f"{statistics.median(found):.1f} us" for kind, found in times.items()})


def measure(url: str, observer: Observer | None) -> float:
    """CPU microseconds per append."""
    with st.open(url, durability="process_crash", observer=observer) as journal:
        journal.create_thread("t")
        started = time.process_time()
        for _ in range(APPENDS):
            journal.append("t", st.user("hello"))
        return (time.process_time() - started) / APPENDS * 1e6


if __name__ == "__main__":
    main()
