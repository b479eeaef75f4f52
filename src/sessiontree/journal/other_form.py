"""An open journal in its other form, on the same store.

>>> import sessiontree as st
>>> with st.open("memory:") as journal:
...     async def hello():
...         await async_form(journal).append("chat", st.user("hello"), create=True)
...     asyncio.run(hello())
...     journal.path("chat")[0].message.text
'hello'
"""

from __future__ import annotations

import asyncio

from sessiontree.errors import InvalidInputError
from sessiontree.journal.journal import Journal
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.stores.embedded_async import AsyncEmbeddedStore
from sessiontree.stores.other_form import BlockingForm, ThreadedForm

__all__ = ["async_form", "blocking_form", "close_blocking"]


def async_form(journal: Journal) -> AsyncJournal:
    """Return a journal for asyncio, usable from any event loop, that calls the store of ``journal`` in worker threads.

    Closing it does nothing: close ``journal``.
    """
    return AsyncJournal(ThreadedForm(journal.store), clock=journal.clock)


def blocking_form(journal: AsyncJournal) -> Journal:
    """Return a blocking journal on the store of ``journal``, usable from any thread.

    Closing it releases what this form needed; close ``journal`` afterwards.
    """
    if isinstance(journal.store, AsyncEmbeddedStore):
        return _BorrowedJournal(journal.store, clock=journal.clock)
    return Journal(BlockingForm(journal.store), clock=journal.clock)


def close_blocking(journal: AsyncJournal) -> None:
    """Close a journal for asyncio without an event loop.

    Raises InvalidInputError inside of a running one if connections belong to it.
    """
    if isinstance(journal.store, AsyncEmbeddedStore):
        journal.store.close()
        return
    closing = journal.close()
    try:
        asyncio.run(closing)
    except RuntimeError as error:
        closing.close()
        raise InvalidInputError("this would block the running event loop; use the async form of close()") from error


class _BorrowedJournal(Journal):
    """A journal on a store that another one closes."""

    def close(self) -> None:
        """Do nothing."""
