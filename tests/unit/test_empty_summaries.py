"""A summary that says nothing changes nothing."""

import pytest

import sessiontree as st


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "\ufeff", "\u2060", "```\n```"])
def test_a_summary_without_a_word_is_refused_and_the_context_stays(text: str) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        for number in range(40):
            journal.append("t", st.user(f"message {number} " * 40))
        before = journal.context("t")
        policy = st.CompactionPolicy(window_tokens=2_000, keep_recent_tokens=50)
        with pytest.raises(st.EmptySummaryError):
            journal.compact("t", lambda request: text, policy=policy)
        assert journal.context("t") == before
