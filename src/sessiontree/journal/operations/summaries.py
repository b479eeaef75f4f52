"""Write a summary under a claim: the history portion by portion, or a notice if the policy allows it."""

from __future__ import annotations

from collections.abc import Callable

from sessiontree.compaction.files import without_files
from sessiontree.compaction.plan import CompactionPlan
from sessiontree.compaction.prompts import RequestKind, chunks
from sessiontree.compaction.result import joined, notice
from sessiontree.compaction.summarizers.base import Summary, SummaryRequest, summary_of
from sessiontree.errors import SummaryError
from sessiontree.journal.operations.clock import time_of_store
from sessiontree.journal.operations.compaction_options import CompactionOptions
from sessiontree.journal.operations.requests import Call, Operation, Runtime
from sessiontree.journal.operations.turns import this_process
from sessiontree.model import NANOSECONDS, CompactionClaim, Message
from sessiontree.model._base import Record
from sessiontree.stores.commands import ClaimCompaction

__all__ = ["SummaryOutcome", "ask_summarizer", "claim", "write_summary"]


class SummaryOutcome(Record, frozen=True, kw_only=True):
    """A text that is ready to be installed, and how it was made."""

    text: str
    strategy: str
    failure: str = ""
    answers: tuple[Summary, ...] = ()


def claim(
    runtime: Runtime, thread_id: str, claim_id: str, options: CompactionOptions, *, is_renewal: bool = False
) -> Operation[None]:
    """Claim a thread for compaction, or extend the current claim. Raises CompactionClaimedError if it is claimed."""
    if options.dry_run:
        return
    now = yield from time_of_store(runtime)
    expires = now + int(options.claim_seconds * NANOSECONDS)
    new = CompactionClaim(id=claim_id, owner=this_process(), expires_ns=expires)
    yield ClaimCompaction(thread_id=thread_id, claim=new, now_ns=now, is_renewal=is_renewal)


def write_summary(
    runtime: Runtime,
    thread_id: str,
    claim_id: str,
    planned: CompactionPlan,
    options: CompactionOptions,
    *,
    check: Callable[[str], None],
) -> Operation[SummaryOutcome]:
    """Return what replaces the older part of the context. ``check`` raises a SummaryError for an unusable text."""
    if options.policy.strategy == "truncate":
        return SummaryOutcome(text=_notice(planned, options), strategy="truncate")
    try:
        outcome = yield from _summarize_portions(runtime, thread_id, claim_id, planned, options)
        check(outcome.text)
    except SummaryError as failure:
        if options.policy.strategy == "summarize":
            raise
        return SummaryOutcome(text=_notice(planned, options), strategy="truncate", failure=str(failure))
    return outcome


def _notice(planned: CompactionPlan, options: CompactionOptions) -> str:
    return notice(planned, options.policy.summary_share, options.count)


def _summarize_portions(
    runtime: Runtime, thread_id: str, claim_id: str, planned: CompactionPlan, options: CompactionOptions
) -> Operation[SummaryOutcome]:
    """Summarise the history portion by portion, each with the summary so far; then the turn that is cut in two."""
    history = without_files(planned.previous_summary)
    prefix = ""
    answers: list[Summary] = []
    portions: list[tuple[RequestKind, tuple[Message, ...]]] = [
        *(("history", portion) for portion in chunks(planned.history, options.policy.chunk_tokens, options.count)),
        *((("history", ()),) if _needs_shortening(planned, history, options) else ()),
        *(
            ("turn_prefix", portion)
            for portion in chunks(planned.turn_prefix, options.policy.chunk_tokens, options.count)
        ),
    ]
    done, total = 0, sum(len(portion) for _, portion in portions)
    for kind, portion in portions:
        yield from claim(runtime, thread_id, claim_id, options, is_renewal=True)
        answer = yield from ask_summarizer(kind, portion, history if kind == "history" else prefix, options)
        answers.append(answer)
        done += len(portion)
        if options.progress is not None:
            options.progress(done, total)
        if kind == "history":
            history = answer.text
        else:
            prefix = answer.text
    return SummaryOutcome(text=joined(history, prefix), strategy="summarize", answers=tuple(answers))


def _needs_shortening(planned: CompactionPlan, history: str, options: CompactionOptions) -> bool:
    """Whether a summary for a larger window is too long now, and no new history leads to a new summary."""
    return not planned.history and options.count(history) > options.policy.summary_share


def ask_summarizer(
    kind: RequestKind, messages: tuple[Message, ...], previous: str, options: CompactionOptions
) -> Operation[Summary]:
    """Ask the summariser for one summary. Raises SummaryError if it fails."""
    request = SummaryRequest(
        kind=kind,
        messages=messages,
        previous_summary=previous,
        instructions=options.instructions,
        max_tokens=max(1, options.policy.summary_share // (2 if kind == "turn_prefix" else 1)),
    )
    try:
        answer = yield Call(function=options.summarize, arguments=(request,))
    except SummaryError:
        raise
    except Exception as error:
        raise SummaryError(f"the summariser failed with {type(error).__name__}: {error}") from error
    return summary_of(answer)
