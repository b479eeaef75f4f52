"""Which entries of a path a context depends on: those from the first kept one on, and a few before it.

A compaction records the ids of those few, so that a store need not read the part that was summarised.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessiontree.context.build import is_developer, names_model
from sessiontree.context.pairing import CallKey, call_key, result_key
from sessiontree.context.projection import is_visible, last_boundary
from sessiontree.model import ActiveToolsChange, AssistantMessage, Compaction, Entry, SystemMessage, ToolCallMessage
from sessiontree.model._base import Record
from sessiontree.model.builders import ERASED

__all__ = ["Needed", "carried_ids", "needed_of"]


def carried_ids(head: Sequence[Entry]) -> tuple[str, ...]:
    """Return the ids of the entries of a summarised head that a context still depends on.

    These are the system prompt with its additions, and the last entries that say which model answers, which tools it has,
    that a model has answered, and that anything was said.
    """
    prompts = [index for index, entry in enumerate(head) if isinstance(entry.payload, SystemMessage)]
    whole = [at for at in prompts if not _is_addition(head[at])]
    found = {at for at in prompts if at >= (whole[-1] if whole else 0)}
    for is_wanted in (is_visible, _is_answer, names_model, _is_tools_change):
        found |= {next((at for at in range(len(head) - 1, -1, -1) if is_wanted(head[at])), -1)}
    return tuple(head[at].id for at in sorted(found - {-1}))


class Needed(Record, frozen=True, kw_only=True):
    """The end of a path, from the first kept entry on, and the ids of what is needed before it."""

    carried: tuple[str, ...]
    quoted: tuple[str, ...]
    kept: tuple[Entry, ...]

    @property
    def earlier(self) -> tuple[str, ...]:
        """The ids of the entries that have to be read as well."""
        there = {entry.id for entry in self.kept}
        return tuple(name for name in dict.fromkeys((*self.carried, *self.quoted)) if name not in there)

    def path(self, earlier: Iterable[Entry]) -> list[Entry] | None:
        """Return a path with the same context as the whole one; None if an entry that it depends on was erased since."""
        found = {entry.id: entry for entry in earlier}
        known = found | {entry.id: entry for entry in self.kept}
        if any(name not in known or known[name].payload == ERASED for name in self.carried):
            return None
        return [*(found[name] for name in self.earlier if name in found), *self.kept]


def needed_of(end: Sequence[Entry]) -> Needed | None:
    """Return what a context depends on, given the end of a path; None if more of the path has to be read to know."""
    at = last_boundary(end)
    compaction = None if at is None else end[at].payload
    if at is None or not isinstance(compaction, Compaction) or compaction.carried_entry_ids is None:
        return None
    wanted = compaction.first_kept_entry_id or compaction.tail_after_entry_id
    first = next((index for index in range(at, -1, -1) if end[index].id == wanted), None)
    if first is None or _has_result_without_call(end[first:]):
        return None
    return Needed(carried=compaction.carried_entry_ids, quoted=compaction.kept_user_entry_ids, kept=tuple(end[first:]))


def _has_result_without_call(entries: Iterable[Entry]) -> bool:
    """Return whether a result may belong to a call that was summarised."""
    seen: set[CallKey] = set()
    for entry in entries:
        message = entry.message
        if message is None:
            continue
        if any(result.call_id and result_key(result) not in seen for result in message.tool_results):
            return True
        seen |= {call_key(call) for call in message.tool_calls}
    return False


def _is_addition(entry: Entry) -> bool:
    return isinstance(entry.payload, SystemMessage) and is_developer(entry.payload.message)


def _is_answer(entry: Entry) -> bool:
    return isinstance(entry.payload, AssistantMessage | ToolCallMessage)


def _is_tools_change(entry: Entry) -> bool:
    return isinstance(entry.payload, ActiveToolsChange)
