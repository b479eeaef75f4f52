# Generated from handle_async.py by tools/async_to_sync.py; do not edit.
"""Handles: a thread with the verbs of its journal, so that the id is written once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, overload

from msgspec import UNSET, UnsetType

from sessiontree.journal.journal import Journal
from sessiontree.journal.thread_ids import BoundToThread
from sessiontree.model import Entry, Lease, Message, Payload, Thread, ThreadFields
from sessiontree.workspace import Conflicts

__all__ = ["ThreadHandle"]


P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C", bound=Payload | Message)


class _Bound(Generic[P, R_co]):
    """A verb of the journal without its first argument, the thread."""

    def __init__(self, verb: Callable[Concatenate[Any, Any, P], R_co]) -> None:
        self._name = verb.__name__
        self.__doc__ = verb.__doc__

    @overload
    def __get__(self, handle: None, owner: type) -> Self: ...
    @overload
    def __get__(self, handle: ThreadHandle, owner: type) -> Callable[P, R_co]: ...
    def __get__(self, handle: ThreadHandle | None, owner: type) -> Self | Callable[P, R_co]:
        if handle is None:
            return self
        return partial(getattr(handle.journal, self._name), handle.id)


class ThreadHandle(BoundToThread):
    """One thread of a journal, from ``journal.open_thread``. Each method is the verb of the journal with that name.

    ``update`` and ``delete`` are ``update_thread`` and ``delete_thread``. A handle keeps nothing but the id, so any
    number of handles and processes may use the same thread.
    """

    def __init__(self, journal: Journal, thread_id: str) -> None:
        self.journal = journal
        self.id = thread_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}>"

    thread = _Bound(Journal.thread)
    update = _Bound(Journal.update_thread)
    delete = _Bound(Journal.delete_thread)
    suggest_title = _Bound(Journal.suggest_title)

    append_many = _Bound(Journal.append_many)
    entry = _Bound(Journal.entry)
    entries = _Bound(Journal.entries)
    path = _Bound(Journal.path)
    path_bodies = _Bound(Journal.path_bodies)
    children = _Bound(Journal.children)
    events = _Bound(Journal.events)
    label = _Bound(Journal.label)
    labels = _Bound(Journal.labels)
    watch = _Bound(Journal.watch)
    erase = _Bound(Journal.erase)
    prune = _Bound(Journal.prune)

    move_leaf = _Bound(Journal.move_leaf)
    rewind = _Bound(Journal.rewind)
    reset = _Bound(Journal.reset)
    reflog = _Bound(Journal.reflog)

    turn = _Bound(Journal.turn)
    resume = _Bound(Journal.resume)
    retry = _Bound(Journal.retry)
    enqueue = _Bound(Journal.enqueue)
    inbox = _Bound(Journal.inbox)
    withdraw = _Bound(Journal.withdraw)
    acquire_lease = _Bound(Journal.acquire_lease)
    active_lease = _Bound(Journal.active_lease)

    context = _Bound(Journal.context)
    compact = _Bound(Journal.compact)
    needs_compaction = _Bound(Journal.needs_compaction)
    compact_if_needed = _Bound(Journal.compact_if_needed)
    uncompact = _Bound(Journal.uncompact)
    replace_context = _Bound(Journal.replace_context)
    leave_branch = _Bound(Journal.leave_branch)

    costs = _Bound(Journal.costs)
    export = _Bound(Journal.export)

    def append(
        self,
        content: C,
        *,
        id: str | None = None,
        parent: str | UnsetType | None = UNSET,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        created_ns: int | None = None,
        turn_id: str = "",
        fields: ThreadFields | None = None,
        expect_version: int | None = None,
        moves_leaf: bool = True,
    ) -> Entry[C]:
        """Append one entry under the leaf, or under ``parent``; it is durable when this returns."""
        return self.journal.append(
            self.id,
            content,
            id=id,
            parent=parent,
            expect_leaf=expect_leaf,
            lease=lease,
            created_ns=created_ns,
            turn_id=turn_id,
            fields=fields,
            expect_version=expect_version,
            moves_leaf=moves_leaf,
        )

    def fork(
        self,
        *,
        at: str | None = None,
        before: str | None = None,
        new_id: str | None = None,
        **fields: Unpack[ThreadFields],
    ) -> ThreadHandle:
        """Create a thread that shares the entries up to ``at``, up to the parent of ``before``, or up to the leaf."""
        forked = self.journal.fork(self.id, at=at, before=before, new_id=new_id, **fields)
        return ThreadHandle(self.journal, forked.id)

    def undo(self, *, conflicts: Conflicts = "stop") -> Thread:
        """Take the last leaf move back; files that moved with it come back too."""
        return self.journal.undo(self.id, conflicts=conflicts)

    def redo(self, *, conflicts: Conflicts = "stop") -> Thread:
        """Take the last undo back; files that moved with it move again."""
        return self.journal.redo(self.id, conflicts=conflicts)

    @property
    def title(self) -> str:
        """The title of the thread; setting it changes the thread."""
        return self.thread().title

    @title.setter
    def title(self, title: str) -> None:
        self.update(title=title)
