"""The contract on the jsonl store, through both surfaces."""

import sessiontree as st
from sessiontree.testing import StoreContract, SyncOverAsync


class TestJsonl(StoreContract):
    def open_journal(self, tmp_path, **options):
        return st.open(f"jsonl:///{tmp_path / 'journal'}", **options)


class TestJsonlAsync(StoreContract):
    def open_journal(self, tmp_path, **options):
        return SyncOverAsync(st.open_async(f"jsonl:///{tmp_path / 'journal'}", **options))
