"""The stream of a page: nothing that is committed between a page and its stream is missed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sample_store import NOW
from sessiontree.web.live import Event
from sessiontree.web.site import Site


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    with st.open(tmp_path / "journal.db") as opened:
        opened.append("t", st.user("hello"), create=True)
        yield opened


def hear(folder: Path, *, after: str, count: int) -> tuple[list[Event], int]:
    """The first events of a page that knows the head ``after``, and how many threads are followed when it is gone."""

    async def run() -> tuple[list[Event], int]:
        async with Site(str(folder / "journal.db"), store="journal.db", now=lambda: NOW) as site:
            heard: list[Event] = []
            events: AsyncIterator[Event | None] = site.followers.events("t", after)
            async with aclosing(events) as stream, asyncio.timeout(30):  # type: ignore[type-var]
                async for event in stream:
                    if event is not None:
                        heard.append(event)
                    if len(heard) == count:
                        break
            return heard, site.followers.running

    return asyncio.run(run())


def test_a_page_hears_what_was_committed_before_its_stream_began(tmp_path: Path, journal: st.Journal) -> None:
    known = journal.thread("t").leaf or ""
    new = journal.append("t", st.assistant("early"))
    (news, state), running = hear(tmp_path, after=known, count=2)
    assert (news.kind, news.data["start"], news.data["end"], news.data["total"]) == ("entries", 1, 2, 2)
    assert "early" in news.data["html"]
    assert news.leaf == new.id
    assert (state.kind, running) == ("state", 0)


def test_a_page_that_knows_the_head_hears_no_entries(tmp_path: Path, journal: st.Journal) -> None:
    (state,), _ = hear(tmp_path, after=journal.thread("t").leaf or "", count=1)
    assert state.kind == "state"


def test_a_head_on_another_branch_has_moved(tmp_path: Path, journal: st.Journal) -> None:
    left = journal.append("t", st.assistant("left"))
    journal.rewind("t", journal.path("t")[0].id)
    (news, _), _ = hear(tmp_path, after=left.id, count=2)
    assert news.kind == "moved"


def test_of_very_many_new_entries_a_page_is_sent_and_the_reader_stays_where_he_is(
    tmp_path: Path, journal: st.Journal
) -> None:
    known = journal.thread("t").leaf or ""
    journal.append_many("t", [st.assistant(f"entry {at}") for at in range(500)])
    (news, _), _ = hear(tmp_path, after=known, count=2)
    assert (news.kind, news.data["start"], news.data["total"]) == ("entries", 1, 501)
    assert news.data["html"].count("<article") == news.data["end"] - 1 < 200


def test_a_thread_that_is_deleted_is_gone(tmp_path: Path, journal: st.Journal) -> None:
    known = journal.thread("t").leaf or ""
    journal.delete_thread("t")
    (event, *_), _ = hear(tmp_path, after=known, count=1)
    assert event.kind == "gone"


def test_a_thread_that_is_made_again_is_followed_again(tmp_path: Path, journal: st.Journal) -> None:
    async def run() -> list[str]:
        kinds: list[str] = []
        async with Site(str(tmp_path / "journal.db"), store="journal.db", now=lambda: NOW) as site, asyncio.timeout(30):
            old: AsyncIterator[Event | None] = site.followers.events("t", None)
            async with aclosing(old) as first:  # type: ignore[type-var]
                journal.delete_thread("t")
                kinds.append((await anext(first)).kind)  # type: ignore[union-attr]
                made = journal.append("t", st.user("again"), create=True)
                new: AsyncIterator[Event | None] = site.followers.events("t", made.id)
                async with aclosing(new) as second:  # type: ignore[type-var]
                    kinds.append((await anext(second)).kind)  # type: ignore[union-attr]
                    journal.append("t", st.assistant("more"))
                    kinds.append((await anext(second)).kind)  # type: ignore[union-attr]
        return kinds

    assert asyncio.run(run()) == ["gone", "state", "entries"]


def test_an_event_names_the_head_so_that_a_browser_goes_on_there() -> None:
    lines = Event("entries", {"html": "a\nb"}, "odd\nid").lines().split("\n")
    assert lines[1] == "id: odd%0Aid"
    assert json.loads(lines[2].removeprefix("data: ")) == {"html": "a\nb"}
