"""Streamed answers: what is saved while they grow, and what becomes of them after a crash.

An answer has its entry id before its first word arrives. Until then its text is saved in events, which no model sees;
the finished answer is stored once, under that id. If it never comes, the events are what was shown of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sessiontree.context.answers import ANSWER_DELTA, Delta, joined, partial_answer
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import AssistantMessage, Entry, Event

__all__ = ["delta_event", "unfinished_answers"]


def delta_event(answer_id: str, shown: Delta, dialect: str, model: str) -> Event:
    """Return the event that saves what an answer has grown by."""
    data = {"text": shown.text, "reasoning": shown.reasoning, "dialect": dialect, "model": model}
    return Event(name=ANSWER_DELTA, stream=answer_id, data={key: value for key, value in data.items() if value})


def unfinished_answers(entries: Iterable[Entry], turn_id: str) -> list[NewEntry]:
    """Return the answers of a turn that were saved in part and never finished, as entries to append."""
    known: set[str] = set()
    saved: dict[str, list[dict[str, str]]] = {}
    for entry in entries:
        known.add(entry.id)
        match entry.payload:
            case Event(name=name, stream=stream, data=dict(data)) if name == ANSWER_DELTA and entry.turn_id == turn_id:
                saved.setdefault(stream, []).append(data)
    return [
        NewEntry(content=_recovered(pieces), id=stream, turn_id=turn_id)
        for stream, pieces in saved.items()
        if stream not in known
    ]


def _recovered(pieces: list[dict[str, str]]) -> AssistantMessage:
    shown = joined([Delta(text=piece.get("text", ""), reasoning=piece.get("reasoning", "")) for piece in pieces])
    return partial_answer(shown, dialect=pieces[0].get("dialect", ""), model=pieces[-1].get("model", ""))
