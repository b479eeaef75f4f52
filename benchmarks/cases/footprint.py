"""What a system takes: bytes written and kept, memory, and the time until a short program has stored its first message."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.case import WITHOUT_ADAPTERS, Case, Sample, long_chat, peak_megabytes, seconds
from benchmarks.runner import run_bounded, worker_command
from benchmarks.system import CHAT, System
from benchmarks.texts import text

_APPENDS = 10


def disk(system: System, size: int) -> Iterator[Sample]:
    raw = sum(len(text(number)) + 60 for number in range(size))
    while True:
        yield {"on disk": system.bytes_on_disk() / size, "to raw JSON": system.bytes_on_disk() / raw}


def written(system: System, size: int) -> Iterator[Sample]:
    while True:
        before = _written()
        for _ in range(_APPENDS):
            system.call(system.append, CHAT, text(size))
        yield {"written": (_written() - before) / _APPENDS}


def _written() -> int:
    """Bytes that this process passed to write calls."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["wchar"])


def memory(system: System, size: int) -> Iterator[Sample]:
    system.call(system.read, CHAT)
    while True:
        yield {"peak": peak_megabytes()}


def start(system: System, size: int) -> Iterator[Sample]:
    while True:
        folder = system.folder / "start"
        folder.mkdir()
        command = worker_command("once", *type(system).place(), str(folder))
        yield {"start": seconds(partial(run_bounded, command, 60)) * 1e3}
        shutil.rmtree(folder)


CASES = [
    Case(
        families=WITHOUT_ADAPTERS,
        name="bytes on disk",
        about="Bytes on disk for each message of 1 KB, with indexes and logs, and beside the same messages as JSON lines.",
        run=disk,
        metrics={"on disk": "B", "to raw JSON": "x"},
        sizes=(10_000,),
        size_means="messages",
        needs=("read", "fill"),
        prepare=long_chat,
        rounds=1,
    ),
    Case(
        families=WITHOUT_ADAPTERS,
        name="bytes written",
        about="Bytes that one append of 1 KB passes to write calls; a server's own writes are not seen.",
        run=written,
        metrics={"written": "B"},
        sizes=(10_000,),
        size_means="messages",
        prepare=long_chat,
        is_appending=True,
        rounds=2,
    ),
    Case(
        families=WITHOUT_ADAPTERS,
        name="memory",
        about="Peak memory of a process that reads a whole conversation, with the packages that it imports.",
        run=memory,
        metrics={"peak": "MB"},
        sizes=(10_000,),
        size_means="messages",
        needs=("read",),
        prepare=long_chat,
        rounds=1,
    ),
    Case(
        families=WITHOUT_ADAPTERS,
        name="start",
        about="From nothing to the first stored message: interpreter, imports, opening, one append, closing.",
        run=start,
        metrics={"start": "ms"},
        rounds=2,
    ),
]
