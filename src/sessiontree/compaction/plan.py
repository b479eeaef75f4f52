"""The plan of a compaction: what is summarised, what stays, what it will cost. Pure, so it can be shown beforehand.

>>> from sessiontree.model.builders import assistant, user
>>> said = [user("x" * 3000), assistant("y" * 3000), user("and now?")]
>>> path = [Entry(id=str(n), thread_id="t", parent=None, created_ns=0, payload=p) for n, p in enumerate(said)]
>>> planned = plan(path, CompactionPolicy(window_tokens=2_000, keep_recent_tokens=10))
>>> planned.removed_messages, planned.kept_messages, planned.first_kept_entry_id
(2, 1, '2')

What is told about a branch when the conversation leaves it.

Where a conversation may be cut: never between a tool call and its result, never behind an open call.

>>> from sessiontree.model.builders import assistant, call, tool_result, user
>>> said = [user("a"), assistant(calls=[call("1", "ls")]), tool_result("1", "x"), assistant("b")]
>>> items = [CutItem(entry_id=str(n), message=payload.message, said=payload.message, tokens=1)
...          for n, payload in enumerate(said)]
>>> cut_points(items)
[0, 1, 3, 4]

The user's own words that a compaction quotes instead of summarising them, through every generation.
"""

from __future__ import annotations

from collections.abc import Sequence

from sessiontree.compaction.files import TouchedFiles, files_in
from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.compaction.prompts import render_message
from sessiontree.context import build_context, project, summary_text, window_of
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


class BranchPlan(Record, frozen=True, kw_only=True):
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


Key = tuple[str, str]


class CutItem(Record, frozen=True, kw_only=True):
    """One message of the view. ``said`` is the entry's own message, where a control signal still is a call."""

    entry_id: str
    message: Message
    said: Message
    tokens: int


class Span(Record, frozen=True, kw_only=True):
    """A stretch that stays in one piece: no cut at ``first + 1`` to ``last``."""

    first: int
    last: int


def cut_points(items: Sequence[CutItem]) -> list[int]:
    """Every index where the conversation may be cut in two; the item at the index is the first of the second part."""
    closed = [False] * (len(items) + 1)
    for span in open_spans(items):
        closed[span.first + 1 : span.last + 1] = [True] * (span.last - span.first)
    return [index for index, is_closed in enumerate(closed) if not is_closed]


def open_spans(items: Sequence[CutItem]) -> list[Span]:
    """From each call to the last thing that belongs to it, or past the end while its result may still come."""
    waiting: dict[Key, list[int]] = {}
    early: dict[Key, int] = {}
    spans: list[Span] = []
    for index, item in enumerate(items):
        for call in item.said.tool_calls:
            key = _key(call.id, call.name)
            if key in early:
                spans.append(Span(first=early.pop(key), last=index))
            else:
                waiting.setdefault(key, []).append(index)
        for result in item.said.tool_results:
            key = _key(result.call_id, result.name)
            asked = waiting.get(key) or waiting.get(_by_name(items, waiting, key), [])
            if asked:
                spans.append(Span(first=asked.pop(), last=index))
            else:
                early.setdefault(key, index)
    unanswered = (asked for indexes in waiting.values() for asked in indexes)
    return [*spans, *(Span(first=asked, last=_abandoned(items, asked)) for asked in unanswered)]


def is_turn_start(item: CutItem) -> bool:
    return item.message.role == "user"


def last_cut(items: Sequence[CutItem]) -> int:
    """How far a cut may go: what the user said last, and nobody has answered yet, stays as it is."""
    is_unanswered = bool(items) and is_turn_start(items[-1])
    return len(items) - 1 if is_unanswered else len(items)


def _key(call_id: str, name: str) -> Key:
    return (call_id, "" if call_id else name)


def _by_name(items: Sequence[CutItem], waiting: dict[Key, list[int]], key: Key) -> Key:
    """The waiting call of that name, for a result that came without an id."""
    if key[0]:
        return key
    for held, indexes in waiting.items():
        for index in indexes:
            if any((call.id, call.name) == (held[0], key[1]) for call in items[index].said.tool_calls):
                return held
    return key


def _abandoned(items: Sequence[CutItem], asked: int) -> int:
    """The end of the batch of a call that the assistant gave up on; past the end while it has not gone on."""
    index = asked
    while index < len(items) and (items[index].said.tool_calls or items[index].message.role == "tool"):
        index += 1
    has_gone_on = any(item.message.role == "assistant" for item in items[index:])
    return index - 1 if has_gone_on else len(items)


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


def kept_users(earlier: dict[str, str], items: Sequence[CutItem], at: int, sizes: Sizes) -> dict[str, str]:
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


class CompactionPlan(Record, frozen=True, kw_only=True):
    """``history`` and, of a turn that is cut in two, ``turn_prefix`` are summarised; the rest stays word for word."""

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
) -> CompactionPlan | None:
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
    return CompactionPlan(
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


def items_of(path: Sequence[Entry], count: TokenCounter = estimate_text) -> list[CutItem]:
    """The messages that a model sees of a path, without the checkpoint of an earlier compaction."""
    boundary = window_of(path).boundary
    view = [seen for seen in project(path) if seen.entry is not boundary]
    tokens = [estimate_message(seen.message, count) for seen in view]
    return [
        CutItem(
            entry_id=seen.entry.id,
            message=seen.message,
            said=seen.entry.message or seen.message,
            tokens=size,
        )
        for seen, size in zip(view, tokens, strict=True)
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


def _choose_cut(items: Sequence[CutItem], earlier: dict[str, str], before: int, sizes: Sizes) -> int:
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
    """Where the turn begins that the cut goes through; the cut itself if it goes through none."""
    if at == len(items) or is_turn_start(items[at]):
        return at
    return next((index for index in range(at - 1, -1, -1) if is_turn_start(items[index])), at)


def _expected(items: Sequence[CutItem], at: int, users: dict[str, str], sizes: Sizes) -> int:
    frame = summary_text("", list(users.items()), has_tail=at < len(items))
    kept = sum(item.tokens for item in items[at:])
    return MESSAGE_OVERHEAD + sizes.count(frame) + sizes.policy.summary_room + kept


def _earlier_files(previous: Compaction | None) -> TouchedFiles:
    return TouchedFiles(read=previous.files_read, modified=previous.files_modified) if previous else TouchedFiles()


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
