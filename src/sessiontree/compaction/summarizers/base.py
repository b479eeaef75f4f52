"""What a summariser gets and what it gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from sessiontree.compaction.prompts import SYSTEM, RequestKind, task_text
from sessiontree.errors import EmptySummaryError, SummaryError
from sessiontree.model import Message, Usage
from sessiontree.model._base import Record

__all__ = ["Summarizer", "Summary", "SummaryRequest", "summary_of"]


class SummaryRequest(Record, frozen=True, kw_only=True):
    """A part of a conversation to put into few words; ``prompt`` says it all to a model.

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
        return SYSTEM

    @property
    def prompt(self) -> str:
        return task_text(
            self.kind,
            self.messages,
            previous_summary=self.previous_summary,
            instructions=self.instructions,
            max_tokens=self.max_tokens,
        )


class Summary(Record, frozen=True, kw_only=True):
    """A summariser's answer and, if it knows, what it cost."""

    text: str
    usage: Usage | None = None
    provider: str = ""
    model: str = ""


Summarizer = Callable[[SummaryRequest], str | Summary | Awaitable[str | Summary]]
"""Any function; under an AsyncJournal it may be a coroutine function."""


def summary_of(answer: object) -> Summary:
    """A summariser's answer as a Summary; one that says nothing is an error, never an empty history.

    >>> summary_of("We agreed.").text
    'We agreed.'
    """
    if isinstance(answer, str):
        answer = Summary(text=answer)
    if not isinstance(answer, Summary):
        hint = "; a coroutine function needs an AsyncJournal" if hasattr(answer, "__await__") else ""
        raise SummaryError(f"the summariser returned {type(answer).__name__}, not a text{hint}")
    # Zero-width characters or an empty code fence say as little as blanks do.
    if not any(char.isalnum() for char in answer.text):
        raise EmptySummaryError
    return answer
