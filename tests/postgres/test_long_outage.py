"""A server that is down for longer than the pool tries to connect: callers who wait go on when it is back."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator

import pytest

import sessiontree as st
from postgres_server import Server, with_options
from sessiontree.stores.postgres import driver, driver_async

CALLERS = 3


class GivenUp(logging.Handler):
    """Set when a pool says that it does not try to connect any more."""

    def __init__(self) -> None:
        super().__init__()
        self.happened = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "reconnection attempt" in record.msg:
            self.happened.set()


@pytest.fixture
def given_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Happens at the first failed attempt."""
    for module in (driver, driver_async):
        monkeypatch.setattr(module, "_RECONNECT_SECONDS", 0.0)
    handler = GivenUp()
    logging.getLogger("psycopg.pool").addHandler(handler)
    yield handler.happened
    logging.getLogger("psycopg.pool").removeHandler(handler)


def url_of(server: Server) -> str:
    """When a caller has waited for a connection in vain, its time is over."""
    return with_options(server.url, pool_size=CALLERS, pool_timeout_seconds=60, retry_seconds=30)


def test_callers_go_on_after_the_pool_gave_up(own_server: Server, given_up: threading.Event) -> None:
    with st.open(url_of(own_server)) as journal:
        for number in range(CALLERS):
            journal.create_thread(f"t{number}")
        own_server.stop()
        callers = [threading.Thread(target=journal.append, args=(f"t{n}", st.user("x"))) for n in range(CALLERS)]
        for caller in callers:
            caller.start()
        assert given_up.wait(30)
        own_server.start()
        for caller in callers:
            caller.join()
        assert [journal.thread(f"t{number}").entries for number in range(CALLERS)] == [1] * CALLERS


def test_tasks_go_on_after_the_pool_gave_up(own_server: Server, given_up: threading.Event) -> None:
    async def run() -> list[str | None]:
        async with st.open_async(url_of(own_server)) as journal:
            for number in range(CALLERS):
                await journal.create_thread(f"t{number}")
            own_server.stop()
            tasks = [asyncio.create_task(journal.append(f"t{n}", st.user("x"))) for n in range(CALLERS)]
            assert await asyncio.to_thread(given_up.wait, 30)
            await asyncio.to_thread(own_server.start)
            return [entry.parent for entry in await asyncio.gather(*tasks)]

    assert asyncio.run(run()) == [None] * CALLERS
