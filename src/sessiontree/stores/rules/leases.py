"""Leases: one turn at a time, with a token that only grows.

Compactions: one at a time per thread, without holding up anybody who appends.
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


def claim_compaction(command: ClaimCompaction, view: View) -> Decision:
    state = existing(view, command.thread_id)
    held = state.meta.compaction_claim
    if command.is_renewal:
        _check_claim(state, command.claim.id)
    elif held is not None and held.id != command.claim.id and not held.is_expired(command.now_ns):
        raise CompactionClaimedError(command.thread_id, held.owner, held.expires_ns)
    return _with_claim(state, command.claim)


def release_claim(command: ReleaseClaim, view: View) -> Decision:
    """Give a claim back; one that somebody took over is left alone."""
    state = existing(view, command.thread_id)
    held = state.meta.compaction_claim
    if held is None or held.id != command.claim_id:
        return Decision(state.public())
    return _with_claim(state, None)


def install_compaction(command: InstallCompaction, view: View) -> Decision:
    """The claim is the fence: who lost it while a model was thinking writes nothing.

    The leaf may have grown meanwhile, so it is not compared; only what was summarised must still be on its path. The
    same commit gives the claim back: nothing that fails afterwards can make an installed compaction look failed.
    """
    state = existing(view, command.thread_id)
    if view.find(state.tree, command.draft.id) is None:
        _check_claim(state, command.claim_id)
        _check_base(view, state, command.base)
    decision = append(Append(thread_id=command.thread_id, drafts=(command.draft,), token=command.token), view)
    if not decision.facts:
        return decision
    *facts, head = decision.facts
    assert isinstance(head, PutHead), "an append ends with the new head"
    released = replace(head.state, meta=replace(head.state.meta, compaction_claim=None))
    return Decision(decision.result, (*facts, PutThread(released)))


def _with_claim(state: ThreadState, claim: CompactionClaim | None) -> Decision:
    # The version stays: a claim is nobody's metadata, so it must not make a caller's update stale.
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
