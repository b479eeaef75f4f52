"""What the model has not read is kept by a compaction; what is too large for that is shown in part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

import sessiontree as st
from known import present
from sample_texts import sample_texts
from sessiontree.context.result_views import result_text
from sessiontree.model import Compaction
from sessiontree.model.tokens import estimate_text
from sessiontree.sessions import SessionManager

WORDS = sample_texts()["English"]
TOOLS = [{"name": f"tool_{n}", "description": WORDS[:2_000], "input_schema": {"type": "object"}} for n in range(5)]


@pytest.fixture
def journal() -> Iterator[st.Journal]:
    with st.open("memory:") as opened:
        opened.create_thread("t")
        yield opened


def words(tokens: int) -> str:
    return (WORDS * 30)[: tokens * len(WORDS) // estimate_text(WORDS)]


def talk(journal: st.Journal, rounds: int, size: int) -> None:
    for number in range(rounds):
        journal.append_many("t", [st.user(f"question {number}"), st.assistant(words(size))])


def read_file(journal: st.Journal, text: str, call_id: str = "c") -> None:
    journal.append_many(
        "t", [st.user("Read it."), st.assistant(calls=[st.call(call_id, "read")]), st.tool_result(call_id, text)]
    )


def results(journal: st.Journal) -> list[str]:
    messages = journal.context("t").messages
    return [result_text(message, result.call_id) for message in messages for result in message.tool_results]


@pytest.mark.parametrize(("window", "size"), [(32_000, 640), (32_000, 9_600), (64_000, 9_600), (200_000, 70_000)])
def test_a_result_that_the_model_has_not_read_is_kept_whole_if_it_fits(
    journal: st.Journal, window: int, size: int
) -> None:
    policy = st.CompactionPolicy(window_tokens=window)
    talk(journal, 40, window // 40)
    read_file(journal, words(size))
    assert journal.compact("t", policy=policy).is_installed
    assert results(journal)[-1] == words(size)


def test_every_result_of_a_batch_and_what_the_user_said_meanwhile_is_kept(journal: st.Journal) -> None:
    talk(journal, 40, 800)
    journal.append("t", st.assistant(calls=[st.call("a", "read"), st.call("b", "read")]))
    journal.append_many("t", [st.tool_result("b", "B" * 90), st.user("Hurry up."), st.tool_result("a", "A" * 90)])
    journal.append("t", st.user("Are you there?"))
    journal.compact("t", policy=st.CompactionPolicy(window_tokens=16_000))
    assert results(journal) == ["A" * 90, "B" * 90]
    assert [message.text for message in journal.context("t").messages][-2:] == ["Hurry up.", "Are you there?"]


def test_a_result_larger_than_the_window_is_cut_and_its_whole_text_is_kept_as_an_artifact(journal: st.Journal) -> None:
    policy = st.CompactionPolicy(window_tokens=32_000)
    whole = words(100_000)
    read_file(journal, whole)
    before = journal.context("t")
    result = journal.compact("t", policy=policy)
    assert (result.cut_results, result.is_over_budget, result.removed_messages) == (1, False, 0)
    (shown,) = results(journal)
    name = hashlib.sha256(whole.encode()).hexdigest()
    assert f"characters are left out here. The whole text is the artifact {name}.]" in shown
    assert shown.startswith(whole[:1_000])
    assert shown.endswith(whole[-1_000:])
    assert journal.context("t").tokens < policy.threshold
    assert journal.read_artifact(name).decode() == whole
    view = journal.context("t").messages[-1].tool_results[0].view
    assert view is not None
    assert view.full_output is not None
    assert view.full_output.sha256 == name
    journal.uncompact("t")
    assert journal.context("t") == before


def test_the_artifact_of_a_cut_result_goes_with_the_last_thread_that_shows_it(journal: st.Journal) -> None:
    read_file(journal, words(100_000))
    journal.compact("t", policy=st.CompactionPolicy(window_tokens=32_000))
    fork = journal.fork("t")
    journal.create_thread("other")
    journal.delete_thread("other")
    name = hashlib.sha256(words(100_000).encode()).hexdigest()
    assert journal.read_artifact(name).decode() == words(100_000)
    journal.delete_thread("t")
    assert journal.read_artifact(name).decode() == words(100_000)
    journal.delete_thread(fork.id)
    with pytest.raises(st.BlobNotFoundError):
        journal.read_artifact(name)


def test_a_cut_result_that_is_erased_with_its_compaction_leaves_no_copy(journal: st.Journal) -> None:
    read_file(journal, words(100_000))
    compaction = journal.compact("t", policy=st.CompactionPolicy(window_tokens=32_000)).entry
    assert compaction is not None
    journal.erase("t", [journal.path("t")[-2].id, compaction.id])
    with pytest.raises(st.BlobNotFoundError):
        journal.read_artifact(hashlib.sha256(words(100_000).encode()).hexdigest())
    assert journal.check() == []


def test_several_large_results_share_the_room_and_small_ones_stay_whole(journal: st.Journal) -> None:
    sizes = {"a": 40_000, "b": 90_000, "c": 300}
    journal.append_many("t", [st.user("Read all."), st.assistant(calls=[st.call(name, "read") for name in sizes])])
    journal.append_many("t", [st.tool_result(name, words(size)) for name, size in sizes.items()])
    policy = st.CompactionPolicy(window_tokens=32_000)
    assert journal.compact("t", policy=policy).cut_results == 2
    first, second, third = map(estimate_text, results(journal))
    assert abs(first - second) < first // 5
    assert third == estimate_text(words(300))
    assert journal.context("t").tokens < policy.threshold


def test_a_cut_result_stays_cut_after_the_next_compaction_and_can_be_cut_further(journal: st.Journal) -> None:
    read_file(journal, words(100_000))
    journal.compact("t", policy=st.CompactionPolicy(window_tokens=64_000))
    (large,) = results(journal)
    journal.compact("t", policy=st.CompactionPolicy(window_tokens=16_000))
    (small,) = results(journal)
    assert estimate_text(small) < 12_000 < estimate_text(large)
    name = hashlib.sha256(words(100_000).encode()).hexdigest()
    assert name in small
    assert name in large
    journal.append("t", st.user("Well?"))
    journal.compact("t", policy=st.CompactionPolicy(window_tokens=16_000), force=True)
    assert results(journal) == [small]


def test_a_result_that_the_model_has_read_is_summarised_like_anything_else(journal: st.Journal) -> None:
    read_file(journal, words(30_000))
    journal.append("t", st.assistant("I see."))
    journal.append("t", st.user("Good."))
    assert journal.compact("t", policy=st.CompactionPolicy(window_tokens=32_000)).cut_results == 0
    assert results(journal) == []


def test_questions_without_an_answer_are_kept_as_long_as_they_fit(journal: st.Journal) -> None:
    talk(journal, 20, 600)
    for number in range(3):
        journal.append("t", st.user(f"{number} " + words(800)))
    journal.compact("t", policy=st.CompactionPolicy(window_tokens=16_000, keep_recent_tokens=100))
    assert [message.text[:2] for message in journal.context("t").messages[1:]] == ["0 ", "1 ", "2 "]
    for number in range(3, 30):
        journal.append("t", st.user(f"{number} " + words(800)))
    result = journal.compact("t", policy=st.CompactionPolicy(window_tokens=16_000))
    assert not result.is_over_budget
    assert journal.context("t").messages[-1].text.startswith("29 ")


@pytest.mark.parametrize("window", [8_000, 16_000, 32_000])
def test_small_windows_keep_recent_messages(journal: st.Journal, window: int) -> None:
    policy = st.CompactionPolicy(window_tokens=window)
    talk(journal, 60, window // 40)
    result = journal.compact("t", policy=policy)
    assert result.kept_messages >= 6
    assert result.tokens_after <= policy.threshold * 3 // 4


def test_tool_definitions_fill_the_window_too(journal: st.Journal) -> None:
    policy = st.CompactionPolicy(window_tokens=8_000)
    talk(journal, 12, 350)
    without, with_tools = journal.context("t"), journal.context("t", tools=TOOLS)
    assert with_tools.tokens - without.tokens == with_tools.estimate - without.estimate > 1_500
    assert not journal.needs_compaction("t", policy=policy)
    assert journal.needs_compaction("t", policy=policy, tools=TOOLS)
    assert journal.compact_if_needed("t", policy=policy) is None
    result = journal.compact_if_needed("t", policy=policy, tools=TOOLS)
    assert result is not None
    assert result.tokens_after == journal.context("t", tools=TOOLS).tokens < policy.threshold
    assert not journal.needs_compaction("t", policy=policy, tools=TOOLS)


def test_a_session_manager_counts_the_tool_definitions_that_it_is_told(journal: st.Journal) -> None:
    key = st.SessionKey(agent="bot", channel="web", peer="ann")
    policy = st.CompactionPolicy(window_tokens=8_000)
    with SessionManager(journal, policy=policy, tools=TOOLS, auto_compact="inline") as manager:
        for number in range(12):
            manager.add_message(key, st.user(f"question {number}"))
            manager.add_message(key, st.assistant(words(350)))
        thread_id = present(manager.get(key)).thread_id
        assert manager.info(key).compactions == 1
        with_tools = journal.context(thread_id, tools=TOOLS).tokens
        assert manager.token_usage(key) == with_tools / 8_000
        assert with_tools < policy.threshold


def test_call_model_counts_tool_definitions(journal: st.Journal) -> None:
    talk(journal, 12, 350)
    sent = journal.call_model(
        "t", lambda context: context, policy=st.CompactionPolicy(window_tokens=8_000), tools=TOOLS
    )
    assert sent.messages[0].kind == "compaction_summary"
    assert sent.tokens == journal.context("t", tools=TOOLS).tokens


def test_a_report_from_before_a_compaction_counts_again_when_it_is_taken_back(journal: st.Journal) -> None:
    talk(journal, 10, 300)
    journal.append("t", st.assistant("Done.", usage=st.Usage(total_tokens=4_321)))
    journal.append("t", st.user("And now?"))
    before = journal.context("t")
    assert before.tokens == 4_321 + before.segments[-1].token_estimate
    policy = st.CompactionPolicy(window_tokens=8_000)
    journal.compact("t", policy=policy)
    journal.append("t", st.assistant("Next.", usage=st.Usage(total_tokens=2_000)))
    assert journal.context("t").tokens == 2_000
    journal.uncompact("t")
    after = journal.context("t")
    assert after.tokens == before.tokens + after.segments[-1].token_estimate
    journal.compact("t", policy=policy)
    assert isinstance(journal.path("t")[-1].payload, Compaction)
    journal.uncompact("t")
    assert journal.context("t").tokens == after.tokens
