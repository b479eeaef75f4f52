"""The journal: one store, all verbs, one method a verb.

``AsyncJournal`` lives in ``sessiontree.journal.journal_async``: loading it loads asyncio.
"""

from sessiontree.journal.journal import Journal

__all__ = ["Journal"]
