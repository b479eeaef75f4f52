"""What the tools work with: a journal that is opened on first use, and the clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from threading import Lock

from sessiontree.journal import Journal
from sessiontree.mcp.names import find_thread
from sessiontree.model import Thread
from sessiontree.render.threads import title_of

__all__ = ["Library"]


_FIRST_MESSAGES = 5


class Library:
    """The conversations of a store. Tools use it from several threads.

    ``open_journal`` may raise while there is no store yet; the next request tries again.
    """

    def __init__(self, open_journal: Callable[[], Journal], now: Callable[[], datetime]) -> None:
        self._open = open_journal
        self._now = now
        self._journal: Journal | None = None
        self._opening = Lock()

    @property
    def journal(self) -> Journal:
        """The journal."""
        with self._opening:
            if self._journal is None:
                self._journal = self._open()
            return self._journal

    @property
    def now(self) -> datetime:
        """The time, in the local time zone."""
        return self._now()

    def thread(self, name: str) -> Thread:
        """Return the thread that a name means; raises RequestError."""
        return self.journal.thread(find_thread(self.journal, name))

    def title(self, thread: Thread) -> str:
        """Return the title of a thread, or its first words, without reading all of it."""
        if thread.title.strip():
            return title_of(thread, self.now)
        first = self.journal.entries(thread.id, types=["user_message"], limit=_FIRST_MESSAGES)
        return title_of(thread, self.now, first)

    def when(self, time_ns: int) -> str:
        """Return a time as the minute in the local zone."""
        return f"{datetime.fromtimestamp(time_ns // 1_000_000_000, self.now.tzinfo):%Y-%m-%d %H:%M}"
