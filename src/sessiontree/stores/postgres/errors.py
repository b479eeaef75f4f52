"""psycopg's errors as ours, and retries after a lost connection, a restart or a failover."""

from __future__ import annotations

import logging
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


T = TypeVar("T")

# Without a handler Python prints the warnings of a pool that waits for its server; what they say is in our errors.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_FIRST_PAUSE_SECONDS = 0.02
_MAX_PAUSE_SECONDS = 1.0
_MAX_COLLISIONS = 100
_SHUTDOWN = (pg.AdminShutdown, pg.CrashShutdown, pg.IdleSessionTimeout)
# The statement certainly had no effect; on another connection, or later, it may succeed.
_NO_EFFECT = (
    pg.CannotConnectNow,
    pg.IdleInTransactionSessionTimeout,
    pg.ReadOnlySqlTransaction,
    pg.TooManyConnections,
    pg.TransactionTimeout,
    PoolTimeout,
)
# Messages of a server that accepts no connection at the moment; libpq gives no error code for them.
_NOT_READY = (
    "starting up",
    "shutting down",
    "terminating connection",
    "recovery mode",
    "not yet accepting",
    "too many",
    "remaining connection slots",
)
# Messages of a distributed server, which gives one code (XX000) to whatever went wrong on another node.
_LOST_NODE = (
    "failure on connection marked as essential",
    "connection not open",
    "server closed the connection",
    "could not find valid entry for shard",
    "could not commit transaction for shard",
    "failed to prepare transaction",
    "cannot recover from multiple connection failures",
    "postmaster was shut down",
    "terminating connection",
)
_NODE_COLLISION = ("duplicate key value", "deadlock", "could not serialize access")
_COLLISIONS = (pg.SerializationFailure, pg.DeadlockDetected, pg.UniqueViolation, pg.LockNotAvailable)


def has_lost_server(error: psycopg.Error) -> bool:
    """Whether the connection broke, or the server does not accept writes (any more)."""
    if isinstance(error, PoolClosed):
        return False
    if isinstance(error, (*_SHUTDOWN, *_NO_EFFECT)) or _happened_on_node(error, _LOST_NODE):
        return True
    is_connection_error = error.sqlstate is None or error.sqlstate.startswith("08")
    return is_connection_error and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def may_have_happened(error: psycopg.Error) -> bool:
    """Whether the connection broke during a statement, so that it may have taken effect."""
    return has_lost_server(error) and not isinstance(error, _NO_EFFECT)


def may_open_later(error: psycopg.Error) -> bool:
    """Whether no server answers, or one that is not ready; False if it refuses the user, password or database.

    >>> may_open_later(psycopg.OperationalError("connection failed: Connection refused"))
    True
    >>> may_open_later(psycopg.OperationalError('connection failed: FATAL:  database "x" does not exist'))
    False
    """
    return has_lost_server(error) and not _is_refused(error)


def _is_refused(error: psycopg.Error) -> bool:
    refusals = [line for line in str(error).splitlines() if "FATAL:" in line]
    return bool(refusals) and not any(words in line for line in refusals for words in _NOT_READY)


def is_collision(error: psycopg.Error) -> bool:
    """Whether the transaction was rolled back because of another one, so that it can run again."""
    return isinstance(error, _COLLISIONS) or _happened_on_node(error, _NODE_COLLISION)


def _happened_on_node(error: psycopg.Error, messages: tuple[str, ...]) -> bool:
    """Whether a distributed server reports one of these from another node.

    >>> is_collision(pg.InternalError_("duplicate key value violates unique constraint"))
    True
    """
    return isinstance(error, pg.InternalError_) and any(words in str(error) for words in messages)


def translate_error(error: psycopg.Error, place: str) -> SessionTreeError:
    """The store error for an error of psycopg."""
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
            return InvalidInputError(f"PostgreSQL refused the data: {problem}")
        case psycopg.OperationalError() if _is_refused(error):
            return StoreError(
                place, f"the server refused the connection; check the user, password and database ({problem})"
            )
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreUnavailableError(place, problem)
        case _ if has_lost_server(error):
            return StoreUnavailableError(place, problem)
        case _:
            return StoreError(place, problem)


def pauses(total_seconds: float) -> Iterator[float]:
    """Yield growing pauses with jitter until the time is up."""
    end = time.monotonic() + total_seconds
    pause = _FIRST_PAUSE_SECONDS
    while time.monotonic() < end:
        yield pause * random.uniform(0.5, 1.0)  # noqa: S311  jitter, not cryptography
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)


def wait_to_open(error: psycopg.Error, pauses_left: Iterator[float], place: str) -> float:
    """The pause before the next attempt to connect; raise if waiting does not help or the time is up."""
    pause = next(pauses_left, None) if may_open_later(error) else None
    if pause is None:
        raise translate_error(error, place) from error
    return pause


def with_retries(
    attempt: Callable[[], Steps[T]],
    *,
    place: str,
    retry_seconds: float,
    give_up: Callable[[psycopg.Error], Exception | None] | None = None,
) -> Steps[T]:
    """Run ``attempt``, which must be safe to repeat, until it succeeds or the time is up.

    ``give_up`` returns the error to raise then; without one, or if it returns None, the last error is translated.
    """
    pauses_left = pauses(retry_seconds)
    collisions = 0
    while True:
        try:
            return (yield from attempt())
        except psycopg.Error as error:
            collisions += is_collision(error)
            may_retry = has_lost_server(error) or (is_collision(error) and collisions < _MAX_COLLISIONS)
            pause = next(pauses_left, None) if may_retry else None
            if pause is None:
                raise (give_up and give_up(error)) or translate_error(error, place) from error
            yield Wait(_FIRST_PAUSE_SECONDS * random.random() if is_collision(error) else pause)  # noqa: S311
