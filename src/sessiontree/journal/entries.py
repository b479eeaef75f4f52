"""Verbs about entries: append, read, follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from msgspec import UNSET, UnsetType

from sessiontree.journal.base import Verbs
from sessiontree.model import Entry, Lease, Message, Payload
from sessiontree.operations import entries, exports
from sessiontree.operations.entries import Content, NewEntry
from sessiontree.watching import follow

__all__ = ["EntryVerbs"]


class EntryVerbs(Verbs):
    def append(
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
        stored = cast("tuple[Entry, ...]", self.store.commit(command))
        return stored[0]

    def append_many(
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
        return self._run(operation)

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        """One entry that the thread can see."""
        return self._run(entries.entry(thread_id, entry_id))

    def entries(self, thread_id: str, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """All entries that the thread can see, every branch, in the order of their commits."""
        return self._run(entries.entries(thread_id, after, limit))

    def path(self, thread_id: str, leaf: str | UnsetType | None = UNSET, *, limit: int | None = None) -> list[Entry]:
        """Root to leaf; ``limit`` keeps only the newest ones."""
        return self._run(entries.path(thread_id, leaf, limit))

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        """The entries that hang from an entry; ``None`` asks for the roots."""
        return self._run(entries.children(thread_id, entry_id))

    def label(self, thread_id: str, entry_id: str, name: str) -> Entry:
        """Give an entry a name; an empty name takes it away."""
        return self._run(entries.label(self._sources, thread_id, entry_id, name))

    def labels(self, thread_id: str) -> dict[str, str]:
        """Label to entry id."""
        return self._run(entries.labels(thread_id))

    def watch(
        self, thread_id: str, *, after: str | UnsetType | None = UNSET, timeout: float | None = None
    ) -> Iterator[Entry]:
        """New entries of a thread as they are committed, by any process.

        Starts now (under asyncio: at the first step), or after the entry ``after``, or with ``after=None`` at the
        thread's first own entry. Ends when nothing came for ``timeout`` seconds; without one it goes on until the
        caller stops.
        """
        return follow(self.store, thread_id, after, timeout)

    def events(self, thread_id: str, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """The side events of a thread in order; ``after`` the id of the last entry that was seen goes on from there."""
        return self._run(exports.events(thread_id, after, limit))
