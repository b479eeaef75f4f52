"""The plan of a compaction: what is summarised, what stays, what it will cost. Pure, so it can be shown beforehand.

>>> from sessiontree.messages import assistant, user
>>> said = [user("x" * 3000), assistant("y" * 3000), user("and now?")]
>>> path = [Entry(id=str(n), thread_id="t", parent=None, created_ns=0, payload=p) for n, p in enumerate(said)]
>>> planned = plan(path, CompactionPolicy(window_tokens=2_000, keep_recent_tokens=10))
>>> planned.removed_messages, planned.kept_messages, planned.first_kept_entry_id
(2, 1, '2')
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.compaction.cut import Item, cut_points, is_turn_start, last_cut
from sessiontree.compaction.files import Files, files_in
from sessiontree.compaction.keeping import Sizes, kept_users, previously_kept
from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.context import build_context, checkpoint_text, project, window_of
from sessiontree.model import Compaction, ContextUsage, Entry, Message, TextPart
from sessiontree.model.record import Record
from sessiontree.tokens import MESSAGE_OVERHEAD, TokenCounter, estimate_message, estimate_text

__all__ = ["Plan", "items_of", "occupied_tokens", "plan"]


class Plan(Record, frozen=True, kw_only=True):
    """``history`` and, of a turn that is cut in two, ``turn_prefix`` are summarised; the rest stays word for word."""

    history: tuple[Message, ...]
    turn_prefix: tuple[Message, ...] = ()
    previous: Compaction | None = None
    first_kept_entry_id: str = ""
    through_entry_id: str = ""
    kept_user_entry_ids: tuple[str, ...] = ()
    files: Files = Files()
    kept_messages: int = 0
    removed_messages: int = 0
    tokens_before: int = 0
    tokens_expected: int = 0
    usage_before: ContextUsage = ContextUsage()

    @property
    def generation(self) -> int:
        return self.previous.generation + 1 if self.previous else 1

    @property
    def previous_summary(self) -> str:
        return self.previous.summary if self.previous else ""

    @property
    def is_split_turn(self) -> bool:
        return bool(self.turn_prefix)

    @property
    def base(self) -> str:
        """The entry that must still be on the path when the compaction is installed."""
        return self.first_kept_entry_id or self.through_entry_id


def plan(
    path: Sequence[Entry],
    policy: CompactionPolicy,
    *,
    count: TokenCounter = estimate_text,
    target_tokens: int | None = None,
) -> Plan | None:
    """What compacting the path now would do; ``None`` if there is nothing to gain."""
    items = items_of(path, count)
    sizes = Sizes(policy=policy, target=policy.target if target_tokens is None else target_tokens, count=count)
    context = build_context(path, count=count)
    before = sum(segment.token_estimate for segment in context.segments)
    earlier = previously_kept(path)
    at = _choose_cut(items, earlier, before, sizes)
    if at == 0:
        return None
    boundary = window_of(path).boundary
    previous = boundary.payload if boundary else None
    assert previous is None or isinstance(previous, Compaction)
    split = _turn_start(items, at)
    users = kept_users(earlier, items, at, sizes)
    return Plan(
        history=tuple(item.message for item in items[:split]),
        turn_prefix=tuple(item.message for item in items[split:at]),
        previous=previous,
        first_kept_entry_id=items[at].entry_id if at < len(items) else "",
        through_entry_id=items[at - 1].entry_id if at < len(items) else path[-1].id,
        kept_user_entry_ids=tuple(users),
        files=_earlier_files(previous) | files_in(item.said for item in items[:at]),
        kept_messages=len(items) - at,
        removed_messages=at,
        tokens_before=before,
        tokens_expected=_expected(items, at, users, sizes),
        usage_before=_usage(context.tokens, before, policy),
    )


def items_of(path: Sequence[Entry], count: TokenCounter = estimate_text) -> list[Item]:
    """The messages that a model sees of a path, without the checkpoint of an earlier compaction."""
    boundary = window_of(path).boundary
    return [
        Item(
            entry_id=seen.entry.id,
            message=seen.message,
            said=seen.entry.message or seen.message,
            tokens=estimate_message(seen.message, count),
        )
        for seen in project(path)
        if seen.entry is not boundary
    ]


def occupied_tokens(path: Sequence[Entry], count: TokenCounter = estimate_text) -> int:
    """How full the window is: what the provider reported, unless that is absurdly little for what is there.

    An aborted request reports next to nothing; the estimate of plain text is never off by more than double.
    """
    context = build_context(path, count=count)
    return max(context.tokens, sum(_text_tokens(message, count) for message in context.messages) // 2)


def _text_tokens(message: Message, count: TokenCounter) -> int:
    """Without images and files, whose cost only the provider knows."""
    calls = sum(count(call.arguments) for call in message.tool_calls)
    results = (part for result in message.tool_results for part in result.parts)
    return count(message.text) + calls + sum(count(part.text) for part in results if isinstance(part, TextPart))


def _choose_cut(items: Sequence[Item], earlier: dict[str, str], before: int, sizes: Sizes) -> int:
    """The first allowed cut that leaves no more than the target, looking from where the recent part begins."""
    allowed = [index for index in cut_points(items) if index <= last_cut(items)]
    recent = _recent_from(items, sizes.policy)
    start = max((index for index in allowed if index <= recent), default=0)
    if start == 0 and before <= sizes.target:
        return 0
    candidates = [index for index in allowed if index >= max(start, 1)] or [0]
    costs: dict[int, int] = {}
    for index in candidates:
        costs[index] = _expected(items, index, kept_users(earlier, items, index, sizes), sizes)
        if costs[index] <= sizes.target:
            return index
    return min(candidates, key=lambda index: (costs[index], index))


def _recent_from(items: Sequence[Item], policy: CompactionPolicy) -> int:
    if policy.keep_recent_messages:
        return max(0, len(items) - policy.keep_recent_messages)
    tokens = 0
    for index in range(len(items) - 1, -1, -1):
        tokens += items[index].tokens
        if tokens >= policy.recent_share:
            return index
    return 0


def _turn_start(items: Sequence[Item], at: int) -> int:
    """Where the turn begins that the cut goes through; the cut itself if it goes through none."""
    if at == len(items) or is_turn_start(items[at]):
        return at
    return next((index for index in range(at - 1, -1, -1) if is_turn_start(items[index])), at)


def _expected(items: Sequence[Item], at: int, users: dict[str, str], sizes: Sizes) -> int:
    frame = checkpoint_text("", list(users.items()), has_tail=at < len(items))
    kept = sum(item.tokens for item in items[at:])
    return MESSAGE_OVERHEAD + sizes.count(frame) + sizes.policy.summary_room + kept


def _earlier_files(previous: Compaction | None) -> Files:
    return Files(read=previous.files_read, modified=previous.files_modified) if previous else Files()


def _usage(tokens: int, estimate: int, policy: CompactionPolicy) -> ContextUsage:
    return ContextUsage(
        message_tokens=estimate,
        input_tokens=tokens,
        context_window=policy.window_tokens,
        threshold_tokens=policy.threshold,
        reserved_output=policy.reserve_tokens,
        reserved_summary=policy.summary_room,
        recent_tail_tokens=policy.recent_share,
        recent_user_tokens=policy.user_share,
        source="estimate" if tokens == estimate else "provider",
        is_compaction_needed=tokens >= policy.threshold,
        is_hard_limit_exceeded=tokens >= policy.window_tokens,
    )
