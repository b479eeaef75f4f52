"""How each verb grows with the length of a conversation: flat, or linear where it returns everything."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import sessiontree as st
from benchmarks.case import Case, Sample, seconds, timed
from benchmarks.system import CHAT
from benchmarks.texts import text

SIZES = (1_000, 10_000, 100_000, 1_000_000)
TAIL = 100
POLICY = st.CompactionPolicy(window_tokens=200_000)

Verb = Callable[[st.Journal], object]
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


def flat(name: str, about: str, verb: Verb, most: int = 30) -> Case:
    """A case about a verb that must not depend on the length."""

    def run(system: Any, size: int) -> Iterator[Sample]:
        while True:
            yield {name: timed(system, verb, system.journal, most=most, budget=0.1) * 1e3}

    return Case(
        name=f"growth: {name}",
        about=about,
        run=run,
        metrics={name: "ms"},
        sizes=SIZES,
        size_means="messages",
        needs=("journal",),
        prepare=compacted_chat,
        growth="flat",
        is_quick=False,
        rounds=5,
    )


def first_read(system: Any, size: int) -> Iterator[Sample]:
    """A process that opens the store and reads the end of the conversation."""
    system.journal.close()
    while True:
        yield {"first read": seconds(lambda: _open_and_read(system)) * 1e3}


def _open_and_read(system: Any) -> None:
    with st.open(system.address()) as journal:
        journal.path(CHAT, limit=100)


def whole(system: Any, size: int) -> Iterator[Sample]:
    while True:
        yield {"full read": seconds(lambda: system.journal.path(CHAT)) * 1e3}


def _with_fields(journal: st.Journal) -> object:
    return journal.append(CHAT, st.user("x" * 200), fields={"custom": {"state": next(_numbers)}})


def _move_and_undo(journal: st.Journal) -> object:
    journal.rewind(CHAT, journal.path(CHAT, limit=10)[0].id)
    return journal.undo(CHAT)


def _linear(name: str, about: str, run: Callable[[Any, int], Iterator[Sample]], growth: Any) -> Case:
    return Case(
        name=f"growth: {name}",
        about=about,
        run=run,
        metrics={name: "ms"},
        sizes=SIZES,
        size_means="messages",
        needs=("journal",),
        prepare=compacted_chat,
        growth=growth,
        is_quick=False,
        rounds=3,
    )


CASES = [
    flat("append", "Append one message.", lambda journal: journal.append(CHAT, st.user("x" * 200))),
    flat("append + fields", "Append one message and change the thread's metadata in the same commit.", _with_fields),
    flat("last 100", "Read the last 100 messages.", lambda journal: journal.path(CHAT, limit=100)),
    flat("context", "Build the context after a compaction.", lambda journal: journal.context(CHAT)),
    flat("fork", "Fork at the leaf.", lambda journal: journal.fork(CHAT)),
    flat("undo", "Rewind by ten messages, and undo it.", _move_and_undo),
    flat("children", "The children of the leaf.", lambda journal: journal.children(CHAT, journal.thread(CHAT).leaf)),
    flat("labels", "All labels of the conversation.", lambda journal: journal.labels(CHAT)),
    flat("newest 20", "The newest 20 entries of all branches.", lambda j: j.entries(CHAT, newest_first=True, limit=20)),
    _linear("first read", "Open the store and read the last 100 messages.", first_read, "linear"),
    _linear("full read", "Read the whole path.", whole, "linear"),
]
