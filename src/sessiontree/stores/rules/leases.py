"""Leases (one turn at a time) and compaction claims (one compaction at a time, while appends go on).

Every lease of a thread has a higher token than the ones before; a write with an older token is refused.
"""

from __future__ import annotations

from msgspec.structs import replace

from sessiontree.errors import ActiveTurnError, ClaimLostError, CompactionClaimedError, FencedError, StaleLeafError
from sessiontree.model import CompactionClaim, Lease
from sessiontree.stores.commands import (
    AcquireLease,
    Append,
    ClaimCompaction,
    ClearLease,
    InstallCompaction,
    ReleaseClaim,
    ReleaseLease,
    RenewLease,
)
from sessiontree.stores.rules.append import append, existing, visible
from sessiontree.stores.rules.state import Decision, PutHead, PutLease, PutThread, ThreadState, View

__all__ = [
    "acquire_lease",
    "claim_compaction",
    "clear_lease",
    "install_compaction",
    "release_claim",
    "release_lease",
    "renew_lease",
]


def acquire_lease(command: AcquireLease, view: View) -> Decision:
    """Give out a lease, or the same one again to its owner and turn."""
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
    """Move the expiry of the current lease."""
    state = existing(view, command.thread_id)
    held = view.lease(state)
    if held is None or held.token != command.token:
        raise FencedError(command.thread_id, command.token, state.fence)
    renewed = replace(held, expires_ns=command.expires_ns)
    return Decision(renewed, (PutLease(state, renewed),))


def release_lease(command: ReleaseLease, view: View) -> Decision:
    """End the lease if it is the current one."""
    state = existing(view, command.thread_id)
    held = view.lease(state)
    if held is None or held.token != command.token:
        return Decision(None)
    return Decision(None, (PutLease(state, None),))


def clear_lease(command: ClearLease, view: View) -> Decision:
    """Remove the lease if it has expired or began before the cut-off, and return it."""
    state = existing(view, command.thread_id)
    held = view.lease(state)
    cutoff = command.created_before_ns
    if held is None or not (held.is_expired(command.now_ns) or (cutoff is not None and held.created_ns < cutoff)):
        return Decision(None)
    return Decision(held, (PutLease(state, None),))


def _next_token(fence: int, now_ns: int) -> int:
    # The clock keeps tokens growing when a thread is deleted and another is created with its id.
    return max(fence + 1, now_ns)


def claim_compaction(command: ClaimCompaction, view: View) -> Decision:
    """Claim a thread for compaction, or extend the current claim."""
    state = existing(view, command.thread_id)
    held = state.meta.compaction_claim
    if command.is_renewal:
        _check_claim(state, command.claim.id)
    elif held is not None and held.id != command.claim.id and not held.is_expired(command.now_ns):
        raise CompactionClaimedError(command.thread_id, held.owner, held.expires_ns)
    return _with_claim(state, command.claim)


def release_claim(command: ReleaseClaim, view: View) -> Decision:
    """Release a claim if it is the current one."""
    state = existing(view, command.thread_id)
    held = state.meta.compaction_claim
    if held is None or held.id != command.claim_id:
        return Decision(state.public())
    return _with_claim(state, None)


def install_compaction(command: InstallCompaction, view: View) -> Decision:
    """Append a compaction and release its claim; raise ClaimLostError if the claim is not the current one.

    Entries may have been appended since the claim: what was summarised must still be on the path. The claim is released in the same commit, so no later failure makes an installed compaction look failed.
    """
    state = existing(view, command.thread_id)
    if view.find(state.tree, command.draft.id) is None:
        _check_claim(state, command.claim_id)
        _check_base(view, state, command.base)
    appended = Append(
        thread_id=command.thread_id,
        drafts=(command.draft,),
        token=command.token,
        expect_leaf=command.expect_leaf,
        update=command.update,
    )
    decision = append(appended, view)
    if not decision.facts:
        return decision
    *facts, head = decision.facts
    assert isinstance(head, PutHead | PutThread), "an append ends with the new head"
    released = replace(head.state, meta=replace(head.state.meta, compaction_claim=None))
    return Decision(decision.result, (*facts, PutThread(released)))


def _with_claim(state: ThreadState, claim: CompactionClaim | None) -> Decision:
    # The version stays: a claim must not make a caller's update of the metadata stale.
    changed = replace(state, meta=replace(state.meta, compaction_claim=claim))
    return Decision(changed.public(), (PutThread(changed),))


def _check_claim(state: ThreadState, claim_id: str) -> None:
    held = state.meta.compaction_claim
    if held is None or held.id != claim_id:
        raise ClaimLostError(state.meta.id, held.owner if held else "")


def _check_base(view: View, state: ThreadState, base: str) -> None:
    node = visible(view, state, base)
    leaf = state.leaf
    is_on_path = node is not None and leaf is not None and (node.key == leaf.key or view.is_ancestor(node, leaf))
    if not is_on_path:
        raise StaleLeafError(state.meta.id, base, leaf.id if leaf else None)
