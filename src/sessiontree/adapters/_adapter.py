"""What the adapters of asynchronous frameworks share: their journal, and closing it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import sessiontree as st
from sessiontree.adapters._source import JournalSource, StoreOrJournal

__all__ = ["AsyncAdapter"]


class AsyncAdapter:
    """An adapter that is built with the URL of a store or an open journal."""

    def __init__(self, store: StoreOrJournal) -> None:
        self._source = JournalSource(store)

    async def journal(self) -> st.AsyncJournal:
        """Return the journal, which has searches, lists and all other verbs."""
        return await self._source.asynchronous()

    async def close(self) -> None:
        """Close the store, if it was given as a URL. A second call does nothing."""
        await self._source.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
