"""A summary that a program wrote itself, as the compaction that puts it in place of the older messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from sessiontree.compaction.cuts import CutItem, cut_points, items_of
from sessiontree.compaction.plan import CompactionPlan, before_item
from sessiontree.compaction.result import compaction_of, context_with
from sessiontree.context import build_context, window_of
from sessiontree.context.needed import carried_ids
from sessiontree.errors import InvalidInputError
from sessiontree.model import Compaction, Entry
from sessiontree.model.tokens import TokenCounter

__all__ = ["replacement"]


def replacement(path: Sequence[Entry], summary: str, kept: int | str, *, id: str, count: TokenCounter) -> Compaction:
    """Return the compaction that keeps the last ``kept`` messages of a path, or those from the entry ``kept`` on.

    More is kept where the cut would separate a tool call from its result.
    """
    if not isinstance(summary, str):
        raise InvalidInputError(f"the summary must be a text, not {summary!r}")
    items = items_of(path, count)
    at = max(index for index in cut_points(items) if index <= _wanted(items, kept))
    boundary = window_of(path).boundary
    plan = CompactionPlan(
        history=tuple(item.message for item in items[:at]),
        previous=cast("Compaction", boundary.payload) if boundary else None,
        first_kept_entry_id=items[at].entry_id if at < len(items) else "",
        through_entry_id=_last_replaced(path, items, at),
        kept_messages=len(items) - at,
        removed_messages=at,
        tokens_before=build_context(path, count=count).estimate,
        carried_entry_ids=carried_ids(before_item(path, items, at)),
    )
    compaction = compaction_of(
        plan,
        summary,
        id=id,
        strategy="summarize",
        trigger="manual",
        reason="manual",
        instructions="",
        max_file_tokens=0,
    )
    return replace(compaction, tokens_after=context_with(path, compaction, count).estimate)


def _wanted(items: Sequence[CutItem], kept: int | str) -> int:
    match kept:
        case str():
            places = [index for index, item in enumerate(items) if item.entry_id == kept]
            if not places:
                raise InvalidInputError(
                    f"entry {kept!r} is not a message of the context, so it cannot be kept; name one that the context "
                    "shows, or how many of the last messages to keep"
                )
            return places[0]
        case int() if kept >= 0 and not isinstance(kept, bool):
            return max(0, len(items) - kept)
        case _:
            raise InvalidInputError(f"kept must be a number of messages or the id of an entry, not {kept!r}")


def _last_replaced(path: Sequence[Entry], items: Sequence[CutItem], at: int) -> str:
    if at == len(items):
        return path[-1].id if path else ""
    return items[at - 1].entry_id if at else ""
