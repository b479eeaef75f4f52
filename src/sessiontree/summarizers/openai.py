"""Summaries by any endpoint that speaks OpenAI's chat protocol. Needs the extra ``openai``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from sessiontree.compaction.request import Summary, SummaryRequest
from sessiontree.errors import SummaryError
from sessiontree.model import Usage
from sessiontree.summarizers.answers import checked_text
from sessiontree.summarizers.frame import AsyncModelSummarizer, ModelSummarizer

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion

__all__ = ["AsyncOpenAISummarizer", "OpenAISummarizer"]


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
        return Summary(text=text, usage=_usage(answer), provider="openai", model=answer.model or "")


class OpenAISummarizer(ModelSummarizer):
    """``journal.compact(thread_id, OpenAISummarizer("gpt-5-mini"))``; ``base_url`` names any compatible server."""

    provider = _OpenAI()


class AsyncOpenAISummarizer(AsyncModelSummarizer):
    """The same for an AsyncJournal."""

    provider = _OpenAI()


def _usage(answer: ChatCompletion) -> Usage | None:
    used = answer.usage
    if used is None:
        return None
    return Usage(input_tokens=used.prompt_tokens, output_tokens=used.completion_tokens, total_tokens=used.total_tokens)
