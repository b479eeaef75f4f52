"""The journal for asyncio: the same verbs with the same signatures; a test compares the two."""

from __future__ import annotations

from sessiontree.async_journal.compaction import AsyncCompactionVerbs
from sessiontree.async_journal.entries import AsyncEntryVerbs
from sessiontree.async_journal.finding import AsyncFindingVerbs
from sessiontree.async_journal.leaf import AsyncLeafVerbs
from sessiontree.async_journal.threads import AsyncThreadVerbs
from sessiontree.async_journal.turns import AsyncTurnVerbs

__all__ = ["AsyncJournal"]


class AsyncJournal(
    AsyncThreadVerbs, AsyncEntryVerbs, AsyncLeafVerbs, AsyncTurnVerbs, AsyncCompactionVerbs, AsyncFindingVerbs
):
    """All conversations of one store, for one event loop. Cancelling a write does not take it back: its id tells."""
