"""A journal and a folder for every test here, on each store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sessiontree as st
from opened import open_store

STORES = ["memory", "sqlite", "jsonl", "sqlite-async"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture(params=STORES)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with open_store(request.param, tmp_path) as opened:
        opened.create_thread("t")
        yield opened
        assert opened.check() == []


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[st.Journal]:
    """One store, where the store does not matter."""
    with st.open(f"sqlite:///{tmp_path}/plain.db") as opened:
        opened.create_thread("t")
        yield opened
        assert opened.check() == []
