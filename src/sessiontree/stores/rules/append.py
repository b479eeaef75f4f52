"""Append entries and put blobs; the checks that other rules share."""

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
    StaleVersionError,
    ThreadArchivedError,
    ThreadNotFoundError,
)
from sessiontree.model import Entry, Move, Payload, Thread, UserMessage
from sessiontree.model.blobs import Blobs, data_of, pack_of
from sessiontree.model.codec import DAMAGED
from sessiontree.model.manifest import reachable
from sessiontree.model.titles import FIRST_MESSAGE, is_title_text, title_from
from sessiontree.stores.commands import Append, Draft, PutBlobs, UpdateThread
from sessiontree.stores.rules.reflog import tops_after
from sessiontree.stores.rules.state import (
    ERASED_BODY,
    Decision,
    DropBlobs,
    Fact,
    Node,
    PutEntry,
    PutHead,
    PutMove,
    PutPack,
    PutPending,
    PutThread,
    ThreadState,
    View,
)

__all__ = [
    "Grown",
    "append",
    "begin",
    "check_blobs",
    "check_fence",
    "check_leaf",
    "check_version",
    "child",
    "existing",
    "garbage_without",
    "grow",
    "has_same_content",
    "needs_title",
    "put_blobs",
    "refuse_repeated",
    "refuse_taken",
    "title_of",
    "titled",
    "updated",
    "visible",
    "with_metadata",
    "with_update",
]


def append(command: Append, view: View) -> Decision:
    """Append drafts under a parent; an append that was stored before returns its entries again."""
    state = view.thread(command.thread_id)
    if state is None:
        return _append_to_new(command, view)
    if _has_given_ids(command):
        refuse_repeated(command.drafts)
        if command.on_duplicate == "skip":
            return _append_rest(command, view, state)
        stored = _stored(command, view, state)
        if stored is not None:
            return Decision(stored)
    return _append(command, view, state)


def _append_to_new(command: Append, view: View) -> Decision:
    """Append to a thread that is created in the same commit."""
    if command.create is None:
        raise ThreadNotFoundError(command.thread_id)
    if command.token is not None:
        raise FencedError(command.thread_id, command.token, 0)
    expected = command.update.expect_version if command.update else None
    if expected:
        raise StaleVersionError(command.thread_id, expected, 0)
    state = titled(begin(view, command.create), command.drafts)
    refuse_taken(view, state, command.drafts)
    decision = _append(replace(command, update=None), view, state)
    return Decision(decision.result, (PutThread(state), *decision.facts))


def _append_rest(command: Append, view: View, state: ThreadState) -> Decision:
    """Append the drafts that are not stored yet."""
    nodes = {draft.id: None if draft.has_new_id else view.find(state.tree, draft.id) for draft in command.drafts}
    stored = {
        draft.id: _stored_entry(command, view, state, draft, node)
        for draft in command.drafts
        if (node := nodes[draft.id]) is not None
    }
    rest = tuple(draft for draft in command.drafts if draft.id not in stored)
    if stored and not rest:
        return Decision(tuple(stored.values()))
    decision = _append(replace(command, drafts=rest), view, state)
    assert isinstance(decision.result, tuple)
    entries = stored | {entry.id: entry for entry in decision.result}
    return Decision(tuple(entries[draft.id] for draft in command.drafts), decision.facts)


def _append(command: Append, view: View, state: ThreadState) -> Decision:
    """Check what the command expects, and append its drafts, of which none is stored yet."""
    if command.token is not None:
        check_fence(view, state, command.token)
    if command.expect_leaf is not UNSET:
        check_leaf(state, command.expect_leaf)
    if command.expect_live and state.meta.is_archived:
        raise ThreadArchivedError(command.thread_id)
    if command.update is not None:
        check_version(state, command.update.expect_version)
    check_blobs(view, command.thread_id, command.drafts)
    parent = state.leaf if command.parent is UNSET else _parent(command.parent, view, state)
    if not command.drafts:
        return with_update(Decision(()), command.update, state)
    if not command.moves_leaf:
        grown = grow(view, state, parent, command.drafts, moves_leaf=False)
        return with_update(Decision(grown.entries, grown.facts), command.update, grown.state)
    moves: tuple[Fact, ...] = ()
    anchor = _anchor(command.drafts, parent, view, state)
    if anchor is not state.leaf and not _is_leaf(anchor, state):
        state, move = _branched(view, state, anchor, command.drafts[0].created_ns)
        moves = (move,)
    grown = grow(view, state, parent, command.drafts)
    decision = Decision(grown.entries, (*moves, *grown.facts))
    named = titled(grown.state, command.drafts)
    if named is not grown.state:
        decision = with_metadata(decision, named)
    return with_update(decision, command.update, named)


def _anchor(drafts: Sequence[Draft], parent: Node | None, view: View, state: ThreadState) -> Node | None:
    """The stored entry that the path to the last draft hangs from."""
    anchors: dict[str, Node | None] = {}
    for draft in drafts:
        if isinstance(draft.parent, str):
            parent = anchors[draft.parent] if draft.parent in anchors else _parent(draft.parent, view, state)
        elif draft.parent is None:
            parent = None
        anchors[draft.id] = parent
    return parent


def begin(view: View, thread: Thread) -> ThreadState:
    """The state of a new thread, in the tree of its name: forks may have kept a tree whose first thread was deleted."""
    key = view.next_thread_key()
    tree = view.tree_of(thread.id)
    return ThreadState(
        key=key,
        tree=key if tree is None else tree,
        meta=replace(thread, tree=thread.id),
        leaf=None,
        base=None,
        updated_ns=thread.updated_ns,
    )


def refuse_taken(view: View, state: ThreadState, drafts: Sequence[Draft]) -> None:
    """Refuse ids that occur twice, or that the tree has: forks may have kept entries of a deleted thread of this name."""
    refuse_repeated(drafts)
    if view.tree_of(state.meta.id) is None:
        return
    for draft in drafts:
        if view.find(state.tree, draft.id) is not None:
            raise DuplicateEntryError(state.meta.id, draft.id)


def existing(view: View, thread_id: str) -> ThreadState:
    """The state of a thread; raise ThreadNotFoundError if there is none."""
    state = view.thread(thread_id)
    if state is None:
        raise ThreadNotFoundError(thread_id)
    return state


def check_fence(view: View, state: ThreadState, token: int | None) -> None:
    """Raise FencedError unless ``token`` is that of the current lease, expired or not."""
    if token is None:
        return
    lease = view.lease(state)
    if lease is None or lease.token != token:
        raise FencedError(state.meta.id, token, state.fence)


def check_leaf(state: ThreadState, expected: str | UnsetType | None) -> None:
    """Raise StaleLeafError unless the leaf is ``expected`` or that is UNSET."""
    if expected is UNSET:
        return
    actual = state.leaf.id if state.leaf else None
    if expected != actual:
        raise StaleLeafError(state.meta.id, expected, actual)


def check_version(state: ThreadState, expected: int | None) -> None:
    """Raise StaleVersionError unless the version of the metadata is ``expected`` or that is None."""
    if expected is not None and expected != state.meta.version:
        raise StaleVersionError(state.meta.id, expected, state.meta.version)


def updated(state: ThreadState, command: UpdateThread) -> ThreadState:
    """The thread with the metadata of a command and the next version."""
    changes = {name: getattr(command.changed, name) for name in command.fields}
    if changes.get("is_archived", state.meta.is_archived) != state.meta.is_archived:
        changes["archive_changed_ns"] = command.at_ns
    if "title" in changes and state.meta.title_source == FIRST_MESSAGE:
        changes.setdefault("title_source", "")
    updated_ns = changes.get("updated_ns", state.updated_ns)
    meta = replace(state.meta, version=state.meta.version + 1, **changes)
    return replace(state, updated_ns=updated_ns, meta=meta)


def with_update(decision: Decision, command: UpdateThread | None, state: ThreadState) -> Decision:
    """The decision, which leaves the thread in ``state``, with a change of its metadata in the same commit."""
    if command is None or not command.fields:
        return decision
    return with_metadata(decision, updated(state, command))


def with_metadata(decision: Decision, state: ThreadState) -> Decision:
    """The decision with the whole thread instead of its head."""
    result = state.public() if isinstance(decision.result, Thread) else decision.result
    without_head = tuple(fact for fact in decision.facts if not isinstance(fact, PutHead | PutThread))
    return Decision(result, (*without_head, PutThread(state)))


def titled(state: ThreadState, drafts: Sequence[Draft]) -> ThreadState:
    """The thread with the first text of a user as its title, unless it has a title or somebody else gives it one.

    The version stays: it counts what callers change, and a title of theirs takes precedence.
    """
    meta = state.meta
    if not needs_title(meta):
        return state
    for draft in drafts:
        if title := title_of(draft.payload):
            named = replace(
                meta,
                title=title,
                title_status="ready",
                title_source=FIRST_MESSAGE,
                title_updated_ns=draft.created_ns,
            )
            return replace(state, meta=named)
    return state


def needs_title(meta: Thread) -> bool:
    """Whether the next text of a user becomes the title: not if a host or another program gives one, or may do so.

    Metadata that cannot be read is left for a repair.
    """
    return not (meta.title or meta.title_source or meta.origin or meta.status == DAMAGED)


def title_of(payload: Payload) -> str:
    """The title that a thread without one gets from an entry; empty if it is no text of a user."""
    text = payload.message.text.strip() if isinstance(payload, UserMessage) else ""
    return title_from(text) if is_title_text(text) else ""


def visible(view: View, state: ThreadState, entry_id: str) -> Node | None:
    """The entry if the thread sees it: appended through it, its fork point, or an ancestor of that; else None."""
    node = view.find(state.tree, entry_id)
    if node is None or node.owner == state.key:
        return node
    if state.base is None or not (node.key == state.base.key or view.is_ancestor(node, state.base)):
        return None
    return node


def _stored(command: Append, view: View, state: ThreadState) -> tuple[Entry, ...] | None:
    """The entries of an append that was stored before, with the same ids, content and order; else None."""
    nodes = [None if draft.has_new_id else view.find(state.tree, draft.id) for draft in command.drafts]
    if not any(nodes):
        return None
    entries: list[Entry] = []
    above: Node | None = None
    for draft, node in zip(command.drafts, nodes, strict=True):
        if node is None:
            taken = next(held.id for held in nodes if held)
            raise DuplicateEntryError(command.thread_id, taken)
        if above is not None and draft.parent is UNSET and node.parent != above.key:
            raise DuplicateEntryError(command.thread_id, node.id)
        entries.append(_stored_entry(command, view, state, draft, node))
        above = node
    return tuple(entries)


def _has_given_ids(command: Append) -> bool:
    # A plain loop: this is on the path of every append, and a generator costs more than the loop.
    for draft in command.drafts:  # noqa: SIM110
        if not draft.has_new_id:
            return True
    return False


def refuse_repeated(drafts: Sequence[Draft]) -> None:
    """Raise InvalidInputError if two drafts have the same id."""
    ids = [draft.id for draft in drafts]
    if len(ids) > 1 and len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise InvalidInputError(f"entry id {twice!r} occurs twice in one append; give each entry its own id")


def _stored_entry(command: Append, view: View, state: ThreadState, draft: Draft, node: Node) -> Entry:
    before = view.draft(node)
    same = has_same_content(before, draft) and before.turn_id == draft.turn_id and node.owner == state.key
    parent = view.parent(node)
    parent_id = parent.id if parent else None
    wanted = command.parent if draft is command.drafts[0] and draft.parent is UNSET else draft.parent
    if not same or (wanted is not UNSET and wanted != parent_id):
        raise DuplicateEntryError(command.thread_id, draft.id)
    return _entry(before, state, parent_id)


def has_same_content(stored: Draft, draft: Draft) -> bool:
    """Whether two drafts of one id agree. An erased content agrees with any: a copy or an import may still have it."""
    return stored.body == draft.body or ERASED_BODY in (stored.body, draft.body)


def _parent(parent: str | UnsetType | None, view: View, state: ThreadState) -> Node | None:
    if not isinstance(parent, str):
        return None
    node = visible(view, state, parent)
    if node is None:
        raise InvalidParentError(state.meta.id, parent)
    return node


def _is_leaf(node: Node | None, state: ThreadState) -> bool:
    return node is not None and state.leaf is not None and node.key == state.leaf.key


class Grown(Struct, frozen=True, gc=False):
    """A thread after an append, the new entries, and the facts to write."""

    state: ThreadState
    entries: tuple[Entry, ...]
    facts: tuple[Fact, ...]


def grow(
    view: View, state: ThreadState, tip: Node | None, drafts: Sequence[Draft], *, moves_leaf: bool = True
) -> Grown:
    """Append drafts, in order, the first under a node, and move the leaf to the last one."""
    facts: list[Fact] = []
    entries: list[Entry] = []
    added: dict[str, Node] = {}
    previous = state.newest
    for draft in drafts:
        if draft.has_new_id and view.has_new(state.tree, draft.id):
            raise DuplicateEntryError(state.meta.id, draft.id)
        if draft.parent is not UNSET:
            tip = added[draft.parent] if draft.parent in added else _parent(draft.parent, view, state)
        node = child(tip, draft, state, view.next_entry_key())
        parent_id = tip.id if tip else None
        facts.append(PutEntry(state, node, parent_id, previous, draft, not moves_leaf))
        entries.append(_entry(draft, state, parent_id))
        tip, previous = node, node.key
        added[draft.id] = node
    updated_ns = max(state.updated_ns, drafts[-1].created_ns)
    leaf = tip if moves_leaf else state.leaf
    # Positional, because replace() would cost more than the rest of this function.
    grown = ThreadState(
        state.key, state.tree, state.meta, leaf, state.base, updated_ns, state.fence, state.moves, previous
    )
    return Grown(grown, tuple(entries), (*facts, PutHead(grown)))


def _branched(view: View, state: ThreadState, parent: Node | None, at_ns: int) -> tuple[ThreadState, PutMove]:
    """The thread after a move to ``parent``: an append elsewhere than at the leaf leaves a branch, and can be undone."""
    move = Move(
        number=state.moves + 1,
        thread_id=state.meta.id,
        from_entry=state.leaf.id if state.leaf else None,
        to_entry=parent.id if parent else None,
        reason="branch",
        at_ns=at_ns,
    )
    moved = replace(state, leaf=parent, moves=move.number)
    return moved, PutMove(moved, move, tops_after(view, state, move))


def child(parent: Node | None, draft: Draft, state: ThreadState, key: int) -> Node:
    """The node of a draft under a parent."""
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


def put_blobs(command: PutBlobs, view: Blobs) -> Decision:
    """Store the blobs that are missing."""
    given = {blob.hash: blob for blob in command.blobs}
    missing = view.missing_blobs(given)
    new = [blob for name, blob in given.items() if name in missing]
    facts: tuple[Fact, ...] = (PutPack(pack_of(new)),) if new else ()
    return Decision(None, (*facts, PutPending(frozenset(given))) if command.are_artifacts else facts)


def check_blobs(view: View, thread_id: str, drafts: Collection[Draft]) -> None:
    """Raise MissingBlobsError if a blob that the drafts need is missing: a delete may have collected it since its put."""
    for draft in drafts:
        if draft.blobs:
            missing = view.missing_blobs({name for each in drafts for name in each.blobs})
            if missing:
                raise MissingBlobsError(thread_id, sorted(missing))
            return


def garbage_without(view: View, entries: Collection[int]) -> tuple[DropBlobs, ...]:
    """The blobs that nothing needs once these entries are gone.

    Blobs of snapshots and deletes that were never finished are among them.
    """
    theirs, others = view.blob_roots(entries)
    if not theirs.manifests and not theirs.artifacts:
        return ()
    needed = reachable(others.manifests, lambda name: data_of(view.blobs([name])[0])) | others.artifacts
    garbage = frozenset(view.blob_hashes()) - needed
    return (DropBlobs(garbage),) if garbage else ()
