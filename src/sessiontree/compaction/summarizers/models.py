"""Summarisers that call a model: any OpenAI-compatible server, or Anthropic.

They need the extra ``openai`` or ``anthropic``. The provider's SDK repeats a request after 429, 500 and time-outs and
respects Retry-After; ``max_retries`` limits how often.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from sessiontree.compaction.summarizers.base import Summary, SummaryRequest
from sessiontree.errors import EmptySummaryError, MissingExtraError, SummaryError, TruncatedSummaryError
from sessiontree.model import Usage

if TYPE_CHECKING:
    from anthropic.types import Message as AnthropicMessage
    from openai.types.chat import ChatCompletion

__all__ = ["AnthropicSummarizer", "AsyncAnthropicSummarizer", "AsyncOpenAISummarizer", "OpenAISummarizer"]


_DEFAULT_TIMEOUT_SECONDS = 120.0
_DEFAULT_RETRIES = 2


class _Provider(Protocol):
    """A provider's SDK: how a request is made, and what a response means."""

    sdk: ClassVar[str]
    """The module of the SDK, which is also the name of the extra."""
    feature: ClassVar[str]
    client: ClassVar[str]
    """The SDK's client class; its asynchronous form has the prefix ``Async``."""
    error: ClassVar[str]
    """The base class of the SDK's errors."""

    def send(self, client: Any, body: dict[str, Any]) -> Any:
        """Call the SDK and return a response, or an awaitable of one."""

    def body(self, request: SummaryRequest) -> dict[str, Any]:
        """Return what a request contains besides model, size and options."""

    def summary(self, response: Any, request: SummaryRequest) -> Summary:
        """Return the summary in a response, or raise a SummaryError."""


class _Base:
    """A model, and a client to call it with: the caller's own, or one that is made here."""

    provider: ClassVar[_Provider]
    _prefix: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS,
        max_retries: int = _DEFAULT_RETRIES,
        client: Any = None,
        **options: Any,
    ) -> None:
        self.model = model
        self._options = options
        self._client = client or getattr(_sdk(self.provider), self._prefix + self.provider.client)(
            base_url=base_url, api_key=api_key, timeout=timeout_seconds, max_retries=max_retries
        )

    def _send(self, request: SummaryRequest) -> Any:
        body = {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "stream": False,
            "extra_body": self._options,
            **self.provider.body(request),
        }
        return self.provider.send(self._client, body)

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        try:
            yield
        except getattr(_sdk(self.provider), self.provider.error) as error:
            raise _translate_error(error) from error

    def _summary(self, response: Any, request: SummaryRequest) -> Summary:
        if isinstance(response, str):  # the SDK returns a body that is not JSON, such as a gateway's page, as text
            raise SummaryError(f"the server's response is not JSON: {response[:200]!r}")
        return self.provider.summary(response, request)


class _Summarizer(_Base):
    _prefix = ""

    def __call__(self, request: SummaryRequest) -> Summary:
        """Call the model and wait for its answer."""
        with self._translating_errors():
            response = self._send(request)
        return self._summary(response, request)

    def close(self) -> None:
        """Close the client."""
        self._client.close()


class _AsyncSummarizer(_Base):
    _prefix = "Async"

    async def __call__(self, request: SummaryRequest) -> Summary:
        """Call the model and wait for its answer."""
        with self._translating_errors():
            response = await self._send(request)
        return self._summary(response, request)

    async def close(self) -> None:
        """Close the client."""
        await self._client.close()


class _OpenAI:
    sdk: ClassVar[str] = "openai"
    feature: ClassVar[str] = "a summary by an OpenAI-compatible model"
    client: ClassVar[str] = "OpenAI"
    error: ClassVar[str] = "OpenAIError"

    def send(self, client: Any, body: dict[str, Any]) -> Any:
        return client.chat.completions.create(**body)

    def body(self, request: SummaryRequest) -> dict[str, Any]:
        return {
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": request.prompt},
            ]
        }

    def summary(self, response: ChatCompletion, request: SummaryRequest) -> Summary:
        if not response.choices:
            raise SummaryError("the response has no choices")
        choice = response.choices[0]
        refusal = getattr(choice.message, "refusal", None)
        if refusal:
            raise SummaryError(f"the model refused: {refusal}")
        is_cut_off = choice.finish_reason == "length"
        text = _complete_text(choice.message.content, is_cut_off=is_cut_off, max_tokens=request.max_tokens)
        return Summary(text=text, usage=_openai_usage(response), provider="openai", model=response.model or "")


class OpenAISummarizer(_Summarizer):
    """``journal.compact(thread_id, OpenAISummarizer("gpt-5-mini"))``; ``base_url`` names any compatible server."""

    provider = _OpenAI()


class AsyncOpenAISummarizer(_AsyncSummarizer):
    """OpenAISummarizer for an AsyncJournal."""

    provider = _OpenAI()


def _openai_usage(response: ChatCompletion) -> Usage | None:
    used = response.usage
    if used is None:
        return None
    return Usage(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens, total_tokens=used.total_tokens)


class _Anthropic:
    sdk: ClassVar[str] = "anthropic"
    feature: ClassVar[str] = "a summary by an Anthropic model"
    client: ClassVar[str] = "Anthropic"
    error: ClassVar[str] = "AnthropicError"

    def send(self, client: Any, body: dict[str, Any]) -> Any:
        return client.messages.create(**body)

    def body(self, request: SummaryRequest) -> dict[str, Any]:
        return {"system": request.system, "messages": [{"role": "user", "content": request.prompt}]}

    def summary(self, response: AnthropicMessage, request: SummaryRequest) -> Summary:
        if response.stop_reason == "refusal":
            raise SummaryError("the model refused")
        text = "".join(block.text for block in response.content or () if block.type == "text")
        is_cut_off = response.stop_reason == "max_tokens"
        complete = _complete_text(text, is_cut_off=is_cut_off, max_tokens=request.max_tokens)
        return Summary(text=complete, usage=_anthropic_usage(response), provider="anthropic", model=response.model)


class AnthropicSummarizer(_Summarizer):
    """``journal.compact(thread_id, AnthropicSummarizer("claude-haiku-4-5"))``."""

    provider = _Anthropic()


class AsyncAnthropicSummarizer(_AsyncSummarizer):
    """AnthropicSummarizer for an AsyncJournal."""

    provider = _Anthropic()


def _anthropic_usage(response: AnthropicMessage) -> Usage:
    used = response.usage
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_input_tokens or 0,
        cache_write_tokens=used.cache_creation_input_tokens or 0,
    )


def _complete_text(text: str | None, *, is_cut_off: bool, max_tokens: int) -> str:
    """Return the text if it is complete: with half a summary, the rest of the conversation would be lost."""
    if is_cut_off:
        raise TruncatedSummaryError(max_tokens)
    if text is None or not text.strip():
        raise EmptySummaryError
    return text.strip()


def _translate_error(error: Exception) -> SummaryError:
    """Return an error of the SDK as a SummaryError, with the time to wait if the provider named one."""
    response = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    status = getattr(error, "status_code", None)
    problem = f"{type(error).__name__}{f' ({status})' if status else ''}: {error}"
    return SummaryError(problem, retry_after_seconds=_seconds(headers.get("retry-after")))


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _sdk(provider: _Provider) -> Any:
    try:
        return importlib.import_module(provider.sdk)
    except ImportError as error:
        raise MissingExtraError(provider.feature, provider.sdk) from error
