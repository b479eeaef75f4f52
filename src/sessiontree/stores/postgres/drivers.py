"""The two drivers: they run a verb's steps on connections of a pool, one blocking, one awaiting."""

from __future__ import annotations

import asyncio
import time
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from sessiontree.stores.postgres.steps import Pause, Row, Statement, Steps

__all__ = ["run", "run_async", "run_on", "run_on_async"]

T = TypeVar("T")


def run(steps: Steps[T], pool: ConnectionPool[Connection[Row]]) -> T:
    connection: Connection[Row] | None = None
    try:
        request = next(steps)
        while True:
            try:
                if isinstance(request, Pause):
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


async def run_async(steps: Steps[T], pool: AsyncConnectionPool[AsyncConnection[Row]]) -> T:
    connection: AsyncConnection[Row] | None = None
    try:
        request = next(steps)
        while True:
            try:
                if isinstance(request, Pause):
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


def run_on(steps: Steps[T], connection: Connection[Row]) -> T:
    """The same on one connection, for what happens before there is a pool."""
    try:
        request = next(steps)
        while True:
            assert isinstance(request, Statement)
            request = steps.send(_fetch(connection, request))
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


async def run_on_async(steps: Steps[T], connection: AsyncConnection[Row]) -> T:
    try:
        request = next(steps)
        while True:
            assert isinstance(request, Statement)
            request = steps.send(await _fetch_async(connection, request))
    except StopIteration as finished:
        return finished.value  # type: ignore[no-any-return]


def _fetch(connection: Connection[Row], statement: Statement) -> list[Row]:
    cursor = connection.execute(statement.sql, statement.values or None, binary=True)
    return cursor.fetchall() if cursor.description else []


async def _fetch_async(connection: AsyncConnection[Row], statement: Statement) -> list[Row]:
    cursor = await connection.execute(statement.sql, statement.values or None, binary=True)
    return await cursor.fetchall() if cursor.description else []


def _give_back(connection: Connection[Row] | None, pool: ConnectionPool[Any]) -> None:
    if connection is not None:
        pool.putconn(connection)


async def _give_back_async(connection: AsyncConnection[Row] | None, pool: AsyncConnectionPool[Any]) -> None:
    if connection is not None:
        await pool.putconn(connection)
