"""Memory: durable facts out of long conversations."""

from sessiontree.memory.hygiene import NO_MEMORY_NEEDED, fingerprint, normalize_memory
from sessiontree.memory.keeper import AsyncJournalMemory, JournalMemory, Recollection
from sessiontree.memory.refresh import (
    ExtractedMemory,
    MemoryRefresher,
    MemoryResult,
    refresh_memory,
    refresh_memory_async,
)
from sessiontree.memory.threshold import crosses_soft_threshold

__all__ = [
    "NO_MEMORY_NEEDED",
    "AsyncJournalMemory",
    "ExtractedMemory",
    "JournalMemory",
    "MemoryRefresher",
    "MemoryResult",
    "Recollection",
    "crosses_soft_threshold",
    "fingerprint",
    "normalize_memory",
    "refresh_memory",
    "refresh_memory_async",
]
