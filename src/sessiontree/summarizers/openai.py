"""Summaries by any endpoint that speaks OpenAI's chat protocol. Needs the extra ``openai``.

The SDK itself repeats a request after 429, 500 and time-outs, and heeds Retry-After; ``max_retries`` says how often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessiontree.compaction.request import Summary, SummaryRequest
from sessiontree.errors import MissingExtraError, SummaryError
from sessiontree.model import Usage
from sessiontree.summarizers.answers import checked_text, decoded, failure

if TYPE_CHECKING:
    import openai
    from openai.types.chat import ChatCompletion

__all__ = ["AsyncOpenAISummarizer", "OpenAISummarizer"]

_DEFAULT_TIMEOUT_SECONDS = 120.0
_DEFAULT_RETRIES = 2


class OpenAISummarizer:
    """``journal.compact(thread_id, OpenAISummarizer("gpt-5-mini"))``; ``base_url`` names any compatible server."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS,
        max_retries: int = _DEFAULT_RETRIES,
        client: openai.OpenAI | None = None,
        **options: Any,
    ) -> None:
        self.model = model
        self._options = options
        self._client: openai.OpenAI = client or _sdk().OpenAI(
            base_url=base_url, api_key=api_key, timeout=timeout_seconds, max_retries=max_retries
        )

    def __call__(self, request: SummaryRequest) -> Summary:
        try:
            completion = self._client.chat.completions.create(**_body(self.model, request, self._options))
        except _sdk().OpenAIError as error:
            raise failure(error) from error
        return _summary(decoded(completion), request)

    def close(self) -> None:
        self._client.close()


class AsyncOpenAISummarizer:
    """The same for an AsyncJournal."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float = _DEFAULT_TIMEOUT_SECONDS,
        max_retries: int = _DEFAULT_RETRIES,
        client: openai.AsyncOpenAI | None = None,
        **options: Any,
    ) -> None:
        self.model = model
        self._options = options
        self._client: openai.AsyncOpenAI = client or _sdk().AsyncOpenAI(
            base_url=base_url, api_key=api_key, timeout=timeout_seconds, max_retries=max_retries
        )

    async def __call__(self, request: SummaryRequest) -> Summary:
        try:
            completion = await self._client.chat.completions.create(**_body(self.model, request, self._options))
        except _sdk().OpenAIError as error:
            raise failure(error) from error
        return _summary(decoded(completion), request)

    async def close(self) -> None:
        await self._client.close()


def _sdk() -> Any:
    try:
        import openai  # noqa: PLC0415  an extra, and slow to load
    except ImportError as error:
        raise MissingExtraError("a summary by an OpenAI-compatible model", "openai") from error
    return openai


def _body(model: str, request: SummaryRequest, options: dict[str, Any]) -> dict[str, Any]:
    messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.prompt}]
    return {
        "model": model,
        "messages": messages,
        "max_tokens": request.max_tokens,
        "stream": False,
        "extra_body": options,
    }


def _summary(completion: ChatCompletion, request: SummaryRequest) -> Summary:
    if not completion.choices:
        raise SummaryError("the answer holds no choice")
    choice = completion.choices[0]
    refusal = getattr(choice.message, "refusal", None)
    if refusal:
        raise SummaryError(f"the model refused: {refusal}")
    text = checked_text(
        choice.message.content, is_cut_off=choice.finish_reason == "length", max_tokens=request.max_tokens
    )
    used = completion.usage
    usage = Usage(
        input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens, total_tokens=used.total_tokens
    ) if used else None  # fmt: skip
    return Summary(text=text, usage=usage, provider="openai", model=completion.model or "")
