"""Verbs that shorten what the model sees: compact, uncompact, leave a branch with a summary.

A compaction claims the thread, plans, asks the summariser portion by portion and installs the summary. If the policy
allows it, a notice takes the place of a summary that failed.
"""

from __future__ import annotations

from contextlib import suppress

from msgspec.structs import replace

from sessiontree.compaction.files import with_files
from sessiontree.compaction.plan import CompactionPlan, plan, plan_branch
from sessiontree.compaction.policy import needs_compaction
from sessiontree.compaction.replacement import replacement
from sessiontree.compaction.result import (
    BranchResult,
    CompactionResult,
    added,
    compaction_of,
    context_with,
    stored_tokens,
)
from sessiontree.context import build_context, window_of
from sessiontree.context.result_views import result_text
from sessiontree.errors import (
    ClaimLostError,
    CompactionClaimedError,
    NothingToUncompactError,
    OversizedSummaryError,
    StaleLeafError,
    StaleVersionError,
    SummaryError,
)
from sessiontree.journal.operations.clock import time_of_store
from sessiontree.journal.operations.compaction_options import Changes, CompactionOptions
from sessiontree.journal.operations.entries import NewEntry, append_many, draft_as_given
from sessiontree.journal.operations.leaf import move_leaf
from sessiontree.journal.operations.requests import Operation, Runtime, Work
from sessiontree.journal.operations.summaries import SummaryOutcome, ask_summarizer, claim, write_summary
from sessiontree.journal.operations.threads import update_command
from sessiontree.journal.operations.windows import read_window
from sessiontree.model import (
    NANOSECONDS,
    BranchSummary,
    Compaction,
    CompactionClaim,
    Entry,
    Lease,
    Thread,
)
from sessiontree.model._base import Record
from sessiontree.model.blobs import Blob, blob_of
from sessiontree.model.tokens import TokenCounter
from sessiontree.stores.commands import Draft, InstallCompaction, PutBlobs, ReleaseClaim, UpdateThread
from sessiontree.stores.queries import ReadPath, ReadThread

__all__ = [
    "clear_expired_claim",
    "compact",
    "compact_if_needed",
    "is_needed",
    "leave_branch",
    "replace_context",
    "run_if_needed",
    "uncompact",
]


def compact(runtime: Runtime, thread_id: str, options: CompactionOptions) -> Operation[CompactionResult]:
    """Claim, plan, summarise, install. A failure before the install leaves the thread as it was."""
    started = runtime.clock()
    claim_id = runtime.ids.new()
    if options.dry_run:
        return (yield from _compact_claimed(runtime, thread_id, claim_id, started, options))
    yield from claim(runtime, thread_id, claim_id, options)
    try:
        result = yield from _compact_claimed(runtime, thread_id, claim_id, started, options)
    except GeneratorExit:
        raise
    except BaseException as error:
        yield from _release(thread_id, claim_id, error)
        raise
    if result.is_installed:
        runtime.backoff.note_success("compaction", thread_id)
    else:
        yield ReleaseClaim(thread_id=thread_id, claim_id=claim_id)
    return result


def compact_if_needed(
    runtime: Runtime, thread_id: str, options: CompactionOptions
) -> Operation[CompactionResult | None]:
    """Compact if the window is too full; ``None`` if it is not, if another process compacts, or in a pause."""
    return (yield from run_if_needed(runtime, thread_id, options, compact(runtime, thread_id, options)))


def run_if_needed(
    runtime: Runtime, thread_id: str, options: CompactionOptions, compaction: Operation[CompactionResult]
) -> Operation[CompactionResult | None]:
    """Run ``compaction`` under the conditions of ``compact_if_needed``; it never starts if they do not hold."""
    if runtime.backoff.is_waiting("compaction", thread_id, runtime.clock()):
        return None
    path = yield from read_window(thread_id)
    if not _is_needed(path, options):
        return None
    try:
        result = yield from compaction
    except CompactionClaimedError:
        return None
    except SummaryError as error:
        runtime.backoff.note_failure("compaction", thread_id, runtime.clock(), error.retry_after_seconds)
        raise
    if result.is_ineffective:
        runtime.backoff.note_failure("compaction", thread_id, runtime.clock())
    return result


def is_needed(thread_id: str, options: CompactionOptions) -> Operation[bool]:
    """Return whether the window is too full."""
    path = yield from read_window(thread_id)
    return _is_needed(path, options)


def _is_needed(path: list[Entry], options: CompactionOptions) -> bool:
    context = build_context(path, count=options.count, tools=options.tools)
    return needs_compaction(context.request_tokens, options.policy)


def clear_expired_claim(runtime: Runtime, thread_id: str) -> Operation[CompactionClaim | None]:
    """Remove the expired claim of a crashed compaction and return it."""
    thread: Thread = yield ReadThread(thread_id=thread_id)
    held = thread.compaction_claim
    if held is None or not held.is_expired((yield from time_of_store(runtime))):
        return None
    yield ReleaseClaim(thread_id=thread_id, claim_id=held.id)
    return held


def uncompact(
    runtime: Runtime, thread_id: str, lease: Lease | None, changes: Changes | None = None
) -> Operation[Entry]:
    """Take the last compaction back, by an entry that reverts it."""
    while True:
        thread: Thread = yield ReadThread(thread_id=thread_id)
        path: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=thread.leaf)
        boundary = window_of(path).boundary
        if boundary is None:
            raise NothingToUncompactError(thread_id)
        revert = Compaction(reverts=boundary.id, trigger="manual", reason="manual")
        payload = replace(revert, dropped_tokens=thread.tokens - stored_tokens(path, revert))
        new = NewEntry(content=payload, id=runtime.ids.new())
        update = _update(runtime, thread, new.id or "", changes)
        with suppress(StaleLeafError, StaleVersionError):
            stored = yield from append_many(
                runtime, thread_id, [new], expect_leaf=thread.leaf, lease=lease, update=update
            )
            return stored[0]


def replace_context(
    runtime: Runtime, thread_id: str, summary: str, kept: int | str, *, count: TokenCounter, lease: Lease | None
) -> Operation[Entry]:
    """Put a summary in place of the older part of the context; planned again if the leaf moves in between."""
    while True:
        thread: Thread = yield ReadThread(thread_id=thread_id)
        path: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=thread.leaf)
        payload = replacement(path, summary, kept, id=runtime.ids.new(), count=count)
        payload = replace(payload, dropped_tokens=thread.tokens - stored_tokens(path, payload))
        try:
            stored = yield from append_many(runtime, thread_id, [payload], expect_leaf=thread.leaf, lease=lease)
        except StaleLeafError:
            continue
        return stored[0]


def leave_branch(
    runtime: Runtime, thread_id: str, to_entry: str | None, options: CompactionOptions
) -> Operation[BranchResult]:
    """Move the leaf to another entry, and append a summary of the branch that is left there."""
    leaving: list[Entry] = yield ReadPath(thread_id=thread_id)
    arriving: list[Entry] = yield ReadPath(thread_id=thread_id, leaf=to_entry)
    leaf = leaving[-1].id if leaving else None
    planned = plan_branch(leaving, arriving, options.policy, count=options.count)
    if planned is None:
        moved: Thread = yield from move_leaf(
            runtime, thread_id, to_entry, "move", expect_leaf=leaf, lease=options.lease
        )
        return BranchResult(thread_id=thread_id, leaf=moved.leaf)
    answer = yield from ask_summarizer("branch", planned.messages, planned.earlier, options)
    _check_branch_size(answer.text, arriving, options)
    payload = BranchSummary(
        summary=with_files(answer.text, planned.files, options.policy.file_share),
        from_entry_id=leaf or "",
        files_read=planned.files.read,
        files_modified=planned.files.modified,
    )
    stored = yield from append_many(
        runtime, thread_id, [payload], parent=to_entry, expect_leaf=leaf, lease=options.lease
    )
    return BranchResult(thread_id=thread_id, leaf=stored[0].id, entry=stored[0], entries_left=planned.entries)


def _compact_claimed(
    runtime: Runtime, thread_id: str, claim_id: str, started_ns: int, options: CompactionOptions
) -> Operation[CompactionResult]:
    thread: Thread = yield ReadThread(thread_id=thread_id)
    path = yield from read_window(thread_id, thread.leaf)
    planned = plan(path, options.policy, count=options.count, target_tokens=options.target_tokens, tools=options.tools)
    if planned is None:
        return _nothing_to_compact(thread_id, path, options)
    outcome = yield from write_summary(
        runtime, thread_id, claim_id, planned, options, check=lambda text: _check_size(text, path, planned, options)
    )
    prepared = _Prepared(claim_id, started_ns, thread.tokens, path, planned, outcome)
    return (yield from _install(runtime, thread_id, prepared, options))


def _release(thread_id: str, claim_id: str, error: BaseException) -> Operation[None]:
    """Release the claim after a failure. If that fails too, it is added to the first error as a note."""
    try:
        yield ReleaseClaim(thread_id=thread_id, claim_id=claim_id)
    except Exception as second:  # noqa: BLE001  reported with the first one
        error.add_note(f"the claim could not be released, it will expire: {type(second).__name__}: {second}")


def _check_size(text: str, path: list[Entry], planned: CompactionPlan, options: CompactionOptions) -> None:
    """Raise OversizedSummaryError if the window is still too full, because of the summary."""
    size = options.count(text)
    if size <= options.policy.max_summary_tokens:
        return
    compaction = _compaction(planned, text, "summarize", id="", options=options)
    if context_with(path, compaction, options.count, options.tools).request_tokens >= options.policy.threshold:
        raise OversizedSummaryError(size, options.policy.max_summary_tokens)


def _check_branch_size(text: str, arriving: list[Entry], options: CompactionOptions) -> None:
    size = options.count(text)
    held = build_context(arriving, count=options.count).request_tokens
    if size > options.policy.max_summary_tokens and held + size >= options.policy.threshold:
        raise OversizedSummaryError(size, options.policy.max_summary_tokens)


def _compaction(
    planned: CompactionPlan, text: str, strategy: str, *, id: str, options: CompactionOptions
) -> Compaction:
    return compaction_of(
        planned,
        text,
        id=id,
        strategy=strategy,
        trigger=options.trigger,
        reason=options.reason,
        instructions=options.instructions,
        max_file_tokens=options.policy.file_share,
    )


class _Prepared(Record, frozen=True):
    """A compaction that is ready to be installed; ``counted`` are the tokens of the thread, as the store counts them."""

    claim_id: str
    started_ns: int
    counted: int
    path: list[Entry]
    plan: CompactionPlan
    outcome: SummaryOutcome


def _install(
    runtime: Runtime, thread_id: str, prepared: _Prepared, options: CompactionOptions
) -> Operation[CompactionResult]:
    compaction = _compaction(
        prepared.plan, prepared.outcome.text, prepared.outcome.strategy, id=runtime.ids.new(), options=options
    )
    after = context_with(prepared.path, compaction, options.count, options.tools)
    finished = runtime.clock()
    written = replace(
        compaction,
        tokens_after=after.estimate,
        dropped_tokens=prepared.counted - stored_tokens(prepared.path, compaction),
        duration_ns=finished - prepared.started_ns,
        summary_usage=added(prepared.outcome.answers),
    )
    is_over_budget = needs_compaction(after.request_tokens, options.policy)
    result = replace(_result(thread_id, prepared, written, options), is_over_budget=is_over_budget)
    if result.tokens_saved <= 0 and not options.force:
        return result
    if options.dry_run:
        return replace(result, status="planned")
    yield from _put_whole_results(prepared.path, written)
    command = InstallCompaction(
        thread_id=thread_id,
        draft=_draft(written, finished, options.lease),
        claim_id=prepared.claim_id,
        base=prepared.plan.base,
        token=options.lease.token if options.lease else None,
    )
    stored = yield from _commit(runtime, command, prepared.path, options.changes)
    return replace(result, status="installed", entry=stored[0])


def _commit(
    runtime: Runtime, command: InstallCompaction, path: list[Entry], changes: Changes | None
) -> Operation[tuple[Entry, ...]]:
    """Commit with the changes that follow from the thread, decided again if another writer was faster.

    Raises StaleLeafError if what was summarised has left the path, or if another summary took its place.
    """
    while True:
        thread: Thread = yield ReadThread(thread_id=command.thread_id)
        now = yield from read_window(thread.id, thread.leaf)
        if _boundary(now) != _boundary(path):
            held = thread.compaction_claim
            if held is None or held.id != command.claim_id:
                raise ClaimLostError(thread.id, held.owner if held else "")
            raise StaleLeafError(thread.id, command.base, thread.leaf)
        update = _update(runtime, thread, command.draft.id, changes)
        try:
            stored: tuple[Entry, ...] = yield replace(command, expect_leaf=thread.leaf, update=update)
        except StaleVersionError:
            continue
        except StaleLeafError as error:
            if error.expected != thread.leaf:
                raise
        else:
            return stored


def _boundary(path: list[Entry]) -> str | None:
    boundary = window_of(path).boundary
    return boundary.id if boundary else None


def _update(runtime: Runtime, thread: Thread, entry_id: str, changes: Changes | None) -> UpdateThread | None:
    return changes and update_command(runtime, thread.id, thread.version, changes(thread, entry_id))


def _put_whole_results(path: list[Entry], compaction: Compaction) -> Operation[None]:
    """Store the whole text of each result that is cut, as the artifact that its view names."""
    messages = {entry.id: entry.message for entry in path}
    for cut in compaction.cut_results:
        message = messages[cut.entry_id]
        assert message is not None
        data = result_text(message, cut.call_id).encode()
        blob: Blob = yield Work(function=blob_of, arguments=(data, cut.full_output.sha256))
        yield PutBlobs(blobs=(blob,), are_artifacts=True)


def _draft(compaction: Compaction, created_ns: int, lease: Lease | None) -> Draft:
    blobs = tuple(cut.full_output.sha256 for cut in compaction.cut_results)
    return draft_as_given(compaction.id, compaction, created_ns, lease.turn_id if lease else "", blobs)


def _result(
    thread_id: str, prepared: _Prepared, compaction: Compaction, options: CompactionOptions
) -> CompactionResult:
    return CompactionResult(
        thread_id=thread_id,
        status="not_worth_it",
        summary=compaction.summary,
        strategy=compaction.strategy,
        failure=prepared.outcome.failure,
        note=prepared.plan.note,
        kept_messages=compaction.kept_messages,
        removed_messages=compaction.removed_messages,
        kept_users=len(compaction.kept_user_entry_ids),
        cut_results=len(compaction.cut_results),
        tokens_before=compaction.tokens_before,
        tokens_after=compaction.tokens_after,
        is_split_turn=prepared.plan.is_split_turn,
        duration_seconds=compaction.duration_ns / NANOSECONDS,
        trigger=options.trigger,
        reason=options.reason,
        generation=compaction.generation,
        window_id=compaction.window_id,
        files=prepared.plan.files,
        usage=compaction.summary_usage,
    )


def _nothing_to_compact(thread_id: str, path: list[Entry], options: CompactionOptions) -> CompactionResult:
    context = build_context(path, count=options.count, tools=options.tools)
    tokens = context.estimate
    return CompactionResult(
        thread_id=thread_id,
        status="nothing_to_compact",
        note="every message belongs to the recent part that the policy keeps" if context.messages else "",
        kept_messages=len(context.messages),
        tokens_before=tokens,
        tokens_after=tokens,
        is_over_budget=needs_compaction(context.request_tokens, options.policy),
        trigger=options.trigger,
        reason=options.reason,
    )
