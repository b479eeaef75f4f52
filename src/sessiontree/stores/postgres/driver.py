# Generated from driver_async.py by tools/async_to_sync.py; do not edit.
"""The driver: runs a verb's steps on connections of a pool. Also the pool itself, and how its connections are set up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg import Connection, RawCursor
from psycopg.pq import ExecStatus
from psycopg.types.array import ListBinaryDumper
from psycopg_pool import ConnectionPool

from sessiontree.stores.postgres.errors import wait_to_open
from sessiontree.stores.postgres.options import PostgresOptions
from sessiontree.stores.postgres.steps import Row, Statement, Steps, Wait, numbered

__all__ = ["PlainConnection", "Pool", "is_direct", "make_pool", "run", "run_alone"]


T = TypeVar("T")

_RECONNECT_SECONDS = 5.0
_PREPARE_AFTER = 2
_SETTINGS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}


class PlainConnection(Connection[Row]):
    """A connection with one cursor that is used again: making cursors costs as much as a small statement.

    Arrays are sent as they are, not as text: that is faster, and means the same under every setting of the session.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.adapters.register_dumper(list, ListBinaryDumper)
        self.plain_cursor: RawCursor[Row] = RawCursor(self)


class Pool(Protocol):
    """What ``run`` needs of a pool."""

    def getconn(self) -> PlainConnection: ...
    def putconn(self, conn: PlainConnection) -> None: ...
    def check(self) -> None: ...


class _SinglePool:
    """A pool of one connection."""

    def __init__(self, connection: PlainConnection) -> None:
        self._connection = connection

    def getconn(self) -> PlainConnection:
        return self._connection

    def putconn(self, conn: PlainConnection) -> None:
        pass

    def check(self) -> None:
        pass


def run(steps: Steps[T], pool: Pool) -> T:
    """Run steps on one connection of the pool, and return their answer. It goes back to the pool while they wait."""
    connection: PlainConnection | None = None
    try:
        request = next(steps)
        while True:
            try:
                if isinstance(request, Wait):
                    if connection is not None:
                        pool.putconn(connection)
                        connection = None
                    pool.check()
                    time.sleep(request.seconds)
                    reply: list[Row] = []
                else:
                    connection = connection or pool.getconn()
                    reply = _fetch(connection, request)
            except psycopg.Error as error:
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    finally:
        if connection is not None:
            pool.putconn(connection)


def run_alone(steps: Callable[[], Steps[T]], conninfo: str, waits: Iterator[float], place: str) -> T:
    """Run steps on a connection of their own, for what happens before there is a pool.

    A server that is down or starting is waited for; if the connection is lost, the steps run again from the start.
    """
    while True:
        try:
            with PlainConnection.connect(conninfo, **_SETTINGS) as connection:
                return run(steps(), _SinglePool(connection))
        except psycopg.Error as error:
            wait = wait_to_open(error, waits, place)
        time.sleep(wait)


def make_pool(
    conninfo: str,
    options: PostgresOptions,
    kind: type[ConnectionPool[PlainConnection]] = ConnectionPool,
) -> ConnectionPool[PlainConnection]:
    """Return a pool that is not open yet."""
    return kind(
        conninfo,
        connection_class=PlainConnection,
        kwargs=_SETTINGS,
        min_size=0,
        max_size=options.pool_size,
        timeout=options.pool_timeout_seconds,
        reconnect_timeout=_RECONNECT_SECONDS,
        reconnect_failed=_go_on_for_callers,
        configure=_configure,
        open=False,
    )


def is_direct(connection: Connection[Any]) -> bool:
    """Whether the connection leads to a server itself: a pooler reports a process number of its own."""
    cursor = connection.execute("SELECT pg_backend_pid()")
    row = cursor.fetchone()
    return row is not None and row[0] == connection.info.backend_pid


def _configure(connection: PlainConnection) -> None:
    # Prepared statements belong to a session of the server, and behind a pooler sessions are shared.
    if is_direct(connection):
        connection.prepare_threshold = _PREPARE_AFTER


def _go_on_for_callers(pool: ConnectionPool[PlainConnection]) -> None:
    # A pool that gave up tries again when the next caller comes. Those who wait already would wait for nothing.
    if pool.get_stats().get("requests_waiting"):
        pool.check()


def _fetch(connection: PlainConnection, statement: Statement) -> list[Row]:
    cursor = connection.plain_cursor
    sql, names = numbered(statement.sql)
    values = statement.values
    prepare = False if statement.is_planned_each_time else None
    cursor.execute(sql, [values[name] for name in names], binary=True, prepare=prepare)
    result = cursor.pgresult
    return cursor.fetchall() if result is not None and result.status == ExecStatus.TUPLES_OK else []
