"""Verbs about the context of a model: build it, compact it, send it."""

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
from sessiontree.journal._base_async import AsyncVerbs
from sessiontree.journal.operations import call_model as calling
from sessiontree.journal.operations import compaction, reads
from sessiontree.journal.operations.compaction_options import CLAIM_SECONDS, WAIT_SECONDS, CompactionOptions
from sessiontree.journal.thread_ids import ThreadLike, id_of
from sessiontree.model import CompactionClaim, Entry, Lease
from sessiontree.model._base import Progress
from sessiontree.model.tokens import TokenCounter, Tools, estimate_text

__all__ = ["AsyncCompactionVerbs"]


T = TypeVar("T")

DEFAULT_POLICY = CompactionPolicy()


class AsyncCompactionVerbs(AsyncVerbs):
    """The verbs about context and compaction."""

    async def context(
        self,
        thread_id: ThreadLike,
        *,
        leaf: str | UnsetType | None = UNSET,
        purpose: Purpose = "provider_request",
        count: TokenCounter = estimate_text,
        tools: Tools = (),
        include_partial: bool = False,
    ) -> Context:
        """Return what the model sees at a leaf: the messages, and their segments with token estimates.

        ``tools`` are the tool definitions that you send with the request; they count. Answers that were interrupted
        are left out; ``include_partial`` shows them as if they were finished.
        """
        return await self.run(
            reads.context(id_of(thread_id), leaf, purpose, count, tools, include_partial=include_partial)
        )

    async def compact(
        self,
        thread_id: ThreadLike,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        force: bool = False,
        trigger: Trigger = "manual",
        reason: Reason = "manual",
        count: TokenCounter = estimate_text,
        tools: Tools = (),
        lease: Lease | None = None,
        claim_seconds: float = CLAIM_SECONDS,
        progress: Progress | None = None,
        dry_run: bool = False,
    ) -> CompactionResult:
        """Replace the older part of the context by a summary. No entry is deleted.

        Entries that arrive while the summariser works are kept. A summary that saves nothing is not installed unless
        ``force``. ``progress(done, total)`` is called with numbers of messages. Raises CompactionClaimedError while
        another process compacts the thread, and SummaryError if the summariser fails.

        What the model has not answered yet is kept. Results that are too large for that are shown in part, and their
        whole text becomes an artifact.

        With ``dry_run``, the summary is written and counted, but not installed: the result says what would happen.
        """
        options = CompactionOptions(
            summarize=summarize,
            policy=policy,
            instructions=instructions,
            force=force,
            trigger=trigger,
            reason=reason,
            count=count,
            tools=tools,
            lease=lease,
            claim_seconds=claim_seconds,
            progress=progress,
            dry_run=dry_run,
        )
        return await self.run(compaction.compact(self.runtime, id_of(thread_id), options))

    async def needs_compaction(
        self,
        thread_id: ThreadLike,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        count: TokenCounter = estimate_text,
        tools: Tools = (),
    ) -> bool:
        """Return whether the window is too full, with the tool definitions that you send."""
        options = CompactionOptions(summarize=extractive, policy=policy, count=count, tools=tools)
        return await self.run(compaction.is_needed(id_of(thread_id), options))

    async def compact_if_needed(
        self,
        thread_id: ThreadLike,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        trigger: Trigger = "post_response",
        count: TokenCounter = estimate_text,
        tools: Tools = (),
        lease: Lease | None = None,
        claim_seconds: float = CLAIM_SECONDS,
    ) -> CompactionResult | None:
        """Compact if the window is too full.

        Return ``None`` if it is not, if another process compacts the thread, or during the pause after a failure: 30
        seconds, and twice as long after each further failure. ``compact`` ignores that pause.
        """
        options = CompactionOptions(
            summarize=summarize,
            policy=policy,
            instructions=instructions,
            trigger=trigger,
            reason="threshold",
            count=count,
            tools=tools,
            lease=lease,
            claim_seconds=claim_seconds,
        )
        return await self.run(compaction.compact_if_needed(self.runtime, id_of(thread_id), options))

    async def replace_context(
        self,
        thread_id: ThreadLike,
        summary: str,
        kept: int | str = 0,
        *,
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
    ) -> Entry:
        """Put a summary that you wrote in place of the older part of the context, and return its entry.

        ``kept`` is the number of last messages that stay, or the id of the first entry that stays. More is kept where
        a tool call would be separated from its result. No entry is deleted; ``uncompact`` takes it back.
        """
        operation = compaction.replace_context(self.runtime, id_of(thread_id), summary, kept, count=count, lease=lease)
        return await self.run(operation)

    async def uncompact(self, thread_id: ThreadLike, *, lease: Lease | None = None) -> Entry:
        """Take the last compaction back: the model sees the entries again that it had replaced."""
        return await self.run(compaction.uncompact(self.runtime, id_of(thread_id), lease))

    async def clear_expired_claim(self, thread_id: ThreadLike) -> CompactionClaim | None:
        """Remove the expired claim of a crashed compaction and return it; ``None`` if there is none."""
        return await self.run(compaction.clear_expired_claim(self.runtime, id_of(thread_id)))

    async def leave_branch(
        self,
        thread_id: ThreadLike,
        to_entry: str | None,
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        instructions: str = "",
        count: TokenCounter = estimate_text,
        lease: Lease | None = None,
    ) -> BranchResult:
        """Move the leaf to ``to_entry`` and append a summary of the branch that is left there. ``undo`` moves back."""
        options = CompactionOptions(
            summarize=summarize, policy=policy, instructions=instructions, count=count, lease=lease
        )
        return await self.run(compaction.leave_branch(self.runtime, id_of(thread_id), to_entry, options))

    async def call_model(
        self,
        thread_id: ThreadLike,
        model: Callable[[Context], T | Awaitable[T]],
        summarize: Summarizer = extractive,
        *,
        policy: CompactionPolicy = DEFAULT_POLICY,
        is_overflow: Callable[[BaseException], bool] = is_context_overflow,
        count: TokenCounter = estimate_text,
        tools: Tools = (),
        lease: Lease | None = None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> T:
        """Call a model with the context, and return its answer.

        The context is compacted first if it is too full, and once more if the model reports an overflow. A compaction
        that another process is running is waited for and used. Raises CompactionClaimedError if it takes longer than
        ``wait_seconds``, and ContextOverflowError if the context is still too long after a compaction.
        """
        options = CompactionOptions(
            summarize=summarize, policy=policy, count=count, tools=tools, lease=lease, wait_seconds=wait_seconds
        )
        answer: T = await self.run(calling.call_model(self.runtime, id_of(thread_id), model, options, is_overflow))
        return answer
