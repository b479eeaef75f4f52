"""Opening while the server is down, starts, refuses, or belongs to another process."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import sessiontree as st
from known import present
from postgres_server import Coordinator, Server, free_port, with_options


def no_server(**options: object) -> str:
    return with_options(f"postgresql://postgres@127.0.0.1:{free_port()}/postgres", **options)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server.create()
    yield server
    server.remove()


@pytest.fixture
def stopped(server: Server) -> Iterator[tuple[Server, threading.Timer]]:
    """A server that is down, and a thread that starts it a moment after it is signalled."""
    with st.open(server.url) as journal, contextlib.suppress(st.ThreadNotFoundError):
        journal.delete_thread("t")
    server.stop()
    starting = threading.Timer(0.3, server.start)
    yield server, starting
    starting.join()


def test_open_waits_for_a_server_that_is_down(stopped: tuple[Server, threading.Timer]) -> None:
    server, starting = stopped
    starting.start()
    with st.open(server.url) as journal:
        assert journal.create_thread("t").id == "t"


def test_open_async_waits_for_a_server_that_is_down(stopped: tuple[Server, threading.Timer]) -> None:
    server, starting = stopped

    async def use() -> str:
        starting.start()
        async with st.open_async(server.url) as journal:
            return (await journal.create_thread("t")).id

    assert asyncio.run(use()) == "t"


def test_open_raises_if_no_server_answers_in_time() -> None:
    with pytest.raises(st.StoreUnavailableError, match="safe to try again"):
        st.open(no_server(open_retry_seconds=0.2))


def test_open_async_says_so_to_everybody_who_waits() -> None:
    callers: list[str] = []

    def hang_up(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                caller, address = listener.accept()
                callers.append(address)
                caller.close()

    async def use(port: int) -> list[st.Thread | BaseException]:
        url = with_options(f"postgresql://postgres@127.0.0.1:{port}/postgres", open_retry_seconds=0)
        async with st.open_async(url) as journal:
            return await asyncio.gather(*(journal.thread(str(n)) for n in range(50)), return_exceptions=True)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=hang_up, args=[listener], daemon=True).start()
        outcomes = asyncio.run(use(listener.getsockname()[1]))
    assert {type(outcome) for outcome in outcomes} == {st.StoreUnavailableError}
    assert len(callers) < 5, "they tried one after the other"


def test_open_async_tries_again_after_it_failed(stopped: tuple[Server, threading.Timer]) -> None:
    server, starting = stopped

    async def use() -> str:
        async with st.open_async(with_options(server.url, open_retry_seconds=0)) as journal:
            with pytest.raises(st.StoreUnavailableError):
                await journal.thread("t")
            starting.start()
            await asyncio.to_thread(starting.join)
            return (await journal.create_thread("t")).id

    assert asyncio.run(use()) == "t"


def test_a_journal_that_is_closed_while_it_opens_leaves_nothing_running() -> None:
    async def use() -> list[asyncio.Task[Any]]:
        journal = st.open_async(no_server(open_retry_seconds=60))
        waiting = asyncio.create_task(journal.thread("t"))
        await asyncio.sleep(0)
        await journal.close()
        with pytest.raises((st.StoreClosedError, asyncio.CancelledError)):
            await waiting
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(use()) == []


@pytest.mark.parametrize("wrong", ["nobody@127.0.0.1:{port}/postgres", "postgres@127.0.0.1:{port}/no_such_database"])
def test_a_refusal_is_raised_at_once_and_not_called_safe_to_try_again(
    tcp_server: Server | Coordinator, wrong: str
) -> None:
    address = "postgresql://" + wrong.format(port=tcp_server.port)
    with pytest.raises(st.StoreError, match=r"check the user, password and database.*does not exist") as caught:
        st.open(with_options(address, open_retry_seconds=20))
    assert "safe to try again" not in str(caught.value)


def test_the_warnings_of_a_pool_that_waits_for_its_server_were_printed() -> None:
    """As a program without logging would: Python prints warnings then that no handler takes."""
    script = (
        "import logging, sys, sessiontree.stores.postgres\n"
        "logging.getLogger('psycopg.pool').warning('error connecting in pool-1')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_the_first_host_may_be_dead(tcp_server: Server | Coordinator) -> None:
    with st.open(f"postgresql://postgres@127.0.0.1:{free_port()},127.0.0.1:{tcp_server.port}/postgres") as journal:
        assert journal.stats() is not None


def test_a_child_of_a_fork_is_refused_and_the_parent_goes_on(database: str) -> None:
    with st.open(database) as journal:
        journal.create_thread("t")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                journal.append("t", st.user("from the child"))
            except st.StoreError as error:
                code = 0 if "open it again" in str(error) else 2
            journal.close()
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        journal.append("t", st.user("from the parent"))
        assert [present(entry.message).text for entry in journal.path("t")] == ["from the parent"]
