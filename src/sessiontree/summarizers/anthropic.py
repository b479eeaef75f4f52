"""Summaries by Anthropic's Messages protocol. Needs the extra ``anthropic``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sessiontree.compaction.request import Summary, SummaryRequest
from sessiontree.errors import SummaryError
from sessiontree.model import Usage
from sessiontree.summarizers.answers import checked_text
from sessiontree.summarizers.frame import AsyncModelSummarizer, ModelSummarizer

if TYPE_CHECKING:
    from anthropic.types import Message as Answer

__all__ = ["AnthropicSummarizer", "AsyncAnthropicSummarizer"]


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
        return Summary(text=whole, usage=_usage(answer), provider="anthropic", model=answer.model)


class AnthropicSummarizer(ModelSummarizer):
    """``journal.compact(thread_id, AnthropicSummarizer("claude-haiku-4-5"))``."""

    provider = _Anthropic()


class AsyncAnthropicSummarizer(AsyncModelSummarizer):
    """The same for an AsyncJournal."""

    provider = _Anthropic()


def _usage(answer: Answer) -> Usage:
    used = answer.usage
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_input_tokens or 0,
        cache_write_tokens=used.cache_creation_input_tokens or 0,
    )
