"""The journal: one store, all verbs, one method a verb."""

from __future__ import annotations

from sessiontree.journal.compaction import CompactionVerbs
from sessiontree.journal.entries import EntryVerbs
from sessiontree.journal.finding import FindingVerbs
from sessiontree.journal.leaf import LeafVerbs
from sessiontree.journal.threads import ThreadVerbs
from sessiontree.journal.turns import TurnVerbs

__all__ = ["Journal"]


class Journal(ThreadVerbs, EntryVerbs, LeafVerbs, TurnVerbs, CompactionVerbs, FindingVerbs):
    """All conversations of one store. Safe to use from many threads; ``AsyncJournal`` has the same verbs."""
