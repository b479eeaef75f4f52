"""Jobs beside their caller: in threads and in tasks, one interface."""

import asyncio
import threading
import time

from sessiontree.journal._background import Background
from sessiontree.journal._background_async import AsyncBackground


def test_a_repeated_job_runs_until_it_returns_false() -> None:
    background, runs = Background(), []

    def job() -> bool:
        runs.append(1)
        return len(runs) < 3

    background.every(0.001, job, name="three times")
    deadline = time.monotonic() + 10
    while len(runs) < 3 and time.monotonic() < deadline:
        time.sleep(0.001)
    background.close()
    assert len(runs) == 3


def test_a_job_whose_key_is_running_is_not_started_twice() -> None:
    background, started, go_on = Background(), [], threading.Event()

    def job() -> None:
        started.append(1)
        go_on.wait(10)

    assert background.submit("a", job)
    assert background.submit("a", job)
    go_on.set()
    background.close()
    assert started == [1]
    assert not background.submit("a", job)
    assert started == [1]


def test_the_same_in_tasks() -> None:
    async def check() -> None:
        background, started, beats, go_on = AsyncBackground(), [], [], asyncio.Event()

        async def job() -> None:
            started.append(1)
            await go_on.wait()

        async def beat() -> bool:
            beats.append(1)
            return len(beats) < 3

        async def forever() -> None:
            await asyncio.sleep(3600)

        background.every(0, beat, name="three times")
        background.every(0, forever, name="cancelled by close")
        assert background.submit("a", job)
        assert background.submit("a", job)
        await asyncio.sleep(0.05)
        go_on.set()
        await background.close()
        assert (started, len(beats)) == ([1], 3)
        assert not background.submit("a", job)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(check())
