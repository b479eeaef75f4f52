"""The first argument of every adapter: the URL of a store, or an open journal."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import NoReturn

from sessiontree.errors import InvalidInputError, StoreClosedError
from sessiontree.journal import Journal
from sessiontree.journal.address import parse_url
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.opening import open as open_journal
from sessiontree.journal.opening_async import open_async
from sessiontree.journal.other_form import async_form, blocking_form, close_blocking

__all__ = ["JournalSource", "StoreOrJournal"]

StoreOrJournal = str | os.PathLike[str] | Journal | AsyncJournal


class JournalSource:
    """The journal of an adapter, in both forms. Either may be used from any thread and any event loop.

    A URL is opened on first use, and closed with the adapter; an open journal stays open. Both forms share one store, so
    ``memory:`` works too. Only for a URL of PostgreSQL each form opens connections of its own.

    >>> source = JournalSource("memory:")
    >>> source.blocking().create_thread("chat").id
    'chat'
    >>> source.close()
    """

    def __init__(self, source: StoreOrJournal) -> None:
        self._given = source if isinstance(source, Journal | AsyncJournal) else None
        self._url = None if isinstance(source, Journal | AsyncJournal) else source
        self._blocking = source if isinstance(source, Journal) else None
        self._async = source if isinstance(source, AsyncJournal) else None
        self._has_two_pools = self._url is not None and parse_url(self._url).kind == "postgres"
        self._opening = threading.Lock()
        self._is_closed = False

    def blocking(self) -> Journal:
        """Return the blocking journal."""
        return self._blocking or self._open_blocking()

    async def asynchronous(self) -> AsyncJournal:
        """Return the journal for asyncio. Files are opened in a worker thread: the event loop does not wait for them."""
        if self._async is None:
            return await asyncio.to_thread(self._open_async)
        return self._async

    def close(self) -> None:
        """Close what was opened here; whoever uses the adapter afterwards gets StoreClosedError. A second call does nothing.

        Raises InvalidInputError in a running event loop that has connections to PostgreSQL: use ``aclose`` there.
        """
        blocking, asynchronous = self._take()
        if blocking is not None:
            blocking.close()
        if asynchronous is not None:
            close_blocking(asynchronous)

    async def aclose(self) -> None:
        """Close what was opened here, as ``close`` does, without blocking the event loop."""
        blocking, asynchronous = self._take()
        if blocking is not None:
            await asyncio.to_thread(blocking.close)
        if asynchronous is not None:
            await asynchronous.close()

    def __reduce__(self) -> NoReturn:
        raise InvalidInputError("an adapter cannot be copied or pickled: make another one with the URL of the store")

    def _take(self) -> tuple[Journal | None, AsyncJournal | None]:
        """Return the journals that are not the caller's, and forget all."""
        with self._opening:
            blocking, asynchronous, given = self._blocking, self._async, self._given
            self._blocking = self._async = None
            self._is_closed = True
        return (None if blocking is given else blocking), (None if asynchronous is given else asynchronous)

    def _open_blocking(self) -> Journal:
        with self._opening:
            self._check_open()
            if self._blocking is None:
                self._blocking = open_journal(self._url) if self._has_two_pools else blocking_form(self._opened_async())
            return self._blocking

    def _open_async(self) -> AsyncJournal:
        with self._opening:
            self._check_open()
            return self._opened_async()

    def _opened_async(self) -> AsyncJournal:
        if self._async is None:
            given = self._given
            self._async = async_form(given) if isinstance(given, Journal) else open_async(self._url)
        return self._async

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError("the store of this adapter")
