"""The subagents of a thread, and what an export says of those that it leaves out."""

from __future__ import annotations

from collections.abc import Container, Iterator

from sessiontree.journal import Journal
from sessiontree.model import Thread
from sessiontree.render.figures import plural

__all__ = ["subagents_left_out", "subagents_of"]


def subagents_of(journal: Journal, thread_id: str) -> Iterator[Thread]:
    """The threads that a thread started, the oldest first. A fork has a parent too, but is a conversation of its own."""
    children = journal.iter_threads(parent_thread=thread_id, is_archived=None, order="created")
    return (child for child in children if not child.forked_from_thread)


def subagents_left_out(journal: Journal, thread_id: str, exported: Container[str] = ()) -> list[str]:
    """The number of a thread's subagents that are not among the exported threads, in words; empty if there are none."""
    number = sum(child.id not in exported for child in subagents_of(journal, thread_id))
    return [plural(number, "subagent")] if number else []
