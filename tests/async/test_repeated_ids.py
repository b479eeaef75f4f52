"""A random source that repeats itself: the one append whose id is taken is refused, its neighbours go in."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.testing import ManualClock
from stores import ALL, ids, open_journal, url_of

on_every_store = pytest.mark.parametrize("store", ALL)


def noise(count: int) -> bytes:
    return bytes(count)


def twin(journal: st.Journal, clock: ManualClock) -> st.Journal:
    """A second journal on the same store that makes the same ids again."""
    return st.Journal(journal.store, clock=clock, random=noise)


@on_every_store
def test_an_id_that_was_made_twice_is_refused_and_overwrites_nothing(store: str, tmp_path: Path) -> None:
    clock = ManualClock()
    with open_journal(store, tmp_path, clock=clock, random=noise) as journal:
        journal.create_thread("t")
        first = journal.append("t", st.user("first"))
        again = twin(journal, clock)
        with pytest.raises(st.DuplicateEntryError) as caught:
            again.append("t", st.user("second"))
        assert caught.value.entry_id == first.id
        assert journal.entry("t", first.id) == first
        assert again.append("t", st.user("second")).parent == first.id
        assert journal.check() == []


@on_every_store
def test_the_same_content_under_a_repeated_id_is_not_taken_for_a_repeated_call(store: str, tmp_path: Path) -> None:
    clock = ManualClock()
    with open_journal(store, tmp_path, clock=clock, random=noise) as journal:
        journal.create_thread("t")
        journal.append("t", st.user("yes"))
        with pytest.raises(st.DuplicateEntryError):
            twin(journal, clock).append("t", st.user("yes"))
        assert len(journal.entries("t")) == 1


@on_every_store
def test_the_neighbours_in_the_group_succeed(store: str, tmp_path: Path) -> None:
    async def scene() -> None:
        clock = ManualClock()
        async with st.open_async(url_of(store, tmp_path), clock=clock, random=noise) as journal:
            await journal.create_thread("t")
            await journal.create_thread("u")
            first = await journal.append("t", st.user("first"))
            again = st.AsyncJournal(journal.store, clock=clock, random=noise)
            outcomes = await asyncio.gather(
                journal.append("t", st.user("before"), id="before"),
                again.append("t", st.user("second")),
                journal.append("t", st.user("after"), id="after"),
                journal.append("u", st.user("elsewhere"), id="elsewhere"),
                return_exceptions=True,
            )
            refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
            assert [type(outcome) for outcome in refused] == [st.DuplicateEntryError]
            assert ids(await journal.path("t")) == [first.id, "before", "after"]
            assert ids(await journal.path("u")) == ["elsewhere"]
            assert await journal.check() == []

    asyncio.run(scene())
