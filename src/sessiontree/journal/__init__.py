"""The journal: all conversations of one store, one method for each verb.

>>> from sessiontree.journal.opening import open
>>> with open("memory:") as journal:
...     journal.create_thread(title="demo").title
'demo'

``AsyncJournal`` is in ``sessiontree.journal.journal_async``: importing it imports asyncio. ``Journal`` and most other
modules here are generated from their ``_async`` sources by ``tools/async_to_sync.py``. What a verb does is in
``sessiontree.journal.operations``, written once for both.
"""

from sessiontree.journal.journal import Journal
from sessiontree.journal.operations.changes import Changes
from sessiontree.journal.operations.entries import NewEntry, make_draft
from sessiontree.stores.commands import Draft, PositionedDraft

__all__ = ["Changes", "Draft", "Journal", "NewEntry", "PositionedDraft", "make_draft"]
