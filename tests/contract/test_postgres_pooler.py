"""The contract through pgbouncer in transaction mode: no statement relies on what an earlier one left in a session."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from postgres_server import Pooler, Server, with_options
from sessiontree.testing import StoreContract, SyncOverAsync

pytestmark = [
    pytest.mark.deep,
    pytest.mark.skipif(Pooler.binary is None, reason="pgbouncer is not on the PATH"),
    pytest.mark.xdist_group("pooler"),
]


@pytest.fixture(scope="module")
def pooler() -> Iterator[Pooler]:
    server = Server.create()
    pooler = Pooler(server)
    yield pooler
    pooler.remove()
    server.remove()


class TestThroughAPooler(StoreContract):
    has_files = False

    @pytest.fixture(autouse=True)
    def _pooler(self, pooler: Pooler) -> None:
        self.pooler = pooler

    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return st.open(with_options(self.pooler.url, namespace=tmp_path), **options)


class TestThroughAPoolerAsync(StoreContract):
    has_files = False

    @pytest.fixture(autouse=True)
    def _pooler(self, pooler: Pooler) -> None:
        self.pooler = pooler

    def open_journal(self, tmp_path: Path, **options: Any) -> st.Journal:
        return SyncOverAsync(st.open_async(with_options(self.pooler.url, namespace=tmp_path), **options))
