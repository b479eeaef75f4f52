"""What PostgreSQL's errors mean for a caller, and which of them may go away by themselves.

Going on by itself after a lost connection, a restart or a fail-over: bounded, with jitter, and only where safe.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import psycopg
from psycopg import errors as pg
from psycopg_pool import PoolClosed, PoolTimeout

from sessiontree.errors import (
    DamagedDataError,
    InvalidInputError,
    SessionTreeError,
    StoreAccessError,
    StoreClosedError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)
from sessiontree.stores.postgres.steps import Steps, Wait

__all__ = [
    "has_lost_server",
    "is_collision",
    "may_have_happened",
    "may_open_later",
    "pauses",
    "translate_error",
    "wait_to_open",
    "with_retries",
]


_SERVER_GOES = (pg.AdminShutdown, pg.CrashShutdown, pg.IdleSessionTimeout)
# The statement was not carried out, that is certain; on another connection, or later, it may be.
_NOT_DONE = (
    pg.CannotConnectNow,
    pg.IdleInTransactionSessionTimeout,
    pg.ReadOnlySqlTransaction,
    pg.TooManyConnections,
    pg.TransactionTimeout,
    PoolTimeout,
)
# What a server says that does not let anybody in for the moment. libpq passes on no code with it, only words.
_NOT_YET = (
    "starting up",
    "shutting down",
    "terminating connection",
    "recovery mode",
    "not yet accepting",
    "too many",
    "remaining connection slots",
)
_COLLISIONS = (pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation, pg.LockNotAvailable)


def has_lost_server(error: psycopg.Error) -> bool:
    """The connection broke, or leads to a server that does not write (any more)."""
    if isinstance(error, PoolClosed):
        return False
    if isinstance(error, (*_SERVER_GOES, *_NOT_DONE)):
        return True
    is_connection_error = error.sqlstate is None or error.sqlstate.startswith("08")
    return is_connection_error and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def may_have_happened(error: psycopg.Error) -> bool:
    """The connection broke under a statement, so it may have been carried out all the same."""
    return has_lost_server(error) and not isinstance(error, _NOT_DONE)


def may_open_later(error: psycopg.Error) -> bool:
    """Nobody answers, or a server that is not ready; not so where it refuses a name, a password or a database.

    >>> may_open_later(psycopg.OperationalError("connection failed: Connection refused"))
    True
    >>> may_open_later(psycopg.OperationalError('connection failed: FATAL:  database "x" does not exist'))
    False
    """
    if not has_lost_server(error):
        return False
    refusals = [line for line in str(error).splitlines() if "FATAL:" in line]
    return not refusals or any(words in line for line in refusals for words in _NOT_YET)


def is_collision(error: psycopg.Error) -> bool:
    """Two transactions met; this one was rolled back for certain and can simply run again."""
    return isinstance(error, _COLLISIONS)


def translate_error(error: psycopg.Error, place: str) -> SessionTreeError:
    problem = f"{error.sqlstate or type(error).__name__}: {str(error).strip()}"
    match error:
        case PoolClosed():
            return StoreClosedError(place)
        case pg.DiskFull():
            return StoreFullError(place)
        case pg.InsufficientPrivilege():
            return StoreAccessError(place, problem)
        case pg.DataCorrupted() | pg.IndexCorrupted():
            return DamagedDataError(place, 0, problem)
        case psycopg.DataError() | pg.ProgramLimitExceeded() | pg.StatementTooComplex():
            return InvalidInputError(f"PostgreSQL cannot take this: {problem}")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreUnavailableError(place, problem)
        case _ if has_lost_server(error):
            return StoreUnavailableError(place, problem)
        case _:
            return StoreError(place, problem)


T = TypeVar("T")

_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0
_MOST_COLLISIONS = 100


def pauses(total_seconds: float) -> Iterator[float]:
    """Growing, jittered waits until the time is up."""
    end = time.monotonic() + total_seconds
    pause = _FIRST_PAUSE
    while time.monotonic() < end:
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311  spreads callers out, guards nothing
        pause = min(2 * pause, _LONGEST_PAUSE)


def wait_to_open(error: psycopg.Error, waits: Iterator[float], place: str) -> float:
    """How long to wait before the next try to connect; raises where waiting is no use, or the time is up."""
    wait = next(waits, None) if may_open_later(error) else None
    if wait is None:
        raise translate_error(error, place) from error
    return wait


def with_retries(
    attempt: Callable[[], Steps[T]],
    *,
    place: str,
    retry_seconds: float,
    give_up: Callable[[psycopg.Error], Exception | None] | None = None,
) -> Steps[T]:
    """Run an attempt that may safely run again. ``give_up`` names what is left to say when the time is up."""
    waits = pauses(retry_seconds)
    collisions = 0
    while True:
        try:
            return (yield from attempt())
        except psycopg.Error as error:
            collisions += is_collision(error)
            may_go_on = has_lost_server(error) or (is_collision(error) and collisions < _MOST_COLLISIONS)
            wait = next(waits, None) if may_go_on else None
            if wait is None:
                raise (give_up and give_up(error)) or translate_error(error, place) from error
            yield Wait(_FIRST_PAUSE * random.random() if is_collision(error) else wait)  # noqa: S311
