"""Compaction: plan (pure), summarise (a callable), commit. Nothing is deleted; ``uncompact`` gives everything back."""

from sessiontree.compaction.branch import BranchPlan, plan_branch
from sessiontree.compaction.files import Files, files_in
from sessiontree.compaction.overflow import is_context_overflow
from sessiontree.compaction.plan import Plan, items_of, occupied_tokens, plan
from sessiontree.compaction.policy import CompactionPolicy, Strategy, needs_compaction, ratio_policy
from sessiontree.compaction.prompts import render
from sessiontree.compaction.request import Summarizer, Summary, SummaryRequest, summary_of
from sessiontree.compaction.result import BranchResult, CompactionResult, CompactionStatus, Reason, Trigger

__all__ = [
    "BranchPlan",
    "BranchResult",
    "CompactionPolicy",
    "CompactionResult",
    "CompactionStatus",
    "Files",
    "Plan",
    "Reason",
    "Strategy",
    "Summarizer",
    "Summary",
    "SummaryRequest",
    "Trigger",
    "files_in",
    "is_context_overflow",
    "items_of",
    "needs_compaction",
    "occupied_tokens",
    "plan",
    "plan_branch",
    "ratio_policy",
    "render",
    "summary_of",
]
