"""What PostgreSQL's errors mean for a caller, and which of them may go away by themselves."""

from __future__ import annotations

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

__all__ = ["has_lost_server", "in_our_words", "is_collision", "may_have_happened", "may_open_later"]

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


def in_our_words(error: psycopg.Error, place: str) -> SessionTreeError:
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
