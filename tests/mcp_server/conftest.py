"""The sample store, and a library over a copy of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sessiontree as st
from sample_store import NOW, make_sample
from sessiontree.mcp.library import Library
from sessiontree.mcp.tools import READING, WRITING, call

Ask = Callable[..., str]
TOOLS = {tool.name: tool for tool in (*READING, *WRITING)}


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("sample") / "store.db"
    make_sample(path)
    return path


@pytest.fixture
def store(sample: Path, tmp_path: Path) -> Path:
    for file in sample.parent.iterdir():
        shutil.copy(file, tmp_path / file.name)
    return tmp_path / "store.db"


@pytest.fixture
def journal(store: Path) -> Iterator[st.Journal]:
    with st.open(store) as journal:
        yield journal


@pytest.fixture
def ask(journal: st.Journal) -> Ask:
    """Call a tool by its name."""
    library = Library(lambda: journal, lambda: NOW)
    return lambda name, **given: call(TOOLS[name], library, given)
