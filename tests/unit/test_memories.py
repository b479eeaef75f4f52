"""Memory: what is worth keeping, when it is drawn out, where it is kept."""

import asyncio
from collections.abc import Iterator

import pytest

import sessiontree as st
from known import of_kind, present
from long_conversations import SMALL, FakeModel, talk
from sessiontree.compaction.memory import (
    NO_MEMORY_NEEDED,
    bucket_of,
    crosses_soft_threshold,
    fingerprint,
    is_transient,
    normalize_memory,
)
from sessiontree.journal.memory import ExtractedMemory, JournalMemory, refresh_memory
from sessiontree.journal.memory_async import AsyncJournalMemory, refresh_memory_async
from sessiontree.model import NO_KEY

FACT = ExtractedMemory(text="- User prefers tabs", thread_id="t", window_id="w", key=NO_KEY)


@pytest.fixture
def journal() -> Iterator[st.Journal]:
    with st.open("memory:") as opened:
        opened.create_thread("t")
        talk(opened, "t", 3)
        yield opened


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("", ""),
        ("  \n ", ""),
        ("no_memory_needed", NO_MEMORY_NEEDED),
        ("- NO_MEMORY_NEEDED", NO_MEMORY_NEEDED),
        ("3.5 GB RAM are installed", "- 3.5 GB RAM are installed"),
        ("-5 C outside", "- -5 C outside"),
        ("1) first\n2. second\n•  third\n** fourth", "- first\n- second\n- third\n- fourth"),
        ("`User likes tea`", "- User likes tea"),
        ("- same.\n* SAME\n- Same ,", "- same."),
        ("other\nThe project uses Go\nShe prefers Vim", "- She prefers Vim\n- The project uses Go\n- other"),
        ("+ first\n\u2013 second\n\u2014 third", "- first\n- second\n- third"),
        ("**NO_MEMORY_NEEDED**", NO_MEMORY_NEEDED),
        ("> *NO_MEMORY_NEEDED*.", NO_MEMORY_NEEDED),
        ("2024. was good", "- 2024. was good"),
        ("12. twelfth", "- twelfth"),
        ("+5 C outside", "- +5 C outside"),
        ("saved to /tmp/x.txt\nexit code 3\nsession id 7", NO_MEMORY_NEEDED),
    ],
)
def test_memories_are_cleaned(raw: str, clean: str) -> None:
    assert normalize_memory(raw) == clean


def test_cleaning_twice_changes_nothing() -> None:
    once = normalize_memory("- prefers tea\n- works on the repo\n3.5 GB\n\n`x`")
    assert normalize_memory(once) == once


@pytest.mark.parametrize(
    "line", ["User dislikes tabs", "She hates tool calls in answers", "He loves tea", "嫌いな色は赤"]
)
def test_a_dislike_is_a_preference_too(line: str) -> None:
    assert bucket_of(line) == "preference"
    assert not is_transient(line)


def test_a_report_is_not_a_repo_and_a_preference_about_tool_calls_is_kept() -> None:
    assert bucket_of("The report is due on Friday") == "other"
    assert bucket_of("The repo is on a server") == "project"
    assert not is_transient("User prefers to confirm every tool call")
    assert is_transient("tool call returned stack trace")


def test_fingerprints_do_not_care_about_case_width_and_accents_spelling() -> None:
    assert fingerprint("STRASSE") == fingerprint("straße")
    assert fingerprint("café") == fingerprint("cafe\u0301")
    assert fingerprint("\uff21\uff22\uff23") == fingerprint("abc")
    assert fingerprint("3.5 GB") != fingerprint("5 GB")


def test_the_soft_threshold_counts_on_the_way_up_only() -> None:
    policy = st.ratio_policy(1_000)
    assert (policy.soft_threshold, policy.threshold) == (600, 800)
    assert crosses_soft_threshold(599, 600, policy)
    assert crosses_soft_threshold(100, 900, policy), "a jump over both"
    assert not crosses_soft_threshold(600, 700, policy)
    assert not crosses_soft_threshold(850, 650, policy), "falling back after a compaction"


def test_the_soft_threshold_lies_below_the_hard_one_whatever_the_ratios() -> None:
    policy = st.CompactionPolicy(window_tokens=1_000, threshold_ratio=0.3, soft_ratio=0.9)
    assert policy.soft_threshold < policy.threshold


def test_memories_are_drawn_out_once_per_compaction_cycle(journal: st.Journal) -> None:
    keeper = JournalMemory(journal)
    extract = FakeModel("- User prefers tabs", "- User works on a parser")
    assert refresh_memory(journal, "t", keeper, extract).status == "stored"
    assert refresh_memory(journal, "t", keeper, extract).status == "already_done"
    assert len(extract.requests) == 1
    talk(journal, "t", 20, start=3)
    journal.compact("t", FakeModel("notes"), policy=SMALL)
    assert refresh_memory(journal, "t", keeper, extract).status == "stored"
    assert {found.text for found in keeper.recall("")} == {"User prefers tabs", "User works on a parser"}


def test_nothing_to_remember_is_not_asked_again_and_again(journal: st.Journal) -> None:
    extract = FakeModel(NO_MEMORY_NEEDED)
    assert refresh_memory(journal, "t", JournalMemory(journal), extract).status == "nothing_to_remember"
    assert refresh_memory(journal, "t", JournalMemory(journal), extract).status == "already_done"
    assert [thread.id for thread in journal.list_threads()] == ["t"]


def test_a_failed_extraction_is_reported_and_retried(journal: st.Journal) -> None:
    keeper = JournalMemory(journal)
    with pytest.raises(st.SummaryError, match="down"):
        refresh_memory(journal, "t", keeper, FakeModel(RuntimeError("down")))
    assert refresh_memory(journal, "t", keeper, FakeModel("- likes tea")).status == "stored"


def test_a_short_conversation_is_left_alone(journal: st.Journal) -> None:
    journal.create_thread("short")
    journal.append("short", st.user("hi"))
    extract = FakeModel("- anything")
    assert refresh_memory(journal, "short", JournalMemory(journal), extract).status == "too_short"
    assert extract.requests == []


def test_a_fact_is_stored_once_however_often_and_in_whatever_words_of_case_it_comes(journal: st.Journal) -> None:
    keeper = JournalMemory(journal)
    assert keeper.refresh(FACT) is not None
    assert keeper.refresh(FACT) is None
    again = ExtractedMemory(text="* USER prefers tabs.\n- and tea", thread_id="u", window_id="w", key=NO_KEY)
    assert of_kind(st.Memory, present(keeper.refresh(again)).payload).text == "- and tea"
    assert len(journal.path(keeper.thread_id)) == 2


def test_memories_are_found_by_words_best_first_in_every_script(journal: st.Journal) -> None:
    keeper = JournalMemory(journal)
    text = "- The office is in Berlin\n- Prefers green tea\n- 用户喜欢绿茶\n- Drinks tea in Berlin"
    keeper.refresh(ExtractedMemory(text=text, thread_id="t", window_id="w", key=NO_KEY))
    assert keeper.recall("tea Berlin")[0].text == "Drinks tea in Berlin"
    assert [found.text for found in keeper.recall("绿茶")] == ["用户喜欢绿茶"]
    assert keeper.recall("nothing of the kind") == []
    assert len(keeper.recall("", limit=2)) == 2


def test_scopes_do_not_share_memories(journal: st.Journal) -> None:
    JournalMemory(journal, "bot").refresh(FACT)
    assert JournalMemory(journal, "other").recall("tabs") == []


def test_the_extractive_summariser_draws_out_what_the_user_says_of_himself(journal: st.Journal) -> None:
    journal.append("t", st.user("I prefer dark mode. The build is red. From now on answer in French."))
    result = refresh_memory(journal, "t", JournalMemory(journal))
    assert result.text == "- I prefer dark mode.\n- From now on answer in French."


def test_the_same_on_an_async_journal() -> None:
    async def extract(request: st.SummaryRequest) -> str:
        return "- User prefers tabs"

    async def run() -> tuple[str, list[str]]:
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")
            await journal.append_many("t", [st.user("a"), st.assistant("b"), st.user("c")])
            keeper = AsyncJournalMemory(journal)
            result = await refresh_memory_async(journal, "t", keeper, extract)
            return result.status, [found.text for found in await keeper.recall("tabs")]

    assert asyncio.run(run()) == ("stored", ["User prefers tabs"])
