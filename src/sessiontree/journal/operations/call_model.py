"""``call_model``: call a model with the context, compacted first if needed, and once more after an overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from sessiontree.compaction.policy import is_context_overflow
from sessiontree.compaction.result import Reason, Trigger
from sessiontree.context import Context, build_context, window_of
from sessiontree.errors import CompactionClaimedError, ContextOverflowError, SummaryError
from sessiontree.journal.operations.artifacts import with_artifacts
from sessiontree.journal.operations.clock import time_of_store
from sessiontree.journal.operations.compaction import compact, compact_if_needed
from sessiontree.journal.operations.compaction_options import CompactionOptions
from sessiontree.journal.operations.requests import Call, Operation, Pause, Runtime
from sessiontree.journal.operations.windows import read_window
from sessiontree.model import Thread
from sessiontree.model._base import Record
from sessiontree.stores.queries import ReadThread

__all__ = ["call_model"]


_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0


class _ModelInput(Record, frozen=True, kw_only=True):
    """The context for a model, and the id of the compaction that it starts with."""

    context: Context
    boundary: str | None


def call_model(
    runtime: Runtime,
    thread_id: str,
    model: Callable[[Context], Any],
    options: CompactionOptions,
    is_overflow: Callable[[BaseException], bool] = is_context_overflow,
) -> Operation[Any]:
    """Call a model with the context: compacted first if it is too full, and once more after an overflow."""
    prepared = yield from _prepare(runtime, thread_id, options)
    try:
        return (yield Call(function=model, arguments=(prepared.context,)))
    except Exception as error:
        if not is_overflow(error):
            raise
        yield from _shrink(runtime, thread_id, prepared, options, error)
    shorter = yield from _read_context(thread_id, options)
    try:
        return (yield Call(function=model, arguments=(shorter.context,)))
    except Exception as error:
        if is_overflow(error):
            raise ContextOverflowError(thread_id) from error
        raise


def _with_reason(options: CompactionOptions, trigger: Trigger, reason: Reason) -> CompactionOptions:
    return replace(options, trigger=trigger, reason=reason)


def _prepare(runtime: Runtime, thread_id: str, options: CompactionOptions) -> Operation[_ModelInput]:
    """Return the context, compacted if it is too full. If that fails, a context that still fits is used as it is."""
    try:
        yield from compact_if_needed(runtime, thread_id, _with_reason(options, "pre_request", "threshold"))
    except SummaryError:
        prepared = yield from _read_context(thread_id, options)
        if prepared.context.request_tokens >= options.policy.window_tokens:
            raise
        return prepared
    return (yield from _read_context(thread_id, options))


def _read_context(thread_id: str, options: CompactionOptions) -> Operation[_ModelInput]:
    path = yield from read_window(thread_id)
    boundary = window_of(path).boundary
    context = yield from with_artifacts(build_context(path, count=options.count, tools=options.tools))
    return _ModelInput(context=context, boundary=boundary.id if boundary else None)


def _shrink(
    runtime: Runtime, thread_id: str, prepared: _ModelInput, options: CompactionOptions, error: Exception
) -> Operation[None]:
    """Compact to half of the estimate, because the model counts more tokens than we do.

    If another process has compacted the thread in the meantime, or is doing so, its compaction is used instead.
    """
    target = min(options.policy.target, prepared.context.estimate // 2)
    smaller = replace(_with_reason(options, "context_overflow", "provider_overflow"), target_tokens=target)
    yield from _wait_for_others(runtime, thread_id, options.wait_seconds)
    if (yield from _read_context(thread_id, options)).boundary != prepared.boundary:
        return
    result = yield from compact(runtime, thread_id, smaller)
    if not result.is_installed:
        raise ContextOverflowError(thread_id) from error


def _wait_for_others(runtime: Runtime, thread_id: str, wait_seconds: float) -> Operation[None]:
    """Wait until no process compacts the thread. Raises CompactionClaimedError after ``wait_seconds``."""
    pause, waited = _FIRST_PAUSE_SECONDS, 0.0
    while True:
        thread: Thread = yield ReadThread(thread_id=thread_id)
        claim = thread.compaction_claim
        if claim is None or claim.is_expired((yield from time_of_store(runtime))):
            return
        if waited >= wait_seconds:
            raise CompactionClaimedError(thread_id, claim.owner, claim.expires_ns)
        yield Pause(seconds=pause)
        waited += pause
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
