"""The plan of a compaction: what is summarised, what is kept, and what it will cost. Pure, so it can be previewed.

>>> from sessiontree.model.builders import assistant, call, tool_result, user
>>> payloads = [user("x" * 3000), assistant("y" * 3000), user("and now?")]
>>> path = [Entry(id=str(n), thread_id="t", parent=None, created_ns=0, payload=p) for n, p in enumerate(payloads)]
>>> planned = plan(path, CompactionPolicy(window_tokens=2_000, keep_recent_tokens=10))
>>> planned.removed_messages, planned.kept_messages, planned.first_kept_entry_id
(2, 1, '2')

A conversation is never cut between a tool call and its result, nor after an open call:

>>> payloads = [user("a"), assistant(calls=[call("1", "ls")]), tool_result("1", "x"), assistant("b")]
>>> items = [CutItem(entry_id=str(n), message=payload.message, original=payload.message, tokens=1)
...          for n, payload in enumerate(payloads)]
>>> cut_points(items)
[0, 1, 3, 4]
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.compaction.files import TouchedFiles, files_in
from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.compaction.prompts import render_message
from sessiontree.context import build_context, project, summary_text, window_of
from sessiontree.context.pairing import CallKey, call_key, result_key
from sessiontree.model import Compaction, ContextUsage, Entry, Message, TextPart, UserMessage
from sessiontree.model._base import Record
from sessiontree.model.tokens import MESSAGE_OVERHEAD, TokenCounter, estimate_message, estimate_text

__all__ = [
    "BranchPlan",
    "CompactionPlan",
    "CutItem",
    "Sizes",
    "Span",
    "cut_points",
    "is_turn_start",
    "items_of",
    "kept_users",
    "last_cut",
    "occupied_tokens",
    "open_spans",
    "plan",
    "plan_branch",
    "previously_kept",
]


_QUOTE_OVERHEAD = 40


class CutItem(Record, frozen=True, kw_only=True):
    """A visible message. ``original`` is the message of the entry, in which a control signal is still a call."""

    entry_id: str
    message: Message
    original: Message
    tokens: int


class CompactionPlan(Record, frozen=True, kw_only=True):
    """``history`` and ``turn_prefix``, the first part of a split turn, are summarised; the rest is kept unchanged."""

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
    """The policy, the number of tokens to aim at, how tokens are counted, and those of the system prompt.

    A number of messages to keep is kept up to ``limit`` tokens.
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
) -> CompactionPlan | None:
    """Return what compacting the path now would do; ``None`` if there is nothing to gain."""
    items = items_of(path, count)
    context = build_context(path, count=count)
    before = context.estimate
    sizes = Sizes(
        policy=policy,
        target=policy.target if target_tokens is None else target_tokens,
        count=count,
        limit=policy.threshold - 1 if target_tokens is None else target_tokens,
        prompt=before - sum(segment.token_estimate for segment in context.segments),
    )
    earlier = previously_kept(path)
    at = _choose_cut(items, earlier, before, sizes)
    if at == 0:
        return None
    boundary = window_of(path).boundary
    previous = boundary.payload if boundary else None
    assert previous is None or isinstance(previous, Compaction)
    split = _turn_start(items, at)
    users = kept_users(earlier, items, at, sizes)
    return CompactionPlan(
        history=tuple(item.message for item in items[:split]),
        turn_prefix=tuple(item.message for item in items[split:at]),
        previous=previous,
        first_kept_entry_id=items[at].entry_id if at < len(items) else "",
        through_entry_id=items[at - 1].entry_id if at < len(items) else path[-1].id,
        kept_user_entry_ids=tuple(users),
        files=_earlier_files(previous) | files_in(item.original for item in items[:at]),
        kept_messages=len(items) - at,
        removed_messages=at,
        tokens_before=before,
        tokens_expected=_expected(items, at, users, sizes),
        note=_note(items, at, sizes),
        usage_before=_usage(context.tokens, before, policy),
    )


def items_of(path: Sequence[Entry], count: TokenCounter = estimate_text) -> list[CutItem]:
    """Return the visible messages of a path, without the summary message of an earlier compaction."""
    boundary = window_of(path).boundary
    visible = [item for item in project(path) if item.entry is not boundary]
    tokens = [estimate_message(item.message, count) for item in visible]
    return [
        CutItem(
            entry_id=item.entry.id,
            message=item.message,
            original=item.entry.message or item.message,
            tokens=size,
        )
        for item, size in zip(visible, tokens, strict=True)
    ]


def occupied_tokens(path: Sequence[Entry], count: TokenCounter = estimate_text) -> int:
    """Return how many tokens of the window are used: what the provider reported, unless that is far too little.

    An aborted request reports almost nothing; an estimate of plain text is at most twice too high.
    """
    context = build_context(path, count=count)
    text_tokens = count(context.system) + sum(_text_tokens(message, count) for message in context.messages)
    return max(context.tokens, text_tokens // 2)


def _text_tokens(message: Message, count: TokenCounter) -> int:
    """Return the tokens of a message without images and files, whose cost only the provider knows."""
    calls = sum(count(call.arguments) for call in message.tool_calls)
    results = (part for result in message.tool_results for part in result.parts)
    return count(message.text) + calls + sum(count(part.text) for part in results if isinstance(part, TextPart))


def _choose_cut(items: Sequence[CutItem], earlier: dict[str, str], before: int, sizes: Sizes) -> int:
    """Return the first allowed cut, from the start of the recent part on, that leaves no more than the goal.

    That is the target, or the limit if the policy keeps a number of messages.
    """
    allowed = [index for index in cut_points(items) if index <= last_cut(items)]
    recent = _recent_from(items, sizes.policy)
    start = max((index for index in allowed if index <= recent), default=0)
    goal = sizes.limit if sizes.policy.keep_recent_messages else sizes.target
    if start == 0 and before <= goal:
        return 0
    candidates = [index for index in allowed if index >= max(start, 1)] or [0]
    costs: dict[int, int] = {}
    for index in candidates:
        costs[index] = _expected(items, index, kept_users(earlier, items, index, sizes), sizes)
        if costs[index] <= goal:
            return index
    return min(candidates, key=lambda index: (costs[index], index))


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


class Span(Record, frozen=True, kw_only=True):
    """Items that stay together: no cut at ``first + 1`` to ``last``."""

    first: int
    last: int


def cut_points(items: Sequence[CutItem]) -> list[int]:
    """Return the indexes at which the conversation may be cut; the item at the index begins the second part."""
    closed = [False] * (len(items) + 1)
    for span in open_spans(items):
        closed[span.first + 1 : span.last + 1] = [True] * (span.last - span.first)
    return [index for index, is_closed in enumerate(closed) if not is_closed]


def open_spans(items: Sequence[CutItem]) -> list[Span]:
    """Return the spans from each call to its result; past the end if the result may still come."""
    waiting: dict[CallKey, list[int]] = {}
    early: dict[CallKey, int] = {}
    spans: list[Span] = []
    for index, item in enumerate(items):
        for call in item.original.tool_calls:
            key = call_key(call)
            if key in early:
                spans.append(Span(first=early.pop(key), last=index))
            else:
                waiting.setdefault(key, []).append(index)
        for result in item.original.tool_results:
            key = result_key(result)
            calls = waiting.get(key) or waiting.get(_by_name(items, waiting, key), [])
            if calls:
                spans.append(Span(first=calls.pop(), last=index))
            else:
                early.setdefault(key, index)
    without_result = (call for indexes in waiting.values() for call in indexes)
    return [*spans, *(Span(first=call, last=_end_of_open_call(items, call)) for call in without_result)]


def is_turn_start(item: CutItem) -> bool:
    """Return whether a turn begins with this message."""
    return item.message.role == "user"


def last_cut(items: Sequence[CutItem]) -> int:
    """Return the last index at which a cut is useful: a user message without an answer is always kept."""
    is_unanswered = bool(items) and is_turn_start(items[-1])
    return len(items) - 1 if is_unanswered else len(items)


def _by_name(items: Sequence[CutItem], waiting: dict[CallKey, list[int]], key: CallKey) -> CallKey:
    """Return the key of a waiting call of that name, for a result without an id."""
    if key.id:
        return key
    for other, indexes in waiting.items():
        for index in indexes:
            if any((call.id, call.name) == (other.id, key.name) for call in items[index].original.tool_calls):
                return other
    return key


def _end_of_open_call(items: Sequence[CutItem], call: int) -> int:
    """Return the end of the batch of a call without a result; past the end unless the assistant has continued."""
    index = call
    while index < len(items) and (items[index].original.tool_calls or items[index].message.role == "tool"):
        index += 1
    has_continued = any(item.message.role == "assistant" for item in items[index:])
    return index - 1 if has_continued else len(items)


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
