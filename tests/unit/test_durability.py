"""Durability is a word: what it sets, and what is not acknowledged without it."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.stores._io import Files
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.stores.protocol import Durability
from sessiontree.stores.sqlite import SqliteBackend


@pytest.mark.parametrize("durability", ["power_loss", "process_crash"])
def test_sqlite_never_damages_its_file_and_leaves_the_sync_of_a_commit_to_the_store(
    tmp_path: Path, durability: Durability
) -> None:
    backend = SqliteBackend(tmp_path / "j.db", durability=durability)
    pragma = {
        name: backend._writer.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("synchronous", "journal_mode", "secure_delete")
    }
    backend.close()
    assert pragma == {"synchronous": 1, "journal_mode": "wal", "secure_delete": 1}


class CountingFiles(Files):
    """Counts syncs of files."""

    def __init__(self) -> None:
        self.syncs = 0

    def sync(self, file: int) -> None:
        self.syncs += 1
        super().sync(file)


@pytest.mark.parametrize(("durability", "syncs"), [("power_loss", 1), ("process_crash", 0)])
def test_jsonl_syncs_once_for_each_acknowledged_append(tmp_path: Path, durability: Durability, syncs: int) -> None:
    files = CountingFiles()
    with st.Journal(EmbeddedStore(JsonlBackend(tmp_path / "j", durability=durability, files=files))) as journal:
        journal.create_thread("t")
        before = files.syncs
        journal.append("t", st.user("hello"))
        assert files.syncs - before == syncs


def test_a_repeated_append_is_acknowledged_only_after_a_sync_of_its_own(tmp_path: Path) -> None:
    """Another process may have written the line and not have synced it yet."""
    files = CountingFiles()
    unsynced = JsonlBackend(tmp_path / "j", durability="process_crash")
    with (
        st.Journal(EmbeddedStore(unsynced)) as other,
        st.Journal(EmbeddedStore(JsonlBackend(tmp_path / "j", files=files))) as journal,
    ):
        journal.create_thread("t")
        other.append("t", st.user("hello"), id="e")
        before = files.syncs
        journal.append("t", st.user("hello"), id="e")
        assert files.syncs == before + 1
        journal.append("t", st.user("hello"), id="e")
        assert files.syncs == before + 1, "synced by this process"


@pytest.mark.parametrize("url", ["sqlite:///j.db", "jsonl:///j"])
def test_a_durability_that_does_not_exist_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(st.InvalidInputError, match="nope"):
        st.open(url, durability="nope")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["sqlite:///j.db", "jsonl:///j"])
def test_a_store_stays_where_it_was_opened_when_the_process_changes_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with st.open(url) as journal:
        journal.create_thread("t")
        monkeypatch.chdir(tmp_path / "there")
        journal.append("t", st.user("hello"))
        assert journal.thread("t").entries == 1
    assert list((tmp_path / "there").iterdir()) == []


def test_a_link_to_the_file_leads_to_the_same_gate(tmp_path: Path) -> None:
    with st.open(tmp_path / "real.db"):
        (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
        with st.open(tmp_path / "link.db"):
            assert not (tmp_path / "link.db-gate").exists()
