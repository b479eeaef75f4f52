"""What transcripts of other tools cost: a gigabyte of Claude Code's logs, a second look at them, lines added to a large log,
following files that do not change, and files of our own with many threads.

Run with ``python benchmarks/transcript_cost.py [megabytes] [--write]``. Everything runs on one core; the speed is in bytes for
each second of CPU time, because other programs use the machine too. ``--write`` puts the figures into
docs/reference/formats.md.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import sessiontree as st
from sessiontree.transfer.follow import Follower, Source
from sessiontree.transfer.formats import import_sessions

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "formats.md"
BEGIN, END = "<!-- measured costs -->", "<!-- end of the measured costs -->"
SAID = "the agent reads a file and finds <a bug> in the parser; café, 东京, then it runs every test again"
FILES = 5000
POLLS = 5


def text(source: random.Random, size: int) -> str:
    chunk = " ".join(source.choices(SAID.split(), k=60)) + " "
    return (chunk * (size // len(chunk) + 1))[:size]


def lines(source: random.Random, session: str, first: int = 0) -> Iterator[bytes]:
    """The lines of a session: prompts, answers with calls, results of some kilobytes."""
    number, parent = first, f"{session[:8]}-0000-4000-8000-{first:012x}"

    def line(kind: str, content: object) -> bytes:
        nonlocal number, parent
        number += 1
        name = f"{session[:8]}-0000-4000-8000-{number:012x}"
        role = {"role": kind, "content": content}
        extra = {"id": f"msg_{number}", "model": "claude-opus-4", "usage": {"input_tokens": 3, "output_tokens": 5}}
        wire = {
            "parentUuid": parent if number > 1 else None,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/ann/shop",
            "sessionId": session,
            "version": "2.0.1",
            "gitBranch": "main",
            "type": kind,
            "message": {**role, **(extra if kind == "assistant" else {})},
            "uuid": name,
            "timestamp": "2026-01-01T10:00:00.000Z",
        }
        parent = name
        return json.dumps(wire).encode() + b"\n"

    while True:
        yield line("user", text(source, source.randint(40, 1500)))
        for _ in range(source.randint(1, 5)):
            call = f"toolu_{number}"
            arguments = {"file_path": "/home/ann/shop/app.py", "why": text(source, 60)}
            yield line("assistant", [{"type": "tool_use", "id": call, "name": "Read", "input": arguments}])
            result = text(source, int(source.lognormvariate(7.5, 1.0)))
            yield line("user", [{"type": "tool_result", "tool_use_id": call, "content": result}])
        yield line("assistant", [{"type": "text", "text": text(source, source.randint(100, 3000))}])


def write_log(path: Path, source: random.Random, size: int, first: int = 0) -> int:
    """Append whole lines of about that size to a log, and return the number of lines."""
    session, written, count = path.stem, 0, 0
    with path.open("ab") as file:
        for line in lines(source, session, first):
            file.write(line)
            written += len(line)
            count += 1
            if written >= size:
                break
    return count


def name_of(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def timed(run: Callable[[], object]) -> tuple[float, float]:
    """The seconds by the clock and of CPU time."""
    clock, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - clock, time.process_time() - cpu


def whole_set(place: Path, megabytes: int) -> Iterator[str]:
    source = random.Random(7)
    folder = place / "projects" / "-home-ann-shop"
    folder.mkdir(parents=True)
    size = number = 0
    while size < megabytes * 1_000_000:
        number += 1
        wanted = min(int(source.lognormvariate(13.5, 1.2)), megabytes * 1_000_000 - size) + 1
        path = folder / f"{name_of(number)}.jsonl"
        write_log(path, source, wanted)
        size += path.stat().st_size
    with st.open(place / "all.db") as journal:
        clock, cpu = timed(lambda: import_sessions(journal, folder.parent, progress=lambda _done, _total: None))
        yield (
            f"| {size / 1e6:.0f} MB of Claude Code in {number} files | {size / 1e6 / cpu:.1f} MB per CPU second, "
            f"{size / 1e6 / clock:.1f} MB per second by the clock | 25 MB/s |"
        )
        runs = [timed(lambda: import_sessions(journal, folder.parent)) for _ in range(3)]
        yield f"| the same again, unchanged | {min(clock for clock, _ in runs):.2f} s | below 1 s |"


def grown_log(place: Path) -> Iterator[str]:
    source = random.Random(8)
    path = place / "grown" / f"{name_of(1)}.jsonl"
    path.parent.mkdir()
    count = write_log(path, source, 100_000_000)
    with st.open(place / "grown.db") as journal:
        _, whole = timed(lambda: import_sessions(journal, path))
        costs = []
        for size in (1_000, 100_000, 1_000_000, 10_000_000):
            count += write_log(path, source, size, count)
            _, cpu = timed(lambda: import_sessions(journal, path))
            costs.append(cpu)
    yield (
        f"| a log of 100 MB, {whole:.1f} s of CPU time, grows by 1 KB, 100 KB, 1 MB, 10 MB "
        f"| {', '.join(f'{cost:.2f}' for cost in costs)} s of CPU time | as what was added |"
    )


def idle_watch(place: Path) -> Iterator[str]:
    source = random.Random(9)
    folder = place / "watched"
    folder.mkdir()
    for number in range(FILES):
        write_log(folder / f"{name_of(number)}.jsonl", source, 2_000)
    with st.open(place / "watched.db", durability="process_crash") as journal:
        follower = Follower(journal, [Source("claude-code", folder)])
        list(follower.poll())
        list(follower.poll())
        _, cpu = timed(lambda: [list(follower.poll()) for _ in range(POLLS)])
    look = cpu / POLLS
    pause = max(1.0, look / 0.005)
    yield (
        f"| `--watch` over {FILES:,} files, nothing changes | a look takes {look * 1000:.0f} ms, one every {pause:.0f} s: "
        f"{look / (look + pause):.1%} of a core | below 1 % |"
    )


def native_sets(place: Path) -> Iterator[str]:
    seconds = []
    for number in (500, 1000, 2000):
        with st.open("memory:") as journal:
            journal.create_thread("root")
            journal.append_many("root", [st.user(f"message {one}") for one in range(200)])
            for fork in range(number):
                journal.fork("root", new_id=f"fork-{fork}")
                journal.append(f"fork-{fork}", st.user(f"only here {fork}"))
            written = place / f"{number}.jsonl"
            written.write_text(journal.export("root", format="jsonl", scope="tree"))
        with st.open("memory:") as journal:
            seconds.append(timed(partial(import_sessions, journal, written))[1])
    yield (
        f"| our own files with 500, 1,000 and 2,000 forks | {', '.join(f'{one:.2f}' for one in seconds)} s of CPU time "
        "| linear |"
    )


def main() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    numbers = [int(word) for word in sys.argv[1:] if word.isdecimal()]
    rows = ["| what | measured | goal |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        parts = (grown_log(place), idle_watch(place), native_sets(place), whole_set(place, (*numbers, 1000)[0]))
        for row in chain.from_iterable(parts):
            print(row, flush=True)
            rows.append(row)
    if "--write" in sys.argv:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(rows) + f"\n\n{END}{rest.partition(END)[2]}")


if __name__ == "__main__":
    main()
