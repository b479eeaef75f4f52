"""How each verb grows with the length of a conversation: flat, or linear where it returns everything."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sessiontree as st
from benchmarks.case import Case, Growth, Sample, peak_megabytes, seconds, timed
from benchmarks.system import CHAT
from benchmarks.texts import text
from sessiontree.model import Compaction

TAIL = 100
POLICY = st.CompactionPolicy(window_tokens=8_000)
_numbers = itertools.count()


def compacted_chat(system: Any, size: int) -> None:
    """Prepare a conversation of short messages that was compacted, and went on for a while.

    The compaction is appended as it would be stored: summarising a million messages at once takes a minute.
    """
    for start in range(0, size - TAIL, 5_000):
        count = min(5_000, size - TAIL - start)
        system.fill(CHAT, [text(number, 200) for number in range(start, start + count)])
    last = system.journal.thread(CHAT).leaf
    system.journal.append(
        CHAT, Compaction(summary="notes of what was said", first_kept_entry_id=last, carried_entry_ids=(last,))
    )
    system.fill(CHAT, [text(number, 200) for number in range(TAIL)])
    for number in range(5):
        system.journal.label(CHAT, system.journal.thread(CHAT).leaf, f"label {number}")


def _with_fields(journal: st.Journal) -> object:
    return journal.append(CHAT, st.user("x" * 200), fields={"custom": {"state": next(_numbers)}})


def _move_and_undo(journal: st.Journal) -> object:
    journal.rewind(CHAT, journal.path(CHAT, limit=10)[0].id)
    return journal.undo(CHAT)


def _fork_and_compact(journal: st.Journal) -> object:
    return journal.compact(journal.fork(CHAT).id, lambda _: "notes", policy=POLICY, force=True)


VERBS: dict[str, Callable[[st.Journal], object]] = {
    "append": lambda journal: journal.append(CHAT, st.user("x" * 200)),
    "append + fields": _with_fields,
    "last 100": lambda journal: journal.path(CHAT, limit=100),
    "context after a compaction": lambda journal: journal.context(CHAT),
    "fork and compact again": _fork_and_compact,
    "fork": lambda journal: journal.fork(CHAT),
    "rewind and undo": _move_and_undo,
    "children": lambda journal: journal.children(CHAT, journal.thread(CHAT).leaf),
    "labels": lambda journal: journal.labels(CHAT),
    "newest 20": lambda journal: journal.entries(CHAT, newest_first=True, limit=20),
}
LINEAR: tuple[str, ...] = ("full read", "open and read 100", "peak memory")
"""Memory, because JSONL and the memory store keep an index there; of SQLite there is a goal."""
GROWTH: dict[str, Growth] = {**dict.fromkeys(VERBS, "flat"), **dict.fromkeys(LINEAR, "linear")}


def growth(system: Any, size: int) -> Iterator[Sample]:
    journal: st.Journal = system.journal
    peak = 0.0
    while True:
        sample = {name: timed(system, verb, journal, most=30, budget=0.1) * 1e3 for name, verb in VERBS.items()}
        peak = peak or peak_megabytes()  # before the first full read, which needs room for everything
        sample["peak memory"] = peak
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
        metrics={**dict.fromkeys(GROWTH, "ms"), "peak memory": "MB"},
        sizes=(1_000, 10_000, 100_000, 1_000_000),
        size_means="messages",
        needs=("journal",),
        prepare=compacted_chat,
        growth=GROWTH,
        is_quick=False,
        rounds=2,
    )
]
