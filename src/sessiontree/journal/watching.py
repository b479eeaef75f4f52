"""Following a thread: what was committed since the last look, by whichever process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator

from msgspec import UnsetType

from sessiontree.model import Entry
from sessiontree.stores.protocol import AsyncStore, Store
from sessiontree.stores.queries import NewEntries, ReadEntries, ReadNews

__all__ = ["follow", "follow_async"]


_WAIT_SECONDS = 1.0


def follow(store: Store, thread_id: str, after: str | UnsetType | None, timeout: float | None) -> Iterator[Entry]:
    """Starts at the call, not at the first step, so that nothing is missed in between."""
    news = store.read(_start(thread_id, after))
    known = store.read(ReadEntries(thread_id=thread_id, after=after)) if isinstance(after, str) else []
    return _go_on(store, news, _own(known, thread_id), thread_id, timeout)


async def follow_async(
    store: AsyncStore, thread_id: str, after: str | UnsetType | None, timeout: float | None
) -> AsyncIterator[Entry]:
    news = await store.aread(_start(thread_id, after))
    known = await store.aread(ReadEntries(thread_id=thread_id, after=after)) if isinstance(after, str) else []
    feed = _Feed(_own(known, thread_id), news, timeout)
    while not feed.is_over():
        mark = await store.amark(thread_id)
        for entry in feed.take():
            yield entry
        feed.news = await store.aread(ReadNews(thread_id=thread_id, cursor=feed.news.cursor))
        if not feed.news.entries:
            await store.await_change(thread_id, mark, feed.patience())


def _go_on(
    store: Store, news: NewEntries, known: list[Entry], thread_id: str, timeout: float | None
) -> Iterator[Entry]:
    feed = _Feed(known, news, timeout)
    while not feed.is_over():
        mark = store.mark(thread_id)
        yield from feed.take()
        feed.news = store.read(ReadNews(thread_id=thread_id, cursor=feed.news.cursor))
        if not feed.news.entries:
            store.wait(thread_id, mark, feed.patience())


class _Feed:
    """What is still to be handed out, and how long to wait for more."""

    def __init__(self, known: list[Entry], news: NewEntries, timeout: float | None) -> None:
        self.news = news
        self._known = known
        self._handed_out = {entry.id for entry in known}
        self._timeout = timeout
        self._last = time.monotonic()

    def take(self) -> list[Entry]:
        fresh = self._known + [entry for entry in self.news.entries if entry.id not in self._handed_out]
        self._known = []
        if self.news.entries:
            self._handed_out = set()
        if fresh:
            self._last = time.monotonic()
        return fresh

    def is_over(self) -> bool:
        nothing_left = not self._known and not self.news.entries
        return self._timeout is not None and nothing_left and time.monotonic() - self._last > self._timeout

    def patience(self) -> float:
        if self._timeout is None:
            return _WAIT_SECONDS
        return max(0.0, min(_WAIT_SECONDS, self._last + self._timeout - time.monotonic()))


def _start(thread_id: str, after: str | UnsetType | None) -> ReadNews:
    return ReadNews(thread_id=thread_id, cursor=0 if after is None else None)


def _own(entries: list[Entry], thread_id: str) -> list[Entry]:
    return [entry for entry in entries if entry.thread_id == thread_id]
