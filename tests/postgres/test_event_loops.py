"""One async journal serves several event loops: one after the other, and in several threads at once."""

from __future__ import annotations

import asyncio
import gc
import logging
import socket
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import sessiontree as st
from postgres_server import Server, process_database, with_options
from tcp_proxy import Proxy

_LOOPS = 6


def _journal(tmp_path: Path) -> st.AsyncJournal:
    return st.open_async(with_options(process_database(), namespace=tmp_path, application_name=tmp_path.name))


@pytest.fixture(autouse=True)
def no_kept_errors(caplog: pytest.LogCaptureFixture) -> None:
    """A record of an attempt to connect that ended with its loop keeps the error, and with it the connection."""
    caplog.set_level(logging.ERROR, logger="psycopg.pool")


def _connections(tmp_path: Path, *, at_most: int) -> int:
    """How many connections the server has for a test, once it has noticed which were closed.

    An attempt to connect that ended with its loop is closed by the garbage collector.
    """
    with psycopg.connect(process_database(), autocommit=True) as connection:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        for _ in range(100):
            gc.collect()
            ((count,),) = connection.execute(sql, (tmp_path.name[:63],)).fetchall()
            if count <= at_most:
                break
            connection.execute("SELECT pg_sleep(0.05)")
        return int(count)


async def _talk(journal: st.AsyncJournal, number: int) -> None:
    thread = await journal.create_thread(f"t{number}")
    await asyncio.gather(*(journal.append(thread.id, st.user(f"{number} {part}")) for part in range(8)))
    assert len(await journal.path(thread.id)) == 8


def test_loops_one_after_the_other_use_one_journal(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    for number in range(_LOOPS):
        asyncio.run(_talk(journal, number))
    assert _connections(tmp_path, at_most=10) <= 10  # those of the last loop; the others were ended

    async def finish() -> list[str]:
        async with journal:
            return [thread.id for thread in await journal.list_threads(order="created")]

    assert sorted(asyncio.run(finish())) == [f"t{number}" for number in range(_LOOPS)]
    assert _connections(tmp_path, at_most=0) == 0


def test_loops_of_several_threads_use_one_journal_at_once(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    errors: list[BaseException] = []
    barrier = threading.Barrier(_LOOPS)

    def work(number: int) -> None:
        async def talk() -> None:
            for part in range(5):
                await _talk(journal, 10 * number + part)

        barrier.wait()
        try:
            asyncio.run(talk())
        except BaseException as error:  # noqa: BLE001  reported below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(_LOOPS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    asyncio.run(journal.close())
    assert _connections(tmp_path, at_most=0) == 0


def test_closing_closes_the_connections_of_a_loop_that_runs_elsewhere(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(_talk(journal, 1), loop).result()
        assert _connections(tmp_path, at_most=10) > 0
        asyncio.run(journal.close())
        assert _connections(tmp_path, at_most=0) == 0
        with pytest.raises(st.StoreClosedError):
            asyncio.run_coroutine_threadsafe(_talk(journal, 2), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_a_watch_on_one_loop_sees_an_append_on_another(tmp_path: Path) -> None:
    journal = _journal(tmp_path)
    asyncio.run(_talk(journal, 1))
    last = asyncio.run(journal.path("t1"))[-1].id
    seen: list[str] = []

    async def follow() -> None:
        async for entry in journal.watch("t1", after=last, timeout=30):
            seen.append(entry.id)
            if entry.id == "end":
                return

    thread = threading.Thread(target=lambda: asyncio.run(follow()))
    thread.start()
    for name in ("one", "two", "end"):
        asyncio.run(journal.append("t1", st.user(name), id=name))
    thread.join()
    assert seen == ["one", "two", "end"]
    asyncio.run(journal.close())


def test_a_loop_can_end_while_its_pool_connects(tcp_server: Server) -> None:
    """The pool takes a cancelled attempt for a failed one, and the loop would wait for its task for ever."""
    with closing(socket.create_server(("127.0.0.1", 0))) as deaf, Proxy(tcp_server.port) as proxy:

        async def end_early(journal: st.AsyncJournal) -> None:
            await journal.create_thread()
            proxy.forward_to(deaf.getsockname()[1])  # accepts, and never answers
            proxy.cut_all()
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(journal.create_thread(), 0.5)

        journal = st.open_async(f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres")
        ended = threading.Thread(target=lambda: asyncio.run(end_early(journal)), daemon=True)
        ended.start()
        ended.join(20)
        assert not ended.is_alive()
