"""Pages of a conversation: the last entries of a path, those before an entry, or those around one."""

from __future__ import annotations

from sessiontree.journal import Journal
from sessiontree.model import Entry, Record, Thread
from sessiontree.render.turns import is_bookkeeping

__all__ = ["Passage", "passage_around", "passage_before", "single_entry"]


_READABLE = (
    "system_message", "user_message", "assistant_message", "tool_call", "tool_result", "compaction", "branch_summary",
    "run_failure", "custom", "queued", "checkpoint", "memory", "thread_info", "turn_marker",
)  # fmt: skip


class Passage(Record, frozen=True, kw_only=True):
    """Entries of one path in order; ``other_branches`` follow as well on one of those after the entry asked for."""

    entries: tuple[Entry, ...]
    has_later: bool = False
    other_branches: int = 0

    @property
    def has_earlier(self) -> bool:
        """Whether anything stands before the first of the entries."""
        return bool(self.entries) and self.entries[0].parent is not None


def single_entry(journal: Journal, thread: Thread, entry_id: str) -> Passage:
    """Return one entry."""
    return Passage(entries=(journal.entry(thread.id, entry_id),), has_later=entry_id != thread.leaf)


def passage_before(journal: Journal, thread: Thread, before: str | None, limit: int) -> Passage:
    """Return the last entries before an entry; without one, the last of the thread's path."""
    leaf = thread.leaf if before is None else journal.entry(thread.id, before).parent
    return Passage(entries=_upwards(journal, thread, leaf, limit), has_later=before is not None)


def passage_around(journal: Journal, thread: Thread, entry_id: str, limit: int) -> Passage:
    """Return an entry, what led to it, and what followed on the branch that was written last."""
    after = limit // 2
    later, others = _downwards(journal, thread, entry_id, after + 1)
    return Passage(
        entries=(*_upwards(journal, thread, entry_id, limit - after), *later[:after]),
        has_later=len(later) > after,
        other_branches=others,
    )


def _upwards(journal: Journal, thread: Thread, leaf: str | None, limit: int) -> tuple[Entry, ...]:
    """The last entries of a path that a reader wants; markers of turns are read for those of failed ones."""
    found: list[Entry] = []
    while leaf is not None and len(found) < limit:
        page = journal.path(thread.id, leaf, limit=2 * limit, types=_READABLE)
        found[:0] = [entry for entry in page if not is_bookkeeping(entry)]
        leaf = page[0].parent if len(page) == 2 * limit else None
    return tuple(found[-limit:])


def _downwards(journal: Journal, thread: Thread, entry_id: str, limit: int) -> tuple[list[Entry], int]:
    found: list[Entry] = []
    others = 0
    at = entry_id
    while len(found) < limit and (children := journal.children(thread.id, at)):
        others += len(children) - 1
        at = children[-1].id
        found += [child for child in children[-1:] if not is_bookkeeping(child)]
    return found, others
