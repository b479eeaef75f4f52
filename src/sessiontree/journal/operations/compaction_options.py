"""What a caller of a compaction may choose."""

from __future__ import annotations

from collections.abc import Callable

from sessiontree.compaction.policy import CompactionPolicy
from sessiontree.compaction.result import Reason, Trigger
from sessiontree.compaction.summarizers.base import Summarizer
from sessiontree.model import Lease, Thread, ThreadFields
from sessiontree.model._base import Progress, Record
from sessiontree.model.tokens import TokenCounter, Tools, estimate_text

__all__ = ["CLAIM_SECONDS", "WAIT_SECONDS", "Changes", "CompactionOptions"]


CLAIM_SECONDS = 600.0
WAIT_SECONDS = 120.0


Changes = Callable[[Thread, str], ThreadFields]
"""Metadata to change in the commit of a new entry, given the thread before it and the id of the entry."""


class CompactionOptions(Record, frozen=True, kw_only=True):
    """Everything that a caller of a compaction may choose."""

    summarize: Summarizer
    policy: CompactionPolicy = CompactionPolicy()
    instructions: str = ""
    trigger: Trigger = "manual"
    reason: Reason = "manual"
    force: bool = False
    count: TokenCounter = estimate_text
    tools: Tools = ()
    claim_seconds: float = CLAIM_SECONDS
    wait_seconds: float = WAIT_SECONDS
    target_tokens: int | None = None
    lease: Lease | None = None
    progress: Progress | None = None
    changes: Changes | None = None
    dry_run: bool = False
