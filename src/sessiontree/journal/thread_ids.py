"""What names a thread in the verbs of a journal: its id, the thread itself, or a handle.

>>> id_of("t")
't'
>>> id_of(Thread(id="t", tree="t", created_ns=0, updated_ns=0))
't'
"""

from __future__ import annotations

from sessiontree.errors import InvalidInputError
from sessiontree.model import Thread

__all__ = ["BoundToThread", "ThreadLike", "id_of"]


class BoundToThread:
    """The base of handles: objects that belong to one thread."""

    id: str


ThreadLike = str | Thread | BoundToThread


def id_of(thread: ThreadLike) -> str:
    """Return the id of a thread."""
    if type(thread) is str:
        return thread
    if isinstance(thread, Thread | BoundToThread):
        return thread.id
    if not isinstance(thread, str):
        raise InvalidInputError(f"a thread is named by its id, a Thread or a thread handle, not by {thread!r}")
    return thread
