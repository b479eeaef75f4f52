"""An open journal in its other form: the same store for blocking callers and for event loops."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import sessiontree as st
from opened import url_of
from sessiontree.journal.other_form import async_form, blocking_form, close_blocking

pytestmark = pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])


def test_a_blocking_journal_is_used_from_several_event_loops(store: str, tmp_path: Path) -> None:
    with st.open(url_of(store, tmp_path)) as journal:
        asynchronous = async_form(journal)
        for text in ("one", "two"):
            asyncio.run(asynchronous.append("chat", st.user(text), create=True))
        asyncio.run(asynchronous.close())
        assert journal.thread("chat").messages == 2
        assert asyncio.run(_watched(asynchronous)) == 2


async def _watched(journal: st.AsyncJournal) -> int:
    return len([entry async for entry in journal.watch("chat", after=None, timeout=0.01) if entry.message is not None])


def test_an_async_journal_is_used_by_blocking_callers(store: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with st.open_async(url_of(store, tmp_path)) as journal:
            blocking = blocking_form(journal)
            await journal.append("chat", st.user("one"), create=True)
            blocking.append("chat", st.user("two"))  # inside of the loop
            assert len(list(blocking.watch("chat", after=None, timeout=0.01))) == 2
            with pytest.raises(st.ThreadNotFoundError):
                blocking.thread("other")
            await asyncio.to_thread(blocking.close)
            assert (await journal.thread("chat")).messages == 2

    asyncio.run(main())


def test_an_async_journal_is_closed_without_a_loop(store: str, tmp_path: Path) -> None:
    journal = st.open_async(url_of(store, tmp_path))
    asyncio.run(journal.append("chat", st.user("one"), create=True))
    close_blocking(journal)
    with pytest.raises(st.StoreClosedError):
        asyncio.run(journal.thread("chat"))
