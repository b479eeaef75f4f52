"""Create, update, fork, delete and import threads.

An imported thread keeps its ids, times, fork point and reflog.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from sessiontree.errors import (
    DuplicateEntryError,
    EntryNotFoundError,
    InvalidParentError,
    ThreadChangedError,
    ThreadExistsError,
)
from sessiontree.model import Move, Thread
from sessiontree.stores.commands import (
    CreateThread,
    Deleted,
    DeleteThread,
    Fork,
    ImportHistory,
    ImportThread,
    PositionedDraft,
    UpdateThread,
)
from sessiontree.stores.listing import matches
from sessiontree.stores.rules.append import (
    Grown,
    begin,
    check_blobs,
    check_leaf,
    check_version,
    child,
    existing,
    garbage_without,
    grow,
    has_same_content,
    refuse_taken,
    titled,
    updated,
    visible,
)
from sessiontree.stores.rules.state import (
    Decision,
    DropThread,
    Node,
    PutEntry,
    PutHead,
    PutMove,
    PutThread,
    ThreadState,
    View,
)

__all__ = ["create_thread", "delete_thread", "fork", "import_history", "import_thread", "update_thread"]


INHERITED_BY_FORKS = ("workspace", "vendor", "endpoint", "model", "tags", "custom")


def create_thread(command: CreateThread, view: View) -> Decision:
    """Create a thread, with entries if there are any."""
    thread = command.thread
    if view.thread(thread.id) is not None:
        raise ThreadExistsError(thread.id)
    drafts = [*command.drafts, *(step.draft for step in command.history)]
    if not drafts:
        state = begin(view, thread)
        return Decision(state.public(), (PutThread(state),))
    state = titled(begin(view, thread), drafts)
    refuse_taken(view, state, drafts)
    check_blobs(view, thread.id, drafts)
    grown = grow(view, state, None, command.drafts) if command.drafts else Grown(state, (), ())
    facts, last = _replay(command.history, view, grown.state)
    return Decision(last.public(), (PutThread(state), *grown.facts, *facts, PutHead(last)))


def update_thread(command: UpdateThread, view: View) -> Decision:
    """Change metadata and count the version up."""
    state = existing(view, command.thread_id)
    check_version(state, command.expect_version)
    if not command.fields:
        return Decision(state.public())
    changed = updated(state, command)
    return Decision(changed.public(), (PutThread(changed),))


def fork(command: Fork, view: View) -> Decision:
    """Create a thread that shares the entries up to a fork point; the same fork again returns the existing one."""
    source = existing(view, command.source_id)
    check_leaf(source, command.expect_leaf)
    base = _fork_point(command, view, source)
    taken = view.thread(command.thread.id)
    if taken is not None and command.expect_new:
        raise ThreadExistsError(command.thread.id)
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
    if not command.history:
        return Decision(state.public(), (PutThread(state),))
    facts, grown = _replay(command.history, view, state)
    check_blobs(view, command.thread.id, [step.draft for step in command.history])
    return Decision(grown.public(), (PutThread(state), *facts, PutHead(grown)))


def delete_thread(command: DeleteThread, view: View) -> Decision:
    """Delete a thread, the entries that no other thread sees, and the blobs that nothing needs then."""
    state = existing(view, command.thread_id)
    check_version(state, command.expect_version)
    check_leaf(state, command.expect_leaf)
    if command.expect_match is not None and not matches(state.public(), command.expect_match):
        raise ThreadChangedError(command.thread_id)
    gone = tuple(view.unseen_without(state))
    kept = max(0, view.owned(state) - len(gone))
    report = Deleted(thread_id=command.thread_id, entries_removed=len(gone), entries_kept=kept)
    return Decision(report, (DropThread(state, gone), *garbage_without(view, gone)))


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
    """The existing fork if the command repeats it; the source may have grown since if no entry was named."""
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


def import_thread(command: ImportThread, view: View) -> Decision:
    """Create a thread as it is in another store."""
    thread = command.thread
    taken = view.thread(thread.id)
    if taken is not None:
        if (
            taken.meta.without_counters() != thread.without_counters()
            or (taken.base.id if taken.base else None) != command.base
        ):
            raise ThreadExistsError(thread.id)
        return Decision(taken.public())
    key, tree = view.next_thread_key(), view.tree_of(thread.tree)
    base = None if command.base is None or tree is None else view.find(tree, command.base)
    if base is None and command.base is not None:
        raise EntryNotFoundError(thread.id, command.base)
    state = ThreadState(
        key=key,
        tree=key if tree is None else tree,
        meta=replace(thread.without_counters(), updated_ns=thread.updated_ns),
        leaf=base,
        base=base,
        updated_ns=thread.updated_ns,
    )
    return Decision(state.public(), (PutThread(state),))


def import_history(command: ImportHistory, view: View) -> Decision:
    """Add entries and moves, skipping those that exist."""
    facts, state = _replay(command.steps, view, existing(view, command.thread_id))
    if not facts:
        return Decision(state.public())
    check_blobs(view, command.thread_id, [fact.draft for fact in facts if isinstance(fact, PutEntry)])
    return Decision(state.public(), (*facts, PutHead(state)))


def _replay(
    steps: Iterable[PositionedDraft | Move], view: View, state: ThreadState
) -> tuple[list[PutEntry | PutMove], ThreadState]:
    """Return the facts of the steps that are not there yet, and the state after them."""
    facts: list[PutEntry | PutMove] = []
    new: dict[str, Node] = {}
    for step in steps:
        fact: PutEntry | PutMove | None
        match step:
            case PositionedDraft():
                fact = _import_entry(step, view, state, new)
            case Move():
                fact = _import_move(step, view, state, new)
        if fact is not None:
            facts.append(fact)
            state = _after(fact, state)
    return facts, state


def _import_entry(step: PositionedDraft, view: View, state: ThreadState, new: dict[str, Node]) -> PutEntry | None:
    draft = step.draft
    if draft.id in new:
        raise DuplicateEntryError(state.meta.id, draft.id)
    node = view.find(state.tree, draft.id)
    if node is not None:
        if node.owner != state.key or not has_same_content(view.draft(node), draft):
            raise DuplicateEntryError(state.meta.id, draft.id)
        return None
    parent = None if step.parent is None else new.get(step.parent) or visible(view, state, step.parent)
    if parent is None and step.parent is not None:
        raise InvalidParentError(state.meta.id, step.parent)
    new[draft.id] = node = child(parent, draft, state, view.next_entry_key())
    return PutEntry(state, node, step.parent, state.newest, draft, step.is_aside)


def _import_move(step: Move, view: View, state: ThreadState, new: dict[str, Node]) -> PutMove | None:
    if step.number <= state.moves:
        return None
    target = None if step.to_entry is None else new.get(step.to_entry) or visible(view, state, step.to_entry)
    if target is None and step.to_entry is not None:
        raise EntryNotFoundError(state.meta.id, step.to_entry)
    return PutMove(replace(state, leaf=target, moves=step.number), step)


def _after(fact: PutEntry | PutMove, state: ThreadState) -> ThreadState:
    match fact:
        case PutEntry(node=node, is_aside=True):
            return replace(state, newest=node.key)
        case PutEntry(node=node):
            return replace(state, leaf=node, newest=node.key)
        case PutMove(state=moved):
            return moved
