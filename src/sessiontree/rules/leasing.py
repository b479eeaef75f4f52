"""Leases: one turn at a time, with a token that only grows."""

from __future__ import annotations

from msgspec.structs import replace

from sessiontree.commands import AcquireLease, ClearLease, ReleaseLease, RenewLease
from sessiontree.errors import ActiveTurnError, FencedError
from sessiontree.model import Lease
from sessiontree.rules.appending import existing
from sessiontree.rules.state import Decision, PutHead, PutLease, View

__all__ = ["acquire_lease", "clear_lease", "release_lease", "renew_lease"]


def acquire_lease(command: AcquireLease, view: View) -> Decision:
    state = existing(view, command.thread_id)
    held = view.lease(state)
    if held is not None and not held.is_expired(command.now_ns):
        if (held.owner, held.turn_id) == (command.owner, command.turn_id):
            return Decision(held)
        raise ActiveTurnError(command.thread_id, held.owner, held.turn_id, held.expires_ns)
    lease = Lease(
        thread_id=command.thread_id,
        turn_id=command.turn_id,
        owner=command.owner,
        token=_next_token(state.fence, command.now_ns),
        created_ns=command.now_ns,
        expires_ns=command.expires_ns,
    )
    fenced = replace(state, fence=lease.token)
    return Decision(lease, (PutLease(fenced, lease), PutHead(fenced)))


def renew_lease(command: RenewLease, view: View) -> Decision:
    state = existing(view, command.thread_id)
    held = view.lease(state)
    if held is None or held.token != command.token:
        raise FencedError(command.thread_id, command.token, state.fence)
    renewed = replace(held, expires_ns=command.expires_ns)
    return Decision(renewed, (PutLease(state, renewed),))


def release_lease(command: ReleaseLease, view: View) -> Decision:
    state = existing(view, command.thread_id)
    held = view.lease(state)
    if held is None or held.token != command.token:
        return Decision(None)
    return Decision(None, (PutLease(state, None),))


def clear_lease(command: ClearLease, view: View) -> Decision:
    state = existing(view, command.thread_id)
    held = view.lease(state)
    if held is None or not held.is_expired(command.now_ns):
        return Decision(None)
    return Decision(held, (PutLease(state, None),))


def _next_token(fence: int, now_ns: int) -> int:
    # The clock keeps tokens growing across a thread that was deleted and created anew under the same id.
    return max(fence + 1, now_ns)
