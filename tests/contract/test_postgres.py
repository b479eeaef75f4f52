"""The contract on the PostgreSQL store, through both surfaces."""

from pathlib import Path
from typing import Any

import sessiontree as st
from postgres_server import process_database, with_options
from sessiontree.testing import StoreContract, SyncOverAsync


class TestPostgres(StoreContract):
    has_files = False

    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return st.open(with_options(process_database(), namespace=tmp_path), **options)


class TestPostgresAsync(StoreContract):
    has_files = False

    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return SyncOverAsync(st.open_async(with_options(process_database(), namespace=tmp_path), **options))
