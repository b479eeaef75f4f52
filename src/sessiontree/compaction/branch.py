"""What is told about a branch when the conversation leaves it."""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.compaction.files import Files, files_in
from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.compaction.prompts import render_message
from sessiontree.context import project
from sessiontree.model import Compaction, Entry, Message
from sessiontree.model.record import Record
from sessiontree.tokens import TokenCounter, estimate_text

__all__ = ["BranchPlan", "plan_branch"]


class BranchPlan(Record, frozen=True, kw_only=True):
    messages: tuple[Message, ...]
    earlier: str = ""
    files: Files = Files()
    entries: int = 0


def plan_branch(
    leaving: Sequence[Entry],
    arriving: Sequence[Entry],
    policy: CompactionPolicy,
    *,
    count: TokenCounter = estimate_text,
) -> BranchPlan | None:
    """What only the path that is left holds, the newest of it as far as it fits; ``None`` if nothing was said there."""
    stays = {entry.id for entry in arriving}
    left = [entry for entry in leaving if entry.id not in stays]
    said = [entry.message for entry in left if entry.message is not None]
    seen = [item.message for item in project([entry for entry in left if not isinstance(entry.payload, Compaction)])]
    told = _newest(seen, policy.chunk_tokens, count)
    if not told:
        return None
    return BranchPlan(messages=told, earlier=_summaries(left), files=files_in(said), entries=len(left))


def _newest(messages: Sequence[Message], budget: int, count: TokenCounter) -> tuple[Message, ...]:
    """Tool results are left out: the calls and the answers tell what happened."""
    kept: list[Message] = []
    for message in reversed(messages):
        if message.role == "tool":
            continue
        budget -= count(render_message(message))
        if budget < 0 and kept:
            break
        kept.append(message)
    return tuple(reversed(kept))


def _summaries(entries: Sequence[Entry]) -> str:
    """The newest compaction on the branch tells what came before it there."""
    summaries = [entry.payload.summary for entry in entries if isinstance(entry.payload, Compaction)]
    return next((summary for summary in reversed(summaries) if summary), "")
