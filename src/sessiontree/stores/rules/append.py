"""Append: where new entries go, and when they may not.

Blobs: put once, kept while a checkpoint needs them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from sessiontree.errors import (
    DuplicateEntryError,
    FencedError,
    InvalidInputError,
    InvalidParentError,
    MissingBlobsError,
    StaleLeafError,
    ThreadArchivedError,
    ThreadNotFoundError,
)
from sessiontree.model import Entry, Move
from sessiontree.model.blobs import Blobs, data_of, pack_of
from sessiontree.model.manifest import reachable
from sessiontree.stores.commands import Append, Draft, PutBlobs
from sessiontree.stores.rules.state import (
    Decision,
    DropBlobs,
    Fact,
    Node,
    PutEntry,
    PutHead,
    PutMove,
    PutPack,
    ThreadState,
    View,
)

__all__ = [
    "Grown",
    "append",
    "check_blobs",
    "check_fence",
    "check_leaf",
    "child",
    "existing",
    "garbage_without",
    "grow",
    "put_blobs",
    "refuse_repeated",
    "visible",
]


def put_blobs(command: PutBlobs, view: Blobs) -> Decision:
    given = {blob.hash: blob for blob in command.blobs}
    missing = view.missing_blobs(given)
    fresh = [blob for name, blob in given.items() if name in missing]
    return Decision(None, (PutPack(pack_of(fresh)),) if fresh else ())


def check_blobs(view: View, thread_id: str, drafts: Collection[Draft]) -> None:
    """A delete may have collected blobs between their put and this append; then nothing may refer to them."""
    for draft in drafts:
        if draft.blobs:
            missing = view.missing_blobs({name for each in drafts for name in each.blobs})
            if missing:
                raise MissingBlobsError(thread_id, sorted(missing))
            return


def garbage_without(view: View, entries: Collection[int]) -> tuple[DropBlobs, ...]:
    """What no checkpoint needs once these entries are gone; leftovers of snapshots that never ended go with it."""
    manifests = view.manifests(entries)
    if not manifests.theirs:
        return ()
    needed = reachable(manifests.others, lambda name: data_of(view.blobs([name])[0]))
    garbage = frozenset(view.blob_hashes()) - needed
    return (DropBlobs(garbage),) if garbage else ()


class Grown(Struct, frozen=True, gc=False):
    """Entries under a thread's new leaf, and what must be written for them."""

    state: ThreadState
    entries: tuple[Entry, ...]
    facts: tuple[Fact, ...]


def append(command: Append, view: View) -> Decision:
    state = existing(view, command.thread_id)
    if _has_given_ids(command):
        refuse_repeated(command.drafts)
        stored = _stored(command, view, state)
        if stored is not None:
            return Decision(stored)
    if command.token is not None:
        check_fence(view, state, command.token)
    if command.expect_leaf is not UNSET:
        check_leaf(state, command.expect_leaf)
    if command.expect_live and state.meta.is_archived:
        raise ThreadArchivedError(command.thread_id)
    check_blobs(view, command.thread_id, command.drafts)
    parent = state.leaf if command.parent is UNSET else _parent(command.parent, view, state)
    if not command.drafts:
        return Decision(())
    moves: tuple[Fact, ...] = ()
    if parent is not state.leaf and not _is_leaf(parent, state):
        state, move = _branched(state, parent, command.drafts[0].created_ns)
        moves = (move,)
    grown = grow(view, state, parent, command.drafts)
    return Decision(grown.entries, (*moves, *grown.facts))


def existing(view: View, thread_id: str) -> ThreadState:
    state = view.thread(thread_id)
    if state is None:
        raise ThreadNotFoundError(thread_id)
    return state


def check_fence(view: View, state: ThreadState, token: int | None) -> None:
    """A write under a lease counts only while that lease is the one in force; its expiry does not matter here."""
    if token is None:
        return
    lease = view.lease(state)
    if lease is None or lease.token != token:
        raise FencedError(state.meta.id, token, state.fence)


def check_leaf(state: ThreadState, expected: object) -> None:
    if expected is UNSET:
        return
    actual = state.leaf.id if state.leaf else None
    if expected != actual:
        assert expected is None or isinstance(expected, str)
        raise StaleLeafError(state.meta.id, expected, actual)


def visible(view: View, state: ThreadState, entry_id: str) -> Node | None:
    """The entry, if the thread sees it: appended through it, or an ancestor of its fork point."""
    node = view.find(state.tree, entry_id)
    if node is None or node.owner == state.key:
        return node
    if state.base is None or not (node.key == state.base.key or view.is_ancestor(node, state.base)):
        return None
    return node


def _stored(command: Append, view: View, state: ThreadState) -> tuple[Entry, ...] | None:
    """The entries of an append that happened before: same ids, same content, same order."""
    nodes = [None if draft.has_new_id else view.find(state.tree, draft.id) for draft in command.drafts]
    if not any(nodes):
        return None
    entries: list[Entry] = []
    above: Node | None = None
    for draft, node in zip(command.drafts, nodes, strict=True):
        if node is None:
            taken = next(held.id for held in nodes if held)
            raise DuplicateEntryError(command.thread_id, taken)
        if above is not None and node.parent != above.key:
            raise DuplicateEntryError(command.thread_id, node.id)
        entries.append(_settled(command, view, state, draft, node))
        above = node
    return tuple(entries)


def _has_given_ids(command: Append) -> bool:
    # A plain loop: every append comes by, and a generator costs more than what it looks at.
    for draft in command.drafts:  # noqa: SIM110
        if not draft.has_new_id:
            return True
    return False


def refuse_repeated(drafts: Sequence[Draft]) -> None:
    ids = [draft.id for draft in drafts]
    if len(ids) > 1 and len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise InvalidInputError(f"entry id {twice!r} stands twice in one append; give each entry its own id")


def _settled(command: Append, view: View, state: ThreadState, draft: Draft, node: Node) -> Entry:
    before = view.draft(node)
    same = before.body == draft.body and before.turn_id == draft.turn_id and node.owner == state.key
    parent = view.parent(node)
    parent_id = parent.id if parent else None
    is_first = draft is command.drafts[0]
    if not same or (is_first and command.parent is not UNSET and command.parent != parent_id):
        raise DuplicateEntryError(command.thread_id, draft.id)
    return _entry(before, state, parent_id)


def _parent(parent: str | UnsetType | None, view: View, state: ThreadState) -> Node | None:
    if not isinstance(parent, str):
        return None
    node = visible(view, state, parent)
    if node is None:
        raise InvalidParentError(state.meta.id, parent)
    return node


def _is_leaf(node: Node | None, state: ThreadState) -> bool:
    return node is not None and state.leaf is not None and node.key == state.leaf.key


def grow(view: View, state: ThreadState, tip: Node | None, drafts: Sequence[Draft]) -> Grown:
    """Put drafts, in order, under a node and move the leaf to the last one."""
    facts: list[Fact] = []
    entries: list[Entry] = []
    previous = state.newest
    for draft in drafts:
        if draft.has_new_id and view.has_new(state.tree, draft.id):
            raise DuplicateEntryError(state.meta.id, draft.id)
        node = child(tip, draft, state, view.next_entry_key())
        parent_id = tip.id if tip else None
        facts.append(PutEntry(state, node, parent_id, previous, draft))
        entries.append(_entry(draft, state, parent_id))
        tip, previous = node, node.key
    updated_ns = max(state.updated_ns, drafts[-1].created_ns)
    # All fields by hand: replace() costs more than all else here.
    grown = ThreadState(
        state.key, state.tree, state.meta, tip, state.base, updated_ns, state.fence, state.moves, previous
    )
    return Grown(grown, tuple(entries), (*facts, PutHead(grown)))


def _branched(state: ThreadState, parent: Node | None, at_ns: int) -> tuple[ThreadState, PutMove]:
    """An append under another parent than the leaf leaves a branch behind: that is a move, so it can be undone."""
    move = Move(
        number=state.moves + 1,
        thread_id=state.meta.id,
        from_entry=state.leaf.id if state.leaf else None,
        to_entry=parent.id if parent else None,
        reason="branch",
        at_ns=at_ns,
    )
    moved = replace(state, leaf=parent, moves=move.number)
    return moved, PutMove(moved, move)


def child(parent: Node | None, draft: Draft, state: ThreadState, key: int) -> Node:
    if parent is None:
        return Node(key, draft.id, state.key, None, 1, draft.messages, draft.tokens)
    messages = parent.messages + draft.messages
    return Node(key, draft.id, state.key, parent.key, parent.depth + 1, messages, parent.tokens + draft.tokens)


def _entry(draft: Draft, state: ThreadState, parent_id: str | None) -> Entry:
    return Entry(
        id=draft.id,
        thread_id=state.meta.id,
        parent=parent_id,
        created_ns=draft.created_ns,
        turn_id=draft.turn_id,
        payload=draft.payload,
    )
