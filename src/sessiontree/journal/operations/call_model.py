"""The verb that gives a conversation to a model: compacted first if it is too full, and once more if the model says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from sessiontree.compaction.policy import is_context_overflow
from sessiontree.compaction.result import Reason, Trigger
from sessiontree.context import Context, build_context, window_of
from sessiontree.errors import CompactionClaimedError, ContextOverflowError, SummaryError
from sessiontree.journal.operations.compaction import CompactionOptions, compact, compact_if_needed
from sessiontree.journal.operations.requests import Call, Operation, Pause, Runtime
from sessiontree.model import Entry, Thread
from sessiontree.model._base import Record
from sessiontree.model.tokens import TokenCounter
from sessiontree.stores.queries import ReadPath, ReadThread

__all__ = ["call_model"]


_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0


class _Seen(Record, frozen=True, kw_only=True):
    """What a model gets, and the compaction that it starts from."""

    context: Context
    boundary: str | None


def call_model(
    sources: Runtime,
    thread_id: str,
    model: Callable[[Context], Any],
    how: CompactionOptions,
    is_overflow: Callable[[BaseException], bool] = is_context_overflow,
) -> Operation[Any]:
    """Give the context to a model: compacted first if it is too full, and once more if the model says so."""
    seen = yield from _prepared(sources, thread_id, how)
    try:
        return (yield Call(function=model, arguments=(seen.context,)))
    except Exception as error:
        if not is_overflow(error):
            raise
        yield from _shrink(sources, thread_id, seen, how, error)
    shorter = yield from _look(thread_id, how.count)
    try:
        return (yield Call(function=model, arguments=(shorter.context,)))
    except Exception as error:
        if is_overflow(error):
            raise ContextOverflowError(thread_id) from error
        raise


def _because(how: CompactionOptions, trigger: Trigger, reason: Reason) -> CompactionOptions:
    return replace(how, trigger=trigger, reason=reason)


def _prepared(sources: Runtime, thread_id: str, how: CompactionOptions) -> Operation[_Seen]:
    """The context, compacted if it is too full. A summariser that fails is no reason not to ask a model that fits."""
    try:
        yield from compact_if_needed(sources, thread_id, _because(how, "pre_request", "threshold"))
    except SummaryError:
        seen = yield from _look(thread_id, how.count)
        if seen.context.tokens >= how.policy.window_tokens:
            raise
        return seen
    return (yield from _look(thread_id, how.count))


def _look(thread_id: str, count: TokenCounter) -> Operation[_Seen]:
    path: list[Entry] = yield ReadPath(thread_id=thread_id)
    boundary = window_of(path).boundary
    return _Seen(context=build_context(path, count=count), boundary=boundary.id if boundary else None)


def _shrink(sources: Runtime, thread_id: str, seen: _Seen, how: CompactionOptions, error: Exception) -> Operation[None]:
    """The model counts otherwise than we do: half of what we took for fitting is the aim now.

    What somebody else compacted meanwhile, or is compacting at this moment, is taken instead of a compaction of ours.
    """
    estimate = sum(segment.token_estimate for segment in seen.context.segments)
    aim = min(how.policy.target, estimate // 2)
    smaller = replace(_because(how, "context_overflow", "provider_overflow"), target_tokens=aim)
    yield from _await_others(sources, thread_id, how.wait_seconds)
    if (yield from _look(thread_id, how.count)).boundary != seen.boundary:
        return
    result = yield from compact(sources, thread_id, smaller)
    if not result.is_installed:
        raise ContextOverflowError(thread_id) from error


def _await_others(sources: Runtime, thread_id: str, wait_seconds: float) -> Operation[None]:
    """Until nobody compacts the thread; who takes longer than that is CompactionClaimedError."""
    pause, waited = _FIRST_PAUSE_SECONDS, 0.0
    while True:
        thread: Thread = yield ReadThread(thread_id=thread_id)
        claim = thread.compaction_claim
        if claim is None or claim.is_expired(sources.clock()):
            return
        if waited >= wait_seconds:
            raise CompactionClaimedError(thread_id, claim.owner, claim.expires_ns)
        yield Pause(seconds=pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
