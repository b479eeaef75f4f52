"""The driver: runs a verb's steps on connections of a pool. Also the pool itself, and how its connections are set up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.pq import ExecStatus
from psycopg.types.array import ListBinaryDumper
from psycopg_pool import AsyncConnectionPool

from sessiontree.stores.postgres.errors import wait_to_open
from sessiontree.stores.postgres.options import PostgresOptions
from sessiontree.stores.postgres.steps import Row, Statement, Steps, Wait, numbered

__all__ = ["AsyncPlainConnection", "AsyncPool", "is_direct", "make_pool", "run", "run_alone"]


T = TypeVar("T")

_RECONNECT_SECONDS = 5.0
_PREPARE_AFTER = 2
_SETTINGS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}


class AsyncPlainConnection(AsyncConnection[Row]):
    """A connection with one cursor that is used again: making cursors costs as much as a small statement.

    Arrays are sent as they are, not as text: that is faster, and means the same under every setting of the session.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.adapters.register_dumper(list, ListBinaryDumper)
        self.plain_cursor: AsyncRawCursor[Row] = AsyncRawCursor(self)


class AsyncPool(Protocol):
    """What ``run`` needs of a pool."""

    async def getconn(self) -> AsyncPlainConnection: ...
    async def putconn(self, conn: AsyncPlainConnection) -> None: ...
    async def check(self) -> None: ...


class _AsyncSinglePool:
    """A pool of one connection."""

    def __init__(self, connection: AsyncPlainConnection) -> None:
        self._connection = connection

    async def getconn(self) -> AsyncPlainConnection:
        return self._connection

    async def putconn(self, conn: AsyncPlainConnection) -> None:
        pass

    async def check(self) -> None:
        pass


async def run(steps: Steps[T], pool: AsyncPool) -> T:
    """Run steps on one connection of the pool, and return their answer. It goes back to the pool while they wait."""
    connection: AsyncPlainConnection | None = None
    try:
        request = next(steps)
        while True:
            try:
                if isinstance(request, Wait):
                    if connection is not None:
                        await pool.putconn(connection)
                        connection = None
                    await pool.check()
                    await asyncio.sleep(request.seconds)
                    reply: list[Row] = []
                else:
                    connection = connection or await pool.getconn()
                    reply = await _fetch(connection, request)
            except psycopg.Error as error:
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    finally:
        if connection is not None:
            await pool.putconn(connection)


async def run_alone(steps: Callable[[], Steps[T]], conninfo: str, waits: Iterator[float], place: str) -> T:
    """Run steps on a connection of their own, for what happens before there is a pool.

    A server that is down or starting is waited for; if the connection is lost, the steps run again from the start.
    """
    while True:
        try:
            async with await AsyncPlainConnection.connect(conninfo, **_SETTINGS) as connection:
                return await run(steps(), _AsyncSinglePool(connection))
        except psycopg.Error as error:
            wait = wait_to_open(error, waits, place)
        await asyncio.sleep(wait)


def make_pool(
    conninfo: str,
    options: PostgresOptions,
    kind: type[AsyncConnectionPool[AsyncPlainConnection]] = AsyncConnectionPool,
) -> AsyncConnectionPool[AsyncPlainConnection]:
    """Return a pool that is not open yet."""
    return kind(
        conninfo,
        connection_class=AsyncPlainConnection,
        kwargs=_SETTINGS,
        min_size=0,
        max_size=options.pool_size,
        timeout=options.pool_timeout_seconds,
        reconnect_timeout=_RECONNECT_SECONDS,
        reconnect_failed=_go_on_for_callers,
        configure=_configure,
        open=False,
    )


async def is_direct(connection: AsyncConnection[Any]) -> bool:
    """Whether the connection leads to a server itself: a pooler reports a process number of its own."""
    cursor = await connection.execute("SELECT pg_backend_pid()")
    row = await cursor.fetchone()
    return row is not None and row[0] == connection.info.backend_pid


async def _configure(connection: AsyncPlainConnection) -> None:
    # Prepared statements belong to a session of the server, and behind a pooler sessions are shared.
    if await is_direct(connection):
        connection.prepare_threshold = _PREPARE_AFTER


async def _go_on_for_callers(pool: AsyncConnectionPool[AsyncPlainConnection]) -> None:
    # A pool that gave up tries again when the next caller comes. Those who wait already would wait for nothing.
    if pool.get_stats().get("requests_waiting"):
        await pool.check()


async def _fetch(connection: AsyncPlainConnection, statement: Statement) -> list[Row]:
    cursor = connection.plain_cursor
    sql, names = numbered(statement.sql)
    values = statement.values
    prepare = False if statement.is_planned_each_time else None
    await cursor.execute(sql, [values[name] for name in names], binary=True, prepare=prepare)
    result = cursor.pgresult
    return await cursor.fetchall() if result is not None and result.status == ExecStatus.TUPLES_OK else []
