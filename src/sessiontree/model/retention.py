"""Which threads may go, and what their deletion gave back."""

from __future__ import annotations

from sessiontree.model._base import Record
from sessiontree.model.thread import Thread

__all__ = ["Expired", "Retention", "RetentionReport"]


class Retention(Record, frozen=True, kw_only=True):
    """Which threads to delete.

    The filters select threads: those last changed before ``updated_before_ns``, with all of ``tags``, in ``workspace``,
    archived ones unless ``is_archived`` says otherwise, empty ones. Of these, the ``keep_newest`` last changed stay; and
    with ``max_bytes``, only as many go, the oldest first, as must go for the store to take no more than that. Threads with
    labels stay unless ``includes_labelled``; threads with a running turn always stay.
    """

    updated_before_ns: int | None = None
    tags: tuple[str, ...] = ()
    workspace: str | None = None
    is_archived: bool | None = True
    is_empty: bool | None = None
    keep_newest: int = 0
    max_bytes: int | None = None
    includes_labelled: bool = False


class Expired(Record, frozen=True, kw_only=True):
    """A thread that goes, and how many bytes its entries take. Files and what forks share are not counted."""

    thread: Thread
    bytes: int


class RetentionReport(Record, frozen=True, kw_only=True):
    """What was deleted, or would be by a dry run."""

    expired: tuple[Expired, ...] = ()
    changed: tuple[str, ...] = ()
    """Threads that were changed meanwhile, and stay."""
    bytes: int = 0
    """The bytes of the entries of all expired threads."""
    freed_bytes: int = 0
    """How much smaller the files of the store are now; a database server gives room back by itself, later."""
