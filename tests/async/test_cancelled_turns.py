"""Cancelling around a turn: the caller hears of it, and no lease is left behind."""

from __future__ import annotations

import asyncio

import pytest

import sessiontree as st


def test_a_cancel_on_leaving_a_turn_reaches_the_caller_and_the_turn_ends() -> None:
    async def run() -> None:
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")

            async def work() -> None:
                task = asyncio.current_task()
                assert task is not None
                async with journal.turn("t", owner="w"):
                    asyncio.get_running_loop().call_soon(task.cancel)

            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(work())
            while await journal.active_lease("t") is not None:
                await asyncio.sleep(0)
            assert (await journal.path("t"))[-1].payload == st.TurnMarker(status="completed")

    asyncio.run(run())


def test_a_cancel_while_a_turn_begins_leaves_no_lease() -> None:
    async def run() -> None:
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")

            async def work() -> None:
                async with journal.turn("t", owner="w"):
                    await asyncio.Event().wait()

            task = asyncio.create_task(work())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while not any(
                isinstance(e.payload, st.TurnMarker) and e.payload.status == "aborted"
                for e in await journal.entries("t")
            ):
                await asyncio.sleep(0)
            while await journal.active_lease("t") is not None:
                await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(run(), 20))


def test_the_error_of_a_turn_is_raised_even_if_its_thread_is_gone() -> None:
    async def run() -> None:
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")

            async def work() -> None:
                async with journal.turn("t", owner="w"):
                    await journal.delete_thread("t")
                    raise ValueError("mine")

            with pytest.raises(ValueError, match="mine") as caught:
                await work()
            assert "could not be written" in caught.value.__notes__[0]

    asyncio.run(run())
