"""What the model sees, what a turn costs end to end, and what a compaction costs without its model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import sessiontree as st
from benchmarks.case import Case, Sample, long_chat, seconds, timed
from benchmarks.system import CHAT
from benchmarks.texts import TURN, text
from sessiontree.compaction.plan import plan

PROVIDER_SECONDS = 2.0
POLICY = st.CompactionPolicy(window_tokens=200_000)


def context(system: Any, size: int) -> Iterator[Sample]:
    while True:
        yield {"context": timed(system, system.journal.context, CHAT, most=5, budget=0.1) * 1e3}


def turn(system: Any, size: int) -> Iterator[Sample]:
    """A lease, its markers, six entries and the context, as around one call of a provider with three tools."""
    journal: st.Journal = system.journal
    messages = [text(number, length) for number, (_, length) in enumerate(TURN)]
    journal.create_thread("turns", title="turns")
    while True:
        taken = timed(system, one_turn, journal, messages, most=5)
        yield {"turn": taken * 1e3, "of a call of 2 s": taken / PROVIDER_SECONDS * 100}


def one_turn(journal: st.Journal, messages: list[str]) -> None:
    question, thought, *results, answer = messages
    calls = [st.call(f"c{number}", "read_file", '{"path": "a.py"}') for number in range(len(results))]
    with journal.turn("turns", owner="worker") as running:
        running.append(st.user(question))
        journal.context("turns")
        running.append(st.assistant(thought, calls=calls))
        for call, result in zip(calls, results, strict=True):
            running.append(st.tool_result(call.id, result))
        running.append(st.assistant(answer))
    journal.reset("turns")


def compaction(system: Any, size: int) -> Iterator[Sample]:
    journal: st.Journal = system.journal
    for number in range(100_000):
        name = f"long-{number}"
        system.fill(name, [text(n, 400) for n in range(size)])
        path = journal.path(name)
        yield {
            "compact": seconds(partial(journal.compact, name, lambda _: "notes", policy=POLICY)) * 1e3,
            "plan": seconds(partial(plan, path, POLICY)) * 1e3,
            "context after": seconds(partial(journal.context, name)) * 1e3,
        }


def held_loop(system: Any, size: int) -> Iterator[Sample]:
    """The longest time that one callback held the event loop: in the first append of the process, and in later ones."""
    first = system.loop.run(_longest(system, 1))
    while True:
        yield {"longest": system.loop.run(_longest(system, 50)), "first append": first}


async def _longest(system: Any, appends: int) -> float:
    """Appends with a clock around each callback of the loop; milliseconds of CPU, as the machine may do other things."""
    longest, run = 0.0, asyncio.Handle._run  # noqa: SLF001  there is no public place to measure a callback

    def timed_run(handle: asyncio.Handle) -> None:
        nonlocal longest
        start = time.thread_time()
        run(handle)
        longest = max(longest, time.thread_time() - start)

    asyncio.Handle._run = timed_run  # type: ignore[method-assign,assignment]  # noqa: SLF001
    try:
        for number in range(appends):
            await system.append(CHAT, text(number))
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]  # noqa: SLF001
    return longest * 1e3


CASES = [
    Case(
        name="context",
        about="Build the context of a conversation that was never compacted.",
        run=context,
        metrics={"context": "ms"},
        sizes=(10_000,),
        size_means="messages",
        needs=("journal",),
        prepare=long_chat,
    ),
    Case(
        name="turn",
        about="A turn end to end, without the provider: lease, markers, six entries with results of 20 KB, the context; and how "
        "much that adds to a provider that answers in 2 seconds, which is quick.",
        run=turn,
        metrics={"turn": "ms", "of a call of 2 s": "%"},
        needs=("journal",),
    ),
    Case(
        name="compaction",
        about="Compact a conversation with a summariser that answers at once; its plan alone; the context after it.",
        run=compaction,
        metrics={"compact": "ms", "plan": "ms", "context after": "ms"},
        sizes=(1_000, 10_000),
        size_means="messages",
        needs=("journal",),
        rounds=3,
    ),
    Case(
        name="event loop",
        about="How long an append holds the event loop at most, in CPU time of the loop's thread.",
        run=held_loop,
        metrics={"longest": "ms", "first append": "ms"},
        needs=("append",),
        is_async_only=True,
    ),
]
