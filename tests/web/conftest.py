"""A viewer over a store in a file, asked without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import sessiontree as st
from sample_store import NOW, make_sample
from sessiontree.web.app import make_app
from sessiontree.web.safety import Access
from sessiontree.web.site import Site

ACCESS = Access(token="the-token", cookie="the-cookie")
HOST = "127.0.0.1:8421"


class Viewer:
    """A viewer, and the journal of the same store."""

    def __init__(self, path: Path, *, is_read_only: bool = False) -> None:
        self.path = path
        self.site = Site(str(path), store=path.name, is_read_only=is_read_only, now=lambda: NOW)
        self.app = make_app(self.site, ACCESS)
        self.journal = st.open(path)
        self.client = TestClient(self.app, base_url=f"http://{HOST}", follow_redirects=False)
        self.client.headers["authorization"] = f"Bearer {ACCESS.token}"
        self.stranger = TestClient(self.app, base_url=f"http://{HOST}", follow_redirects=False)

    def html(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    def json(self, path: str) -> dict[str, object]:
        answer = self.client.get(path)
        assert answer.status_code == 200, answer.text
        found: dict[str, object] = answer.json()
        return found


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "journal.db"
    make_sample(path)
    return path


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[Viewer]:
    made = Viewer(tmp_path / "journal.db")
    with made.client, made.journal:
        yield made


@pytest.fixture
def sampled(tmp_path: Path, sample: Path) -> Iterator[Viewer]:
    """A viewer of the sample store, which the test may change."""
    copy = tmp_path / "journal.db"
    copy.write_bytes(sample.read_bytes())
    made = Viewer(copy)
    with made.client, made.journal:
        yield made
