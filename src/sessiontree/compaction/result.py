"""The entry that a compaction writes, and the result that its caller gets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from sessiontree.compaction.files import TouchedFiles, with_files, without_files
from sessiontree.compaction.plan import CompactionPlan
from sessiontree.compaction.summarizers.base import Summary
from sessiontree.context import SUMMARY_SCHEMA, Context, build_context
from sessiontree.model import Compaction, Entry, Usage
from sessiontree.model._base import Record
from sessiontree.model.tokens import TokenCounter, Tools

__all__ = [
    "BranchResult",
    "CompactionResult",
    "CompactionStatus",
    "Reason",
    "Trigger",
    "added",
    "compaction_of",
    "context_with",
    "joined",
    "notice",
    "stored_tokens",
]


CompactionStatus = Literal["installed", "planned", "nothing_to_compact", "not_worth_it"]
Trigger = Literal["manual", "pre_request", "post_response", "context_overflow"]
Reason = Literal["manual", "threshold", "provider_overflow", "follow_up_pressure", "output_continuation"]


class CompactionResult(Record, frozen=True, kw_only=True):
    """What a compaction did. Only the status ``installed`` means that an entry was written.

    A dry run has the status ``planned`` where ``compact`` would install the summary.

    ``tokens_before`` and ``tokens_after`` are estimates by the same counter, of the system prompt and the messages.
    ``failure`` says why the strategy ``hybrid`` fell back to a notice, ``note`` why fewer messages were kept than the
    policy asks for, or why nothing was changed. ``cut_results`` is how many results are shown in part only.
    """

    thread_id: str
    status: CompactionStatus
    entry: Entry | None = None
    summary: str = ""
    strategy: str = ""
    failure: str = ""
    note: str = ""
    kept_messages: int = 0
    removed_messages: int = 0
    kept_users: int = 0
    cut_results: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    is_over_budget: bool = False
    is_split_turn: bool = False
    duration_seconds: float = 0.0
    trigger: Trigger = "manual"
    reason: Reason = "manual"
    generation: int = 0
    window_id: str = ""
    files: TouchedFiles = TouchedFiles()
    usage: Usage | None = None

    @property
    def is_installed(self) -> bool:
        """Whether an entry was written."""
        return self.status == "installed"

    @property
    def is_ineffective(self) -> bool:
        """Whether a summary was written, but saved nothing or left the window too full."""
        return self.status == "not_worth_it" or (self.is_installed and self.is_over_budget)

    @property
    def tokens_saved(self) -> int:
        """How much smaller the context is; negative if the summary is longer than what it replaces."""
        return self.tokens_before - self.tokens_after


class BranchResult(Record, frozen=True, kw_only=True):
    """Where the conversation continues, and the entry that summarises the branch it left, if there is one."""

    thread_id: str
    leaf: str | None
    entry: Entry | None = None
    entries_left: int = 0


_NOTICE = r"\[(\d+) earlier messages were left out of the context without a summary\. They are still in the journal\.\]"
_SPLIT = "\n\n---\n\n**Turn Context (split turn):**\n\n"


def joined(history: str, turn_prefix: str) -> str:
    """Return the summaries of the history and of a split turn as one text.

    >>> joined("", "The user wants a list.").splitlines()[0]
    'No prior history.'
    """
    if not turn_prefix:
        return history
    return (history.strip() or "No prior history.") + _SPLIT + turn_prefix.strip()


def notice(plan: CompactionPlan, max_tokens: int, count: TokenCounter) -> str:
    """Return the text that replaces a head without a summary: the earlier summary, and how many messages are missing.

    An earlier notice is merged into the new one.
    """
    earlier = without_files(plan.previous_summary)
    missing = plan.removed_messages + sum(int(number) for number in re.findall(_NOTICE, earlier))
    text = (
        f"[{missing} earlier messages were left out of the context without a summary. They are still in the journal.]"
    )
    kept = _within(re.sub(_NOTICE, "", earlier).strip(), max_tokens, count)
    return f"{kept}\n\n{text}" if kept else text


def _within(text: str, max_tokens: int, count: TokenCounter) -> str:
    """Return the beginning of a text, as much as fits."""
    short = text
    while (size := count(short)) > max_tokens:
        short = short[: len(short) * max_tokens // size - 1].rstrip()
    return short if short == text else f"{short}… (shortened)"


def compaction_of(
    plan: CompactionPlan,
    summary: str,
    *,
    id: str,
    strategy: str,
    trigger: Trigger,
    reason: Reason,
    instructions: str,
    max_file_tokens: int,
) -> Compaction:
    """Return the payload of the entry that a compaction writes."""
    return Compaction(
        id=id,
        window_id=id,
        summary=with_files(summary, plan.files, max_file_tokens),
        previous_id=plan.previous.id if plan.previous else "",
        through_entry_id=plan.through_entry_id,
        first_kept_entry_id=plan.first_kept_entry_id,
        tail_after_entry_id="" if plan.first_kept_entry_id else plan.through_entry_id,
        kept_user_entry_ids=plan.kept_user_entry_ids,
        schema_version=SUMMARY_SCHEMA,
        generation=plan.generation,
        trigger=trigger,
        reason=reason,
        phase="install",
        strategy=strategy,
        tokens_before=plan.tokens_before,
        usage_before=plan.usage_before,
        files_read=plan.files.read,
        files_modified=plan.files.modified,
        instructions=instructions,
        kept_messages=plan.kept_messages,
        removed_messages=plan.removed_messages,
        cut_results=plan.cut_results,
        carried_entry_ids=plan.carried_entry_ids,
    )


def context_with(path: Sequence[Entry], compaction: Compaction, count: TokenCounter, tools: Tools = ()) -> Context:
    """Return the context if the compaction were appended to the path."""
    return build_context(_compacted(path, compaction), count=count, tools=tools)


def stored_tokens(path: Sequence[Entry], compaction: Compaction | None = None) -> int:
    """Return the tokens of a path as its thread counts them, with the compaction if one is to be appended."""
    return build_context(path if compaction is None else _compacted(path, compaction)).estimate


def _compacted(path: Sequence[Entry], compaction: Compaction) -> list[Entry]:
    parent = path[-1].id if path else None
    # Without an id, what the compaction shows would look like something that the context made up.
    return [*path, Entry(id=compaction.id or "next", thread_id="", parent=parent, created_ns=0, payload=compaction)]


def added(summaries: Sequence[Summary]) -> Usage | None:
    """Return the total usage of several summaries; ``None`` if none was reported."""
    reported = [summary.usage for summary in summaries if summary.usage]
    if not reported:
        return None
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in reported),
        output_tokens=sum(usage.output_tokens for usage in reported),
        cache_read_tokens=sum(usage.cache_read_tokens for usage in reported),
        cache_write_tokens=sum(usage.cache_write_tokens for usage in reported),
        reasoning_tokens=sum(usage.reasoning_tokens for usage in reported),
        total_tokens=sum(usage.total_tokens for usage in reported),
        cost=sum(usage.cost for usage in reported),
        currency=reported[-1].currency,
    )
