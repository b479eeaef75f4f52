"""The user's own words that a compaction quotes instead of summarising them, through every generation."""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.compaction.cut import Item, is_turn_start
from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.context import window_of
from sessiontree.model import Compaction, Entry, UserMessage
from sessiontree.model.record import Record
from sessiontree.tokens import TokenCounter

__all__ = ["Sizes", "kept_users", "previously_kept"]

_QUOTE_OVERHEAD = 40


class Sizes(Record, frozen=True, kw_only=True):
    """How much there may be of what, and how it is counted."""

    policy: CompactionPolicy
    target: int
    count: TokenCounter


def previously_kept(path: Sequence[Entry]) -> dict[str, str]:
    """What the compaction in force quotes: entry id to text, oldest first."""
    window = window_of(path)
    compaction = window.boundary.payload if window.boundary else None
    if not isinstance(compaction, Compaction):
        return {}
    wanted = set(compaction.kept_user_entry_ids)
    said = ((entry.id, entry.payload) for entry in window.head if entry.id in wanted)
    return {entry_id: payload.message.text for entry_id, payload in said if isinstance(payload, UserMessage)}


def kept_users(earlier: dict[str, str], items: Sequence[Item], at: int, sizes: Sizes) -> dict[str, str]:
    """The newest inputs before the cut that fit their share; the task at hand also if it is bigger than that."""
    spoken = {item.entry_id: item.said.text for item in items[:at] if item.said.role == "user"}
    candidates = {entry_id: text for entry_id, text in (earlier | spoken).items() if text.strip()}
    room = sizes.policy.user_share
    is_task_in_head = room > 0 and not any(is_turn_start(item) for item in items[at:])
    kept: list[str] = []
    for entry_id in reversed(candidates):
        cost = sizes.count(candidates[entry_id]) + _QUOTE_OVERHEAD
        is_task = is_task_in_head and not kept and cost <= sizes.target // 2
        if cost > room and not is_task:
            break
        kept.append(entry_id)
        room -= cost
    return {entry_id: candidates[entry_id] for entry_id in reversed(kept)}
