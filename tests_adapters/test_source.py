"""What every adapter is built with: the URL of a store or an open journal, in both forms, from any loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import sessiontree as st
from opened import url_of
from sessiontree.adapters._adapter import Adapter, AsyncAdapter
from sessiontree.adapters._source import JournalSource

STORES = ("memory", "sqlite", "jsonl", "postgres")


async def say(source: JournalSource, text: str) -> None:
    journal = await source.asynchronous()
    await journal.append("chat", st.user(text), create=True)


def said(journal: st.Journal) -> list[str]:
    return [entry.payload.message.text for entry in journal.path("chat", types=("user_message",))]  # type: ignore[union-attr]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


def test_both_forms_of_a_url_see_each_other(url: str) -> None:
    source = JournalSource(url)
    for number in range(3):  # a loop each
        asyncio.run(say(source, f"async {number}"))
        source.blocking().append("chat", st.user(f"blocking {number}"))
    assert said(source.blocking()) == [f"{form} {number}" for number in range(3) for form in ("async", "blocking")]
    source.close()


def test_a_blocking_journal_is_used_in_both_forms_and_stays_open(url: str) -> None:
    with st.open(url) as journal:
        source = JournalSource(journal)
        asyncio.run(say(source, "one"))
        asyncio.run(say(source, "two"))
        source.close()
        assert said(journal) == ["one", "two"]


def test_a_journal_of_asyncio_is_used_in_both_forms_and_stays_open(url: str) -> None:
    async def main() -> None:
        async with st.open_async(url) as journal:
            source = JournalSource(journal)
            await say(source, "one")
            source.blocking().append("chat", st.user("two"))  # inside of the loop, as some frameworks do
            assert await asyncio.to_thread(said, source.blocking()) == ["one", "two"]
            await source.aclose()
            assert (await journal.thread("chat")).messages == 2

    asyncio.run(main())


def test_what_was_opened_here_is_closed(url: str) -> None:
    async def main() -> None:
        source = JournalSource(url)
        await say(source, "one")
        opened = source.blocking(), await source.asynchronous()
        await source.aclose()
        await source.aclose()
        source.close()
        for use in (source.blocking, opened[0].stats):
            with pytest.raises(st.StoreClosedError):
                use()
        with pytest.raises(st.StoreClosedError):
            await source.asynchronous()
        with pytest.raises(st.StoreClosedError):
            await opened[1].stats()

    asyncio.run(main())


def test_a_loop_with_connections_is_not_blocked_by_close(tmp_path: Path) -> None:
    async def main() -> None:
        source = JournalSource(url_of("postgres", tmp_path))
        await say(source, "one")
        with pytest.raises(st.InvalidInputError, match="event loop"):
            source.close()
        await source.aclose()

    asyncio.run(main())


def test_nothing_is_opened_before_it_is_used(tmp_path: Path) -> None:
    JournalSource(tmp_path / "journal.db").close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(st.StoreUrlError):
        JournalSource("mysql://here")


def test_a_with_block_opens_the_store(tmp_path: Path) -> None:
    missing = f"sqlite:///{tmp_path}/missing/folder/journal.db"

    async def enter(adapter: Adapter | AsyncAdapter) -> None:
        with pytest.raises(st.StoreError):
            await adapter.__aenter__()

    (tmp_path / "missing").write_text("a file")
    asyncio.run(enter(Adapter(missing)))
    asyncio.run(enter(AsyncAdapter(missing)))
    with pytest.raises(st.StoreError), Adapter(missing):
        pytest.fail("entered")
