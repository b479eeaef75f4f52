"""Verbs that shorten what the model sees: compact, uncompact, leave a branch with a summary, call a model safely."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from sessiontree.codec import seal
from sessiontree.commands import ClaimCompaction, Draft, InstallCompaction, ReleaseClaim
from sessiontree.compaction.assemble import added, compaction_of, joined, notice, tokens_with
from sessiontree.compaction.branch import plan_branch
from sessiontree.compaction.files import with_files, without_files
from sessiontree.compaction.overflow import is_context_overflow
from sessiontree.compaction.plan import Plan, occupied_tokens, plan
from sessiontree.compaction.policy import CompactionPolicy, needs_compaction
from sessiontree.compaction.prompts import RequestKind, chunks
from sessiontree.compaction.request import Summarizer, Summary, SummaryRequest, summary_of
from sessiontree.compaction.result import BranchResult, CompactionResult, Reason, Trigger
from sessiontree.context import Context, build_context, window_of
from sessiontree.errors import (
    CompactionClaimedError,
    ContextOverflowError,
    NothingToUncompactError,
    SummaryError,
)
from sessiontree.model import BranchSummary, Compaction, CompactionClaim, Entry, Lease, Message, Thread
from sessiontree.model.record import Record
from sessiontree.operations.entries import append_many
from sessiontree.operations.leaf import move_leaf
from sessiontree.operations.requests import Call, Operation, Sources
from sessiontree.operations.turns import this_process
from sessiontree.queries import ReadPath
from sessiontree.tokens import TokenCounter, estimate_text

__all__ = ["CLAIM_SECONDS", "Compacting", "call_model", "compact", "compact_if_needed", "leave_branch", "uncompact"]

CLAIM_SECONDS = 600.0
_NANOSECONDS = 1_000_000_000


class Compacting(Record, frozen=True, kw_only=True):
    """How to compact: everything that a caller may choose."""

    summarize: Summarizer
    policy: CompactionPolicy = CompactionPolicy()
    instructions: str = ""
    trigger: Trigger = "manual"
    reason: Reason = "manual"
    force: bool = False
    count: TokenCounter = estimate_text
    claim_seconds: float = CLAIM_SECONDS
    target_tokens: int | None = None
    lease: Lease | None = None


class _Told(Record, frozen=True, kw_only=True):
    """A summary that is ready to be installed, and how it came about."""

    text: str
    strategy: str
    failure: str = ""
    answers: tuple[Summary, ...] = ()


def compact(sources: Sources, thread_id: str, how: Compacting) -> Operation[CompactionResult]:
    """Claim, plan, summarise, install. Whatever goes wrong before the install leaves the conversation as it was."""
    started = sources.clock()
    claim_id = sources.ids.new()
    yield from _claim(sources, thread_id, claim_id, how)
    try:
        path: list[Entry] = yield ReadPath(thread_id=thread_id)
        planned = plan(path, how.policy, count=how.count, target_tokens=how.target_tokens)
        if planned is None:
            return _nothing(thread_id, path, how)
        told = yield from _tell(sources, thread_id, claim_id, planned, how)
        return (yield from _install(sources, thread_id, _Work(claim_id, started, path, planned, told), how))
    finally:
        yield ReleaseClaim(thread_id=thread_id, claim_id=claim_id)


def compact_if_needed(sources: Sources, thread_id: str, how: Compacting) -> Operation[CompactionResult | None]:
    """Compact when the window is too full; ``None`` if it is not, or if somebody else is at it already."""
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    if not needs_compaction(occupied_tokens(path, how.count), how.policy):
        return None
    try:
        return (yield from compact(sources, thread_id, how))
    except CompactionClaimedError:
        return None


def uncompact(sources: Sources, thread_id: str, lease: Lease | None) -> Operation[Entry]:
    """Take the compaction in force back, by an entry that says so."""
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    boundary = window_of(path).boundary
    if boundary is None:
        raise NothingToUncompactError(thread_id)
    payload = Compaction(reverts=boundary.id, trigger="manual", reason="manual")
    stored = yield from append_many(sources, thread_id, [payload], lease=lease)
    return stored[0]


def leave_branch(sources: Sources, thread_id: str, to_entry: str | None, how: Compacting) -> Operation[BranchResult]:
    """Go on from another entry and tell there what happened on the branch that is left."""
    leaving: list[Entry] = yield ReadPath(thread_id=thread_id)
    arriving: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=to_entry)
    leaf = leaving[-1].id if leaving else None
    planned = plan_branch(leaving, arriving, how.policy, count=how.count)
    if planned is None:
        moved: Thread = yield from move_leaf(sources, thread_id, to_entry, "move", expect_leaf=leaf, lease=how.lease)
        return BranchResult(thread_id=thread_id, leaf=moved.leaf)
    answer = yield from _ask("branch", planned.messages, planned.earlier, how)
    payload = BranchSummary(
        summary=with_files(answer.text, planned.files, how.policy.file_share),
        from_entry_id=leaf or "",
        files_read=planned.files.read,
        files_modified=planned.files.modified,
    )
    stored = yield from append_many(sources, thread_id, [payload], parent=to_entry, expect_leaf=leaf, lease=how.lease)
    return BranchResult(thread_id=thread_id, leaf=stored[0].id, entry=stored[0], entries_left=planned.entries)


def call_model(
    sources: Sources,
    thread_id: str,
    model: Callable[[Context], Any],
    how: Compacting,
    is_overflow: Callable[[BaseException], bool] = is_context_overflow,
) -> Operation[Any]:
    """Give the context to a model: compacted first if it is too full, and once more if the model says so."""
    context = yield from _prepared(sources, thread_id, how)
    try:
        return (yield Call(function=model, arguments=(context,)))
    except Exception as error:
        if not is_overflow(error):
            raise
        yield from _shrink(sources, thread_id, context, how, error)
    shorter = yield from _context(thread_id, how.count)
    try:
        return (yield Call(function=model, arguments=(shorter,)))
    except Exception as error:
        if is_overflow(error):
            raise ContextOverflowError(thread_id) from error
        raise


class _Work(Record, frozen=True):
    """A compaction under way."""

    claim_id: str
    started_ns: int
    path: list[Entry]
    plan: Plan
    told: _Told


def _claim(
    sources: Sources, thread_id: str, claim_id: str, how: Compacting, *, is_renewal: bool = False
) -> Operation[None]:
    """Become the only one who compacts the thread, or get more time for it."""
    now = sources.clock()
    expires = now + int(how.claim_seconds * _NANOSECONDS)
    claim = CompactionClaim(id=claim_id, owner=this_process(), expires_ns=expires)
    yield ClaimCompaction(thread_id=thread_id, claim=claim, now_ns=now, is_renewal=is_renewal)


def _tell(sources: Sources, thread_id: str, claim_id: str, planned: Plan, how: Compacting) -> Operation[_Told]:
    if how.policy.strategy == "truncate":
        return _Told(text=_noticed(planned, how), strategy="truncate")
    try:
        return (yield from _summarise(sources, thread_id, claim_id, planned, how))
    except SummaryError as failure:
        if how.policy.strategy == "summarize":
            raise
        return _Told(text=_noticed(planned, how), strategy="truncate", failure=str(failure))


def _noticed(planned: Plan, how: Compacting) -> str:
    return notice(planned, how.policy.summary_share, how.count)


def _summarise(sources: Sources, thread_id: str, claim_id: str, planned: Plan, how: Compacting) -> Operation[_Told]:
    """The history portion by portion, each one building on the notes so far; then the turn that is cut in two."""
    history = without_files(planned.previous_summary)
    prefix = ""
    answers: list[Summary] = []
    portions: list[tuple[RequestKind, tuple[Message, ...]]] = [
        *(("history", portion) for portion in chunks(planned.history, how.policy.chunk_tokens, how.count)),
        *((("history", ()),) if _needs_shortening(planned, history, how) else ()),
        *(("turn_prefix", portion) for portion in chunks(planned.turn_prefix, how.policy.chunk_tokens, how.count)),
    ]
    for kind, portion in portions:
        yield from _claim(sources, thread_id, claim_id, how, is_renewal=True)
        answer = yield from _ask(kind, portion, history if kind == "history" else prefix, how)
        answers.append(answer)
        if kind == "history":
            history = answer.text
        else:
            prefix = answer.text
    return _Told(text=joined(history, prefix), strategy="summarize", answers=tuple(answers))


def _needs_shortening(planned: Plan, history: str, how: Compacting) -> bool:
    """Notes that were written for a larger window, where no new history would make them be written anew."""
    return not planned.history and how.count(history) > how.policy.summary_share


def _ask(kind: RequestKind, messages: tuple[Message, ...], previous: str, how: Compacting) -> Operation[Summary]:
    request = SummaryRequest(
        kind=kind,
        messages=messages,
        previous_summary=previous,
        instructions=how.instructions,
        max_tokens=max(1, how.policy.summary_share // (2 if kind == "turn_prefix" else 1)),
    )
    try:
        answer = yield Call(function=how.summarize, arguments=(request,))
    except SummaryError:
        raise
    except Exception as error:
        raise SummaryError(f"the summariser failed with {type(error).__name__}: {error}") from error
    return summary_of(answer)


def _install(sources: Sources, thread_id: str, work: _Work, how: Compacting) -> Operation[CompactionResult]:
    compaction = compaction_of(
        work.plan,
        work.told.text,
        id=sources.ids.new(),
        strategy=work.told.strategy,
        trigger=how.trigger,
        reason=how.reason,
        instructions=how.instructions,
        file_room=how.policy.file_share,
    )
    finished = sources.clock()
    written = replace(
        compaction,
        tokens_after=tokens_with(work.path, compaction, how.count),
        duration_ns=finished - work.started_ns,
        summary_usage=added(work.told.answers),
    )
    result = _result(thread_id, work, written, how)
    if result.tokens_saved <= 0 and not how.force:
        return result
    stored: tuple[Entry, ...] = yield InstallCompaction(
        thread_id=thread_id,
        draft=_draft(written, finished, how.lease),
        claim_id=work.claim_id,
        base=work.plan.base,
        token=how.lease.token if how.lease else None,
    )
    return replace(result, status="installed", entry=stored[0])


def _draft(compaction: Compaction, created_ns: int, lease: Lease | None) -> Draft:
    payload, body = seal(compaction)
    turn_id = lease.turn_id if lease else ""
    return Draft(id=compaction.id, payload=payload, body=body, created_ns=created_ns, turn_id=turn_id)


def _result(thread_id: str, work: _Work, compaction: Compaction, how: Compacting) -> CompactionResult:
    return CompactionResult(
        thread_id=thread_id,
        status="not_worth_it",
        summary=compaction.summary,
        strategy=compaction.strategy,
        failure=work.told.failure,
        kept_messages=compaction.kept_messages,
        removed_messages=compaction.removed_messages,
        kept_users=len(compaction.kept_user_entry_ids),
        tokens_before=compaction.tokens_before,
        tokens_after=compaction.tokens_after,
        is_over_budget=compaction.tokens_after >= how.policy.threshold,
        is_split_turn=work.plan.is_split_turn,
        duration_seconds=compaction.duration_ns / _NANOSECONDS,
        trigger=how.trigger,
        reason=how.reason,
        generation=compaction.generation,
        window_id=compaction.window_id,
        files=work.plan.files,
        usage=compaction.summary_usage,
    )


def _nothing(thread_id: str, path: list[Entry], how: Compacting) -> CompactionResult:
    context = build_context(path, count=how.count)
    tokens = sum(segment.token_estimate for segment in context.segments)
    return CompactionResult(
        thread_id=thread_id,
        status="nothing_to_compact",
        kept_messages=len(context.messages),
        tokens_before=tokens,
        tokens_after=tokens,
        is_over_budget=tokens >= how.policy.threshold,
        trigger=how.trigger,
        reason=how.reason,
    )


def _because(how: Compacting, trigger: Trigger, reason: Reason) -> Compacting:
    return replace(how, trigger=trigger, reason=reason)


def _prepared(sources: Sources, thread_id: str, how: Compacting) -> Operation[Context]:
    """The context, compacted if it is too full. A summariser that fails is no reason not to ask a model that fits."""
    try:
        yield from compact_if_needed(sources, thread_id, _because(how, "pre_request", "threshold"))
    except SummaryError:
        context = yield from _context(thread_id, how.count)
        if context.tokens >= how.policy.window_tokens:
            raise
        return context
    return (yield from _context(thread_id, how.count))


def _context(thread_id: str, count: TokenCounter) -> Operation[Context]:
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    return build_context(path, count=count)


def _shrink(sources: Sources, thread_id: str, context: Context, how: Compacting, error: Exception) -> Operation[None]:
    """The model counts otherwise than we do: half of what we took for fitting is the aim now."""
    estimate = sum(segment.token_estimate for segment in context.segments)
    aim = min(how.policy.target, estimate // 2)
    smaller = replace(_because(how, "context_overflow", "provider_overflow"), target_tokens=aim)
    result = yield from compact(sources, thread_id, smaller)
    if not result.is_installed:
        raise ContextOverflowError(thread_id) from error
