"""The journal: one store, all verbs, one method a verb.

``AsyncJournal`` lives in ``sessiontree.journal.journal_async``: loading it loads asyncio.
"""

from sessiontree.journal.journal import Journal
from sessiontree.journal.operations.entries import NewEntry, make_draft
from sessiontree.stores.commands import Draft, PositionedDraft

__all__ = ["Draft", "Journal", "NewEntry", "PositionedDraft", "make_draft"]
