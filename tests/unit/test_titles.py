"""Titles: the user's first real words, whole characters, and what became of a titler."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import sessiontree as st
from sessiontree.model.titles import graphemes, title_from


@pytest.fixture
def journal() -> Iterator[st.Journal]:
    with st.open("memory:") as opened:
        opened.create_thread("t")
        yield opened


def test_the_title_is_the_first_thing_that_a_person_said(journal: st.Journal) -> None:
    journal.append_many(
        "t",
        [
            st.system("Be kind."),
            st.user("  "),
            st.user("/new"),
            st.user("<environment>\ncwd=/x\n</environment>"),
            st.user("Fix the\n  login page"),
            st.user("and the logout"),
        ],
    )
    thread = journal.suggest_title("t")
    assert (thread.title, thread.title_status, thread.title_source) == ("Fix the login page", "ready", "host")
    assert thread.title_updated_ns > 0


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("abc", ["a", "b", "c"]),
        ("e\u0301x", ["e\u0301", "x"]),
        ("👩‍👩‍👧x", ["👩‍👩‍👧", "x"]),
        ("👍🏽👍", ["👍🏽", "👍"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("각각", ["각", "각"]),
        ("❤️x", ["❤️", "x"]),
        ("नि", ["नि"]),
        ("กำๆ", ["กำ", "ๆ"]),
        ("ｶﾞｷ", ["ｶﾞ", "ｷ"]),
        ("क्षत्रिय", ["क्ष", "त्रि", "य"]),
        ("क्\u200cष", ["क्\u200c", "ष"]),
        ("\u0600\u0661x", ["\u0600\u0661", "x"]),
        ("a\u200db", ["a\u200d", "b"]),
        ("\r\nx", ["\r\n", "x"]),
        ("1️⃣2", ["1️⃣", "2"]),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿x", ["🏴󠁧󠁢󠁥󠁮󠁧󠁿", "x"]),
    ],
)
def test_text_is_cut_between_characters_as_a_reader_sees_them(text: str, pieces: list[str]) -> None:
    assert list(graphemes(text)) == pieces


def test_a_long_title_is_cut_and_says_so() -> None:
    assert title_from("x" * 60) == "x" * 60
    assert title_from("x" * 61) == "x" * 59 + "…"
    assert title_from("👩‍👩‍👧" * 9, limit=3) == "👩‍👩‍👧" * 2 + "…"


@pytest.mark.parametrize("limit", [0, -1])
def test_a_title_without_room_is_refused(journal: st.Journal, limit: int) -> None:
    journal.append("t", st.user("Fix the login page"))
    with pytest.raises(st.InvalidInputError):
        journal.suggest_title("t", limit=limit)
    assert title_from("Fix", limit=1) == "…"


def test_the_tables_of_characters_are_loaded_only_for_a_text_that_needs_them() -> None:
    script = (
        "import sys, sessiontree as st\n"
        "from sessiontree.model.titles import title_from\n"
        "title_from('plain words ' * 9)\n"
        "print('wcwidth' in sys.modules)\n"
        "title_from('ein hübscher Titel ' * 9)\n"
        "print('wcwidth' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_a_titler_writes_the_title(journal: st.Journal) -> None:
    journal.append("t", st.user("Fix the login page"))
    thread = journal.suggest_title("t", lambda text: f"About: {text[:3]}")
    assert (thread.title, thread.title_source) == ("About: Fix", "provider")


@pytest.mark.parametrize("titler", [lambda text: 1 / 0, lambda text: "  ", lambda text: None])
def test_a_titler_that_fails_is_written_down_and_the_words_of_the_user_serve(journal: st.Journal, titler: Any) -> None:
    journal.append("t", st.user("Fix the login page"))
    thread = journal.suggest_title("t", titler)
    assert (thread.title, thread.title_status, thread.title_source) == ("Fix the login page", "failed", "host")
    assert thread.title_error


def test_a_title_that_was_set_is_kept_even_if_it_was_set_meanwhile(journal: st.Journal) -> None:
    journal.append("t", st.user("Fix the login page"))

    def titler(text: str) -> str:
        journal.update_thread("t", title="Mine")
        return "Theirs"

    assert journal.suggest_title("t", titler).title == "Mine"
    assert journal.suggest_title("t").title == "Mine"


def test_a_change_of_something_else_meanwhile_does_not_cost_the_title(journal: st.Journal) -> None:
    journal.append("t", st.user("Fix the login page"))

    def titler(text: str) -> str:
        journal.update_thread("t", tags=("vip",))
        return "Login"

    thread = journal.suggest_title("t", titler)
    assert (thread.title, thread.tags) == ("Login", ("vip",))


def test_a_title_does_not_reorder_the_list(journal: st.Journal) -> None:
    journal.append("t", st.user("Fix the login page"))
    before = journal.thread("t").updated_ns
    assert journal.suggest_title("t").updated_ns == before


def test_a_thread_without_words_keeps_no_title(journal: st.Journal) -> None:
    assert journal.suggest_title("t").title == ""


def test_an_async_titler_works_on_an_async_journal() -> None:
    async def titler(text: str) -> str:
        return "Async"

    async def run() -> str:
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")
            await journal.append("t", st.user("hello"))
            return (await journal.suggest_title("t", titler)).title

    assert asyncio.run(run()) == "Async"
