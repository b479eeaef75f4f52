"""Threads and how they are listed, leases and compaction claims, and moves of the leaf."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal, TypedDict

from msgspec.structs import replace

from sessiontree.model._base import Record, moment
from sessiontree.model.entry import Checkpoint

__all__ = [
    "FORK_IDS_OF",
    "NO_KEY",
    "CompactionClaim",
    "Direction",
    "Lease",
    "Move",
    "MoveReason",
    "NextMove",
    "Page",
    "SessionKey",
    "Thread",
    "ThreadFields",
    "ThreadFilters",
    "ThreadOrder",
    "ThreadQuery",
]


ThreadOrder = Literal["created", "updated"]


class SessionKey(Record, frozen=True, kw_only=True):
    """The address of a conversation: agent, channel, peer, and sub-thread of the channel."""

    agent: str = ""
    channel: str = ""
    peer: str = ""
    thread: str = ""


NO_KEY = SessionKey()


class CompactionClaim(Record, frozen=True, kw_only=True):
    """The process that is compacting a thread. It prevents a second compaction, not appends, and expires."""

    id: str
    owner: str
    expires_ns: int

    def is_expired(self, now_ns: int) -> bool:
        """Return whether the claim has expired."""
        return now_ns >= self.expires_ns


FORK_IDS_OF = "fork_ids_of"
"""The key in the origin of a thread that only counts fork ids; its value is their base."""


class Thread(Record, frozen=True, kw_only=True):
    """A conversation: a named leaf in a tree, and its metadata.

    The store maintains ``entries`` and ``messages``, which count the active path, ``tokens``, an estimate of what the
    model sees of it now, and ``archive_changed_ns``, the time when the thread was last archived or unarchived.
    """

    id: str
    tree: str
    created_ns: int
    updated_ns: int
    version: int = 1
    leaf: str | None = None
    entries: int = 0
    messages: int = 0
    tokens: int = 0
    title: str = ""
    title_status: str = ""
    title_source: str = ""
    title_error: str = ""
    title_updated_ns: int = 0
    status: str = ""
    last_viewed_ns: int = 0
    is_archived: bool = False
    archive_changed_ns: int = 0
    parent_thread: str = ""
    forked_from_thread: str = ""
    forked_from_entry: str = ""
    workspace: str = ""
    vendor: str = ""
    endpoint: str = ""
    model: str = ""
    key: SessionKey = NO_KEY
    state: str = ""
    tags: tuple[str, ...] = ()
    custom: dict[str, Any] = {}
    origin: dict[str, Any] = {}
    compaction_claim: CompactionClaim | None = None

    @property
    def created_at(self) -> datetime:
        """The time of creation, in UTC."""
        return moment(self.created_ns)

    @property
    def updated_at(self) -> datetime:
        """The time of the last change, in UTC."""
        return moment(self.updated_ns)

    @property
    def is_empty(self) -> bool:
        """Whether there is no message on the active path; a system prompt does not count."""
        return self.messages == 0

    @property
    def is_register(self) -> bool:
        """Whether the thread holds no conversation but the count of fork ids of a base, which outlives old threads."""
        return FORK_IDS_OF in self.origin

    def without_counters(self) -> Thread:
        """The metadata alone: without the leaf, the counts and ``updated_ns``, which the store keeps up to date."""
        return replace(self, leaf=None, entries=0, messages=0, tokens=0, updated_ns=0)


class ThreadFields(TypedDict, total=False):
    """The metadata that a caller may set."""

    title: str
    title_status: str
    title_source: str
    title_error: str
    title_updated_ns: int
    updated_ns: int
    status: str
    last_viewed_ns: int
    is_archived: bool
    parent_thread: str
    workspace: str
    vendor: str
    endpoint: str
    model: str
    key: SessionKey
    state: str
    tags: tuple[str, ...]
    custom: dict[str, Any]
    origin: dict[str, Any]


class ThreadQuery(Record, frozen=True, kw_only=True):
    """Filters, order and page of a list of threads. All filters must match; ``None`` matches everything.

    A ``limit`` of ``None`` puts all of them on one page. A thread is empty if there is no message on its active path; a
    system prompt does not count.
    """

    is_archived: bool | None = False
    is_empty: bool | None = None
    title_contains: str | None = None
    tags: tuple[str, ...] = ()
    workspace: str | None = None
    vendor: str | None = None
    model: str | None = None
    agent: str | None = None
    channel: str | None = None
    peer: str | None = None
    key_thread: str | None = None
    state: str | None = None
    status: str | None = None
    parent_thread: str | None = None
    forked_from_thread: str | None = None
    tree: str | None = None
    created_after_ns: int | None = None
    created_before_ns: int | None = None
    updated_after_ns: int | None = None
    updated_before_ns: int | None = None
    order: ThreadOrder = "updated"
    cursor: str | None = None
    limit: int | None = 50


class ThreadFilters(TypedDict, total=False):
    """The fields of a ThreadQuery as keyword arguments."""

    is_archived: bool | None
    is_empty: bool | None
    title_contains: str
    tags: tuple[str, ...]
    workspace: str
    vendor: str
    model: str
    agent: str
    channel: str
    peer: str
    key_thread: str
    state: str
    status: str
    parent_thread: str
    forked_from_thread: str
    tree: str
    created_after_ns: int
    created_before_ns: int
    updated_after_ns: int
    updated_before_ns: int
    order: ThreadOrder
    cursor: str | None
    limit: int | None


class Page(Record, frozen=True, kw_only=True):
    """One page of threads, newest first. ``cursor`` fetches the next page; ``None`` on the last one."""

    threads: tuple[Thread, ...]
    cursor: str | None = None

    def __iter__(self) -> Iterator[Thread]:
        return iter(self.threads)

    def __len__(self) -> int:
        return len(self.threads)


MoveReason = Literal["move", "rewind", "reset", "retry", "branch", "undo", "redo"]


class Lease(Record, frozen=True, kw_only=True):
    """The right to run a turn on a thread. ``token`` grows with each lease; a write with an older one is refused."""

    thread_id: str
    turn_id: str
    owner: str
    token: int
    created_ns: int
    expires_ns: int

    def is_expired(self, now_ns: int) -> bool:
        """Return whether the lease has expired."""
        return now_ns >= self.expires_ns

    @property
    def expires_at(self) -> datetime:
        """The time of expiry, in UTC."""
        return moment(self.expires_ns)


class Move(Record, frozen=True, kw_only=True):
    """One line of the reflog. The reason ``branch`` is an append under a parent other than the leaf."""

    number: int
    thread_id: str
    from_entry: str | None = None
    to_entry: str | None = None
    reason: MoveReason = "move"
    at_ns: int = 0

    @property
    def at(self) -> datetime:
        """The time of the move, in UTC."""
        return moment(self.at_ns)


Direction = Literal["undo", "redo"]


class NextMove(Record, frozen=True, kw_only=True):
    """The leaf move that undo or redo would take back: the leaf would go to ``move.from_entry``.

    ``checkpoint`` holds the files as they were before a move that moved files, and is ``None`` for any other move.
    """

    move: Move
    checkpoint: Checkpoint | None = None
