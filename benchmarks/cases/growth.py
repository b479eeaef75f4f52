"""How each verb grows with the length of a conversation: flat, or linear where it returns everything."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sessiontree as st
from benchmarks.case import Case, Growth, Sample, seconds, timed
from benchmarks.system import CHAT
from benchmarks.texts import text

TAIL = 100
POLICY = st.CompactionPolicy(window_tokens=200_000)
_numbers = itertools.count()


def compacted_chat(system: Any, size: int) -> None:
    """Prepare a conversation of short messages that was compacted, and went on for a while."""
    for start in range(0, size - TAIL, 5_000):
        count = min(5_000, size - TAIL - start)
        system.fill(CHAT, [text(number, 200) for number in range(start, start + count)])
    system.journal.compact(CHAT, lambda _: "notes of what was said", policy=POLICY, force=True)
    system.fill(CHAT, [text(number, 200) for number in range(TAIL)])
    for number in range(5):
        system.journal.label(CHAT, system.journal.thread(CHAT).leaf, f"label {number}")


def _with_fields(journal: st.Journal) -> object:
    return journal.append(CHAT, st.user("x" * 200), fields={"custom": {"state": next(_numbers)}})


def _move_and_undo(journal: st.Journal) -> object:
    journal.rewind(CHAT, journal.path(CHAT, limit=10)[0].id)
    return journal.undo(CHAT)


VERBS: dict[str, Callable[[st.Journal], object]] = {
    "append": lambda journal: journal.append(CHAT, st.user("x" * 200)),
    "append + fields": _with_fields,
    "last 100": lambda journal: journal.path(CHAT, limit=100),
    "context after a compaction": lambda journal: journal.context(CHAT),
    "fork": lambda journal: journal.fork(CHAT),
    "rewind and undo": _move_and_undo,
    "children": lambda journal: journal.children(CHAT, journal.thread(CHAT).leaf),
    "labels": lambda journal: journal.labels(CHAT),
    "newest 20": lambda journal: journal.entries(CHAT, newest_first=True, limit=20),
}
GROWTH: dict[str, Growth] = {**dict.fromkeys(VERBS, "flat"), "full read": "linear", "open and read 100": "linear"}


def growth(system: Any, size: int) -> Iterator[Sample]:
    journal: st.Journal = system.journal
    while True:
        sample = {name: timed(system, verb, journal, most=30, budget=0.1) * 1e3 for name, verb in VERBS.items()}
        sample["full read"] = seconds(lambda: journal.path(CHAT)) * 1e3
        if not system.is_in_memory:
            sample["open and read 100"] = seconds(partial(_open_and_read, system.address())) * 1e3
        yield sample


def _open_and_read(address: str) -> None:
    """What a process does that shows the end of a conversation."""
    with st.open(address) as journal:
        journal.path(CHAT, limit=100)


CASES = [
    Case(
        name="growth",
        about="Each verb on a conversation of some length that was compacted near its end.",
        run=growth,
        metrics=dict.fromkeys(GROWTH, "ms"),
        sizes=(1_000, 10_000, 100_000, 1_000_000),
        size_means="messages",
        needs=("journal",),
        prepare=compacted_chat,
        growth=GROWTH,
        is_quick=False,
        rounds=3,
    )
]
