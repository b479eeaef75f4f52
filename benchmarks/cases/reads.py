"""Read a conversation: its end, all of it, a fork of it, a list of many."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.case import Case, Sample, long_chat, many_chats, timed
from benchmarks.system import CHAT, System


def last(system: System, size: int) -> Iterator[Sample]:
    while True:
        yield {"last 100": timed(system, system.last, CHAT, 100, most=50) * 1e3}


def read(system: System, size: int) -> Iterator[Sample]:
    while True:
        yield {"read": timed(system, system.read, CHAT, most=3, budget=0.1) * 1e3}


def fork(system: System, size: int) -> Iterator[Sample]:
    while True:
        yield {"fork": timed(system, system.fork, CHAT, most=20) * 1e3}


def list_chats(system: System, size: int) -> Iterator[Sample]:
    while True:
        yield {"list 50": timed(system, system.list_chats, 50, most=20) * 1e3}


CASES = [
    Case(
        name="last 100",
        about="Read the last 100 messages of a long conversation.",
        run=last,
        metrics={"last 100": "ms"},
        sizes=(10_000,),
        size_means="messages",
        needs=("last",),
        prepare=long_chat,
    ),
    Case(
        name="full read",
        about="Read a whole conversation.",
        run=read,
        metrics={"read": "ms"},
        sizes=(10_000,),
        size_means="messages",
        needs=("read",),
        prepare=long_chat,
    ),
    Case(
        name="fork",
        about="Fork a conversation in its middle.",
        run=fork,
        metrics={"fork": "ms"},
        sizes=(10_000,),
        size_means="messages",
        needs=("fork",),
        prepare=long_chat,
    ),
    Case(
        name="list 50",
        about="List 50 conversations of many, the last changed first where that can be asked for.",
        run=list_chats,
        metrics={"list 50": "ms"},
        sizes=(1_000, 100_000),
        size_means="conversations",
        needs=("list_chats",),
        prepare=many_chats,
    ),
]
