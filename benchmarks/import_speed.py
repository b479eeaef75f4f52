"""How fast sessions of other programs come in: a set of 200 MB into SQLite, on one core, with a progress bar.

Run with ``python benchmarks/import_speed.py [megabytes]``. The set has the shape of real ones: sessions of many sizes,
short messages, tool results of some kilobytes now and then. The goal is 25 MB/s.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sessiontree as st
from sessiontree.transfer.formats import export_sessions, import_sessions

GOAL = 25.0
WORDS = [
    "the",
    "agent",
    "reads",
    "a",
    "file",
    "and",
    "finds",
    "<a",
    "bug>",
    "in",
    "parser",
    "&",
    "lexer;",
    "café,",
    "东京,",
    "then",
    "it",
    "runs",
    "every",
    "test",
    "again",
]


def text(source: random.Random, size: int) -> str:
    chunk = " ".join(source.choices(WORDS, k=60))
    return (chunk * (size // len(chunk) + 1))[:size]


def turn(source: random.Random, number: int) -> list[st.Payload]:
    """A question, a few tool calls with results, an answer."""
    said: list[st.Payload] = [st.user(text(source, source.randint(40, 1500)))]
    for call in range(source.randint(0, 4)):
        name = f"call_{number}_{call}"
        arguments = '{"path":"' + text(source, 60).replace('"', "") + '"}'
        said.append(st.assistant(calls=[st.call(name, "read_file", arguments)]))
        said.append(st.tool_result(name, text(source, int(source.lognormvariate(7.5, 1.0)))))
    said.append(st.assistant(text(source, source.randint(100, 3000))))
    return said


def make_set(folder: Path, name: str, megabytes: int) -> Path:
    """A store of another program with about that much in it, written by our own exporter."""
    source = random.Random(7)
    with st.open("memory:") as journal:
        size = 0
        while size < megabytes * 1_000_000 * _share(name):
            thread = journal.create_thread(title="benchmark")
            for number in range(int(source.lognormvariate(3.0, 1.0)) + 1):
                entries = journal.append_many(thread.id, turn(source, number))
                size += sum(len(st.model.Message.text.fget(entry.message)) + 200 for entry in entries)  # type: ignore[union-attr,attr-defined]
        export_sessions(journal, folder / name, format=name)
    return folder / name


def _share(name: str) -> float:
    return {"floret": 0.134, "picoclaw": 0.33, "ggcode": 0.336, "pi": 0.33}[name]


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def bar(name: str) -> Callable[[int, int], None]:
    last = 0.0

    def show(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > 0.2 or done == total:
            last = now
            width = 40 * done // max(total, 1)
            print(
                f"\r{name:<10} [{'#' * width:<40}] {done / 1e6:6.1f} of {total / 1e6:.1f} MB", end="", file=sys.stderr
            )

    return show


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    names = ("floret", "picoclaw", "ggcode", "pi")
    total_bytes = total_seconds = total_cpu = 0.0
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            source = make_set(Path(place), name, megabytes // len(names))
            size = bytes_in(source)
            with st.open(Path(place) / f"{name}.db") as journal:
                start, cpu = time.perf_counter(), time.process_time()
                report = import_sessions(journal, source, progress=bar(name))
                taken, cpu = time.perf_counter() - start, time.process_time() - cpu
            print(file=sys.stderr)
            print(
                f"{name:<10} {size / 1e6:7.1f} MB, {len(report.threads):5} sessions, {report.entries_added:7} records: "
                f"{size / 1e6 / taken:6.1f} MB/s, {size / 1e6 / cpu:6.1f} MB a second of CPU time"
            )
            total_bytes += size
            total_seconds += taken
            total_cpu += cpu
    speed = total_bytes / 1e6 / total_seconds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{'ok  ' if speed >= GOAL else 'MISS'}  all {total_bytes / 1e6:.0f} MB: {speed:.1f} MB/s   goal >= {GOAL}")
    print(
        f"      {total_bytes / 1e6 / total_cpu:.1f} MB a second of CPU time: what a core does that has nothing else to do"
    )
    print(f"      peak memory of the process, set-up included: {peak:.0f} MB")


if __name__ == "__main__":
    main()
