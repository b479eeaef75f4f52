"""What a compaction did, in numbers."""

from __future__ import annotations

from typing import Literal

from sessiontree.compaction.files import Files
from sessiontree.model import Entry, Usage
from sessiontree.model.record import Record

__all__ = ["BranchResult", "CompactionResult", "CompactionStatus", "Reason", "Trigger"]

CompactionStatus = Literal["installed", "nothing_to_compact", "not_worth_it"]
Trigger = Literal["manual", "pre_request", "post_response", "context_overflow"]
Reason = Literal["manual", "threshold", "provider_overflow", "follow_up_pressure", "output_continuation"]


class CompactionResult(Record, frozen=True, kw_only=True):
    """``installed`` wrote an entry; the other outcomes wrote nothing.

    Tokens are estimates by one counter on both sides, so that their difference means something; it is negative where
    the summary is longer than what it replaces. ``failure`` says why ``hybrid`` fell back to truncating.
    """

    thread_id: str
    status: CompactionStatus
    entry: Entry | None = None
    summary: str = ""
    strategy: str = ""
    failure: str = ""
    kept_messages: int = 0
    removed_messages: int = 0
    kept_users: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    is_over_budget: bool = False
    is_split_turn: bool = False
    duration_seconds: float = 0.0
    trigger: Trigger = "manual"
    reason: Reason = "manual"
    generation: int = 0
    window_id: str = ""
    files: Files = Files()
    usage: Usage | None = None

    @property
    def is_installed(self) -> bool:
        return self.status == "installed"

    @property
    def is_setback(self) -> bool:
        """Whether a summary was paid for and the window is as full as before, or still too full."""
        return self.status == "not_worth_it" or (self.is_installed and self.is_over_budget)

    @property
    def tokens_saved(self) -> int:
        return self.tokens_before - self.tokens_after


class BranchResult(Record, frozen=True, kw_only=True):
    """Where the conversation goes on, and the entry that tells about the branch it left, if there was one."""

    thread_id: str
    leaf: str | None
    entry: Entry | None = None
    entries_left: int = 0
