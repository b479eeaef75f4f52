"""Erase the contents of entries. This and deletes are the only commands that remove something for good."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from sessiontree.errors import EntryNotFoundError
from sessiontree.stores.commands import Draft, EraseContents, Erased
from sessiontree.stores.rules.append import check_leaf, existing, garbage_without, grow, title_of, with_metadata
from sessiontree.stores.rules.state import ERASED_BODY, Decision, Node, PutErased, PutHead, PutThread, ThreadState, View

__all__ = ["erase_contents"]


def erase_contents(command: EraseContents, view: View) -> Decision:
    """Erase contents, with the titles that threads got from them and the blobs that nothing else needs."""
    state = existing(view, command.thread_id)
    check_leaf(state, command.expect_leaf)
    nodes = _erasable(command, view, state)
    result = Erased(thread_id=command.thread_id, entries=len(nodes))
    if not nodes:
        return Decision(result)
    titles = frozenset(title_of(view.draft(node).payload) for node in nodes) - {""}
    others = (
        [PutThread(_untitled(other)) for other in view.family(state) if other.meta.title in titles] if titles else []
    )
    garbage = garbage_without(view, [node.key for node in nodes])
    own = _own_facts(view, state, titles, command.draft)
    return Decision(result, (PutErased(state, nodes, titles), *own.facts, *others, *garbage))


def _erasable(command: EraseContents, view: View, state: ThreadState) -> tuple[Node, ...]:
    entry_ids = tuple(dict.fromkeys(command.entries))
    if command.in_all_threads:
        found = view.seen_by(state, entry_ids)
        missing = set(entry_ids).difference(node.id for node in found)
        if missing:
            raise EntryNotFoundError(command.thread_id, min(missing))
    else:
        found = view.seen_only_by(state, entry_ids)
    return tuple(node for node in found if view.draft(node).body != ERASED_BODY)


def _own_facts(view: View, state: ThreadState, titles: Collection[str], draft: Draft | None) -> Decision:
    """What changes in the thread itself: its title, and its leaf if there is a draft."""
    named = _untitled(state) if state.meta.title in titles else state
    grown = None if draft is None else grow(view, named, named.leaf, (draft,))
    decision = Decision(None, (PutHead(named),) if grown is None else grown.facts)
    return decision if named is state else with_metadata(decision, named if grown is None else grown.state)


def _untitled(state: ThreadState) -> ThreadState:
    return replace(state, meta=replace(state.meta, title="", title_status="", title_source="", title_updated_ns=0))
