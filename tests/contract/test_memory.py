"""The contract on the memory store, through both surfaces."""

from pathlib import Path
from typing import Any

import sessiontree as st
from sessiontree.testing import StoreContract, SyncOverAsync


class TestMemory(StoreContract):
    is_durable = False
    has_files = False

    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return st.open("memory:", **options)


class TestMemoryAsync(StoreContract):
    is_durable = False
    has_files = False

    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return SyncOverAsync(st.open_async("memory:", **options))
