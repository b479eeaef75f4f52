"""Verbs about what a model sees."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import UNSET, UnsetType

from sessiontree.compaction import (
    BranchResult,
    CompactionPolicy,
    CompactionResult,
    Reason,
    Summarizer,
    Trigger,
    is_context_overflow,
)
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.context import Context, Purpose
from sessiontree.journal._verbs_async import AsyncVerbs
from sessiontree.journal.operations import call_model as calling
from sessiontree.journal.operations import compaction, reads
from sessiontree.journal.operations.compaction import CLAIM_SECONDS, WAIT_SECONDS, CompactionOptions
from sessiontree.model import CompactionClaim, Entry, Lease
from sessiontree.model._base import Progress
from sessiontree.model.tokens import TokenCounter, estimate_text

__all__ = ["AsyncCompactionVerbs"]


T = TypeVar("T")

DEFAULT_POLICY = CompactionPolicy()


class AsyncCompactionVerbs(AsyncVerbs):
    async def context(
        self,
        thread_id: str,
        *,
        leaf: str | UnsetType | None = UNSET,
        purpose: Purpose = "provider_request",
        count: TokenCounter = estimate_text,
    ) -> Context:
        """What the model sees."""
        return await self.run(reads.context(thread_id, leaf, purpose, count))

    async def compact(
        self,
        thread_id: str,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        force: bool = False,
        trigger: Trigger = "manual",
        reason: Reason = "manual",
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
        claim_seconds: float = CLAIM_SECONDS,
        progress: Progress | None = None,
    ) -> CompactionResult:
        """Shorten what the model sees by a summary of the older part; nothing is deleted.

        Entries that arrive while the summariser works stay. While another process is at it: CompactionClaimedError.
        A summary that saves nothing is not installed unless ``force``. ``progress`` hears how many messages were summed
        up, and how many are to be.
        """
        how = CompactionOptions(
            summarize=summarize,
            policy=policy,
            instructions=instructions,
            force=force,
            trigger=trigger,
            reason=reason,
            count=count,
            lease=lease,
            claim_seconds=claim_seconds,
            progress=progress,
        )
        return await self.run(compaction.compact(self.runtime, thread_id, how))

    async def compact_if_needed(
        self,
        thread_id: str,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        trigger: Trigger = "post_response",
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
        claim_seconds: float = CLAIM_SECONDS,
    ) -> CompactionResult | None:
        """Compact if the window is too full; ``None`` if it is not, if somebody else is at it, or after a failure.

        After a failure it waits half a minute before it asks the summariser again, longer after each further one.
        ``compact`` does not wait.
        """
        how = CompactionOptions(
            summarize=summarize,
            policy=policy,
            instructions=instructions,
            trigger=trigger,
            reason="threshold",
            count=count,
            lease=lease,
            claim_seconds=claim_seconds,
        )
        return await self.run(compaction.compact_if_needed(self.runtime, thread_id, how))

    async def uncompact(self, thread_id: str, *, lease: Lease | None = None) -> Entry:
        """Give the context back that was there before the last compaction."""
        return await self.run(compaction.uncompact(self.runtime, thread_id, lease))

    async def clear_expired_claim(self, thread_id: str) -> CompactionClaim | None:
        """Take away the claim of a compactor that crashed; ``None`` if nobody's has expired."""
        return await self.run(compaction.clear_expired_claim(self.runtime, thread_id))

    async def leave_branch(
        self,
        thread_id: str,
        to_entry: str | None,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
    ) -> BranchResult:
        """Go on from ``to_entry`` with a summary of the branch that is left; ``undo`` comes back."""
        how = CompactionOptions(summarize=summarize, policy=policy, instructions=instructions, count=count, lease=lease)
        return await self.run(compaction.leave_branch(self.runtime, thread_id, to_entry, how))

    async def call_model(
        self,
        thread_id: str,
        model: Callable[[Context], T | Awaitable[T]],
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        is_overflow: Callable[[BaseException], bool] = is_context_overflow,
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> T:
        """Give the context to a model, compacted first if it is too full, and compacted once if the model says so.

        A compaction that somebody else is at is waited for and used; after ``wait_seconds`` it is CompactionClaimedError.
        """
        how = CompactionOptions(summarize=summarize, policy=policy, count=count, lease=lease, wait_seconds=wait_seconds)
        answer: T = await self.run(calling.call_model(self.runtime, thread_id, model, how, is_overflow))
        return answer
