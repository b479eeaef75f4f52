"""The two drivers: they run a verb's steps on connections of a pool, one blocking, one awaiting."""

from __future__ import annotations

import asyncio
import functools
import re
import time
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncRawCursor, Connection, RawCursor
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from psycopg.types.array import ListBinaryDumper
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from sessiontree.stores.postgres.steps import Row, Statement, Steps, Wait

__all__ = ["AsyncPlainConnection", "PlainConnection", "run", "run_async", "run_on", "run_on_async"]


T = TypeVar("T")

_NAME = re.compile(r"%\((\w+)\)s")


def run(steps: Steps[T], pool: ConnectionPool[PlainConnection]) -> T:
    connection: PlainConnection | None = None
    try:
        request = next(steps)
        while True:
            try:
                if isinstance(request, Wait):
                    _give_back(connection, pool)
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
        _give_back(connection, pool)


async def run_async(steps: Steps[T], pool: AsyncConnectionPool[AsyncPlainConnection]) -> T:
    connection: AsyncPlainConnection | None = None
    try:
        request = next(steps)
        while True:
            try:
                if isinstance(request, Wait):
                    await _give_back_async(connection, pool)
                    connection = None
                    await pool.check()
                    await asyncio.sleep(request.seconds)
                    reply: list[Row] = []
                else:
                    connection = connection or await pool.getconn()
                    reply = await _fetch_async(connection, request)
            except psycopg.Error as error:
                request = steps.throw(error)
            else:
                request = steps.send(reply)
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]
    finally:
        await _give_back_async(connection, pool)


def run_on(steps: Steps[T], connection: PlainConnection) -> T:
    """The same on one connection, for what happens before there is a pool."""
    try:
        request = next(steps)
        while True:
            assert isinstance(request, Statement)
            request = steps.send(_fetch(connection, request))
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


async def run_on_async(steps: Steps[T], connection: AsyncPlainConnection) -> T:
    try:
        request = next(steps)
        while True:
            assert isinstance(request, Statement)
            request = steps.send(await _fetch_async(connection, request))
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


class PlainConnection(Connection[Row]):
    """A connection with one cursor that is used again: making cursors costs as much as a small statement.

    Arrays are sent as they are, not as text: that is faster, and means the same under every setting of the session.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.adapters.register_dumper(list, ListBinaryDumper)
        self.plain_cursor: RawCursor[Row] = RawCursor(self)


class AsyncPlainConnection(AsyncConnection[Row]):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.adapters.register_dumper(list, ListBinaryDumper)
        self.plain_cursor: AsyncRawCursor[Row] = AsyncRawCursor(self)


def _fetch(connection: PlainConnection, statement: Statement) -> list[Row]:
    cursor = connection.plain_cursor
    sql, names = _numbered(statement.sql)
    values = statement.values
    cursor.execute(sql, [values[name] for name in names], binary=True)
    return cursor.fetchall() if _has_rows(cursor.pgresult) else []


async def _fetch_async(connection: AsyncPlainConnection, statement: Statement) -> list[Row]:
    cursor = connection.plain_cursor
    sql, names = _numbered(statement.sql)
    values = statement.values
    await cursor.execute(sql, [values[name] for name in names], binary=True)
    return await cursor.fetchall() if _has_rows(cursor.pgresult) else []


def _has_rows(result: PGresult | None) -> bool:
    return result is not None and result.status == ExecStatus.TUPLES_OK


@functools.lru_cache(maxsize=1000)
def _numbered(sql: str) -> tuple[bytes, tuple[str, ...]]:
    """Named values as the numbered ones that PostgreSQL itself knows.

    >>> _numbered("a = %(x)s AND b = %(y)s OR c = %(x)s")
    (b'a = $1 AND b = $2 OR c = $1', ('x', 'y'))
    """
    names: dict[str, int] = {}
    numbered = _NAME.sub(lambda found: f"${names.setdefault(found[1], len(names) + 1)}", sql)
    return numbered.encode(), tuple(names)


def _give_back(connection: PlainConnection | None, pool: ConnectionPool[Any]) -> None:
    if connection is not None:
        pool.putconn(connection)


async def _give_back_async(connection: AsyncPlainConnection | None, pool: AsyncConnectionPool[Any]) -> None:
    if connection is not None:
        await pool.putconn(connection)
