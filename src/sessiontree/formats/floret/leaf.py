"""Which entry is the tip of a floret thread: thread.json is written after the journal and may lag behind it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["repaired_leaf"]


def repaired_leaf(leaf: str, parents: Mapping[str, str]) -> str | None:
    """The tip by the original's own rule; ``parents`` is every entry's parent in the order of the journal.

    >>> journal = {"a": "", "b": "a", "c": "b"}
    >>> repaired_leaf("b", journal), repaired_leaf("gone", journal), repaired_leaf("", journal)
    ('c', 'c', 'c')
    """
    order = list(parents)
    if not order:
        return None
    if not leaf or leaf == order[-1]:
        return order[-1]
    if leaf not in parents:
        rooted = _descendants("", parents)
        return next((entry for entry in reversed(order) if entry in rooted), order[-1])
    below = _descendants(leaf, parents)
    return next((entry for entry in reversed(order) if entry in below), leaf)


def _descendants(ancestor: str, parents: Mapping[str, str]) -> set[str]:
    children: dict[str, list[str]] = {}
    for entry, parent in parents.items():
        children.setdefault(parent, []).append(entry)
    found: set[str] = set()
    todo = [ancestor]
    while todo:
        new = [child for child in children.get(todo.pop(), ()) if child not in found]
        found.update(new)
        todo += new
    return found
