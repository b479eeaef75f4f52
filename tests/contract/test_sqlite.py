"""The contract on the sqlite store, through both surfaces."""

from pathlib import Path
from typing import Any

import sessiontree as st
from sessiontree.testing import StoreContract, SyncOverAsync


class TestSqlite(StoreContract):
    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return st.open(tmp_path / "journal.db", **options)


class TestSqliteAsync(StoreContract):
    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return SyncOverAsync(st.open_async(tmp_path / "journal.db", **options))
