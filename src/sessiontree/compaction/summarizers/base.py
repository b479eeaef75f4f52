"""The protocol of summarisers: a SummaryRequest in, a Summary or a text out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sessiontree.compaction.prompts import SYSTEM, RequestKind, task_text
from sessiontree.errors import EmptySummaryError, SummaryError
from sessiontree.model import Message, Usage
from sessiontree.model._base import Record

__all__ = ["Summarizer", "Summary", "SummaryRequest", "summary_of"]


class SummaryRequest(Record, frozen=True, kw_only=True):
    """A part of a conversation to summarise; ``system`` and ``prompt`` are ready to be sent to a model.

    >>> request = SummaryRequest(kind="history", messages=(), instructions="mind the numbers", max_tokens=500)
    >>> "mind the numbers" in request.prompt
    True
    """

    kind: RequestKind
    messages: tuple[Message, ...]
    previous_summary: str = ""
    instructions: str = ""
    max_tokens: int

    @property
    def system(self) -> str:
        """The system prompt for a model."""
        return SYSTEM

    @property
    def prompt(self) -> str:
        """The whole request as one text."""
        return task_text(
            self.kind,
            self.messages,
            previous_summary=self.previous_summary,
            instructions=self.instructions,
            max_tokens=self.max_tokens,
        )


class Summary(Record, frozen=True, kw_only=True):
    """A summary and, if known, its usage and model."""

    text: str
    usage: Usage | None = None
    provider: str = ""
    model: str = ""


Summarizer = Callable[[SummaryRequest], str | Summary | Awaitable[str | Summary]]
"""Any function of this type; with an AsyncJournal it may be a coroutine function."""


def summary_of(answer: object) -> Summary:
    """Return the answer of a summariser as a Summary; raise EmptySummaryError if it has no content.

    >>> summary_of("We agreed.").text
    'We agreed.'
    """
    if isinstance(answer, str):
        answer = Summary(text=answer)
    if not isinstance(answer, Summary):
        hint = "; a coroutine function needs an AsyncJournal" if hasattr(answer, "__await__") else ""
        raise SummaryError(f"the summariser returned {type(answer).__name__}, not a text{hint}")
    # Zero-width characters or an empty code fence are as empty as white space.
    if not any(char.isalnum() for char in answer.text):
        raise EmptySummaryError
    return answer
