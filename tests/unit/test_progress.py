"""Long work tells how far it has come, in steps that end with everything done."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest

import sessiontree as st
from sessiontree.render.html import PageContent, render_html
from stores import ALL, open_journal

on_every_store = pytest.mark.parametrize("store", ALL)


class Heard(list[tuple[int, int]]):
    """Every step that was reported."""

    def __call__(self, done: int, total: int) -> None:
        self.append((done, total))

    def check(self, steps: int = 2) -> None:
        assert len(self) >= steps
        assert self == sorted(self)
        assert {total for _, total in self} == {self[-1][0]}


def fill(journal: st.Journal, thread_id: str, messages: int = 600) -> None:
    journal.create_thread(thread_id)
    journal.append_many(thread_id, [st.user(f"question {number}, at some length " * 10) for number in range(messages)])


@on_every_store
def test_a_check_counts_up_to_everything_there_is(store: str, tmp_path: Path) -> None:
    with open_journal(store, tmp_path) as journal:
        fill(journal, "one")
        fill(journal, "two")
        heard = Heard()
        assert journal.check(progress=heard) == []
    heard.check(4)


@pytest.mark.parametrize("format", ["markdown", "json", "jsonl"])
def test_an_export_counts_entries_and_writes_the_same(format: Literal["markdown", "json", "jsonl"]) -> None:
    heard = Heard()
    with st.open("memory:") as journal:
        fill(journal, "one")
        assert journal.export("one", format=format, progress=heard) == journal.export("one", format=format)
    heard.check()


def test_a_page_counts_entries_and_is_the_same() -> None:
    heard = Heard()
    with st.open("memory:") as journal:
        fill(journal, "one")
        page = PageContent(thread=journal.thread("one"), entries=tuple(journal.entries("one")))
    assert render_html(page, heard) == render_html(page)
    heard.check()


def test_a_compaction_counts_the_messages_that_it_sums_up() -> None:
    heard = Heard()
    policy = st.CompactionPolicy(keep_recent_tokens=100, chunk_tokens=5_000)
    with st.open("memory:") as journal:
        fill(journal, "one")
        result = journal.compact("one", policy=policy, progress=heard)
    heard.check()
    assert heard[-1][0] == result.removed_messages


def test_the_async_verbs_tell_too() -> None:
    async def run() -> list[Heard]:
        heard = [Heard(), Heard(), Heard()]
        async with st.open_async("memory:") as journal:
            await journal.create_thread("one")
            await journal.append_many("one", [st.user("a question " * 100) for _ in range(300)])
            await journal.check(progress=heard[0])
            await journal.export("one", progress=heard[1])
            await journal.compact("one", progress=heard[2])
        return heard

    for one in asyncio.run(run()):
        one.check(1)
