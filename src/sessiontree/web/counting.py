"""Counting a store for the page that looks back, at the cost of what is new.

Threads are read once, the last changed first, and after that only their new entries. One visit reads at most so many
entries; until all are counted, the figures grow from visit to visit. Nothing is stored: a new server counts again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from sessiontree.errors import ThreadNotFoundError
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.model import Entry, Record, Thread
from sessiontree.render.activity import Activity, Place, Unfinished, place_of

__all__ = ["Counted", "Counts"]

T = TypeVar("T")


_ROOM = 3_000
"""How many entries one visit reads at most."""

_PAGE = 500
_NOT_YET = -1
_MOST_THREADS = 1_000_000


class Counted(Record, frozen=True, kw_only=True):
    """A thread that was counted up to its last entry then."""

    updated_ns: int
    leaf: str | None
    place: Place
    last: str | None = None
    unfinished: Unfinished | None = None


class Counts:
    """What was counted so far."""

    def __init__(self, journal: AsyncJournal, now: Callable[[], datetime], *, room: int = _ROOM) -> None:
        self._journal = journal
        self._now = now
        self._room = room
        self._visiting = asyncio.Lock()
        self._start()

    def _start(self) -> None:
        self.activity = Activity(self._now())
        self.threads: dict[str, Counted] = {}
        self.is_complete = False
        self._cursor: str | None = None
        self._left = 0
        self._orphans: set[tuple[str, str]] = set()
        self._ids: frozenset[str] = frozenset()

    async def refresh(self) -> None:
        """Count what is new, and then some of what was not counted yet."""
        async with self._visiting:
            self._left = self._room
            self._ids = frozenset(await self._journal.thread_ids("", limit=_MOST_THREADS))
            if not self._ids.issuperset(self.threads):
                # A thread was deleted: its figures are not kept apart, so count again.
                self._start()
                self._left = self._room
                self._ids = frozenset(await self._journal.thread_ids("", limit=_MOST_THREADS))
            await self._count_changed()
            await self._count_older()
            if self.is_complete:
                await self._count_imported()

    async def ask(self, question: Callable[[Activity], T]) -> T:
        """Answer a question about what was counted, while nobody counts on."""
        async with self._visiting:
            return await asyncio.to_thread(question, self.activity)

    async def _count_changed(self) -> None:
        """Threads that changed are at the top of the list."""
        cursor: str | None = None
        while self.threads and self._left > 0:
            page = await self._journal.list_threads(is_archived=None, limit=_PAGE, cursor=cursor)
            changed = [one for one in page if one.id in self.threads and self._is_changed(one)]
            for thread in changed:
                await self._count(thread)
            cursor = page.cursor
            if not changed or cursor is None:
                return

    async def _count_older(self) -> None:
        while not self.is_complete and self._left > 0:
            page = await self._journal.list_threads(is_archived=None, limit=_PAGE, cursor=self._cursor)
            for thread in page:
                if self._is_changed(thread):
                    await self._count(thread)
                if self._left <= 0:
                    return
            self._cursor = page.cursor
            self.is_complete = page.cursor is None

    async def _count_imported(self) -> None:
        """Threads that came with old dates after their place in the list was passed."""
        for thread_id in self._ids - self.threads.keys():
            if self._left > 0:
                await self._count(await self._journal.thread(thread_id))

    def _is_changed(self, thread: Thread) -> bool:
        known = self.threads.get(thread.id)
        # Entries may come with times of their own, which do not change that of the thread: so compare the leaf as well.
        return known is None or (known.updated_ns, known.leaf) != (thread.updated_ns, thread.leaf)

    async def _count(self, thread: Thread) -> None:
        """Count a thread to its end, or as far as there is room; then it still looks changed, and is continued."""
        before = self.threads.get(thread.id)
        last = before.last if before else None
        unfinished = before.unfinished if before and before.unfinished else Unfinished()
        is_over = False
        try:
            while not is_over and self._left > 0:
                limit = min(_PAGE, self._left)
                page = await self._journal.entries(thread.id, after=last, limit=limit)
                own = [entry for entry in page if self._belongs(thread, entry)]
                await asyncio.to_thread(self.activity.add, thread, own, unfinished)
                self._left -= max(1, len(page))
                last = page[-1].id if page else last
                is_over = len(page) < limit
        except ThreadNotFoundError:
            return
        is_open = bool(unfinished.prompt_ns or unfinished.calls)
        self.threads[thread.id] = Counted(
            updated_ns=thread.updated_ns if is_over else _NOT_YET,
            leaf=thread.leaf,
            place=place_of(thread),
            last=last,
            unfinished=unfinished if is_open else None,
        )

    def _belongs(self, thread: Thread, entry: Entry) -> bool:
        """Whether an entry counts here: it was written to this thread, or to a deleted one and is seen for the first time."""
        if entry.thread_id == thread.id:
            return True
        name = (thread.tree, entry.id)
        if entry.thread_id in self._ids or name in self._orphans:
            return False
        self._orphans.add(name)
        return True
