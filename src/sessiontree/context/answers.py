"""Answers that arrive piece by piece: what one piece adds, and what is kept of an answer that was interrupted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from sessiontree.model import AssistantMessage, Entry, Event, Message, ReasoningPart, TextPart
from sessiontree.model._base import Record

__all__ = ["ANSWER_DELTA", "NOTHING", "Delta", "joined", "partial_answer", "saves_of"]


ANSWER_DELTA = "answer_delta"
"""The name of events that save text of an answer while it grows; their ``stream`` is the id of the answer's entry."""


class Delta(Record, frozen=True, kw_only=True):
    """What one event adds to an answer: visible text, and reasoning."""

    text: str = ""
    reasoning: str = ""

    def __bool__(self) -> bool:
        return bool(self.text or self.reasoning)


NOTHING = Delta()


def joined(deltas: Sequence[Delta]) -> Delta:
    """Return several deltas as one.

    >>> joined([Delta(text="Hel"), Delta(reasoning="hm"), Delta(text="lo")])
    Delta(text='Hello', reasoning='hm')
    """
    return Delta(text="".join(delta.text for delta in deltas), reasoning="".join(delta.reasoning for delta in deltas))


def partial_answer(shown: Delta, *, dialect: str, model: str) -> AssistantMessage:
    """Return the payload of an answer that was interrupted: what was shown of it, without tool calls."""
    thought = (ReasoningPart(provider=dialect, text=shown.reasoning),) if shown.reasoning else ()
    said = (TextPart(text=shown.text),) if shown.text else ()
    message = Message(role="assistant", parts=(*thought, *said))
    return AssistantMessage(message=message, provider=dialect.partition("-")[0], model=model, is_partial=True)


def saves_of(entries: Iterable[Entry], answer_ids: Collection[str]) -> list[Entry]:
    """Return the events that saved text of these answers."""
    return [
        entry
        for entry in entries
        if isinstance(entry.payload, Event)
        and entry.payload.name == ANSWER_DELTA
        and entry.payload.stream in answer_ids
    ]
