"""The contract on the jsonl store, through both surfaces."""

from pathlib import Path
from typing import Any

import sessiontree as st
from sessiontree.testing import StoreContract, SyncOverAsync


class TestJsonl(StoreContract):
    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return st.open(f"jsonl:///{tmp_path / 'journal'}", **options)


class TestJsonlAsync(StoreContract):
    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return SyncOverAsync(st.open_async(f"jsonl:///{tmp_path / 'journal'}", **options))
