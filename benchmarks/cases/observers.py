"""What an observer costs: CPU time of an append without one, with an empty one, with logging, with OpenTelemetry.

OpenTelemetry is measured without an SDK, which is what a program pays that has not set one up.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import sessiontree as st
from benchmarks.case import Case, Sample
from sessiontree.model.observed import Observed, Observer
from sessiontree.observe import log_observer

APPENDS = 300


def ignore(event: Observed) -> None:
    """Do nothing."""


def observers(system: Any, size: int) -> Iterator[Sample]:
    from sessiontree.observe.otel import otel_observer  # noqa: PLC0415  an extra

    kinds: dict[str, Observer | None] = {
        "none": None,
        "empty": ignore,
        "logging": log_observer(),
        "otel": otel_observer(),
    }
    while True:
        yield {kind: _cpu(observer) for kind, observer in kinds.items()}


def _cpu(observer: Observer | None) -> float:
    with st.open("memory:", observer=observer) as journal:
        journal.create_thread("t")
        start = time.process_time()
        for _ in range(APPENDS):
            journal.append("t", st.user("hello"))
        return (time.process_time() - start) / APPENDS * 1e6


CASES = [
    Case(
        name="observers",
        about="CPU time of an append to a memory store with an observer.",
        run=observers,
        metrics={"none": "us", "empty": "us", "logging": "us", "otel": "us"},
        only=("sessiontree memory",),
    )
]
