# Generated from entries_async.py by tools/async_to_sync.py; do not edit.
"""Verbs about threads and their entries: create, list, fork, append, read, follow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeVar, Unpack, cast

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sessiontree.compaction.titles import Titler
from sessiontree.errors import InvalidInputError
from sessiontree.journal._base import Verbs
from sessiontree.journal.operations import entries, erase, reads, threads
from sessiontree.journal.operations.changes import ChangeAnswer, Changes, commit
from sessiontree.journal.operations.entries import Content, NewEntry
from sessiontree.journal.operations.watch import Feed
from sessiontree.journal.thread_ids import ThreadLike, id_of
from sessiontree.model import Entry, Lease, Message, Page, Payload, Thread, ThreadFields, ThreadFilters, ThreadQuery
from sessiontree.model._base import Progress
from sessiontree.model.codec import EntryBody
from sessiontree.model.retention import Expired, Retention, RetentionReport
from sessiontree.stores.commands import Deleted, Erased, OnDuplicate

__all__ = ["EntryVerbs", "ThreadVerbs"]

C = TypeVar("C", bound=Payload | Message)


class ThreadVerbs(Verbs):
    """The verbs about threads."""

    def create_thread(
        self,
        id: str | None = None,
        *,
        created_ns: int | None = None,
        contents: Iterable[Content] = (),
        **fields: Unpack[ThreadFields],
    ) -> Thread:
        """Create a thread, and its first entries in the same commit. Raises ThreadExistsError if the id is taken."""
        return self.run(threads.create_thread(self.runtime, id, created_ns, fields, contents=contents))

    def thread(self, thread_id: ThreadLike) -> Thread:
        """Return a thread: its metadata, its leaf and its counters."""
        return self.run(threads.thread(id_of(thread_id)))

    def update_thread(
        self, thread_id: ThreadLike, *, expect_version: int | None = None, **fields: Unpack[ThreadFields]
    ) -> Thread:
        """Change the metadata of a thread.

        With ``expect_version``, raises StaleVersionError if the thread has been changed since it was read.
        """
        return self.run(threads.update_thread(self.runtime, id_of(thread_id), expect_version, fields))

    def delete_thread(
        self,
        thread_id: ThreadLike,
        *,
        expect_version: int | None = None,
        expect_match: ThreadQuery | None = None,
        expect_leaf: str | UnsetType | None = UNSET,
    ) -> Deleted:
        """Delete a thread for good. Entries that a fork of it still shows are kept.

        With ``expect_version``, raises StaleVersionError if the metadata has been changed since it was read. With
        ``expect_match``, raises ThreadChangedError if the thread does not pass the filters of that query; appends
        change ``updated_ns``, so a query by ``updated_before_ns`` spares a thread that is in use again. With
        ``expect_leaf``, raises StaleLeafError if the leaf is another one.
        """
        return self.run(threads.delete_thread(id_of(thread_id), expect_version, expect_match, expect_leaf))

    def commit(self, changes: Changes) -> list[ChangeAnswer]:
        """Make changes of several threads and documents in one commit, and return what each of their verbs returns.

        If one is refused, its error is raised and nothing is changed.
        """
        return self.run(commit(self.runtime, changes))

    def list_threads(self, query: ThreadQuery | None = None, **filters: Unpack[ThreadFilters]) -> Page:
        """Return one page of threads, the last changed first.

        Archived threads are left out; ``is_archived=True`` lists only them, ``is_archived=None`` lists all. Threads
        without a message are listed; ``is_empty=False`` leaves them out, ``is_empty=True`` lists only them.
        """
        return self.run(threads.list_threads(query, filters))

    def iter_threads(self, query: ThreadQuery | None = None, **filters: Unpack[ThreadFilters]) -> Iterator[Thread]:
        """Iterate over all threads that match, reading one page at a time; ``limit`` is the size of a page."""
        while True:
            page = self.list_threads(query, **filters)
            yield from page
            if page.cursor is None:
                return
            filters["cursor"] = page.cursor

    def fork(
        self,
        thread_id: ThreadLike,
        *,
        at: str | None = None,
        before: str | None = None,
        new_id: str | None = None,
        created_ns: int | None = None,
        branches: Literal["path", "all"] = "path",
        **fields: Unpack[ThreadFields],
    ) -> Thread:
        """Create a thread that shares the entries up to ``at``, up to the parent of ``before``, or up to the leaf.

        ``branches="all"`` copies every branch that the thread shows, with ids, times and contents as they are, and
        takes over its leaf. Such a fork shares nothing with its source, and costs as much as what it copies.
        """
        if branches == "all":
            if at is not None or before is not None:
                raise InvalidInputError("a fork of all branches ends where its source does: leave at= and before= out")
            return self.run(
                threads.fork_all(self.runtime, id_of(thread_id), new_id=new_id, created_ns=created_ns, fields=fields)
            )
        operation = threads.fork(
            self.runtime, id_of(thread_id), at=at, before=before, new_id=new_id, created_ns=created_ns, fields=fields
        )
        return self.run(operation)

    def suggest_title(self, thread_id: ThreadLike, titler: Titler | None = None, *, limit: int = 60) -> Thread:
        """Give a thread that has no title one: from the titler, or else from the first words of the user.

        The title that a thread got by itself from its first message is replaced. A titler that fails is recorded in ``title_status`` and ``title_error``.
        """
        return self.run(threads.suggest_title(self.runtime, id_of(thread_id), titler, limit))

    def delete_older_than(
        self,
        updated_before_ns: int,
        *,
        is_archived: bool | None = None,
        is_empty: bool | None = None,
        is_dry_run: bool = False,
    ) -> list[Thread]:
        """Delete the threads that were last changed before a time, and return them; a dry run only returns them.

        With ``is_empty=True``, only those without a message. Each thread is deleted only if it is still that old at that
        moment: one that gets a message meanwhile is kept.
        """
        query = ThreadQuery(updated_before_ns=updated_before_ns, is_archived=is_archived, is_empty=is_empty)
        return self.run(reads.delete_matching(query, is_dry_run=is_dry_run))

    def find_expired(self, retention: Retention) -> tuple[Expired, ...]:
        """Return the threads that a retention does not keep, the oldest first, with the bytes of their entries.

        A dry run of ``delete_expired``.
        """
        from sessiontree.journal.operations.retention import find_expired  # noqa: PLC0415  few programs need it

        return self.run(find_expired(self.runtime, retention))

    def delete_expired(
        self, retention: Retention, expired: Iterable[Expired] | None = None, *, progress: Progress | None = None
    ) -> RetentionReport:
        """Delete the threads that a retention does not keep, and give the room that they took back to the disk.

        ``expired`` is what ``find_expired`` returned, if that was shown to somebody first. A thread that is changed
        meanwhile stays. Writes wait while the file of a SQLite store is made smaller. ``progress(done, total)`` is called
        with numbers of threads.
        """
        from sessiontree.journal.operations.retention import delete_expired  # noqa: PLC0415  few programs need it

        found = self.find_expired(retention) if expired is None else tuple(expired)
        report = self.run(delete_expired(retention, found, progress))
        if not report.expired:
            return report
        return replace(report, freed_bytes=self.store.reclaim())


class EntryVerbs(Verbs):
    """The verbs about entries."""

    def append(
        self,
        thread_id: ThreadLike,
        content: C,
        *,
        id: str | None = None,
        parent: str | UnsetType | None = UNSET,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        created_ns: int | None = None,
        turn_id: str = "",
        expect_live: bool = False,
        fields: ThreadFields | None = None,
        expect_version: int | None = None,
        create: bool = False,
        moves_leaf: bool = True,
    ) -> Entry[C]:
        """Append one entry under the leaf, or under ``parent``; it is durable when this returns.

        An ``id`` that is there already with the same content is not appended again, so a write whose outcome is
        unknown can be repeated. ``expect_leaf`` raises StaleLeafError if the leaf is another one, ``expect_live``
        raises ThreadArchivedError if the thread is archived, and ``lease`` raises FencedError if it has been lost.

        ``fields`` changes metadata of the thread in the same commit, under ``expect_version`` as in ``update_thread``.
        ``create`` creates the thread with these fields if it is missing. Without ``moves_leaf`` the leaf stays where it
        is, and with it the path.
        """
        new = NewEntry(content=content, id=id, created_ns=created_ns, turn_id=turn_id)
        if fields is not None or expect_version is not None or create or not moves_leaf:
            together = threads.append_and_update(
                self.runtime,
                id_of(thread_id),
                [new],
                fields=fields or {},
                expect_version=expect_version,
                create=create,
                parent=parent,
                expect_leaf=expect_leaf,
                lease=lease,
                expect_live=expect_live,
                moves_leaf=moves_leaf,
            )
            return cast("Entry[C]", (self.run(together))[0])
        command = entries.append_command(
            self.runtime,
            id_of(thread_id),
            new,
            parent=parent,
            expect_leaf=expect_leaf,
            lease=lease,
            expect_live=expect_live,
        )
        if entries.has_replacement(command.drafts):
            return cast("Entry[C]", (self.run(entries.commit_append(command)))[0])
        stored = cast("tuple[Entry[C], ...]", self.store.commit(command))
        return stored[0]

    def append_many(
        self,
        thread_id: ThreadLike,
        contents: Iterable[Content],
        *,
        parent: str | UnsetType | None = UNSET,
        expect_leaf: str | UnsetType | None = UNSET,
        lease: Lease | None = None,
        fields: ThreadFields | None = None,
        expect_version: int | None = None,
        create: bool = False,
        on_duplicate: OnDuplicate = "fail",
        moves_leaf: bool = True,
    ) -> list[Entry]:
        """Append several entries, each under the one before it or under the ``parent`` of its ``NewEntry``, all or none.

        A batch that is stored already is not appended again; one of which only a part is stored raises
        DuplicateEntryError, or with ``on_duplicate="skip"`` the rest of it is appended. The other options are those of
        ``append``; without contents, ``fields`` are changed alone.
        """
        operation = threads.append_and_update(
            self.runtime,
            id_of(thread_id),
            contents,
            fields=fields or {},
            expect_version=expect_version,
            create=create,
            parent=parent,
            expect_leaf=expect_leaf,
            lease=lease,
            on_duplicate=on_duplicate,
            moves_leaf=moves_leaf,
        )
        return self.run(operation)

    def erase(
        self,
        thread_id: ThreadLike,
        entry_ids: Iterable[str],
        *,
        expect_leaf: str | UnsetType | None = UNSET,
    ) -> Erased:
        """Erase the contents of entries for good, in every thread that shows them.

        The entries stay in their places with their ids, times and counters, and without anything else: their text is
        gone from the store, its search index, its blobs, and from the titles that were made of it. A compaction that cut
        a result is erased with it, and follows again without the cut. Checkpoints and
        summaries that others made of a text are entries of their own. Raises EntryNotFoundError, and erases nothing, if
        the thread does not see one of them. What is erased already is skipped.
        """
        return self.run(erase.erase(self.runtime, id_of(thread_id), entry_ids, expect_leaf=expect_leaf))

    def prune(self, thread_id: ThreadLike) -> Erased:
        """Erase the contents of the thread's entries that no leaf and no label reaches: abandoned branches.

        What a fork shows is kept. An undo still moves the leaf back to a pruned entry, which is empty then.
        """
        return self.run(erase.prune(id_of(thread_id)))

    def entry(self, thread_id: ThreadLike, entry_id: str) -> Entry:
        """Return one entry that the thread sees."""
        return self.run(entries.entry(id_of(thread_id), entry_id))

    def entries(
        self,
        thread_id: ThreadLike,
        *,
        after: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
        types: Iterable[str] | None = None,
        turn_id: str | None = None,
    ) -> list[Entry]:
        """Return the entries that the thread sees, of every branch, in the order of their commits.

        With ``newest_first`` the order is the reverse. ``types`` keeps entries of these types, ``turn_id`` those of a
        turn. ``after`` and ``limit`` page through the answer in its order.
        """
        return self.run(
            entries.entries(id_of(thread_id), after, limit, newest_first=newest_first, types=types, turn_id=turn_id)
        )

    def find_entries(self, entry_ids: Iterable[str], *, thread_id: ThreadLike | None = None) -> list[Entry]:
        """Return the entries with these ids, in the order of the ids; ids that are not found are left out.

        With ``thread_id``, only entries that this thread sees. Ids are unique within a tree, so that without a thread
        an id that callers gave twice can find several entries. The JSONL store has no index for that: it reads all trees.
        """
        return self.run(entries.find_entries(entry_ids, None if thread_id is None else id_of(thread_id)))

    def last_entries(self, threads: Iterable[ThreadLike]) -> dict[str, Entry]:
        """Return the last entry on the path of each thread, by thread id, for a list; empty threads are left out."""
        return self.run(entries.last_entries(map(id_of, threads)))

    def path(
        self,
        thread_id: ThreadLike,
        leaf: str | UnsetType | None = UNSET,
        *,
        limit: int | None = None,
        types: Iterable[str] | None = None,
    ) -> list[Entry]:
        """Return the entries from the root to the leaf; with ``types`` only those, and with ``limit`` the last of them."""
        return self.run(entries.path(id_of(thread_id), leaf, limit, types))

    def path_bodies(
        self,
        thread_id: ThreadLike,
        leaf: str | UnsetType | None = UNSET,
        *,
        limit: int | None = None,
        types: Iterable[str] | None = None,
    ) -> list[EntryBody]:
        """Return what ``path`` does with payloads as JSON, for a program that decodes a part of each one only."""
        return self.run(entries.path_bodies(id_of(thread_id), leaf, limit, types))

    def children(self, thread_id: ThreadLike, entry_id: str | None) -> list[Entry]:
        """Return the children of an entry; ``None`` stands for the parent of the roots."""
        return self.run(entries.children(id_of(thread_id), entry_id))

    def label(self, thread_id: ThreadLike, entry_id: str, name: str) -> Entry:
        """Label an entry; an empty name removes its label."""
        return self.run(entries.label(self.runtime, id_of(thread_id), entry_id, name))

    def labels(self, thread_id: ThreadLike) -> dict[str, str]:
        """Return the labels of a thread, each with the id of its entry."""
        return self.run(entries.labels(id_of(thread_id)))

    def watch(
        self, thread_id: ThreadLike, *, after: str | UnsetType | None = UNSET, timeout: float | None = None
    ) -> Iterator[Entry]:
        """Iterate over new entries of a thread as they are committed, by any process.

        It starts now (under asyncio: at the first step), or after the entry ``after``, or with ``after=None`` at the
        first entry of the thread itself. It ends after ``timeout`` seconds without a new entry; without a time-out it
        goes on until the caller stops.
        """
        feed = Feed(id_of(thread_id), after, timeout)
        # At the call, not at the first step, so that nothing is missed in between.
        self.run(feed.start())
        return self._follow(feed)

    def _follow(self, feed: Feed) -> Iterator[Entry]:
        while not feed.is_over():
            mark = self.store.mark(feed.thread_id)
            yield from feed.take()
            if not self.run(feed.read()):
                self.store.wait(feed.thread_id, mark, feed.wait_seconds())

    def events(self, thread_id: ThreadLike, *, after: str | None = None, limit: int | None = None) -> list[Entry]:
        """Return the events of a thread in the order of their commits; ``after`` is the id of the last entry seen."""
        return self.run(reads.events(id_of(thread_id), after, limit))
