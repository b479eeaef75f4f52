"""Threads: create, update, fork, delete."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from sessiontree.commands import CreateThread, Deleted, DeleteThread, Draft, Fork, UpdateThread
from sessiontree.errors import DuplicateEntryError, EntryNotFoundError, StaleVersionError, ThreadExistsError
from sessiontree.model import Thread
from sessiontree.rules.appending import existing, grow, refuse_repeated, visible
from sessiontree.rules.blobs import check_blobs, garbage_without
from sessiontree.rules.state import Decision, DropThread, Node, PutThread, ThreadState, View

__all__ = ["create_thread", "delete_thread", "fork", "update_thread"]

INHERITED_BY_FORKS = ("workspace", "vendor", "endpoint", "model", "tags", "custom")


def create_thread(command: CreateThread, view: View) -> Decision:
    thread = command.thread
    if view.thread(thread.id) is not None:
        raise ThreadExistsError(thread.id)
    key = view.next_thread_key()
    tree = view.tree_of(thread.id)
    state = ThreadState(
        key=key,
        tree=key if tree is None else tree,
        meta=replace(thread, tree=thread.id),
        leaf=None,
        base=None,
        updated_ns=thread.updated_ns,
    )
    if not command.drafts:
        return Decision(state.public(), (PutThread(state),))
    refuse_repeated(command.drafts)
    if tree is not None:
        _refuse_taken(view, state, command.drafts)
    check_blobs(view, thread.id, command.drafts)
    grown = grow(view, state, None, command.drafts)
    return Decision(grown.state.public(), (PutThread(state), *grown.facts))


def _refuse_taken(view: View, state: ThreadState, drafts: Sequence[Draft]) -> None:
    """Where a fork kept entries of a thread of this name that is gone, an id may be one of theirs."""
    for draft in drafts:
        if view.find(state.tree, draft.id) is not None:
            raise DuplicateEntryError(state.meta.id, draft.id)


def update_thread(command: UpdateThread, view: View) -> Decision:
    state = existing(view, command.thread_id)
    version = state.meta.version
    _check_version(state, command.expect_version)
    if not command.fields:
        return Decision(state.public())
    changes = {name: getattr(command.changed, name) for name in command.fields}
    if changes.get("is_archived", state.meta.is_archived) != state.meta.is_archived:
        changes["archive_changed_ns"] = command.at_ns
    changed = replace(state, meta=replace(state.meta, version=version + 1, **changes))
    return Decision(changed.public(), (PutThread(changed),))


def fork(command: Fork, view: View) -> Decision:
    source = existing(view, command.source_id)
    base = _fork_point(command, view, source)
    taken = view.thread(command.thread.id)
    if taken is not None:
        return Decision(_same_fork(command, taken, base).public())
    state = ThreadState(
        key=view.next_thread_key(),
        tree=source.tree,
        meta=_fork_meta(command, source, base),
        leaf=base,
        base=base,
        updated_ns=command.thread.updated_ns,
    )
    return Decision(state.public(), (PutThread(state),))


def delete_thread(command: DeleteThread, view: View) -> Decision:
    state = existing(view, command.thread_id)
    _check_version(state, command.expect_version)
    gone = tuple(view.unseen_without(state))
    kept = max(0, view.owned(state) - len(gone))
    report = Deleted(thread_id=command.thread_id, entries_removed=len(gone), entries_kept=kept)
    return Decision(report, (DropThread(state, gone), *garbage_without(view, gone)))


def _check_version(state: ThreadState, expected: int | None) -> None:
    if expected is not None and expected != state.meta.version:
        raise StaleVersionError(state.meta.id, expected, state.meta.version)


def _fork_point(command: Fork, view: View, source: ThreadState) -> Node | None:
    if command.entry_id is None:
        target = source.leaf
    else:
        target = visible(view, source, command.entry_id)
        if target is None:
            raise EntryNotFoundError(command.source_id, command.entry_id)
    if command.position == "before" and target is not None:
        return view.parent(target)
    return target


def _same_fork(command: Fork, taken: ThreadState, base: Node | None) -> ThreadState:
    """A fork that is asked for twice is one fork; where no entry was named, the source may have grown meanwhile."""
    is_same_place = command.entry_id is None or taken.meta.forked_from_entry == (base.id if base else "")
    if taken.meta.forked_from_thread != command.source_id or not is_same_place:
        raise ThreadExistsError(command.thread.id)
    return taken


def _fork_meta(command: Fork, source: ThreadState, base: Node | None) -> Thread:
    given = command.thread
    inherited = {name: getattr(source.meta, name) for name in INHERITED_BY_FORKS if name not in command.fields}
    return replace(
        given,
        tree=source.meta.tree,
        parent_thread=given.parent_thread or command.source_id,
        forked_from_thread=command.source_id,
        forked_from_entry=base.id if base else "",
        **inherited,
    )
