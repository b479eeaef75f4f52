"""A long run of one process with many tasks: memory, descriptors, files, CPU and latency must stay flat.

``make soak`` runs an hour; ``SOAK_SECONDS=900`` for less. The first third warms up. After it, the line through the samples of
each figure may not rise by more than its allowance until the end.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import sessiontree as st
from torture import page, servers
from torture.rounds import new_folder, url_of

_TASKS = 32
_TURNS = 40
_SAMPLES = 120
_PAUSE_SECONDS = 0.02


class Sample(NamedTuple):
    """The figures at one moment."""

    seconds: float
    memory: float
    descriptors: float
    files: float
    cpu: float
    latency: float


ALLOWED = {"memory": 24e6, "descriptors": 4.0, "files": 8e6}
"""How much a figure may rise: bytes of memory, descriptors, bytes of files (of PostgreSQL: its tables and indexes)."""
ALLOWED_PART = {"cpu": 0.25, "latency": 0.5}
"""How much a figure may rise, as a part of its mean: seconds of CPU for each append, and the latency.

The latency is counted in plain writes with a sync, made by a thread at the same time: other programs on the machine slow
down both. Of either the fastest tenth counts.
"""


class Soak:
    """Chats that are created, grow, are searched, compacted and deleted again, so that the store keeps its size."""

    def __init__(self, journal: st.AsyncJournal, folder: Path, seconds: float, seed: int) -> None:
        self._journal = journal
        self._folder = folder
        self._source = random.Random(seed)
        self._begin = time.monotonic()
        self._end = self._begin + seconds
        self._latencies: list[float] = []
        self._plain: list[float] = []
        self.acknowledged = 0
        self.lost: list[str] = []
        self.samples: list[Sample] = []

    async def run(self) -> None:
        await asyncio.gather(self._watch(), self._write_plainly(), *(self._chat(number) for number in range(_TASKS)))

    async def _chat(self, number: int) -> None:
        count = 0
        while time.monotonic() < self._end:
            count += 1
            thread = f"chat {number} {count}"
            await self._journal.create_thread(thread)
            kept = [await self._say(thread) for _ in range(_TURNS)]
            match self._source.randrange(4):
                case 0:
                    await self._journal.compact(thread, force=True)
                case 1:
                    await self._journal.search(f"word{number}", limit=3)
                case 2:
                    await self._journal.fork(thread, new_id=f"{thread} fork")
                    await self._journal.delete_thread(f"{thread} fork")
                case _:
                    await self._journal.rewind(thread, kept[0])
                    await self._journal.undo(thread)
            stored = {entry.id for entry in await self._journal.entries(thread)}
            self.lost += [entry for entry in kept if entry not in stored]
            await self._journal.delete_thread(thread)

    async def _say(self, thread: str) -> str:
        text = f"word{thread.split()[1]} " * self._source.randint(5, 120)
        begin = time.monotonic()
        entry = await self._journal.append(thread, st.user(text))
        self._latencies.append(time.monotonic() - begin)
        self.acknowledged += 1
        await asyncio.sleep(_PAUSE_SECONDS)
        return entry.id

    async def _write_plainly(self) -> None:
        with tempfile.TemporaryFile() as file:
            while time.monotonic() < self._end:
                begin = time.monotonic()
                await asyncio.to_thread(_write_and_sync, file.fileno())
                self._plain.append(time.monotonic() - begin)
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _watch(self) -> None:
        interval = (self._end - self._begin) / _SAMPLES
        cpu = time.process_time()
        while time.monotonic() < self._end:
            await asyncio.sleep(interval)
            gc.collect()
            latencies, self._latencies = self._latencies, []
            plain, self._plain = self._plain, []
            cpu_before, cpu = cpu, time.process_time()
            files = [path for path in self._folder.rglob("*") if path.is_file()]
            self.samples.append(
                Sample(
                    time.monotonic() - self._begin,
                    _memory(),
                    len(os.listdir("/proc/self/fd")),  # noqa: PTH208  only their number is needed
                    sum(path.stat().st_size for path in files if path.exists()),
                    (cpu - cpu_before) / max(1, len(latencies)),
                    _fastest(latencies) / _fastest(plain) if latencies and plain else 0.0,
                )
            )


def _write_and_sync(file: int) -> None:
    os.pwrite(file, b"x" * 1024, 0)
    os.fdatasync(file)


def _fastest(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 10]


def _memory() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


class Slope(NamedTuple):
    """The line through the samples of one figure after the warm-up."""

    name: str
    first: float
    last: float
    allowed: float

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "RISES"
        return f"| {self.name} | {self.first:.4g} | {self.last:.4g} | {self.allowed:.4g} | {verdict} |"

    @property
    def is_flat(self) -> bool:
        return self.last - self.first <= self.allowed


def slopes(samples: list[Sample]) -> list[Slope]:
    """Fit a line through each figure; the first third of the time does not count."""
    steady = [sample for sample in samples if sample.seconds >= samples[-1].seconds / 3]
    seconds = [sample.seconds for sample in steady]
    found = []
    for name in (*ALLOWED, *ALLOWED_PART):
        figures = [float(getattr(sample, name)) for sample in steady]
        line = statistics.linear_regression(seconds, figures)
        first, last = (line.intercept + line.slope * second for second in (seconds[0], seconds[-1]))
        allowed = ALLOWED.get(name) or ALLOWED_PART[name] * statistics.mean(figures)
        found.append(Slope(name, first, last, allowed))
    return found


async def soak(store: str, seconds: float, seed: int) -> tuple[Soak, list[str]]:
    """Soak one store; return what came of it, and the findings of its check."""
    with new_folder() as name:
        folder, url = Path(name), url_of(store, Path(name))
        if store == "postgres":
            folder, url = servers.server().folder / "base", servers.new_store()
        async with st.open_async(url) as journal:
            soaked = Soak(journal, folder, seconds, seed)
            await soaked.run()
            return soaked, [finding.problem for finding in await journal.check()]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=3600)
    options.add_argument("--store", choices=["sqlite", "jsonl", "postgres"], default="sqlite")
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    chosen = options.parse_args()
    print(f"{chosen.store}, {chosen.seconds:g} seconds, seed {chosen.seed}", flush=True)
    soaked, findings = asyncio.run(soak(chosen.store, chosen.seconds, chosen.seed))
    lines = slopes(soaked.samples)
    run = f"{chosen.store}, {chosen.seconds:,.0f} seconds, seed {chosen.seed}"
    found = f"{soaked.acknowledged:,} acknowledged, {len(soaked.lost)} lost, {len(findings)} findings"
    text = "\n".join(
        [
            f"{run}: {found}.\n",
            "| figure | after a third | at the end | may rise by | |",
            "|---|---|---|---|---|",
            *map(str, lines),
        ]
    )
    print(text)
    page.write_part(f"make soak STORE={chosen.store}", text)
    sys.exit(bool(soaked.lost or findings or not all(line.is_flat for line in lines)))


if __name__ == "__main__":
    main()
