"""Imports: threads of another store keep their ids, times, places, forks and reflogs."""

from __future__ import annotations

from msgspec.structs import replace

from sessiontree.commands import ImportHistory, ImportThread, Placed
from sessiontree.errors import DuplicateEntryError, EntryNotFoundError, InvalidParentError, ThreadExistsError
from sessiontree.model import Move, Thread
from sessiontree.rules.appending import child, existing, visible
from sessiontree.rules.blobs import check_blobs
from sessiontree.rules.state import Decision, Fact, Node, PutEntry, PutHead, PutMove, PutThread, ThreadState, View

__all__ = ["import_history", "import_thread", "plain"]


def import_thread(command: ImportThread, view: View) -> Decision:
    thread = command.thread
    taken = view.thread(thread.id)
    if taken is not None:
        if plain(taken.meta) != plain(thread) or (taken.base.id if taken.base else None) != command.base:
            raise ThreadExistsError(thread.id)
        return Decision(taken.public())
    key, tree = view.next_thread_key(), view.tree_of(thread.tree)
    base = None if command.base is None or tree is None else view.find(tree, command.base)
    if base is None and command.base is not None:
        raise EntryNotFoundError(thread.id, command.base)
    state = ThreadState(
        key=key,
        tree=key if tree is None else tree,
        meta=replace(plain(thread), updated_ns=thread.updated_ns),
        leaf=base,
        base=base,
        updated_ns=thread.updated_ns,
    )
    return Decision(state.public(), (PutThread(state),))


def import_history(command: ImportHistory, view: View) -> Decision:
    state = existing(view, command.thread_id)
    facts: list[Fact] = []
    fresh: dict[str, Node] = {}
    for step in command.steps:
        fact: PutEntry | PutMove | None
        match step:
            case Placed():
                fact = _place(step, view, state, fresh)
            case Move():
                fact = _move(step, view, state, fresh)
        if fact is not None:
            facts.append(fact)
            state = _after(fact, state)
    if not facts:
        return Decision(state.public())
    check_blobs(view, command.thread_id, [fact.draft for fact in facts if isinstance(fact, PutEntry)])
    return Decision(state.public(), (*facts, PutHead(state)))


def plain(thread: Thread) -> Thread:
    """The metadata without what the store counts itself."""
    return replace(thread, leaf=None, entries=0, messages=0, tokens=0, updated_ns=0)


def _place(step: Placed, view: View, state: ThreadState, fresh: dict[str, Node]) -> PutEntry | None:
    draft = step.draft
    if draft.id in fresh:
        raise DuplicateEntryError(state.meta.id, draft.id)
    node = view.find(state.tree, draft.id)
    if node is not None:
        if node.owner != state.key or view.draft(node).body != draft.body:
            raise DuplicateEntryError(state.meta.id, draft.id)
        return None
    parent = None if step.parent is None else fresh.get(step.parent) or visible(view, state, step.parent)
    if parent is None and step.parent is not None:
        raise InvalidParentError(state.meta.id, step.parent)
    fresh[draft.id] = node = child(parent, draft, state, view.next_entry_key())
    return PutEntry(state, node, step.parent, state.newest, draft)


def _move(step: Move, view: View, state: ThreadState, fresh: dict[str, Node]) -> PutMove | None:
    if step.number <= state.moves:
        return None
    target = None if step.to_entry is None else fresh.get(step.to_entry) or visible(view, state, step.to_entry)
    if target is None and step.to_entry is not None:
        raise EntryNotFoundError(state.meta.id, step.to_entry)
    return PutMove(replace(state, leaf=target, moves=step.number), step)


def _after(fact: PutEntry | PutMove, state: ThreadState) -> ThreadState:
    match fact:
        case PutEntry(node=node):
            return replace(state, leaf=node, newest=node.key)
        case PutMove(state=moved):
            return moved
