"""The contract of a store: every rule of the journal, as tests that a store's test class inherits::

    class TestMine(StoreContract):
        def open_journal(self, tmp_path, **options):
            return st.open(tmp_path / "journal.db", **options)

For the async interface, return ``SyncOverAsync(st.open_async(...))``. After each test the store is checked, opened again
and checked once more. For readable failures add ``pytest.register_assert_rewrite("sessiontree.testing")`` to
``conftest.py``.
"""

from __future__ import annotations

from sessiontree.testing.contract.answers import AnswerContract
from sessiontree.testing.contract.appending import AppendContract
from sessiontree.testing.contract.artifacts import ArtifactContract
from sessiontree.testing.contract.base import Contract, Opened, fill, ids, texts
from sessiontree.testing.contract.commits import CommitContract
from sessiontree.testing.contract.compacting import CompactionContract
from sessiontree.testing.contract.deleting import DeleteContract
from sessiontree.testing.contract.documents import DocumentContract
from sessiontree.testing.contract.erasing import EraseContract
from sessiontree.testing.contract.files import FilesContract
from sessiontree.testing.contract.forks import ForkContract
from sessiontree.testing.contract.handles import HandleContract
from sessiontree.testing.contract.inbox import InboxContract
from sessiontree.testing.contract.leaf import LeafContract
from sessiontree.testing.contract.leases import LeaseContract
from sessiontree.testing.contract.listing import ListContract
from sessiontree.testing.contract.reading import ReadContract
from sessiontree.testing.contract.texts import TextContract
from sessiontree.testing.contract.threads import ThreadContract
from sessiontree.testing.contract.together import TogetherContract
from sessiontree.testing.contract.turns import TurnContract
from sessiontree.testing.contract.watching import WatchContract

__all__ = ["Contract", "Opened", "StoreContract", "fill", "ids", "texts"]


class StoreContract(
    ThreadContract,
    AppendContract,
    TogetherContract,
    CommitContract,
    AnswerContract,
    ArtifactContract,
    HandleContract,
    LeafContract,
    ForkContract,
    LeaseContract,
    TurnContract,
    InboxContract,
    ListContract,
    ReadContract,
    DeleteContract,
    EraseContract,
    DocumentContract,
    TextContract,
    CompactionContract,
    WatchContract,
    FilesContract,
):
    """Every part of the contract."""
