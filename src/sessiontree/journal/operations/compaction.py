"""Verbs that shorten what the model sees: compact, uncompact, leave a branch with a summary.

Asking a summariser: portion by portion, with a notice in its place where a policy allows that.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from sessiontree.compaction.files import with_files, without_files
from sessiontree.compaction.plan import CompactionPlan, occupied_tokens, plan, plan_branch
from sessiontree.compaction.policy import CompactionPolicy, needs_compaction
from sessiontree.compaction.prompts import RequestKind, chunks
from sessiontree.compaction.result import (
    BranchResult,
    CompactionResult,
    Reason,
    Trigger,
    added,
    compaction_of,
    joined,
    notice,
    tokens_with,
)
from sessiontree.compaction.summarizers.base import Summarizer, Summary, SummaryRequest, summary_of
from sessiontree.context import build_context, window_of
from sessiontree.errors import CompactionClaimedError, NothingToUncompactError, OversizedSummaryError, SummaryError
from sessiontree.journal.operations.entries import append_many
from sessiontree.journal.operations.leaf import move_leaf
from sessiontree.journal.operations.requests import Call, Operation, Runtime
from sessiontree.journal.operations.turns import this_process
from sessiontree.model import NANOSECONDS, BranchSummary, Compaction, CompactionClaim, Entry, Lease, Message, Thread
from sessiontree.model._base import Progress, Record
from sessiontree.model.codec import validate_and_encode
from sessiontree.model.tokens import TokenCounter, estimate_text
from sessiontree.stores.commands import ClaimCompaction, Draft, InstallCompaction, ReleaseClaim
from sessiontree.stores.queries import ReadPath, ReadThread

__all__ = [
    "CLAIM_SECONDS",
    "WAIT_SECONDS",
    "CompactionOptions",
    "SummaryOutcome",
    "ask",
    "claim",
    "clear_expired_claim",
    "compact",
    "compact_if_needed",
    "leave_branch",
    "run_if_needed",
    "tell",
    "uncompact",
]


CLAIM_SECONDS = 600.0
WAIT_SECONDS = 120.0


class CompactionOptions(Record, frozen=True, kw_only=True):
    """How to compact: everything that a caller may choose."""

    summarize: Summarizer
    policy: CompactionPolicy = CompactionPolicy()
    instructions: str = ""
    trigger: Trigger = "manual"
    reason: Reason = "manual"
    force: bool = False
    count: TokenCounter = estimate_text
    claim_seconds: float = CLAIM_SECONDS
    wait_seconds: float = WAIT_SECONDS
    target_tokens: int | None = None
    lease: Lease | None = None
    progress: Progress | None = None


class SummaryOutcome(Record, frozen=True, kw_only=True):
    """A summary that is ready to be installed, and how it came about."""

    text: str
    strategy: str
    failure: str = ""
    answers: tuple[Summary, ...] = ()


def claim(
    sources: Runtime, thread_id: str, claim_id: str, how: CompactionOptions, *, is_renewal: bool = False
) -> Operation[None]:
    """Become the only one who compacts the thread, or get more time for it."""
    now = sources.clock()
    expires = now + int(how.claim_seconds * NANOSECONDS)
    wanted = CompactionClaim(id=claim_id, owner=this_process(), expires_ns=expires)
    yield ClaimCompaction(thread_id=thread_id, claim=wanted, now_ns=now, is_renewal=is_renewal)


def tell(
    sources: Runtime,
    thread_id: str,
    claim_id: str,
    planned: CompactionPlan,
    how: CompactionOptions,
    *,
    check: Callable[[str], None],
) -> Operation[SummaryOutcome]:
    """What takes the place of the head; ``check`` raises a SummaryError for a text that is of no use."""
    if how.policy.strategy == "truncate":
        return SummaryOutcome(text=_noticed(planned, how), strategy="truncate")
    try:
        told = yield from _summarise(sources, thread_id, claim_id, planned, how)
        check(told.text)
    except SummaryError as failure:
        if how.policy.strategy == "summarize":
            raise
        return SummaryOutcome(text=_noticed(planned, how), strategy="truncate", failure=str(failure))
    return told


def _noticed(planned: CompactionPlan, how: CompactionOptions) -> str:
    return notice(planned, how.policy.summary_share, how.count)


def _summarise(
    sources: Runtime, thread_id: str, claim_id: str, planned: CompactionPlan, how: CompactionOptions
) -> Operation[SummaryOutcome]:
    """The history portion by portion, each one building on the notes so far; then the turn that is cut in two."""
    history = without_files(planned.previous_summary)
    prefix = ""
    answers: list[Summary] = []
    portions: list[tuple[RequestKind, tuple[Message, ...]]] = [
        *(("history", portion) for portion in chunks(planned.history, how.policy.chunk_tokens, how.count)),
        *((("history", ()),) if _needs_shortening(planned, history, how) else ()),
        *(("turn_prefix", portion) for portion in chunks(planned.turn_prefix, how.policy.chunk_tokens, how.count)),
    ]
    done, total = 0, sum(len(portion) for _, portion in portions)
    for kind, portion in portions:
        yield from claim(sources, thread_id, claim_id, how, is_renewal=True)
        answer = yield from ask(kind, portion, history if kind == "history" else prefix, how)
        answers.append(answer)
        done += len(portion)
        if how.progress is not None:
            how.progress(done, total)
        if kind == "history":
            history = answer.text
        else:
            prefix = answer.text
    return SummaryOutcome(text=joined(history, prefix), strategy="summarize", answers=tuple(answers))


def _needs_shortening(planned: CompactionPlan, history: str, how: CompactionOptions) -> bool:
    """Notes that were written for a larger window, where no new history would make them be written anew."""
    return not planned.history and how.count(history) > how.policy.summary_share


def ask(kind: RequestKind, messages: tuple[Message, ...], previous: str, how: CompactionOptions) -> Operation[Summary]:
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


def compact(sources: Runtime, thread_id: str, how: CompactionOptions) -> Operation[CompactionResult]:
    """Claim, plan, summarise, install. Whatever goes wrong before the install leaves the conversation as it was."""
    started = sources.clock()
    claim_id = sources.ids.new()
    yield from claim(sources, thread_id, claim_id, how)
    try:
        result = yield from _claimed(sources, thread_id, claim_id, started, how)
    except GeneratorExit:
        raise
    except BaseException as error:
        yield from _let_go(thread_id, claim_id, error)
        raise
    if result.is_installed:
        sources.backoff.note_success("compaction", thread_id)
    else:
        yield ReleaseClaim(thread_id=thread_id, claim_id=claim_id)
    return result


def compact_if_needed(sources: Runtime, thread_id: str, how: CompactionOptions) -> Operation[CompactionResult | None]:
    """Compact if the window is too full; ``None`` if it is not, if another process compacts, or in a pause."""
    return (yield from run_if_needed(sources, thread_id, how, compact(sources, thread_id, how)))


def run_if_needed(
    sources: Runtime, thread_id: str, how: CompactionOptions, compaction: Operation[CompactionResult]
) -> Operation[CompactionResult | None]:
    """Run ``compaction`` under the conditions of ``compact_if_needed``; it never starts if they do not hold."""
    if sources.backoff.is_waiting("compaction", thread_id, sources.clock()):
        return None
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    if not needs_compaction(occupied_tokens(path, how.count), how.policy):
        return None
    try:
        result = yield from compaction
    except CompactionClaimedError:
        return None
    except SummaryError as error:
        sources.backoff.note_failure("compaction", thread_id, sources.clock(), error.retry_after_seconds)
        raise
    if result.is_setback:
        sources.backoff.note_failure("compaction", thread_id, sources.clock())
    return result


def clear_expired_claim(sources: Runtime, thread_id: str) -> Operation[CompactionClaim | None]:
    thread: Thread = yield ReadThread(thread_id=thread_id)
    held = thread.compaction_claim
    if held is None or not held.is_expired(sources.clock()):
        return None
    yield ReleaseClaim(thread_id=thread_id, claim_id=held.id)
    return held


def uncompact(sources: Runtime, thread_id: str, lease: Lease | None) -> Operation[Entry]:
    """Take the compaction in force back, by an entry that says so."""
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    boundary = window_of(path).boundary
    if boundary is None:
        raise NothingToUncompactError(thread_id)
    payload = Compaction(reverts=boundary.id, trigger="manual", reason="manual")
    stored = yield from append_many(sources, thread_id, [payload], lease=lease)
    return stored[0]


def leave_branch(
    sources: Runtime, thread_id: str, to_entry: str | None, how: CompactionOptions
) -> Operation[BranchResult]:
    """Go on from another entry and tell there what happened on the branch that is left."""
    leaving: list[Entry] = yield ReadPath(thread_id=thread_id)
    arriving: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=to_entry)
    leaf = leaving[-1].id if leaving else None
    planned = plan_branch(leaving, arriving, how.policy, count=how.count)
    if planned is None:
        moved: Thread = yield from move_leaf(sources, thread_id, to_entry, "move", expect_leaf=leaf, lease=how.lease)
        return BranchResult(thread_id=thread_id, leaf=moved.leaf)
    answer = yield from ask("branch", planned.messages, planned.earlier, how)
    _check_branch_size(answer.text, arriving, how)
    payload = BranchSummary(
        summary=with_files(answer.text, planned.files, how.policy.file_share),
        from_entry_id=leaf or "",
        files_read=planned.files.read,
        files_modified=planned.files.modified,
    )
    stored = yield from append_many(sources, thread_id, [payload], parent=to_entry, expect_leaf=leaf, lease=how.lease)
    return BranchResult(thread_id=thread_id, leaf=stored[0].id, entry=stored[0], entries_left=planned.entries)


def _claimed(
    sources: Runtime, thread_id: str, claim_id: str, started_ns: int, how: CompactionOptions
) -> Operation[CompactionResult]:
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    planned = plan(path, how.policy, count=how.count, target_tokens=how.target_tokens)
    if planned is None:
        return _nothing(thread_id, path, how)
    told = yield from tell(
        sources, thread_id, claim_id, planned, how, check=lambda text: _check_size(text, path, planned, how)
    )
    return (yield from _install(sources, thread_id, _Work(claim_id, started_ns, path, planned, told), how))


def _let_go(thread_id: str, claim_id: str, error: BaseException) -> Operation[None]:
    """Give the claim back after a failure; that this fails too must not hide the failure."""
    try:
        yield ReleaseClaim(thread_id=thread_id, claim_id=claim_id)
    except Exception as second:  # noqa: BLE001  told with the first one
        error.add_note(f"the claim could not be given back, it expires by itself: {type(second).__name__}: {second}")


def _check_size(text: str, path: list[Entry], planned: CompactionPlan, how: CompactionOptions) -> None:
    """A summary that is to blame for a window that is still too full is of no use."""
    size = how.count(text)
    if size <= how.policy.summary_room:
        return
    compaction = _compaction(planned, text, "summarize", id="", how=how)
    if tokens_with(path, compaction, how.count) >= how.policy.threshold:
        raise OversizedSummaryError(size, how.policy.summary_room)


def _check_branch_size(text: str, arriving: list[Entry], how: CompactionOptions) -> None:
    size = how.count(text)
    held = sum(segment.token_estimate for segment in build_context(arriving, count=how.count).segments)
    if size > how.policy.summary_room and held + size >= how.policy.threshold:
        raise OversizedSummaryError(size, how.policy.summary_room)


def _compaction(planned: CompactionPlan, text: str, strategy: str, *, id: str, how: CompactionOptions) -> Compaction:
    return compaction_of(
        planned,
        text,
        id=id,
        strategy=strategy,
        trigger=how.trigger,
        reason=how.reason,
        instructions=how.instructions,
        file_room=how.policy.file_share,
    )


class _Work(Record, frozen=True):
    """A compaction under way."""

    claim_id: str
    started_ns: int
    path: list[Entry]
    plan: CompactionPlan
    told: SummaryOutcome


def _install(sources: Runtime, thread_id: str, work: _Work, how: CompactionOptions) -> Operation[CompactionResult]:
    compaction = _compaction(work.plan, work.told.text, work.told.strategy, id=sources.ids.new(), how=how)
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
    payload, body = validate_and_encode(compaction)
    turn_id = lease.turn_id if lease else ""
    return Draft(id=compaction.id, payload=payload, body=body, created_ns=created_ns, turn_id=turn_id)


def _result(thread_id: str, work: _Work, compaction: Compaction, how: CompactionOptions) -> CompactionResult:
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
        duration_seconds=compaction.duration_ns / NANOSECONDS,
        trigger=how.trigger,
        reason=how.reason,
        generation=compaction.generation,
        window_id=compaction.window_id,
        files=work.plan.files,
        usage=compaction.summary_usage,
    )


def _nothing(thread_id: str, path: list[Entry], how: CompactionOptions) -> CompactionResult:
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
