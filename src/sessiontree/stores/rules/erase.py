"""Erase the contents of entries. This and deletes are the only commands that remove something for good."""

from __future__ import annotations

from msgspec.structs import replace

from sessiontree.model.titles import FIRST_MESSAGE
from sessiontree.stores.commands import EraseContents, Erased
from sessiontree.stores.rules.append import check_leaf, existing, garbage_without, grow, title_of, with_metadata
from sessiontree.stores.rules.state import Decision, PutErased, View

__all__ = ["erase_contents"]


def erase_contents(command: EraseContents, view: View) -> Decision:
    """Erase what no other thread sees, with the title that the thread got from it, and append the draft."""
    before = state = existing(view, command.thread_id)
    check_leaf(state, command.expect_leaf)
    nodes = tuple(view.seen_only_by(state, command.entries))
    result = Erased(thread_id=command.thread_id, entries=len(nodes))
    if not nodes:
        return Decision(result)
    titles = frozenset(title_of(view.draft(node).payload) for node in nodes)
    if state.meta.title_source == FIRST_MESSAGE and state.meta.title in titles:
        state = replace(state, meta=replace(state.meta, title="", title_status="", title_source="", title_updated_ns=0))
    grown = grow(view, state, state.leaf, (command.draft,))
    garbage = garbage_without(view, [node.key for node in nodes])
    decision = Decision(result, (PutErased(state, nodes, titles), *grown.facts, *garbage))
    return decision if state is before else with_metadata(decision, grown.state)
