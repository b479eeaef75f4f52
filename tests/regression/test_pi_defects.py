"""Defects of pi's compaction and branches, and of its issue list, each named after what goes wrong there."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import sessiontree as st
from known import of_kind, present
from long_conversations import SMALL, FakeModel, round_of, talk, texts
from sessiontree.compaction.plan import plan
from sessiontree.model.codec import encode_payload
from sessiontree.stores.jsonl.lines import EntryLine, encode_line
from sessiontree.testing import ManualClock, seeded_random
from stores import DURABLE, open_journal, reopened


@pytest.fixture
def journal() -> Iterator[st.Journal]:
    with st.open("memory:", clock=ManualClock(), random=seeded_random(3)) as opened:
        opened.create_thread("t")
        yield opened


@pytest.mark.parametrize("store", DURABLE)
def test_b5_the_users_prompt_is_on_disk_before_anybody_has_answered(store: str, tmp_path: Path) -> None:
    journal = open_journal(store, tmp_path)
    journal.create_thread("t")
    journal.append("t", st.user("the question"))
    journal = reopened(journal, store, tmp_path)
    assert texts(journal, "t") == ["the question"]
    journal.close()


def test_b8_going_on_from_a_tool_call_leaves_no_dangling_call_in_the_context(journal: st.Journal) -> None:
    stored = journal.append_many("t", round_of(1))
    journal.rewind("t", stored[1].id)
    journal.append("t", st.user("never mind"))
    context = journal.context("t")
    calls = [call.id for message in context.messages for call in message.tool_calls]
    assert calls == [result.call_id for message in context.messages for result in message.tool_results]
    journal.leave_branch("t", stored[1].id, FakeModel("went astray"))
    context = journal.context("t")
    assert [message.role for message in context.messages][:4] == ["user", "assistant", "tool", "tool"]
    assert context.messages[-1].text.startswith("went astray")


def test_b9_summaries_of_branches_weigh_something_in_the_search_for_a_cut(journal: st.Journal) -> None:
    journal.append_many("t", [st.user("start"), st.assistant("ok")])
    journal.append("t", st.BranchSummary(summary="long tale " * 3_000))
    journal.append_many("t", [st.user("go on"), st.assistant("yes")])
    planned = present(plan(journal.path("t"), SMALL))
    assert planned.removed_messages >= 3
    assert journal.compact("t", FakeModel("short"), policy=SMALL).tokens_after < SMALL.target


def test_b9_the_report_of_an_aborted_request_does_not_hide_a_full_window(journal: st.Journal) -> None:
    journal.append("t", st.user("some words " * 60_000))
    journal.append("t", st.assistant("", usage=st.Usage(total_tokens=2), stop_reason="aborted"))
    assert journal.context("t").tokens > 60_000
    journal.append("t", st.user("hello?"))
    result = present(journal.compact_if_needed("t", FakeModel("short"), policy=SMALL))
    assert result.tokens_before > 100_000
    assert result.is_installed


def test_b9_a_big_file_whose_cost_the_provider_reported_does_not_look_like_a_full_window(journal: st.Journal) -> None:
    journal.append("t", st.user([st.FilePart(data="A" * 3_000_000, mime="application/pdf", name="book.pdf")]))
    journal.append("t", st.assistant("I have read it.", usage=st.Usage(total_tokens=9_000)))
    assert journal.context("t").tokens == 9_000


@pytest.mark.parametrize("parent", ["self", "first"])
def test_b10_a_loop_or_a_double_id_in_a_file_does_not_hang_the_reader(parent: str, tmp_path: Path) -> None:
    with open_journal("jsonl", tmp_path) as journal:
        journal.create_thread("t")
        journal.append("t", st.user("one"), id="first")
    (file,) = [path for path in tmp_path.rglob("*.jsonl") if b"first" in path.read_bytes()]
    payload = msgspec.Raw(encode_payload(st.user("looped")))
    loop = EntryLine(n=99, id="self" if parent == "self" else "first", thread="t", parent=parent, at=1, payload=payload)
    with file.open("ab") as end:
        end.write(encode_line(loop))
    with open_journal("jsonl", tmp_path) as journal:
        assert journal.path("t")
        assert texts(journal, "t")
        assert journal.check()


def test_b11_an_unknown_first_kept_entry_keeps_the_last_exchange(journal: st.Journal) -> None:
    talk(journal, "t", 2)
    journal.append("t", st.Compaction(summary="notes", first_kept_entry_id="nowhere"))
    assert texts(journal, "t")[-1] == "answer 1"


def test_what_the_first_compaction_kept_is_not_lost_at_the_second(journal: st.Journal) -> None:
    """Issue 2608: the kept messages were neither summarised nor kept."""
    talk(journal, "t", 12)
    journal.compact("t", FakeModel("first notes"), policy=SMALL)
    kept = [segment.entry_id for segment in journal.context("t").segments if segment.entry_type != "compaction"]
    talk(journal, "t", 12, start=12)
    summarize = FakeModel("second notes")
    journal.compact("t", summarize, policy=SMALL)
    summarised = [message for request in summarize.requests for message in request.messages]
    seen = {segment.entry_id for segment in journal.context("t").segments}
    for entry_id in kept:
        message = journal.entry("t", entry_id).message
        assert entry_id in seen or message in summarised


def test_usage_older_than_the_last_compaction_does_not_trigger_another_one(journal: st.Journal) -> None:
    """Issue 1860: the stale usage made it compact again and again."""
    talk(journal, "t", 20)
    journal.append("t", st.assistant("big", usage=st.Usage(total_tokens=190_000)))
    policy = st.CompactionPolicy(window_tokens=100_000, keep_recent_tokens=600, summary_tokens=500)
    assert present(journal.compact_if_needed("t", FakeModel("notes"), policy=policy)).is_installed
    assert journal.compact_if_needed("t", FakeModel("notes"), policy=policy) is None
    assert journal.context("t").tokens < 10_000


def test_no_orphan_tool_result_after_chained_compactions(journal: st.Journal) -> None:
    """Issues 4570 and 6832: a result without its call, and the provider refuses for ever."""
    for chain in range(5):
        talk(journal, "t", 7, start=chain * 7, words=40)
        journal.append("t", st.assistant(calls=[st.call(f"open{chain}", "ls")]))
        journal.compact("t", FakeModel("notes"), policy=SMALL)
        journal.append("t", st.tool_result(f"open{chain}", "the listing"))
        context = journal.context("t")
        calls = [call.id for message in context.messages for call in message.tool_calls]
        results = [result for message in context.messages for result in message.tool_results]
        assert calls == [result.call_id for result in results]
        assert of_kind(st.TextPart, results[-1].parts[0]).text == "the listing", (
            "the result that came after the compaction found its call"
        )


def test_a_result_that_arrives_during_a_compaction_finds_its_call(journal: st.Journal) -> None:
    """pinet issue 941: what came during a manual compaction was never saved."""
    talk(journal, "t", 12)
    journal.append("t", st.assistant(calls=[st.call("open", "ls")]))

    def summarize(request: st.SummaryRequest) -> str:
        journal.append("t", st.tool_result("open", "here"), id="answer")
        return "notes"

    journal.compact("t", summarize, policy=SMALL)
    (answer,) = journal.context("t").messages[-1].tool_results[0].parts
    assert of_kind(st.TextPart, answer).text == "here"


def test_a_conversation_longer_than_the_summarisers_window_is_summarised_in_portions(journal: st.Journal) -> None:
    """Issue 1796: the summariser itself overflowed."""
    talk(journal, "t", 30)
    policy = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=600, chunk_tokens=1_000)
    asked = []

    def summarize(request: st.SummaryRequest) -> str:
        asked.append(request)
        return f"notes {len(asked)}"

    journal.compact("t", summarize, policy=policy)
    summarised = [request for request in asked if request.kind == "history"]
    assert len(summarised) > 5
    assert all(st.estimate_text(request.prompt) < 3_000 for request in summarised)
    assert [request.previous_summary for request in summarised[1:]] == [f"notes {n}" for n in range(1, len(summarised))]


def test_a_huge_result_does_not_push_the_cut_past_itself_for_nothing(journal: st.Journal) -> None:
    journal.append_many("t", round_of(0, 10))
    journal.append_many("t", round_of(1, 10))
    journal.append("t", st.user("show it"))
    journal.append("t", st.assistant(calls=[st.call("big", "cat")]))
    journal.append("t", st.tool_result("big", "y" * 3_000))
    result = journal.compact("t", FakeModel("notes"), policy=SMALL)
    assert result.kept_messages >= 2
    assert journal.context("t").messages[-1].tool_results[0].call_id == "big"


def test_overflow_is_answered_by_one_compaction_and_one_retry(journal: st.Journal) -> None:
    talk(journal, "t", 8)
    seen = []

    def model(context: st.Context) -> str:
        seen.append(context.tokens)
        if len(seen) == 1:
            raise ValueError("prompt is too long: 210000 tokens > 200000 maximum")
        return "fine"

    policy = st.CompactionPolicy(window_tokens=200_000, summary_tokens=200)
    assert journal.call_model("t", model, FakeModel("notes"), policy=policy) == "fine"
    assert seen[1] < seen[0]
    assert of_kind(st.Compaction, journal.path("t")[-1].payload).reason == "provider_overflow"


def test_a_second_overflow_is_an_error_not_a_loop(journal: st.Journal) -> None:
    talk(journal, "t", 8)
    calls = []

    def model(context: st.Context) -> str:
        calls.append(context)
        raise ValueError("maximum context length exceeded")

    with pytest.raises(st.ContextOverflowError) as caught:
        journal.call_model("t", model, FakeModel("notes"))
    assert (len(calls), caught.value.thread_id) == (2, "t")


def test_another_error_of_the_model_is_not_taken_for_an_overflow(journal: st.Journal) -> None:
    talk(journal, "t", 8)

    def model(context: st.Context) -> str:
        raise ValueError("rate limit: 30000 tokens per minute exceeded")

    with pytest.raises(ValueError, match="rate limit"):
        journal.call_model("t", model, FakeModel("notes"))
    assert not any(entry.type == "compaction" for entry in journal.path("t"))


def test_a_full_window_is_compacted_before_the_model_is_asked(journal: st.Journal) -> None:
    talk(journal, "t", 20)
    assert journal.call_model("t", lambda context: context.tokens, FakeModel("notes"), policy=SMALL) < SMALL.threshold
    assert of_kind(st.Compaction, journal.path("t")[-1].payload).trigger == "pre_request"


def test_compacting_twice_in_a_row_does_nothing_the_second_time(journal: st.Journal) -> None:
    talk(journal, "t", 20)
    assert journal.compact("t", FakeModel("notes"), policy=SMALL).is_installed
    again = journal.compact("t", FakeModel("notes"), policy=SMALL)
    assert again.status == "nothing_to_compact"
    assert again.tokens_saved == 0
