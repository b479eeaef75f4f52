"""The size of a thread's context from turn to turn, with its compactions and failed turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sessiontree.model import Compaction, Entry, Record, RunFailure, TurnMarker
from sessiontree.model.prices import reported_usage
from sessiontree.render.turns import is_prompt

__all__ = ["TYPES", "ContextPoint", "context_sizes"]


TYPES = ("user_message", "assistant_message", "tool_call", "usage", "compaction", "turn_marker", "run_failure")
"""The types of entries that the sizes are made of."""


class ContextPoint(Record, frozen=True, kw_only=True):
    """A turn and the tokens that its last request took up; a compaction has the tokens before it, too."""

    turn: int
    entry_id: str
    tokens: int
    kind: Literal["turn", "failed", "compaction"] = "turn"
    tokens_before: int = 0


def context_sizes(path: Iterable[Entry]) -> list[ContextPoint]:
    """Return the sizes that providers reported along a path. Turns without a report have the size of the one before."""
    points: list[ContextPoint] = []
    turn, tokens, last = 0, 0, ""
    is_open = is_failed = False

    def close() -> None:
        if is_open and tokens:
            points.append(ContextPoint(turn=turn, entry_id=last, tokens=tokens, kind="failed" if is_failed else "turn"))

    for entry in path:
        if is_prompt(entry):
            close()
            turn, last, is_open, is_failed = turn + 1, entry.id, True, False
        match entry.payload:
            case Compaction(reverts="", tokens_before=before, tokens_after=after) if after:
                close()
                points.append(
                    ContextPoint(
                        turn=turn, entry_id=entry.id, tokens=after, tokens_before=before or tokens, kind="compaction"
                    )
                )
                tokens, is_open = after, False
            case TurnMarker(status="failed" | "aborted") | RunFailure():
                is_failed = True
            case payload:
                found = reported_usage(payload)
                if found is not None and found[0].context_tokens:
                    tokens, is_open = found[0].context_tokens, True
    close()
    return points
