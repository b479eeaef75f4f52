# mypy: no-warn-unreachable
"""Handles: a thread with the verbs of its journal, so that the id is written once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, overload

from msgspec import UNSET, UnsetType

from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.thread_ids import BoundToThread
from sessiontree.model import Entry, Lease, Message, Payload, Thread, ThreadFields
from sessiontree.workspace import Conflicts

__all__ = ["AsyncThreadHandle"]


P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C", bound=Payload | Message)


class _AsyncBound(Generic[P, R_co]):
    """A verb of the journal without its first argument, the thread."""

    def __init__(self, verb: Callable[Concatenate[Any, Any, P], R_co]) -> None:
        self._name = verb.__name__
        self.__doc__ = verb.__doc__

    @overload
    def __get__(self, handle: None, owner: type) -> Self: ...
    @overload
    def __get__(self, handle: AsyncThreadHandle, owner: type) -> Callable[P, R_co]: ...
    def __get__(self, handle: AsyncThreadHandle | None, owner: type) -> Self | Callable[P, R_co]:
        if handle is None:
            return self
        return partial(getattr(handle.journal, self._name), handle.id)


class AsyncThreadHandle(BoundToThread):
    """One thread of a journal, from ``journal.open_thread``. Each method is the verb of the journal with that name.

    ``update`` and ``delete`` are ``update_thread`` and ``delete_thread``. A handle keeps nothing but the id, so any
    number of handles and processes may use the same thread.
    """

    def __init__(self, journal: AsyncJournal, thread_id: str) -> None:
        self.journal = journal
        self.id = thread_id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id!r}>"

    thread = _AsyncBound(AsyncJournal.thread)
    update = _AsyncBound(AsyncJournal.update_thread)
    delete = _AsyncBound(AsyncJournal.delete_thread)
    suggest_title = _AsyncBound(AsyncJournal.suggest_title)

    append_many = _AsyncBound(AsyncJournal.append_many)
    entry = _AsyncBound(AsyncJournal.entry)
    entries = _AsyncBound(AsyncJournal.entries)
    path = _AsyncBound(AsyncJournal.path)
    path_bodies = _AsyncBound(AsyncJournal.path_bodies)
    children = _AsyncBound(AsyncJournal.children)
    events = _AsyncBound(AsyncJournal.events)
    label = _AsyncBound(AsyncJournal.label)
    labels = _AsyncBound(AsyncJournal.labels)
    watch = _AsyncBound(AsyncJournal.watch)
    erase = _AsyncBound(AsyncJournal.erase)
    prune = _AsyncBound(AsyncJournal.prune)

    move_leaf = _AsyncBound(AsyncJournal.move_leaf)
    rewind = _AsyncBound(AsyncJournal.rewind)
    reset = _AsyncBound(AsyncJournal.reset)
    reflog = _AsyncBound(AsyncJournal.reflog)

    turn = _AsyncBound(AsyncJournal.turn)
    resume = _AsyncBound(AsyncJournal.resume)
    retry = _AsyncBound(AsyncJournal.retry)
    enqueue = _AsyncBound(AsyncJournal.enqueue)
    inbox = _AsyncBound(AsyncJournal.inbox)
    withdraw = _AsyncBound(AsyncJournal.withdraw)
    acquire_lease = _AsyncBound(AsyncJournal.acquire_lease)
    active_lease = _AsyncBound(AsyncJournal.active_lease)

    context = _AsyncBound(AsyncJournal.context)
    compact = _AsyncBound(AsyncJournal.compact)
    needs_compaction = _AsyncBound(AsyncJournal.needs_compaction)
    compact_if_needed = _AsyncBound(AsyncJournal.compact_if_needed)
    uncompact = _AsyncBound(AsyncJournal.uncompact)
    replace_context = _AsyncBound(AsyncJournal.replace_context)
    leave_branch = _AsyncBound(AsyncJournal.leave_branch)

    costs = _AsyncBound(AsyncJournal.costs)
    export = _AsyncBound(AsyncJournal.export)

    async def append(
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
        return await self.journal.append(
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

    async def fork(
        self,
        *,
        at: str | None = None,
        before: str | None = None,
        new_id: str | None = None,
        **fields: Unpack[ThreadFields],
    ) -> AsyncThreadHandle:
        """Create a thread that shares the entries up to ``at``, up to the parent of ``before``, or up to the leaf."""
        forked = await self.journal.fork(self.id, at=at, before=before, new_id=new_id, **fields)
        return AsyncThreadHandle(self.journal, forked.id)

    async def undo(self, *, conflicts: Conflicts = "stop") -> Thread:
        """Take the last leaf move back; files that moved with it come back too."""
        return await self.journal.undo(self.id, conflicts=conflicts)

    async def redo(self, *, conflicts: Conflicts = "stop") -> Thread:
        """Take the last undo back; files that moved with it move again."""
        return await self.journal.redo(self.id, conflicts=conflicts)

    if True:  # ASYNC
        pass  # a property cannot wait: (await chat.thread()).title, await chat.update(title=…)
    else:

        @property
        def title(self) -> str:
            """The title of the thread; setting it changes the thread."""
            return self.thread().title

        @title.setter
        def title(self, title: str) -> None:
            self.update(title=title)
