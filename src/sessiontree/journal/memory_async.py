"""Refresh the memories of a conversation, and store memories in the journal itself."""

from __future__ import annotations

from sessiontree.compaction import CompactionPolicy, Summarizer
from sessiontree.compaction.memory import ExtractedMemory, MemoryRefresher, MemoryResult, Recollection
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.journal.journal_async import AsyncJournal
from sessiontree.journal.operations import memory as operations
from sessiontree.model import Entry

__all__ = [
    "AsyncJournalMemory",
    "ExtractedMemory",
    "MemoryRefresher",
    "MemoryResult",
    "Recollection",
    "refresh_memory_async",
]

_DEFAULT_POLICY = CompactionPolicy()


async def refresh_memory_async(
    journal: AsyncJournal,
    thread_id: str,
    refresher: MemoryRefresher,
    extract: Summarizer = extractive,
    *,
    policy: CompactionPolicy = _DEFAULT_POLICY,
) -> MemoryResult:
    """Extract the facts of a thread and give them to ``refresher``, once between two compactions.

    Raises what the model or the refresher raises; the next call then tries again.
    """
    return await journal.run(operations.refresh(journal.runtime, thread_id, refresher, extract, policy))


class AsyncJournalMemory:
    """Stores memories in the journal, one thread for each scope and each fact once. A MemoryRefresher."""

    def __init__(self, journal: AsyncJournal, scope: str = "default") -> None:
        self.journal = journal
        self.thread_id = operations.memory_thread_id(scope)

    async def refresh(self, memory: ExtractedMemory) -> Entry | None:
        """Store the facts that are new; ``None`` if all were stored already."""
        return await self.journal.run(operations.store(self.journal.runtime, self.thread_id, memory))

    async def recall(self, query: str, limit: int = 10) -> list[Recollection]:
        """Return the facts that share most words with the query, best first; the newest ones for an empty query."""
        return await self.journal.run(operations.recall(self.journal.runtime, self.thread_id, query, limit))
