"""The summarisers that ask a model, against a server that speaks the real protocols."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pytest

import sessiontree as st
from known import of_kind, present
from long_conversations import SMALL, talk
from model_server import ModelServer, Reply, chat_answer, messages_answer, model_server
from sessiontree.compaction.summarizers.models import (
    AnthropicSummarizer,
    AsyncAnthropicSummarizer,
    AsyncOpenAISummarizer,
    OpenAISummarizer,
)

pytestmark = pytest.mark.xdist_group("model sdk")

REQUEST = st.SummaryRequest(
    kind="history", messages=(st.user("hello").message,), instructions="mind the cost", max_tokens=300
)


class OpenAI:
    path = "/v1/chat/completions"
    sync, asynchronous = OpenAISummarizer, AsyncOpenAISummarizer
    answer = staticmethod(chat_answer)
    cut_off = "length"

    @staticmethod
    def base(server: ModelServer) -> str:
        return server.url + "/v1"

    @staticmethod
    def key(headers: Mapping[str, str]) -> str:
        return headers["authorization"]


class Anthropic:
    path = "/v1/messages"
    sync, asynchronous = AnthropicSummarizer, AsyncAnthropicSummarizer
    answer = staticmethod(messages_answer)
    cut_off = "max_tokens"

    @staticmethod
    def base(server: ModelServer) -> str:
        return server.url

    @staticmethod
    def key(headers: Mapping[str, str]) -> str:
        return headers.get("authorization") or "Bearer " + headers["x-api-key"]


Provider = type[OpenAI] | type[Anthropic]


class Ask(Protocol):
    def __call__(self, summary_request: st.SummaryRequest = REQUEST, **options: Any) -> st.Summary:
        """Summarise once."""
        ...


@pytest.fixture(params=[OpenAI, Anthropic], ids=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> Provider:
    made: Provider = request.param
    return made


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest, provider: Provider, server: ModelServer) -> Ask:
    """Summarise once, through the sync or the async client."""

    def sync(summary_request: st.SummaryRequest = REQUEST, **options: Any) -> st.Summary:
        summarizer = provider.sync("local-model", base_url=provider.base(server), api_key="secret", **options)
        try:
            return summarizer(summary_request)
        finally:
            summarizer.close()

    async def asynchronous(summary_request: st.SummaryRequest, options: dict[str, Any]) -> st.Summary:
        summarizer = provider.asynchronous("local-model", base_url=provider.base(server), api_key="secret", **options)
        try:
            return await summarizer(summary_request)
        finally:
            await summarizer.close()

    def run(summary_request: st.SummaryRequest = REQUEST, **options: Any) -> st.Summary:
        return asyncio.run(asynchronous(summary_request, options))

    return sync if request.param == "sync" else run


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


def test_a_summary_comes_back_with_what_it_cost(ask: Ask, provider: Provider, server: ModelServer) -> None:
    server.replies = [Reply(body=provider.answer("  The notes.\n"))]
    summary = ask()
    assert (summary.text, summary.model) == ("The notes.", "local-model")
    usage = present(summary.usage)
    assert (usage.input_tokens, usage.output_tokens) == (900, 40)
    ((path, headers, body),) = server.requests
    assert (path, provider.key(headers)) == (provider.path, "Bearer secret")
    assert body["stream"] is False
    assert (body["model"], body["max_tokens"]) == ("local-model", 300)
    assert "mind the cost" in body["messages"][-1]["content"]
    assert "[User]: hello" in body["messages"][-1]["content"]


def test_options_of_the_caller_go_into_the_request(ask: Ask, provider: Provider, server: ModelServer) -> None:
    server.replies = [Reply(body=provider.answer("notes"))]
    ask(temperature=0.3)
    assert server.requests[0][2]["temperature"] == 0.3


def test_too_many_requests_are_repeated_after_the_time_that_the_server_names(
    ask: Ask, provider: Provider, server: ModelServer
) -> None:
    busy = Reply(429, {"error": {"type": "rate_limit_error", "message": "slow down"}}, {"retry-after": "0.01"})
    server.replies = [busy, busy, Reply(body=provider.answer("notes"))]
    assert ask(max_retries=2).text == "notes"
    assert len(server.requests) == 3


def test_a_server_that_stays_busy_is_an_error_that_names_the_time_to_wait(
    ask: Ask, provider: Provider, server: ModelServer
) -> None:
    server.replies = [Reply(429, {"error": {"type": "rate_limit_error", "message": "slow down"}}, {"retry-after": "7"})]
    with pytest.raises(st.SummaryError, match=r"429.*after 7 seconds") as caught:
        ask(max_retries=0)
    assert caught.value.retry_after_seconds == 7


def test_a_server_fault_is_retried_once_and_then_raised(ask: Ask, provider: Provider, server: ModelServer) -> None:
    broken = Reply(500, {"error": {"type": "api_error", "message": "oops"}}, {"retry-after-ms": "1"})
    server.replies = [broken, Reply(body=provider.answer("notes"))]
    assert ask(max_retries=1).text == "notes"
    server.replies = [broken, broken]
    with pytest.raises(st.SummaryError, match="500"):
        ask(max_retries=1)


def test_a_server_that_does_not_answer_in_time_is_given_up(ask: Ask, provider: Provider, server: ModelServer) -> None:
    hold = threading.Event()
    server.replies = [Reply(hold=hold)]
    try:
        with pytest.raises(st.SummaryError, match="Timeout"):
            ask(timeout_seconds=0.2, max_retries=0)
    finally:
        hold.set()


@pytest.mark.parametrize("text", ["", " \n", None])
def test_an_empty_answer_is_an_error(ask: Ask, provider: Provider, server: ModelServer, text: str | None) -> None:
    server.replies = [Reply(body=provider.answer(text))]
    with pytest.raises(st.EmptySummaryError):
        ask()


def test_half_an_answer_is_an_error(ask: Ask, provider: Provider, server: ModelServer) -> None:
    server.replies = [Reply(body=provider.answer("The notes begin wi", provider.cut_off))]
    with pytest.raises(st.TruncatedSummaryError) as caught:
        ask()
    assert caught.value.max_tokens == 300


def test_an_answer_that_is_not_json_is_an_error(ask: Ask, provider: Provider, server: ModelServer) -> None:
    server.replies = [Reply(raw=b"<html>gateway</html>", headers={"content-type": "text/html"})]
    with pytest.raises(st.SummaryError):
        ask(max_retries=0)


def test_a_wrong_key_is_an_error_that_is_not_repeated(ask: Ask, provider: Provider, server: ModelServer) -> None:
    server.replies = [Reply(401, {"error": {"type": "authentication_error", "message": "no such key"}})]
    with pytest.raises(st.SummaryError, match="401"):
        ask(max_retries=3)
    assert len(server.requests) == 1


def test_a_failing_server_changes_nothing_in_the_conversation(provider: Provider, server: ModelServer) -> None:
    server.replies = [Reply(500, {"error": {"message": "oops"}})]
    summarizer = provider.sync("local-model", base_url=provider.base(server), api_key="k", max_retries=0)
    with st.open("memory:") as journal:
        journal.create_thread("t")
        talk(journal, "t", 12)
        before = journal.context("t")
        with pytest.raises(st.SummaryError):
            journal.compact("t", summarizer, policy=SMALL)
        assert journal.context("t") == before
        server.replies = [Reply(body=provider.answer("notes"))] * 2
        result = journal.compact("t", summarizer, policy=SMALL)
        assert result.is_installed
        assert present(result.usage).output_tokens == 40 * len(server.requests[1:])
        assert of_kind(st.Compaction, journal.path("t")[-1].payload).summary_usage == result.usage
    summarizer.close()
