# Generated from entries_async.py by tools/async_to_sync.py; do not edit.
"""Verbs about threads and their entries: create, list, fork, append, read, follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Unpack, cast

from msgspec import UNSET, UnsetType

from sessiontree.compaction.titles import Titler
from sessiontree.journal._verbs import Verbs
from sessiontree.journal.operations import entries, reads, threads
from sessiontree.journal.operations.entries import Content, NewEntry
from sessiontree.journal.operations.watch import Feed
from sessiontree.model import Entry, Lease, Message, Page, Payload, Thread, ThreadFields, ThreadFilters, ThreadQuery
from sessiontree.stores.commands import Deleted

__all__ = ["EntryVerbs", "ThreadVerbs"]


class ThreadVerbs(Verbs):
    def create_thread(
        self,
        id: str | None = None,
        *,
        created_ns: int | None = None,
        updated_ns: int | None = None,
        contents: Iterable[Content] = (),
        **fields: Unpack[ThreadFields],
    ) -> Thread:
        """Start a conversation, with its first entries in the same commit; an id that is taken is ThreadExistsError."""
        return self.run(
            threads.create_thread(self.runtime, id, created_ns, fields, updated_ns=updated_ns, contents=contents)
        )

    def thread(self, thread_id: str) -> Thread:
        """A thread's metadata and counters."""
        return self.run(threads.thread(thread_id))

    def update_thread(
        self, thread_id: str, *, expect_version: int | None = None, **fields: Unpack[ThreadFields]
    ) -> Thread:
        """Change metadata; with ``expect_version`` only if nobody else did meanwhile (StaleVersionError)."""
        return self.run(threads.update_thread(self.runtime, thread_id, expect_version, fields))

    def delete_thread(self, thread_id: str, *, expect_version: int | None = None) -> Deleted:
        """Delete a thread for good; entries that a fork still shows stay.

        With ``expect_version`` only if nobody changed its metadata meanwhile (StaleVersionError).
        """
        return self.run(threads.delete_thread(thread_id, expect_version))

    def list_threads(self, query: ThreadQuery | None = None, **filters: Unpack[ThreadFilters]) -> Page:
        """A page of threads, newest first; archived ones only with ``is_archived=True``, or ``None`` for all."""
        return self.run(threads.list_threads(query, filters))

    def iter_threads(self, query: ThreadQuery | None = None, **filters: Unpack[ThreadFilters]) -> Iterator[Thread]:
        """All threads that ``list_threads`` would list, page after page; ``limit`` is the size of a page."""
        while True:
            page = self.list_threads(query, **filters)
            yield from page
            if page.cursor is None:
                return
            filters["cursor"] = page.cursor

    def fork(
        self,
        thread_id: str,
        *,
        at: str | None = None,
        before: str | None = None,
        new_id: str | None = None,
        created_ns: int | None = None,
        **fields: Unpack[ThreadFields],
    ) -> Thread:
        """A new thread that shares everything up to ``at``, or up to the parent of ``before``, or up to the leaf."""
        operation = threads.fork(
            self.runtime, thread_id, at=at, before=before, new_id=new_id, created_ns=created_ns, fields=fields
        )
        return self.run(operation)

    def suggest_title(self, thread_id: str, titler: Titler | None = None, *, limit: int = 60) -> Thread:
        """Give a thread without a title one: by the titler, or the user's first words."""
        return self.run(threads.suggest_title(self.runtime, thread_id, titler, limit))

    def delete_older_than(
        self, updated_before_ns: int, *, is_archived: bool | None = None, is_dry_run: bool = False
    ) -> list[Thread]:
        """Delete the threads that were last changed before a time, and say which; a dry run only says."""
        return self.run(reads.delete_older_than(updated_before_ns, is_archived, is_dry_run=is_dry_run))


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
            self.runtime,
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
            self.runtime, thread_id, contents, parent=parent, expect_leaf=expect_leaf, lease=lease
        )
        return self.run(operation)

    def entry(self, thread_id: str, entry_id: str) -> Entry:
        """One entry that the thread can see."""
        return self.run(entries.entry(thread_id, entry_id))

    def entries(self, thread_id: str, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """All entries that the thread can see, every branch, in the order of their commits."""
        return self.run(entries.entries(thread_id, after, limit))

    def path(self, thread_id: str, leaf: str | UnsetType | None = UNSET, *, limit: int | None = None) -> list[Entry]:
        """Root to leaf; ``limit`` keeps only the newest ones."""
        return self.run(entries.path(thread_id, leaf, limit))

    def children(self, thread_id: str, entry_id: str | None) -> list[Entry]:
        """The entries that hang from an entry; ``None`` asks for the roots."""
        return self.run(entries.children(thread_id, entry_id))

    def label(self, thread_id: str, entry_id: str, name: str) -> Entry:
        """Give an entry a name; an empty name takes it away."""
        return self.run(entries.label(self.runtime, thread_id, entry_id, name))

    def labels(self, thread_id: str) -> dict[str, str]:
        """Label to entry id."""
        return self.run(entries.labels(thread_id))

    def watch(
        self, thread_id: str, *, after: str | UnsetType | None = UNSET, timeout: float | None = None
    ) -> Iterator[Entry]:
        """New entries of a thread as they are committed, by any process.

        Starts now (under asyncio: at the first step), or after the entry ``after``, or with ``after=None`` at the
        thread's first own entry. Ends when nothing came for ``timeout`` seconds; without one it goes on until the
        caller stops.
        """
        feed = Feed(thread_id, after, timeout)
        # At the call, not at the first step, so that nothing is missed in between.
        self.run(feed.start())
        return self._follow(feed)

    def _follow(self, feed: Feed) -> Iterator[Entry]:
        while not feed.is_over():
            mark = self.store.mark(feed.thread_id)
            yield from feed.take()
            if not self.run(feed.read()):
                self.store.wait(feed.thread_id, mark, feed.wait_seconds())

    def events(self, thread_id: str, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """The side events of a thread in order; ``after`` the id of the last entry that was seen goes on from there."""
        return self.run(reads.events(thread_id, after, limit))
