"""Leases in one round trip each. A statement that changes nothing says nothing: the careful way explains."""

from __future__ import annotations

from uuid import UUID

from psycopg.types.numeric import Int8

from sessiontree.commands import AcquireLease, ReleaseLease, RenewLease
from sessiontree.model import Lease
from sessiontree.stores.postgres.steps import Statement, Steps, to_bytes, to_text

__all__ = ["acquire", "release", "renew"]

_ACQUIRE = """
UPDATE sessiontree.head SET fence = greatest(fence + 1, %(now)s), lease_token = greatest(fence + 1, %(now)s),
    lease_turn = %(turn)s, lease_owner = %(owner)s, lease_created_ns = %(now)s, lease_expires_ns = %(expires)s
WHERE tree = %(tree)s AND id = %(thread)s AND (lease_token IS NULL
    OR lease_expires_ns <= %(now)s)
RETURNING lease_token"""
_RENEW = """
UPDATE sessiontree.head SET lease_expires_ns = %(expires)s
WHERE tree = %(tree)s AND id = %(thread)s AND lease_token = %(token)s
RETURNING lease_turn, lease_owner, lease_created_ns"""
_RELEASE = """
UPDATE sessiontree.head SET lease_token = NULL, lease_turn = NULL, lease_owner = NULL, lease_created_ns = NULL,
    lease_expires_ns = NULL
WHERE tree = %(tree)s AND id = %(thread)s AND lease_token = %(token)s
RETURNING key"""


def acquire(command: AcquireLease, tree: UUID) -> Steps[Lease | None]:
    values = {
        "tree": tree,
        "thread": to_bytes(command.thread_id),
        "now": Int8(command.now_ns),
        "expires": Int8(command.expires_ns),
        "turn": to_bytes(command.turn_id),
        "owner": to_bytes(command.owner),
    }
    rows = yield Statement(_ACQUIRE, values)
    if not rows:
        return None
    return Lease(
        thread_id=command.thread_id,
        turn_id=command.turn_id,
        owner=command.owner,
        token=rows[0][0],
        created_ns=command.now_ns,
        expires_ns=command.expires_ns,
    )


def renew(command: RenewLease, tree: UUID) -> Steps[Lease | None]:
    values = {
        "tree": tree,
        "thread": to_bytes(command.thread_id),
        "expires": Int8(command.expires_ns),
        "token": Int8(command.token),
    }
    rows = yield Statement(_RENEW, values)
    if not rows:
        return None
    turn_id, owner, created_ns = rows[0]
    return Lease(
        thread_id=command.thread_id,
        turn_id=to_text(turn_id),
        owner=to_text(owner),
        token=command.token,
        created_ns=created_ns,
        expires_ns=command.expires_ns,
    )


def release(command: ReleaseLease, tree: UUID) -> Steps[bool]:
    values = {"tree": tree, "thread": to_bytes(command.thread_id), "token": Int8(command.token)}
    rows = yield Statement(_RELEASE, values)
    return bool(rows)
