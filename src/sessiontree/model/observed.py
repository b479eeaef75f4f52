"""What an observer of a journal is told: what was done and how long it took, never what was said."""

from __future__ import annotations

from collections.abc import Callable

from sessiontree.model._base import Record

__all__ = ["CommitDone", "GroupWritten", "Observed", "Observer", "OperationDone", "ReadDone"]


class _Done(Record, frozen=True, kw_only=True):
    """``started_ns`` is the time of the system's clock; ``error`` is the name of the exception's class, or ""."""

    place: str
    started_ns: int
    seconds: float
    error: str = ""


class OperationDone(_Done, frozen=True, kw_only=True):
    """A verb of the journal that is more than one command or query, such as ``compact`` or ``fork``."""

    name: str


class CommitDone(_Done, frozen=True, kw_only=True):
    """A command, such as ``Append``. ``wait_seconds`` of its time passed before its group was written."""

    name: str
    thread_id: str = ""
    wait_seconds: float = 0.0


class ReadDone(_Done, frozen=True, kw_only=True):
    """A query, such as ``ReadPath`` or ``Search``."""

    name: str
    thread_id: str = ""


class GroupWritten(_Done, frozen=True, kw_only=True):
    """Commands that were written together, with one sync. Only embedded stores write groups."""

    size: int


Observed = OperationDone | CommitDone | ReadDone | GroupWritten

Observer = Callable[[Observed], None]
"""Called after each operation, command, query and group, in the thread that did it. It must not block, and what it raises
is logged and changes nothing."""
