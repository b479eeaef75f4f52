"""The golden data of the seed programs: unpacked once a session, or taken from ``SEED_FIXTURES``."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

ARCHIVE = Path(__file__).parent / "data" / "seeds.tar.xz"


@pytest.fixture(scope="session")
def seed_fixtures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the parts 000 to 004."""
    given = os.environ.get("SEED_FIXTURES")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("seeds")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "fixtures"
