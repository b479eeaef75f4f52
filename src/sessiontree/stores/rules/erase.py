"""Erase the contents of entries. This and deletes are the only commands that remove something for good."""

from __future__ import annotations

from sessiontree.stores.commands import EraseContents, Erased
from sessiontree.stores.rules.append import check_leaf, existing, grow
from sessiontree.stores.rules.state import Decision, PutErased, View

__all__ = ["erase_contents"]


def erase_contents(command: EraseContents, view: View) -> Decision:
    """Erase what no other thread sees, and append the draft under the leaf."""
    state = existing(view, command.thread_id)
    check_leaf(state, command.expect_leaf)
    nodes = tuple(view.seen_only_by(state, command.entries))
    result = Erased(thread_id=command.thread_id, entries=len(nodes))
    if not nodes:
        return Decision(result)
    grown = grow(view, state, state.leaf, (command.draft,))
    return Decision(result, (PutErased(state, nodes), *grown.facts))
