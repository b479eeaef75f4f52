"""What all pages share: the journal, the name of the store, and whether writes are allowed; and one visit to a page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import Self

from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.opening_async import open_async
from sessiontree.model import Record
from sessiontree.web.counting import Counts

__all__ = ["Site", "Theme", "Visit", "local_now"]


Theme = str
"""``light``, ``dark``, or "" for what the system says."""


def local_now() -> datetime:
    """Return the time, in the local time zone."""
    return datetime.now().astimezone()


class Site:
    """One viewer: a journal, which is open while the server runs, and what is kept with it."""

    journal: AsyncJournal
    counts: Counts

    def __init__(
        self, url: str, *, store: str, is_read_only: bool = False, now: Callable[[], datetime] = local_now
    ) -> None:
        self._url = url
        self.store = store
        self.is_read_only = is_read_only
        self.now = now

    async def __aenter__(self) -> Self:
        self.journal = open_async(self._url)
        self.counts = Counts(self.journal, self.now)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.journal.close()


class Visit(Record, frozen=True, kw_only=True):
    """One request for a page: the site, the time, and how this browser wants it shown."""

    site: Site
    now: datetime
    path: str = "/"
    theme: Theme = ""

    @property
    def journal(self) -> AsyncJournal:
        """The journal of the site."""
        return self.site.journal
