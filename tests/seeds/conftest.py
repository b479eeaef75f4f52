"""A journal on every store, with a clock that stands still."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import sessiontree as st
from opened import open_store
from sessiontree.testing.clock import ManualClock

STORES = ("memory", "sqlite", "jsonl", "postgres")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=STORES)
def journal(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[st.Journal]:
    with open_store(request.param, tmp_path, clock=clock) as opened:
        yield opened
