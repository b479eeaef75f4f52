"""A terminal in this process, in front of a copy of the sample store."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from sample_store import make_sample
from screens import Screen


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The sample in a folder of its own, in a store of any name, which says of what kind it is."""

    @cache
    def made(name: str) -> Path:
        path: Path = tmp_path_factory.mktemp("sample") / name
        make_sample(path)
        return path

    return made


@pytest.fixture
def screen(
    request: pytest.FixtureRequest,
    sample: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Screen:
    """A terminal; a test that is parametrized with the names of stores gets one in front of each."""
    name: str = getattr(request, "param", "store.db")
    shutil.copytree(sample(name).parent, tmp_path, dirs_exist_ok=True)
    return Screen(monkeypatch, tmp_path / name)
