"""What only asyncio can do: many tasks at once, and callers that give up waiting."""

import asyncio
from pathlib import Path

import pytest

import sessiontree as st
from stores import ALL, DURABLE, ids, url_of

on_all = pytest.mark.parametrize("store", ALL)


@on_all
def test_many_tasks_append_and_nothing_is_lost(store: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with st.open_async(url_of(store, tmp_path)) as journal:
            await journal.create_thread("t")
            names = [f"e{number}" for number in range(200)]
            await asyncio.gather(*(journal.append("t", st.user(name), id=name) for name in names))
            assert sorted(ids(await journal.path("t"))) == sorted(names)
            assert await journal.check() == []

    asyncio.run(scene())


@on_all
def test_one_tasks_conflict_does_not_fail_its_neighbours(store: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with st.open_async(url_of(store, tmp_path)) as journal:
            await journal.create_thread("t")
            outcomes = await asyncio.gather(
                *(journal.append("t", st.user("x"), id=f"e{n}", expect_leaf=None) for n in range(20)),
                *(journal.append("t", st.user("y"), id=f"free{n}") for n in range(20)),
                return_exceptions=True,
            )
            losers = [outcome for outcome in outcomes if isinstance(outcome, st.StaleLeafError)]
            assert len(losers) == 19
            assert len(await journal.entries("t")) == 21

    asyncio.run(scene())


@on_all
def test_a_cancelled_append_is_settled_by_its_id(store: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with st.open_async(url_of(store, tmp_path)) as journal:
            await journal.create_thread("t")
            for number in range(20):
                task = asyncio.create_task(journal.append("t", st.user("x"), id=f"e{number}"))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await journal.append("t", st.user("x"), id=f"e{number}")
            assert ids(await journal.path("t")) == [f"e{number}" for number in range(20)]

    asyncio.run(scene())


@on_all
def test_a_cancelled_turn_is_aborted_and_can_be_taken_up(store: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with st.open_async(url_of(store, tmp_path)) as journal:
            await journal.create_thread("t")
            has_begun = asyncio.Event()

            async def run() -> None:
                async with journal.turn("t"):
                    has_begun.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(run())
            await has_begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            last = (await journal.path("t"))[-1].payload
            assert isinstance(last, st.TurnMarker)
            assert (last.status, last.is_recoverable) == ("aborted", True)
            assert await journal.active_lease("t") is None

    asyncio.run(scene())


@on_all
def test_a_watcher_and_writers_share_a_loop(store: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with st.open_async(url_of(store, tmp_path)) as journal:
            await journal.create_thread("t")

            async def listen() -> list[str]:
                heard: list[str] = []
                async for entry in journal.watch("t", after=None):
                    heard.append(entry.id)
                    if len(heard) == 30:
                        return heard
                return heard

            listener = asyncio.create_task(listen())
            written = [(await journal.append("t", st.user("x"))).id for _ in range(30)]
            assert await asyncio.wait_for(listener, 30) == written

    asyncio.run(scene())


@on_all
def test_a_listener_that_stops_leaves_nothing_behind(store: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with st.open_async(url_of(store, tmp_path)) as journal:
            await journal.create_thread("t")
            task = asyncio.ensure_future(anext(journal.watch("t")))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await journal.append("t", st.user("x"))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scene())


@pytest.mark.parametrize("store", DURABLE)
def test_what_was_queued_before_the_close_is_written(store: str, tmp_path: Path) -> None:
    async def scene() -> None:
        journal = st.open_async(url_of(store, tmp_path))
        await journal.create_thread("t")
        tasks = [asyncio.create_task(journal.append("t", st.user("x"), id=f"e{n}")) for n in range(50)]
        await asyncio.sleep(0)
        await journal.close()
        await asyncio.gather(*tasks)
        with pytest.raises(st.StoreClosedError):
            await journal.thread("t")

    asyncio.run(scene())
    with st.open(url_of(store, tmp_path)) as journal:
        assert len(journal.path("t")) == 50


@on_all
def test_threads_share_a_sync_journal(store: str, tmp_path: Path) -> None:
    with st.open(url_of(store, tmp_path)) as journal:
        journal.create_thread("t")

        async def scene() -> None:
            calls = (asyncio.to_thread(journal.append, "t", st.user("x"), id=f"e{n}") for n in range(100))
            await asyncio.gather(*calls)

        asyncio.run(scene())
        assert len(journal.path("t")) == 100
        assert journal.check() == []
