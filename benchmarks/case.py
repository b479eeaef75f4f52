"""What is done with a system: one case a generator, in a module of ``cases/``.

The code before the first ``yield`` prepares; each ``yield`` gives one sample, which is a number for each metric. The runner
asks the systems in turn for one sample each, so that a slow moment of the machine falls on all of them. The first sample
warms up and is dropped.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from benchmarks.system import CHAT, Family, System, load_all
from benchmarks.texts import texts

Sample = dict[str, float]
Growth = Literal["flat", "linear"]
WITHOUT_ADAPTERS: tuple[Family, ...] = ("ours", "floor", "peer")
"""For cases in which an adapter adds nothing to what the store beneath it shows."""


class Case(Struct, frozen=True, kw_only=True):
    """One case. ``metrics`` names each metric and its unit; the first one is plotted.

    ``prepare`` fills the store of a size once; cases with the same one share that store. ``growth`` is how a metric
    may grow with the size. ``needs``, ``only`` and ``families`` leave systems out.
    """

    name: str
    about: str
    run: Callable[[Any, int], Iterator[Sample]]
    metrics: Mapping[str, str]
    sizes: tuple[int, ...] = (0,)
    size_means: str = ""
    needs: tuple[str, ...] = ("append",)
    only: tuple[str, ...] = ()
    families: tuple[Family, ...] = (*WITHOUT_ADAPTERS, "adapter")
    prepare: Callable[[System, int], None] | None = None
    growth: Mapping[str, Growth] = {}
    is_higher_better: bool = False
    is_async_only: bool = False
    needs_files: bool = False
    """Leave out what keeps its data in memory or on a server."""
    is_appending: bool = False
    """Appends to the store that ``prepare`` filled, so it comes after the cases that only read there."""
    is_quick: bool = True
    """Part of ``make bench-quick``, with its smaller sizes."""
    rounds: int = 7

    def takes(self, system: type[System], size: int) -> bool:
        """Say whether the case is measured on a system at a size."""
        if system.family not in self.families or (self.only and system.name not in self.only):
            return False
        if self.is_async_only and not inspect.iscoroutinefunction(system.append):
            return False
        if self.needs_files and (system.is_in_memory or system.is_remote):
            return False
        most = {
            "messages": system.most_messages,
            "conversations": system.most_chats,
            "processes": system.most_processes,
        }.get(self.size_means, size)
        return system.supports(self.needs) and size <= most


def cases() -> dict[str, Case]:
    """Every case by its name."""
    return {case.name: case for case in load_all("cases", "CASES")}


def long_chat(system: System, size: int) -> None:
    """Prepare one conversation of that many messages of 1 KB."""
    for start in range(0, size, 5_000):
        system.call(system.fill, CHAT, texts(min(5_000, size - start), start))


def many_chats(system: System, size: int) -> None:
    """Prepare that many conversations of one message each."""
    for number, text in enumerate(texts(size)):
        system.call(system.fill, f"chat-{number}", [text])


def peak_megabytes() -> float:
    """The peak of this program alone: ``getrusage`` counts what the process was before it ran this program, too."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def timed(
    system: System, function: Callable[..., Any], *arguments: Any, most: int = 200, budget: float = 0.25
) -> float:
    """Seconds per call, over as many calls as fit into the budget. Coroutines are awaited one after the other."""

    async def in_the_loop() -> float:
        start, calls = time.perf_counter(), 0
        while calls < most and time.perf_counter() - start < budget:
            await function(*arguments)
            calls += 1
        return (time.perf_counter() - start) / calls

    if inspect.iscoroutinefunction(function):
        return system.loop.run(in_the_loop())
    start, calls = time.perf_counter(), 0
    while calls < most and time.perf_counter() - start < budget:
        function(*arguments)
        calls += 1
    return (time.perf_counter() - start) / calls
