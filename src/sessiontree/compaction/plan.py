"""The plan of a compaction: what is summarised, what is kept, and what it will cost. Pure, so it can be previewed.

>>> from sessiontree.model.builders import assistant, user
>>> payloads = [user("x" * 3000), assistant("y" * 3000), user("and now?")]
>>> path = [Entry(id=str(n), thread_id="t", parent=None, created_ns=0, payload=p) for n, p in enumerate(payloads)]
>>> planned = plan(path, CompactionPolicy(window_tokens=2_000, keep_recent_tokens=10))
>>> planned.removed_messages, planned.kept_messages, planned.first_kept_entry_id
(2, 1, '2')
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from sessiontree.compaction.cuts import CutItem, cut_points, is_turn_start, items_of, last_cut, unread_from
from sessiontree.compaction.files import TouchedFiles, files_in
from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.compaction.prompts import render_message
from sessiontree.compaction.views import fit_results, with_cuts
from sessiontree.context import Context, build_context, project, said_tokens, summary_text, window_of
from sessiontree.context.needed import carried_ids
from sessiontree.model import (
    AssistantMessage,
    Compaction,
    ContextUsage,
    Entry,
    Message,
    ResultCut,
    ToolCallMessage,
    UserMessage,
)
from sessiontree.model._base import Record
from sessiontree.model.tokens import MESSAGE_OVERHEAD, TokenCounter, Tools, estimate_text

__all__ = [
    "BranchPlan",
    "CompactionPlan",
    "Sizes",
    "before_item",
    "kept_users",
    "plan",
    "plan_branch",
    "previously_kept",
]


_QUOTE_OVERHEAD = 40


class CompactionPlan(Record, frozen=True, kw_only=True):
    """``history`` and ``turn_prefix``, the first part of a split turn, are summarised; the rest is kept.

    It is kept unchanged, but for ``cut_results``: results that the model has not read and that are too large.
    """

    history: tuple[Message, ...]
    turn_prefix: tuple[Message, ...] = ()
    previous: Compaction | None = None
    first_kept_entry_id: str = ""
    through_entry_id: str = ""
    kept_user_entry_ids: tuple[str, ...] = ()
    files: TouchedFiles = TouchedFiles()
    kept_messages: int = 0
    removed_messages: int = 0
    tokens_before: int = 0
    tokens_expected: int = 0
    note: str = ""
    usage_before: ContextUsage = ContextUsage()
    cut_results: tuple[ResultCut, ...] = ()
    carried_entry_ids: tuple[str, ...] | None = None

    @property
    def generation(self) -> int:
        """The number of this compaction on the path, from 1."""
        return self.previous.generation + 1 if self.previous else 1

    @property
    def previous_summary(self) -> str:
        """The summary that this one replaces."""
        return self.previous.summary if self.previous else ""

    @property
    def is_split_turn(self) -> bool:
        """Whether the cut goes through a turn."""
        return bool(self.turn_prefix)

    @property
    def base(self) -> str:
        """The entry that must still be on the path when the compaction is installed."""
        return self.first_kept_entry_id or self.through_entry_id


class Sizes(Record, frozen=True, kw_only=True):
    """The policy, the number of tokens to aim at, how tokens are counted, and those of the system prompt and the tools.

    What the model has not read, and a number of messages to keep, is kept up to ``limit`` tokens.
    """

    policy: CompactionPolicy
    target: int
    count: TokenCounter
    limit: int = 0
    prompt: int = 0


def plan(
    path: Sequence[Entry],
    policy: CompactionPolicy,
    *,
    count: TokenCounter = estimate_text,
    target_tokens: int | None = None,
    tools: Tools = (),
) -> CompactionPlan | None:
    """Return what compacting the path now would do; ``None`` if there is nothing to gain."""
    context = build_context(path, count=count, tools=tools)
    prompt = context.estimate - said_tokens(context.segments)
    before = prompt + sum(segment.token_estimate for segment in context.segments)
    sizes = Sizes(
        policy=policy,
        target=policy.target_with(prompt) if target_tokens is None else target_tokens,
        count=count,
        limit=policy.threshold - 1 if target_tokens is None else target_tokens,
        prompt=prompt,
    )
    boundary = window_of(path).boundary
    previous = boundary.payload if boundary else None
    assert previous is None or isinstance(previous, Compaction)
    earlier = previously_kept(path)
    whole = _with_missing_results(items_of(path, count), context)
    shown = sum(item.tokens for item in whole)
    cuts = _cut_results(whole, earlier, before - shown, sizes)
    items = with_cuts(whole, cuts, count)
    saved = shown - sum(item.tokens for item in items)
    at = _choose_cut(items, _unread_from(path, items), earlier, before - saved, sizes, is_cut=bool(cuts))
    if at == 0 and not cuts:
        return None
    split = _turn_start(items, at)
    users = kept_users(earlier, items, at, sizes)
    return CompactionPlan(
        history=tuple(item.message for item in items[:split]),
        turn_prefix=tuple(item.message for item in items[split:at]),
        previous=previous,
        first_kept_entry_id=items[at].entry_id if at < len(items) else "",
        through_entry_id=_last_summarised(path, items, at),
        kept_user_entry_ids=tuple(users),
        files=_earlier_files(previous) | files_in(item.original for item in items[:at]),
        kept_messages=len(items) - at,
        removed_messages=at,
        tokens_before=context.estimate,
        tokens_expected=_expected(items, at, users, sizes),
        note=_note(items, at, sizes),
        usage_before=_usage(context.tokens, context.estimate, policy),
        cut_results=_in_force(previous, cuts, items[at:]),
        carried_entry_ids=carried_ids(before_item(path, items, at)),
    )


def before_item(path: Sequence[Entry], items: Sequence[CutItem], at: int) -> Sequence[Entry]:
    """Return the entries of a path before a visible message; all of them if there is no such message."""
    wanted = items[at].entry_id if at < len(items) else None
    return path[: next((index for index, entry in enumerate(path) if entry.id == wanted), len(path))]


def _with_missing_results(items: Sequence[CutItem], context: Context) -> list[CutItem]:
    """Count the results that a request makes up with the messages whose calls have none."""
    made_up: Counter[str] = Counter()
    for segment in context.segments:
        if not segment.entry_id:
            made_up[segment.parent_entry_id] += segment.token_estimate
    return [replace(item, tokens=item.tokens + made_up[item.entry_id]) for item in items]


def _last_summarised(path: Sequence[Entry], items: Sequence[CutItem], at: int) -> str:
    if at == len(items):
        return path[-1].id
    return items[at - 1].entry_id if at else ""


def _cut_results(items: Sequence[CutItem], earlier: dict[str, str], head: int, sizes: Sizes) -> tuple[ResultCut, ...]:
    """Return how results that the model has not read are cut, if they do not fit beside the longest summary.

    If nothing can be summarised, what stands before the items now stays: ``head`` tokens.
    """
    at = last_cut(items)
    kept = sum(item.tokens for item in items[at:])
    total = _expected(items, at, kept_users(earlier, items, at, sizes), sizes) if at else head + kept
    return fit_results(items[at:], sizes.limit - (total - kept), sizes.count)


def _unread_from(path: Sequence[Entry], items: Sequence[CutItem]) -> int:
    """Return where begins what the model has not answered; the end if no model takes part in the conversation."""
    is_spoken = any(isinstance(entry.payload, AssistantMessage | ToolCallMessage) for entry in path)
    return unread_from(items) if is_spoken else len(items)


def _in_force(previous: Compaction | None, cuts: Sequence[ResultCut], kept: Sequence[CutItem]) -> tuple[ResultCut, ...]:
    """Return the new cuts, and the earlier ones of results that are still kept."""
    renewed = {(cut.entry_id, cut.call_id) for cut in cuts}
    shown = {item.entry_id for item in kept}
    earlier = previous.cut_results if previous else ()
    same = (cut for cut in earlier if cut.entry_id in shown and (cut.entry_id, cut.call_id) not in renewed)
    return (*same, *cuts)


def _choose_cut(
    items: Sequence[CutItem], unread: int, earlier: dict[str, str], before: int, sizes: Sizes, *, is_cut: bool
) -> int:
    """Return the first allowed cut, from the start of the recent part on, that leaves no more than the goal.

    That is the target, or the limit if the policy keeps a number of messages. What is ``unread`` is kept, but for
    questions without an answer if they do not fit into the limit. If results were cut, that may be enough.
    """
    latest = last_cut(items)
    allowed = [index for index in cut_points(items) if index <= latest]
    recent = min(unread, _recent_from(items, sizes.policy))
    start = max((index for index in allowed if index <= recent), default=0)
    goal = sizes.limit if sizes.policy.keep_recent_messages else sizes.target
    if start == 0 and before <= goal:
        return 0
    candidates = [index for index in allowed if index >= max(start, 1)]
    costs = {0: before} if is_cut or not candidates else {}
    for index in candidates:
        if index > unread and any(cost <= sizes.limit for cost in costs.values()):
            break
        costs[index] = _expected(items, index, kept_users(earlier, items, index, sizes), sizes)
        if costs[index] <= goal:
            return index
    return min(costs, key=lambda index: (costs[index], index))


def _note(items: Sequence[CutItem], at: int, sizes: Sizes) -> str:
    """Say why fewer messages are kept than the policy asks for; empty if it is not so."""
    wanted = min(sizes.policy.keep_recent_messages, len(items))
    if len(items) - at >= wanted:
        return ""
    needed = sizes.prompt + sum(item.tokens for item in items[len(items) - wanted :])
    return (
        f"{len(items) - at} of the {wanted} recent messages are kept: with the system prompt they have {needed} tokens,"
        f" and with a summary they do not fit into {sizes.limit}"
    )


def _recent_from(items: Sequence[CutItem], policy: CompactionPolicy) -> int:
    if policy.keep_recent_messages:
        return max(0, len(items) - policy.keep_recent_messages)
    tokens = 0
    for index in range(len(items) - 1, -1, -1):
        tokens += items[index].tokens
        if tokens >= policy.recent_share:
            return index
    return 0


def _turn_start(items: Sequence[CutItem], at: int) -> int:
    """Return the start of the turn that the cut goes through; the cut itself if it is between turns."""
    if at == len(items) or is_turn_start(items[at]):
        return at
    return next((index for index in range(at - 1, -1, -1) if is_turn_start(items[index])), at)


def _expected(items: Sequence[CutItem], at: int, users: dict[str, str], sizes: Sizes) -> int:
    without_summary = summary_text("", list(users.items()), has_tail=at < len(items))
    kept = sum(item.tokens for item in items[at:])
    summary = MESSAGE_OVERHEAD + sizes.count(without_summary) + sizes.policy.max_summary_tokens
    return sizes.prompt + summary + kept


def _earlier_files(previous: Compaction | None) -> TouchedFiles:
    return TouchedFiles(read=previous.files_read, modified=previous.files_modified) if previous else TouchedFiles()


def _usage(tokens: int, estimate: int, policy: CompactionPolicy) -> ContextUsage:
    return ContextUsage(
        message_tokens=estimate,
        input_tokens=tokens,
        context_window=policy.window_tokens,
        threshold_tokens=policy.threshold,
        reserved_output=policy.reserve_tokens,
        reserved_summary=policy.max_summary_tokens,
        recent_tail_tokens=policy.recent_share,
        recent_user_tokens=policy.user_share,
        source="estimate" if tokens == estimate else "provider",
        is_compaction_needed=tokens >= policy.threshold,
        is_hard_limit_exceeded=tokens >= policy.window_tokens,
    )


def previously_kept(path: Sequence[Entry]) -> dict[str, str]:
    """Return the user messages that the compaction in force quotes: entry id to text, oldest first."""
    window = window_of(path)
    compaction = window.boundary.payload if window.boundary else None
    if not isinstance(compaction, Compaction):
        return {}
    kept = set(compaction.kept_user_entry_ids)
    payloads = ((entry.id, entry.payload) for entry in window.head if entry.id in kept)
    return {entry_id: payload.message.text for entry_id, payload in payloads if isinstance(payload, UserMessage)}


def kept_users(earlier: dict[str, str], items: Sequence[CutItem], at: int, sizes: Sizes) -> dict[str, str]:
    """Return the newest user messages before the cut that fit; the current task also if it is larger than that."""
    texts = {item.entry_id: item.original.text for item in items[:at] if item.original.role == "user"}
    candidates = {entry_id: text for entry_id, text in (earlier | texts).items() if text.strip()}
    budget = sizes.policy.user_share
    is_task_in_head = budget > 0 and not any(is_turn_start(item) for item in items[at:])
    kept: list[str] = []
    for entry_id in reversed(candidates):
        cost = sizes.count(candidates[entry_id]) + _QUOTE_OVERHEAD
        is_task = is_task_in_head and not kept and cost <= sizes.target // 2
        if cost > budget and not is_task:
            break
        kept.append(entry_id)
        budget -= cost
    return {entry_id: candidates[entry_id] for entry_id in reversed(kept)}


class BranchPlan(Record, frozen=True, kw_only=True):
    """What is summarised of a branch; ``earlier`` is the summary of what came before on that branch."""

    messages: tuple[Message, ...]
    earlier: str = ""
    files: TouchedFiles = TouchedFiles()
    entries: int = 0


def plan_branch(
    leaving: Sequence[Entry],
    arriving: Sequence[Entry],
    policy: CompactionPolicy,
    *,
    count: TokenCounter = estimate_text,
) -> BranchPlan | None:
    """Plan the summary of the branch ``leaving`` for a conversation that continues on ``arriving``.

    The newest messages that are only on the branch are summarised, as many as fit; ``None`` if there are none.
    """
    shared = {entry.id for entry in arriving}
    left = [entry for entry in leaving if entry.id not in shared]
    visible = [item.message for item in project([entry for entry in left if not isinstance(entry.payload, Compaction)])]
    messages = _newest(visible, policy.chunk_tokens, count)
    if not messages:
        return None
    files = files_in(entry.message for entry in left if entry.message is not None)
    return BranchPlan(messages=messages, earlier=_last_summary(left), files=files, entries=len(left))


def _newest(messages: Sequence[Message], budget: int, count: TokenCounter) -> tuple[Message, ...]:
    """Return the newest messages that fit; without tool results, as calls and answers are enough for a summary."""
    kept: list[Message] = []
    for message in reversed(messages):
        if message.role == "tool":
            continue
        budget -= count(render_message(message))
        if budget < 0 and kept:
            break
        kept.append(message)
    return tuple(reversed(kept))


def _last_summary(entries: Sequence[Entry]) -> str:
    """Return the summary of the newest compaction on the branch."""
    summaries = [entry.payload.summary for entry in entries if isinstance(entry.payload, Compaction)]
    return next((summary for summary in reversed(summaries) if summary), "")
