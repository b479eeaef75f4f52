"""From a plan and its summaries to the entry that is written."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sessiontree.compaction.files import with_files, without_files
from sessiontree.compaction.plan import Plan
from sessiontree.compaction.request import Summary
from sessiontree.compaction.result import Reason, Trigger
from sessiontree.context import SUMMARY_SCHEMA, build_context
from sessiontree.model import Compaction, Entry, Usage
from sessiontree.tokens import TokenCounter

__all__ = ["added", "compaction_of", "joined", "notice", "tokens_with"]

_NOTICE = r"\[(\d+) earlier messages were left out of the context without a summary\. They are still in the journal\.\]"
_SPLIT = "\n\n---\n\n**Turn Context (split turn):**\n\n"


def joined(history: str, turn_prefix: str) -> str:
    """One summary out of that of the history and that of the turn which is cut in two.

    >>> joined("", "The user wants a list.").splitlines()[0]
    'No prior history.'
    """
    if not turn_prefix:
        return history
    return (history.strip() or "No prior history.") + _SPLIT + turn_prefix.strip()


def notice(plan: Plan, room: int, count: TokenCounter) -> str:
    """What stands in the place of a head that nobody summarised: the earlier summary, and that something is missing.

    An earlier notice is counted into the new one, so that they do not pile up.
    """
    earlier = without_files(plan.previous_summary)
    missing = plan.removed_messages + sum(int(number) for number in re.findall(_NOTICE, earlier))
    text = (
        f"[{missing} earlier messages were left out of the context without a summary. They are still in the journal.]"
    )
    told = _within(re.sub(_NOTICE, "", earlier).strip(), room, count)
    return f"{told}\n\n{text}" if told else text


def _within(text: str, room: int, count: TokenCounter) -> str:
    """The beginning of a text that was written for a larger window."""
    short = text
    while (size := count(short)) > room:
        short = short[: len(short) * room // size - 1].rstrip()
    return short if short == text else f"{short}… (shortened)"


def compaction_of(
    plan: Plan,
    summary: str,
    *,
    id: str,
    strategy: str,
    trigger: Trigger,
    reason: Reason,
    instructions: str,
    file_room: int,
) -> Compaction:
    return Compaction(
        id=id,
        window_id=id,
        summary=with_files(summary, plan.files, file_room),
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
    )


def tokens_with(path: Sequence[Entry], compaction: Compaction, count: TokenCounter) -> int:
    """What the context would cost if the compaction stood at the end of the path."""
    entry = Entry(id=compaction.id, thread_id="", parent=path[-1].id, created_ns=0, payload=compaction)
    return sum(segment.token_estimate for segment in build_context([*path, entry], count=count).segments)


def added(summaries: Sequence[Summary]) -> Usage | None:
    """What several calls cost together; ``None`` if nobody said."""
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
