"""What the verbs that others build on cost in a thread of 100 and of 100,000 entries, alternating within one run.

Run with ``python benchmarks/verbs_cost.py``, or with some of ``memory jsonl sqlite postgres``; ``SESSIONTREE_TEST_DSN`` names
a server, otherwise one is started. Times are the lower quartile in microseconds.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import sessiontree as st
from postgres_server import new_database

SIZES = {"short": 100, "long": 100_000}
MOVES = {"short": 100, "long": 10_000}
ROUNDS = 15
CALLS = 20
TEXT = "It was the best of times, it was the worst of times. " * 4
FLAT = 2.0

Verb = Callable[[st.Journal, str], object]
_numbers = itertools.count()


def append_and_update(journal: st.Journal, thread: str) -> object:
    return journal.append(thread, st.assistant(TEXT), fields={"custom": {"state": next(_numbers)}})


def move_and_undo(journal: st.Journal, thread: str) -> object:
    journal.move_leaf(thread, f"{thread}-50")
    return journal.undo(thread)


VERBS: dict[str, Verb] = {
    "children": lambda journal, thread: journal.children(thread, f"{thread}-50"),
    "labels": lambda journal, thread: journal.labels(thread),
    "entry": lambda journal, thread: journal.entry(thread, f"{thread}-50"),
    "find_entries, without a thread": lambda journal, thread: journal.find_entries([f"{thread}-50"]),
    "find_entries, 20 ids": lambda journal, thread: journal.find_entries(
        [f"{thread}-{number}" for number in range(40, 60)], thread_id=thread
    ),
    "entries(newest_first, limit=20)": lambda journal, thread: journal.entries(thread, newest_first=True, limit=20),
    "path(limit=20, types=user)": lambda journal, thread: journal.path(thread, limit=20, types=["user_message"]),
    "last_entries": lambda journal, thread: journal.last_entries([thread]),
    "move_leaf + undo": move_and_undo,
}
APPENDS: dict[str, Verb] = {
    "append": lambda journal, thread: journal.append(thread, st.assistant(TEXT)),
    "append + fields": append_and_update,
}


def fill(journal: st.Journal, thread: str) -> None:
    journal.create_thread(thread, title=thread)
    size = SIZES[thread]
    for start in range(0, size, 5_000):
        numbers = range(start, min(start + 5_000, size))
        journal.append_many(
            thread,
            [
                st.NewEntry(content=st.user(TEXT) if number % 2 == 0 else st.assistant(TEXT), id=f"{thread}-{number}")
                for number in numbers
            ],
        )
    for number in range(5):
        journal.label(thread, f"{thread}-{number}", f"label {number}")
    for _ in range(MOVES[thread] // 2):
        move_and_undo(journal, thread)


def taken(journal: st.Journal, thread: str, verb: Verb) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        verb(journal, thread)
    return (time.perf_counter() - start) / CALLS * 1e6


def measure(journal: st.Journal, verbs: dict[str, Verb]) -> dict[tuple[str, str], float]:
    times: dict[tuple[str, str], list[float]] = {(name, thread): [] for name in verbs for thread in SIZES}
    for _ in range(ROUNDS):
        for (name, thread), values in times.items():
            values.append(taken(journal, thread, verbs[name]))
    return {place: statistics.quantiles(values, n=4)[0] for place, values in times.items()}


def opened(names: list[str], folder: Path, stack: ExitStack) -> Iterator[tuple[str, st.Journal]]:
    addresses: dict[str, Callable[[], str]] = {
        "memory": lambda: "memory:",
        "jsonl": lambda: f"jsonl:///{folder / 'trees'}",
        "sqlite": lambda: str(folder / "journal.db"),
        "postgres": new_database,
    }
    for name in names or list(addresses):
        yield name, stack.enter_context(st.open(addresses[name]()))


def main() -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        for store, journal in opened(sys.argv[1:], Path(name), stack):
            for thread in SIZES:
                fill(journal, thread)
            reads, appends = measure(journal, VERBS), measure(journal, APPENDS)
            for verb in VERBS:
                short, long = reads[verb, "short"], reads[verb, "long"]
                met = "flat" if long <= FLAT * short else "MISS"
                print(f"{store:<12} {verb:<34} {short:10.0f} {long:10.0f}   x{long / short:5.2f}  {met}")
            for thread in SIZES:
                plain, both = appends["append", thread], appends["append + fields", thread]
                met = "ok" if both <= 1.3 * plain else "MISS"
                print(
                    f"{store:<12} append, + fields ({thread:<5})            {plain:10.0f} {both:10.0f}   x{both / plain:5.2f}  {met}"
                )


if __name__ == "__main__":
    main()
