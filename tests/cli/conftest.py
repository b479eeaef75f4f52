"""A terminal in this process, in front of a copy of the sample store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sample_store import make_sample
from screens import Screen


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("sample") / "store.db"
    make_sample(path)
    return path


@pytest.fixture
def screen(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Screen:
    for file in sample.parent.iterdir():
        shutil.copy(file, tmp_path / file.name)
    return Screen(monkeypatch, tmp_path / "store.db")
