"""The golden data of the seed programs, and the watch over it: a test opens every answer that it says it replays."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from golden_sets import opened, sets

ARCHIVE = Path(__file__).parent / "data" / "seeds.tar.xz"


@pytest.fixture(scope="session")
def seed_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sets: that of ``SEED_FIXTURES``, or our own copy, unpacked once a session."""
    given = os.environ.get("SEED_FIXTURES")
    if given:
        return Path(given).resolve()
    folder = tmp_path_factory.mktemp("seeds")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "fixtures"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """What a test is marked to replay and is there must have been opened; without any of it the test has no data."""
    marks = list(pyfuncitem.iter_markers("replays"))
    if not marks:
        return (yield)
    fixtures: Any = pyfuncitem.funcargs.get("seed_fixtures") or pyfuncitem._request.getfixturevalue("seed_fixtures")
    wanted = {
        one.folder / name
        for mark in marks
        for one in sets(fixtures, mark.args[0])
        for pattern in mark.args[1:]
        for name in one.matching(pattern)
    }
    if not wanted:
        pytest.skip(f"{fixtures} holds none of {[mark.args for mark in marks]}")
    opened.clear()
    result = yield
    left = sorted(str(path.relative_to(fixtures)) for path in wanted - opened)
    assert not left, f"these answers were not replayed: {left}"
    return result
