"""Many writers at once: as tasks of one event loop, as threads, and as processes."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import queue
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from msgspec import Struct

from benchmarks.system import System, opener

Job = tuple[str, str]
"""A chat and the text to append to it."""

_THREADS = 64


class Burst(Struct, kw_only=True):
    """What many writers did: how long each append took, and how long they took together."""

    latencies: list[float] = []
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        return len(self.latencies) / self.seconds


def burst(system: System, writers: Iterable[list[Job]], budget: float) -> Burst:
    """Let each writer append its jobs in order, and stop all of them when the budget is spent."""
    if inspect.iscoroutinefunction(system.append):
        return system.loop.run(_tasks(system, list(writers), budget))
    return _threads(system, list(writers), budget)


async def _tasks(system: System, writers: list[list[Job]], budget: float) -> Burst:
    done = Burst()
    start = time.perf_counter()

    async def write(jobs: list[Job]) -> None:
        for chat, text in jobs:
            begin = time.perf_counter()
            if begin - start > budget:
                return
            await system.append(chat, text)
            done.latencies.append(time.perf_counter() - begin)

    await asyncio.gather(*(write(jobs) for jobs in writers))
    done.seconds = time.perf_counter() - start
    return done


def _threads(system: System, writers: list[list[Job]], budget: float) -> Burst:
    """Threads take one writer after the other, because a thousand of them at once measure the scheduler."""
    done, waiting, failed = Burst(), queue.SimpleQueue[list[Job]](), list[BaseException]()
    for jobs in writers:
        waiting.put(jobs)

    def work() -> None:
        try:
            while time.perf_counter() - start <= budget:
                for chat, text in waiting.get_nowait():
                    begin = time.perf_counter()
                    if begin - start > budget:
                        return
                    system.append(chat, text)
                    done.latencies.append(time.perf_counter() - begin)
        except queue.Empty:
            return
        except BaseException as error:  # noqa: BLE001  raised by the caller of all threads
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(min(_THREADS, len(writers)))]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.seconds = time.perf_counter() - start
    if failed:
        raise failed[0]
    return done


def _process(place: tuple[str, str], folder: str, chat: str, *, seconds: float, start: Barrier, counts: Any) -> None:
    """Append as long as the parent says, once for each meeting at the barrier."""
    system = opener(*place)(Path(folder))
    for _ in range(3):
        system.call(system.append, chat, "warm up")
    while True:
        start.wait()
        count, end = 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            system.call(system.append, chat, "x" * 1_000)
            count += 1
        counts.put(count)


@contextmanager
def processes(system: System, number: int, seconds: float) -> Iterator[Any]:
    """Start processes that write to the store of a system; call the result for the counts of one burst."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([type(system).__module__, __name__])  # 64 processes that import take half a minute
    start, counts = context.Barrier(number + 1), context.Queue()
    crew = [
        context.Process(
            target=_process,
            args=(type(system).place(), str(system.folder), f"chat-{n}"),
            kwargs={"seconds": seconds, "start": start, "counts": counts},
            daemon=True,
        )
        for n in range(number)
    ]
    for process in crew:
        process.start()

    def one_burst() -> list[int]:
        start.wait(60)
        return [counts.get(timeout=60) for _ in range(number)]

    try:
        yield one_burst
    finally:
        for process in crew:
            process.kill()
            process.join()
