"""Summaries by Anthropic's Messages protocol. Needs the extra ``anthropic``.

The SDK itself repeats a request after 429, 500 and time-outs, and heeds Retry-After; ``max_retries`` says how often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiontree.compaction.request import Summary, SummaryRequest
from sessiontree.errors import MissingExtraError, SummaryError
from sessiontree.model import Usage
from sessiontree.summarizers.answers import checked_text, decoded, failure

if TYPE_CHECKING:
    import anthropic
    from anthropic.types import Message as Answer

__all__ = ["AnthropicSummarizer", "AsyncAnthropicSummarizer"]

_DEFAULT_TIMEOUT_SECONDS = 120.0
_DEFAULT_RETRIES = 2


class AnthropicSummarizer:
    """``journal.compact(thread_id, AnthropicSummarizer("claude-haiku-4-5"))``."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS,
        max_retries: int = _DEFAULT_RETRIES,
        client: anthropic.Anthropic | None = None,
        **options: Any,
    ) -> None:
        self.model = model
        self._options = options
        self._client: anthropic.Anthropic = client or _sdk().Anthropic(
            base_url=base_url, api_key=api_key, timeout=timeout_seconds, max_retries=max_retries
        )

    def __call__(self, request: SummaryRequest) -> Summary:
        try:
            answer = self._client.messages.create(**_body(self.model, request, self._options))
        except _sdk().AnthropicError as error:
            raise failure(error) from error
        return _summary(decoded(answer), request)

    def close(self) -> None:
        self._client.close()


class AsyncAnthropicSummarizer:
    """The same for an AsyncJournal."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS,
        max_retries: int = _DEFAULT_RETRIES,
        client: anthropic.AsyncAnthropic | None = None,
        **options: Any,
    ) -> None:
        self.model = model
        self._options = options
        self._client: anthropic.AsyncAnthropic = client or _sdk().AsyncAnthropic(
            base_url=base_url, api_key=api_key, timeout=timeout_seconds, max_retries=max_retries
        )

    async def __call__(self, request: SummaryRequest) -> Summary:
        try:
            answer = await self._client.messages.create(**_body(self.model, request, self._options))
        except _sdk().AnthropicError as error:
            raise failure(error) from error
        return _summary(decoded(answer), request)

    async def close(self) -> None:
        await self._client.close()


def _sdk() -> Any:
    try:
        import anthropic  # noqa: PLC0415  an extra, and slow to load
    except ImportError as error:
        raise MissingExtraError("a summary by an Anthropic model", "anthropic") from error
    return anthropic


def _body(model: str, request: SummaryRequest, options: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "user", "content": request.prompt}]
    return {
        "model": model,
        "system": request.system,
        "messages": messages,
        "max_tokens": request.max_tokens,
        "stream": False,
        "extra_body": options,
    }


def _summary(answer: Answer, request: SummaryRequest) -> Summary:
    if answer.stop_reason == "refusal":
        raise SummaryError("the model refused")
    text = "".join(block.text for block in answer.content or () if block.type == "text")
    whole = checked_text(text, is_cut_off=answer.stop_reason == "max_tokens", max_tokens=request.max_tokens)
    used = answer.usage
    usage = Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_input_tokens or 0,
        cache_write_tokens=used.cache_creation_input_tokens or 0,
    )
    return Summary(text=whole, usage=usage, provider="anthropic", model=answer.model)
