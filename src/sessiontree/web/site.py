"""What all pages share: the journal, the name of the store, and whether writes are allowed; and one visit to a page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar, cast

from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.opening_async import open_async
from sessiontree.model import Record
from sessiontree.web.counting import Counts
from sessiontree.web.outline import Outlines

if TYPE_CHECKING:
    from sessiontree.web.live import Followers

__all__ = ["Site", "Theme", "Visit", "local_now"]


T = TypeVar("T")

Theme = str
"""``light``, ``dark``, or "" for what the system says."""


def local_now() -> datetime:
    """Return the time, in the local time zone."""
    return datetime.now().astimezone()


class Site:
    """One viewer: a journal, which is open while the server runs, and what is kept with it."""

    journal: AsyncJournal
    counts: Counts
    outlines: Outlines
    followers: Followers

    def __init__(
        self, url: str, *, store: str, is_read_only: bool = False, now: Callable[[], datetime] = local_now
    ) -> None:
        self._url = url
        self.store = store
        self.is_read_only = is_read_only
        self.now = now
        self._kept: dict[type[object], object] = {}

    def kept(self, kind: type[T]) -> T:
        """Return the one object of a kind that a page keeps while the server runs."""
        if kind not in self._kept:
            self._kept[kind] = kind()
        return cast(T, self._kept[kind])

    async def __aenter__(self) -> Self:
        from sessiontree.web.live import Followers  # noqa: PLC0415  it draws pages, which know the site

        self.journal = open_async(self._url)
        self.counts = Counts(self.journal, self.now)
        self.outlines = Outlines(self.journal)
        self.followers = Followers(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.followers.close()
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
