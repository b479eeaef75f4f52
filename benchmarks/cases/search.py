"""Search in a store of many messages, and what the index costs."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import sessiontree as st
from benchmarks.case import Case, Sample, long_chat, seconds, timed
from benchmarks.system import CHAT


def search(system: Any, size: int) -> Iterator[Sample]:
    journal: st.Journal = system.journal
    first = seconds(lambda: journal.search("nothing")) * 1e3
    numbers = itertools.count(size // 3)
    while True:
        rare = timed(system, lambda: journal.search(f'"message {next(numbers)}"'), most=10) * 1e3
        common = timed(system, lambda: journal.search("parser"), most=3, budget=0.1) * 1e3
        journal.append(CHAT, st.user("one more message"))
        after = seconds(lambda: journal.search("nothing")) * 1e3
        yield {"phrase": rare, "common word": common, "after an append": after, "first search": first}


CASES = [
    Case(
        name="search",
        about="A phrase that stands in one message, a word that stands in all of them, a search right after an append, and the "
        "first search, which fills the index.",
        run=search,
        metrics={"phrase": "ms", "common word": "ms", "after an append": "ms", "first search": "ms"},
        sizes=(10_000,),
        size_means="messages",
        needs=("journal",),
        prepare=long_chat,
        is_appending=True,
        rounds=3,
    )
]
