"""What every summariser that asks a model over HTTP has in common; a provider says how its protocol differs.

The SDK itself repeats a request after 429, 500 and time-outs, and heeds Retry-After; ``max_retries`` says how often.

What the summarisers that ask a model have in common: when to trust an answer, how to tell what went wrong.

Summaries by Anthropic's Messages protocol. Needs the extra ``anthropic``.

Summaries by any endpoint that speaks OpenAI's chat protocol. Needs the extra ``openai``.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from sessiontree.compaction.summarizers.base import Summary, SummaryRequest
from sessiontree.errors import EmptySummaryError, MissingExtraError, SummaryError, TruncatedSummaryError
from sessiontree.model import Usage

if TYPE_CHECKING:
    from anthropic.types import Message as Answer

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

__all__ = [
    "AnthropicSummarizer",
    "AsyncAnthropicSummarizer",
    "AsyncModelSummarizer",
    "AsyncOpenAISummarizer",
    "ModelSummarizer",
    "OpenAISummarizer",
    "Provider",
    "checked_text",
    "decoded",
    "failure",
]


T = TypeVar("T")


def decoded(answer: T | str) -> T:
    """The answer as the SDK's record: what is no JSON, a gateway's page for instance, it passes on as a text."""
    if isinstance(answer, str):
        raise SummaryError(f"the server did not speak the protocol: {answer[:200]!r}")
    return answer


def checked_text(text: str | None, *, is_cut_off: bool, max_tokens: int) -> str:
    """The answer, if it is whole: half a summary would replace the other half of the conversation by nothing."""
    if is_cut_off:
        raise TruncatedSummaryError(max_tokens)
    if text is None or not text.strip():
        raise EmptySummaryError
    return text.strip()


def failure(error: Exception) -> SummaryError:
    """The SDK's error as ours, with the time to wait if the provider named one."""
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


_DEFAULT_TIMEOUT_SECONDS = 120.0
_DEFAULT_RETRIES = 2


class Provider(Protocol):
    """One protocol: the SDK that speaks it, what a request looks like, and what an answer means."""

    extra: ClassVar[str]
    """The extra, and the SDK's name."""
    what: ClassVar[str]
    client: ClassVar[str]
    """The SDK's client class; the awaiting one has ``Async`` before it."""
    error: ClassVar[str]
    """The class of all errors of the SDK."""

    def send(self, client: Any, body: dict[str, Any]) -> Any:
        """The SDK's call: an answer, or something to await."""

    def body(self, request: SummaryRequest) -> dict[str, Any]:
        """What a request holds beside model, size and options."""

    def summary(self, answer: Any, request: SummaryRequest) -> Summary:
        """What an answer says, or a SummaryError."""


class _Frame:
    """A model, and a client to ask it with: one of yours, or one that is made here."""

    provider: ClassVar[Provider]
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

    def _body(self, request: SummaryRequest) -> dict[str, Any]:
        return {
            "model": self.model,
            "max_tokens": request.max_tokens,
            "stream": False,
            "extra_body": self._options,
            **self.provider.body(request),
        }

    def _errors(self) -> type[Exception]:
        errors: type[Exception] = getattr(_sdk(self.provider), self.provider.error)
        return errors


class ModelSummarizer(_Frame):
    """Asks a model and waits."""

    _prefix = ""

    def __call__(self, request: SummaryRequest) -> Summary:
        try:
            answer = self.provider.send(self._client, self._body(request))
        except self._errors() as error:
            raise failure(error) from error
        return self.provider.summary(decoded(answer), request)

    def close(self) -> None:
        self._client.close()


class AsyncModelSummarizer(_Frame):
    """The same for an AsyncJournal."""

    _prefix = "Async"

    async def __call__(self, request: SummaryRequest) -> Summary:
        try:
            answer = await self.provider.send(self._client, self._body(request))
        except self._errors() as error:
            raise failure(error) from error
        return self.provider.summary(decoded(answer), request)

    async def close(self) -> None:
        await self._client.close()


def _sdk(provider: Provider) -> Any:
    try:
        return importlib.import_module(provider.extra)
    except ImportError as error:
        raise MissingExtraError(provider.what, provider.extra) from error


class _Anthropic:
    extra: ClassVar[str] = "anthropic"
    what: ClassVar[str] = "a summary by an Anthropic model"
    client: ClassVar[str] = "Anthropic"
    error: ClassVar[str] = "AnthropicError"

    def send(self, client: Any, body: dict[str, Any]) -> Any:
        return client.messages.create(**body)

    def body(self, request: SummaryRequest) -> dict[str, Any]:
        return {"system": request.system, "messages": [{"role": "user", "content": request.prompt}]}

    def summary(self, answer: Answer, request: SummaryRequest) -> Summary:
        if answer.stop_reason == "refusal":
            raise SummaryError("the model refused")
        text = "".join(block.text for block in answer.content or () if block.type == "text")
        whole = checked_text(text, is_cut_off=answer.stop_reason == "max_tokens", max_tokens=request.max_tokens)
        return Summary(text=whole, usage=_anthropic_usage(answer), provider="anthropic", model=answer.model)


class AnthropicSummarizer(ModelSummarizer):
    """``journal.compact(thread_id, AnthropicSummarizer("claude-haiku-4-5"))``."""

    provider = _Anthropic()


class AsyncAnthropicSummarizer(AsyncModelSummarizer):
    """The same for an AsyncJournal."""

    provider = _Anthropic()


def _anthropic_usage(answer: Answer) -> Usage:
    used = answer.usage
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_input_tokens or 0,
        cache_write_tokens=used.cache_creation_input_tokens or 0,
    )


class _OpenAI:
    extra: ClassVar[str] = "openai"
    what: ClassVar[str] = "a summary by an OpenAI-compatible model"
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

    def summary(self, answer: ChatCompletion, request: SummaryRequest) -> Summary:
        if not answer.choices:
            raise SummaryError("the answer holds no choice")
        choice = answer.choices[0]
        refusal = getattr(choice.message, "refusal", None)
        if refusal:
            raise SummaryError(f"the model refused: {refusal}")
        is_cut_off = choice.finish_reason == "length"
        text = checked_text(choice.message.content, is_cut_off=is_cut_off, max_tokens=request.max_tokens)
        return Summary(text=text, usage=_openai_usage(answer), provider="openai", model=answer.model or "")


class OpenAISummarizer(ModelSummarizer):
    """``journal.compact(thread_id, OpenAISummarizer("gpt-5-mini"))``; ``base_url`` names any compatible server."""

    provider = _OpenAI()


class AsyncOpenAISummarizer(AsyncModelSummarizer):
    """The same for an AsyncJournal."""

    provider = _OpenAI()


def _openai_usage(answer: ChatCompletion) -> Usage | None:
    used = answer.usage
    if used is None:
        return None
    return Usage(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens, total_tokens=used.total_tokens)
