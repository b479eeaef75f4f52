"""Verbs about entries: append, read, follow; for asyncio."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import cast

from msgspec import UNSET, UnsetType

from sessiontree.async_journal.base import AsyncVerbs
from sessiontree.model import Entry, Lease, Message, Payload
from sessiontree.operations import entries, exports
from sessiontree.operations.entries import Content, NewEntry
from sessiontree.watching import follow_async

__all__ = ["AsyncEntryVerbs"]


class AsyncEntryVerbs(AsyncVerbs):
    async def append(
        self,
        thread_id: str,
        content: Payload | Message,
        *,
        id: str | None = None,
        parent: str | UnsetType | None = UNSET,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        created_ns: int | None = None,
        turn_id: str = "",
        expect_live: bool = False,
    ) -> Entry:
        """Add one entry under the leaf, durably; the same ``id`` with the same content is a no-op.

        With ``expect_live`` a thread that is archived refuses it (ThreadArchivedError).
        """
        new = NewEntry(content=content, id=id, created_ns=created_ns, turn_id=turn_id)
        command = entries.append_command(
            self._sources,
            thread_id,
            new,
            parent=parent,
            expect_leaf=expect_leaf,
            lease=lease,
            expect_live=expect_live,
        )
        stored = cast("tuple[Entry, ...]", await self.store.acommit(command))
        return stored[0]

    async def append_many(
        self,
        thread_id: str,
        contents: Iterable[Content],
        *,
        parent: str | UnsetType | None = UNSET,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
    ) -> list[Entry]:
        """Add several entries in a row, all or none."""
        operation = entries.append_many(
            self._sources, thread_id, contents, parent=parent, expect_leaf=expect_leaf, lease=lease
        )
        return await self._run(operation)

    async def entry(self, thread_id: str, entry_id: str) -> Entry:
        """One entry that the thread can see."""
        return await self._run(entries.entry(thread_id, entry_id))

    async def entries(self, thread_id: str, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """All entries that the thread can see, every branch, in the order of their commits."""
        return await self._run(entries.entries(thread_id, after, limit))

    async def path(
        self, thread_id: str, leaf: str | UnsetType | None = UNSET, *, limit: int | None = None
    ) -> list[Entry]:
        """Root to leaf; ``limit`` keeps only the newest ones."""
        return await self._run(entries.path(thread_id, leaf, limit))

    async def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        """The entries that hang from an entry; ``None`` asks for the roots."""
        return await self._run(entries.children(thread_id, entry_id))

    async def label(self, thread_id: str, entry_id: str, name: str) -> Entry:
        """Give an entry a name; an empty name takes it away."""
        return await self._run(entries.label(self._sources, thread_id, entry_id, name))

    async def labels(self, thread_id: str) -> dict[str, str]:
        """Label to entry id."""
        return await self._run(entries.labels(thread_id))

    def watch(
        self, thread_id: str, *, after: str | UnsetType | None = UNSET, timeout: float | None = None
    ) -> AsyncIterator[Entry]:
        """New entries of a thread as they are committed, by any process.

        Starts now (under asyncio: at the first step), or after the entry ``after``, or with ``after=None`` at the
        thread's first own entry. Ends when nothing came for ``timeout`` seconds; without one it goes on until the
        caller stops.
        """
        return follow_async(self.store, thread_id, after, timeout)

    async def events(self, thread_id: str, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """The side events of a thread in order; ``after`` the id of the last entry that was seen goes on from there."""
        return await self._run(exports.events(thread_id, after, limit))
