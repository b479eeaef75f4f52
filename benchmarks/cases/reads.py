"""Read a conversation: its end, all of it, a fork of it, a list of many."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.case import WITHOUT_ADAPTERS, Case, Sample, long_chat, many_chats, seconds, timed
from benchmarks.system import CHAT, System


def last(system: System, size: int) -> Iterator[Sample]:
    while True:
        yield {"last 100": timed(system, system.last, CHAT, 100) * 1e3}


def read(system: System, size: int) -> Iterator[Sample]:
    while True:
        yield {"read": timed(system, system.read, CHAT, most=3, budget=0.1) * 1e3}


def cold(system: System, size: int) -> Iterator[Sample]:
    """The page cache drops the files of the store before each sample; those of a server stay."""
    while True:
        os.sync()
        for path in system.folder.rglob("*"):
            if path.is_file():
                with path.open("rb") as file:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        yield {"open and read": seconds(partial(_open_and_read, type(system), system.folder)) * 1e3}


def _open_and_read(kind: type[System], folder: Path) -> None:
    opened = kind(folder)
    opened.call(opened.last, CHAT, 100)
    opened.call(opened.close)


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
        families=WITHOUT_ADAPTERS,
        name="cold open",
        about="Open a store whose files are not in memory, read the last 100 messages, close it.",
        run=cold,
        metrics={"open and read": "ms"},
        sizes=(10_000,),
        size_means="messages",
        needs=("last",),
        needs_files=True,
        prepare=long_chat,
        rounds=3,
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
