"""Asking a summariser: portion by portion, with a notice in its place where a policy allows that."""

from __future__ import annotations

from collections.abc import Callable

from sessiontree.commands import ClaimCompaction
from sessiontree.compaction.assemble import joined, notice
from sessiontree.compaction.files import without_files
from sessiontree.compaction.plan import Plan
from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.compaction.prompts import RequestKind, chunks
from sessiontree.compaction.request import Summarizer, Summary, SummaryRequest, summary_of
from sessiontree.compaction.result import Reason, Trigger
from sessiontree.errors import SummaryError
from sessiontree.model import CompactionClaim, Lease, Message
from sessiontree.model.record import Record
from sessiontree.operations.requests import Call, Operation, Sources
from sessiontree.operations.turns import this_process
from sessiontree.progress import Progress
from sessiontree.tokens import TokenCounter, estimate_text

__all__ = ["CLAIM_SECONDS", "WAIT_SECONDS", "Compacting", "Told", "ask", "claim", "tell"]

CLAIM_SECONDS = 600.0
WAIT_SECONDS = 120.0
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
    wait_seconds: float = WAIT_SECONDS
    target_tokens: int | None = None
    lease: Lease | None = None
    progress: Progress | None = None


class Told(Record, frozen=True, kw_only=True):
    """A summary that is ready to be installed, and how it came about."""

    text: str
    strategy: str
    failure: str = ""
    answers: tuple[Summary, ...] = ()


def claim(
    sources: Sources, thread_id: str, claim_id: str, how: Compacting, *, is_renewal: bool = False
) -> Operation[None]:
    """Become the only one who compacts the thread, or get more time for it."""
    now = sources.clock()
    expires = now + int(how.claim_seconds * _NANOSECONDS)
    wanted = CompactionClaim(id=claim_id, owner=this_process(), expires_ns=expires)
    yield ClaimCompaction(thread_id=thread_id, claim=wanted, now_ns=now, is_renewal=is_renewal)


def tell(
    sources: Sources,
    thread_id: str,
    claim_id: str,
    planned: Plan,
    how: Compacting,
    *,
    check: Callable[[str], None],
) -> Operation[Told]:
    """What takes the place of the head; ``check`` raises a SummaryError for a text that is of no use."""
    if how.policy.strategy == "truncate":
        return Told(text=_noticed(planned, how), strategy="truncate")
    try:
        told = yield from _summarise(sources, thread_id, claim_id, planned, how)
        check(told.text)
    except SummaryError as failure:
        if how.policy.strategy == "summarize":
            raise
        return Told(text=_noticed(planned, how), strategy="truncate", failure=str(failure))
    return told


def _noticed(planned: Plan, how: Compacting) -> str:
    return notice(planned, how.policy.summary_share, how.count)


def _summarise(sources: Sources, thread_id: str, claim_id: str, planned: Plan, how: Compacting) -> Operation[Told]:
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
    return Told(text=joined(history, prefix), strategy="summarize", answers=tuple(answers))


def _needs_shortening(planned: Plan, history: str, how: Compacting) -> bool:
    """Notes that were written for a larger window, where no new history would make them be written anew."""
    return not planned.history and how.count(history) > how.policy.summary_share


def ask(kind: RequestKind, messages: tuple[Message, ...], previous: str, how: Compacting) -> Operation[Summary]:
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
