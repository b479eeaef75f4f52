"""Every step of a lease as one statement. One that changes nothing says why: it returns the thread as it is."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from msgspec.structs import replace
from psycopg.types.numeric import Int8

from sessiontree.model import Lease
from sessiontree.stores.commands import AcquireLease, ClearLease, Command, ReleaseLease, RenewLease
from sessiontree.stores.postgres.rows import HEAD_FROM, STATE_COLUMNS, ThreadHead, head_of, lease_of
from sessiontree.stores.postgres.steps import Statement, Steps, to_bytes

__all__ = ["READ_CLOCK", "LeaseCommand", "Leased", "by_server_clock", "change_lease"]

C = TypeVar("C", bound=Command)

LeaseCommand = AcquireLease | RenewLease | ReleaseLease

# The server's clock when the statement began, in nanoseconds.
_SERVER_CLOCK = "((extract(epoch FROM now()) * 1000000)::bigint * 1000)"
_CALLER_CLOCK = "%(now)s"
READ_CLOCK = Statement(f"SELECT {_SERVER_CLOCK}")

_CHANGE = f"""
WITH changed AS (
    UPDATE sessiontree.head SET version = version + 1, {{change}}
    WHERE tree = %(tree)s AND id = %(thread)s AND namespace = %(namespace)s AND {{condition}}
    RETURNING version, lease_token, lease_turn, lease_owner, lease_created_ns, lease_expires_ns
)
SELECT c.version, c.lease_token, c.lease_turn, c.lease_owner, c.lease_created_ns, c.lease_expires_ns, {STATE_COLUMNS}
FROM {HEAD_FROM} LEFT JOIN changed c ON true
WHERE h.tree = %(tree)s AND h.id = %(thread)s AND h.namespace = %(namespace)s"""
_IS_HELD = "lease_token = %(token)s"
_ACQUIRE = _CHANGE.format(
    change="""fence = greatest(fence + 1, {clock}), lease_token = greatest(fence + 1, {clock}),
        lease_turn = %(turn)s, lease_owner = %(owner)s, lease_created_ns = %(now)s,
        lease_expires_ns = {clock} + %(ttl)s""",
    condition="(lease_token IS NULL OR lease_expires_ns <= {clock})",
)
_RENEW = _CHANGE.format(change="lease_expires_ns = {clock} + %(ttl)s", condition=_IS_HELD)
_RELEASE = _CHANGE.format(
    change="""lease_token = NULL, lease_turn = NULL, lease_owner = NULL, lease_created_ns = NULL,
        lease_expires_ns = NULL""",
    condition=_IS_HELD,
)


def by_server_clock(command: C) -> Steps[C]:
    """The command with the server's time, if it is to be judged by that."""
    match command:
        case AcquireLease(by_store_clock=True) | RenewLease(by_store_clock=True):
            ((now,),) = yield READ_CLOCK
            return replace(command, now_ns=now, expires_ns=now + command.expires_ns - command.now_ns)
        case ClearLease(by_store_clock=True):
            ((now,),) = yield READ_CLOCK
            return replace(command, now_ns=now)
        case _:
            return command


class Leased(NamedTuple):
    """The lease after a step, and the version of its thread then."""

    lease: Lease | None
    version: int


def change_lease(command: LeaseCommand, tree: UUID, namespace: str) -> Steps[Leased | ThreadHead | None]:
    """Take, renew or release a lease; the thread as it was if that is not possible, None if it is not there."""
    values: dict[str, Any] = {"tree": tree, "thread": to_bytes(command.thread_id), "namespace": namespace}
    match command:
        case AcquireLease():
            words = {"turn": to_bytes(command.turn_id), "owner": to_bytes(command.owner)}
            rows = yield Statement(_ACQUIRE.format(clock=_clock(command)), values | words | _times(command))
        case RenewLease():
            held = {"token": Int8(command.token)}
            rows = yield Statement(_RENEW.format(clock=_clock(command)), values | held | _times(command))
        case ReleaseLease():
            rows = yield Statement(_RELEASE, values | {"token": Int8(command.token)})
    if not rows:
        return None
    (row,) = rows
    version = row[0]
    return head_of(row[6:]) if version is None else Leased(lease_of(command.thread_id, row[1:6]), version)


def _clock(command: AcquireLease | RenewLease) -> str:
    return _SERVER_CLOCK if command.by_store_clock else _CALLER_CLOCK


def _times(command: AcquireLease | RenewLease) -> dict[str, Int8]:
    return {"now": Int8(command.now_ns), "ttl": Int8(command.expires_ns - command.now_ns)}
