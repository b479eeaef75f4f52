"""Compaction: when and how to shorten a context. Plan (pure), summarise (a callable), write one entry.

Nothing is deleted: ``uncompact`` restores the full context.
"""

from sessiontree.compaction.cuts import items_of
from sessiontree.compaction.files import TouchedFiles, files_in
from sessiontree.compaction.plan import BranchPlan, CompactionPlan, plan, plan_branch
from sessiontree.compaction.policy import (
    DEFAULT_CONTEXT_TOKENS,
    LEGACY_CONTEXT_TOKENS,
    CompactionPolicy,
    Strategy,
    is_context_overflow,
    needs_compaction,
    normalize_token_budget,
    ratio_policy,
)
from sessiontree.compaction.prompts import render
from sessiontree.compaction.result import BranchResult, CompactionResult, CompactionStatus, Reason, Trigger
from sessiontree.compaction.summarizers.base import Summarizer, Summary, SummaryRequest, summary_of

__all__ = [
    "DEFAULT_CONTEXT_TOKENS",
    "LEGACY_CONTEXT_TOKENS",
    "BranchPlan",
    "BranchResult",
    "CompactionPlan",
    "CompactionPolicy",
    "CompactionResult",
    "CompactionStatus",
    "Reason",
    "Strategy",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "TouchedFiles",
    "Trigger",
    "files_in",
    "is_context_overflow",
    "items_of",
    "needs_compaction",
    "normalize_token_budget",
    "plan",
    "plan_branch",
    "ratio_policy",
    "render",
    "summary_of",
]
