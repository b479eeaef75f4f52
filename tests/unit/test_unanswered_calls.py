"""Results that a request makes up for calls without one take room in the window, though nobody said them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sessiontree as st
from sessiontree.model.tokens import MESSAGE_OVERHEAD, exact_counter

POLICY = st.CompactionPolicy(window_tokens=8_000)


@pytest.fixture
def journal() -> Iterator[st.Journal]:
    with st.open("memory:") as opened:
        yield opened


def calling(count: int, usage: st.Usage | None = None) -> st.AssistantMessage | st.ToolCallMessage:
    calls = [st.call(f"call_{number:04}", "read", '{"path": "src/file.py"}') for number in range(count)]
    return st.assistant("I read them all.", calls=calls, usage=usage)


def made_up(context: st.Context) -> int:
    return sum(segment.token_estimate for segment in context.segments if not segment.entry_id)


def real_tokens(context: st.Context) -> int:
    count = exact_counter("o200k_base")
    texts = [text for message in context.messages for text in _texts(message)]
    return MESSAGE_OVERHEAD * len(context.messages) + sum(map(count, texts))


def _texts(message: st.Message) -> list[str]:
    calls = [text for call in message.tool_calls for text in (call.id, call.name, call.arguments)]
    results = message.tool_results
    said = [part.text for result in results for part in result.parts if isinstance(part, st.TextPart)]
    return [message.text, *calls, *said, *(text for result in results for text in (result.call_id, result.name))]


def test_only_the_request_counts_results_that_are_made_up(journal: st.Journal) -> None:
    thread = journal.create_thread(contents=[st.user("Read."), calling(3)]).id
    context = journal.context(thread)
    assert context.tokens == context.estimate == journal.thread(thread).tokens
    assert context.request_tokens == context.tokens + made_up(context) > context.tokens + 3 * 20


def test_a_request_with_all_results_has_the_tokens_of_its_context(journal: st.Journal) -> None:
    thread = journal.create_thread(contents=[st.user("Read."), calling(1), st.tool_result("call_0000", "text")]).id
    context = journal.context(thread)
    assert context.request_tokens == context.tokens


def test_a_report_of_the_provider_has_made_up_results_from_the_next_answer_on(journal: st.Journal) -> None:
    first, second = st.Usage(total_tokens=900), st.Usage(total_tokens=1_100)
    thread = journal.create_thread(contents=[st.user("Read."), calling(4, first)]).id
    context = journal.context(thread)
    assert (context.tokens, context.request_tokens) == (900, 900 + made_up(context))
    journal.append(thread, st.UsageReport(usage=st.Usage(total_tokens=950)))
    assert journal.context(thread).request_tokens == 950 + made_up(context)
    journal.append(thread, st.assistant("They are gone.", usage=second))
    context = journal.context(thread)
    assert context.tokens == context.request_tokens == 1_100


@pytest.mark.parametrize("calls", [20, 50, 80])
def test_many_calls_without_results_fit_into_a_small_window(journal: st.Journal, calls: int) -> None:
    thread = journal.create_thread().id
    while journal.context(thread).tokens < 4_500:
        journal.append_many(thread, [st.user("Tell me more of it. " * 10), st.assistant("There is more to say. " * 20)])
    journal.append_many(thread, [st.user("Read."), calling(calls)])
    while journal.context(thread).tokens < POLICY.threshold - 100:
        journal.append(thread, st.user("Are you there? " * 5))
    result = journal.compact_if_needed(thread, policy=POLICY)
    assert result is not None
    assert (result.is_installed, result.is_over_budget) == (True, False)
    context = journal.context(thread)
    assert context.request_tokens < POLICY.threshold
    assert real_tokens(context) < POLICY.threshold


def test_calls_that_do_not_fit_are_over_the_budget(journal: st.Journal) -> None:
    thread = journal.create_thread(contents=[st.user("Read."), calling(150)]).id
    assert journal.needs_compaction(thread, policy=POLICY)
    assert journal.compact(thread, policy=POLICY).is_over_budget


def test_a_replaced_context_counts_the_system_prompt_before_and_after(journal: st.Journal) -> None:
    thread = journal.create_thread(contents=[st.system("Be kind. " * 50), st.user("hello " * 100)]).id
    before = journal.context(thread).estimate
    written = journal.replace_context(thread, "They greeted.", 0).payload
    assert isinstance(written, st.Compaction)
    assert (written.tokens_before, written.tokens_after) == (before, journal.context(thread).estimate)
