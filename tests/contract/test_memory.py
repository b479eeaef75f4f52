"""The contract on the memory store, through both surfaces."""

import sessiontree as st
from sessiontree.testing import StoreContract, SyncOverAsync


class TestMemory(StoreContract):
    is_durable = False
    has_files = False

    def open_journal(self, tmp_path, **options):
        return st.open("memory:", **options)


class TestMemoryAsync(StoreContract):
    is_durable = False
    has_files = False

    def open_journal(self, tmp_path, **options):
        return SyncOverAsync(st.open_async("memory:", **options))
