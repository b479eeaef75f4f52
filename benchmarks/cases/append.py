"""One caller appends to a conversation that has some length already."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.case import WITHOUT_ADAPTERS, Case, Sample, long_chat, timed
from benchmarks.system import CHAT, System
from benchmarks.texts import TURN, text


def append(system: System, size: int) -> Iterator[Sample]:
    while True:
        yield {"append": timed(system, system.append, CHAT, text(size)) * 1e6}


def trace(system: System, size: int) -> Iterator[Sample]:
    messages = [text(number, length) for number, (_, length) in enumerate(TURN)]
    while True:
        yield {"turn": sum(timed(system, system.append, CHAT, message, most=3) for message in messages) * 1e3}


CASES = [
    Case(
        name="append",
        about="One caller appends a message of 1 KB and waits until it is stored.",
        run=append,
        metrics={"append": "us"},
        sizes=(100, 10_000, 100_000),
        size_means="messages",
        prepare=long_chat,
        is_appending=True,
        growth={"append": "flat"},
    ),
    Case(
        families=WITHOUT_ADAPTERS,
        name="agent turn",
        about="One caller appends a coding agent's turn of six messages, with tool results of 20 KB, one after the other.",
        run=trace,
        metrics={"turn": "ms"},
    ),
]
