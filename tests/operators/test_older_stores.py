"""Stores of every earlier layout, written by the releases of their time, are upgraded when they are opened."""

from __future__ import annotations

import io
import json
import lzma
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import sessiontree as st
from postgres_server import CLUSTER, empty_database
from sessiontree.stores.postgres import distribute
from sessiontree.stores.postgres.schema import MIGRATIONS
from sessiontree.stores.sqlite import schema
from sessiontree.stores.sqlite import upgrade as upgrades

DATA = Path(__file__).parent.parent / "data" / "older_stores"
EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
EXPECTED_FIRST = json.loads((DATA / "expected-first.json").read_text(encoding="utf-8"))


def content_of(journal: st.Journal) -> dict[str, Any]:
    """What the older release read from its own store when the file was made."""
    found: dict[str, Any] = {}
    for name in EXPECTED:
        thread = journal.thread(name)
        path = journal.path(name)
        found[name] = {
            "title": thread.title,
            "leaf": thread.leaf,
            "updated_ns": thread.updated_ns,
            "version": thread.version,
            "tags": list(thread.tags),
            "is_archived": thread.is_archived,
            "path": [entry.id for entry in path],
            "entries": sorted(entry.id for entry in journal.entries(name)),
            "reflog": [[move.from_entry, move.to_entry, move.reason] for move in journal.reflog(name)],
            "texts": [entry.message.text if entry.message else None for entry in path],
        }
    return found


def check_upgraded(journal: st.Journal, expected: dict[str, Any] = EXPECTED) -> None:
    assert content_of(journal) == expected
    assert journal.check() == []
    assert journal.labels("talk")
    lease = journal.active_lease("fork")
    assert lease is None or lease.owner == "worker"
    for name in EXPECTED:
        journal.append(name, st.user("it goes on"))
    journal.delete_thread("keeper")
    assert journal.check() == []


def unpacked(name: str) -> bytes:
    return lzma.decompress((DATA / name).read_bytes())


@pytest.mark.parametrize("layout", range(1, schema.LAYOUT))
def test_a_sqlite_store_of_an_earlier_layout_is_upgraded(layout: int, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(unpacked(f"sqlite-{layout}.db.xz"))
    with st.open(path) as journal:
        check_upgraded(journal)
    with st.open(path) as journal:
        assert journal.check() == []
    st.open(tmp_path / "new.db").close()
    assert _tables(path) == _tables(tmp_path / "new.db")
    assert [one.name for one in tmp_path.iterdir() if "layout" in one.name] == []


def _tables(path: Path) -> list[tuple[str, str, str | None]]:
    """Tables by name, and indexes with what is in them: a query that names one finds no plan if that differs."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(
            "SELECT type, name, iif(type = 'index', sql, NULL) FROM sqlite_schema ORDER BY 1, 2"
        ).fetchall()


@pytest.mark.parametrize("layout", range(1, schema.LAYOUT))
def test_the_old_file_is_kept_until_the_new_tables_are_verified(
    layout: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(unpacked(f"sqlite-{layout}.db.xz"))
    kept: list[bool] = []
    figures = upgrades._figures

    def watched(connection: sqlite3.Connection) -> list[tuple[object, ...]]:
        kept.append((tmp_path / f"store.db-layout{layout}").exists())
        return figures(connection)

    monkeypatch.setattr(upgrades, "_figures", watched)
    st.open(path).close()
    assert kept == [True, True]


def test_an_upgrade_that_would_lose_something_is_undone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(unpacked("sqlite-5.db.xz"))
    before = path.read_bytes()
    following, statements = upgrades.UPGRADES[5]
    monkeypatch.setitem(upgrades.UPGRADES, 5, (following, ("DELETE FROM entry WHERE depth > 10", *statements)))
    with pytest.raises(st.StoreError, match="do not hold what the old ones held"):
        st.open(path)
    assert path.read_bytes() == before
    monkeypatch.undo()
    with st.open(path) as journal:
        check_upgraded(journal)


def test_an_upgrade_that_was_cut_off_after_its_commit_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(unpacked("sqlite-5.db.xz"))
    st.open(path).close()
    (tmp_path / "store.db-layout5").write_bytes(unpacked("sqlite-5.db.xz"))
    with st.open(path) as journal:
        check_upgraded(journal)
    assert not (tmp_path / "store.db-layout5").exists()


def test_a_store_of_the_very_first_builds_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(unpacked("sqlite-first.db.xz"))
    before = path.read_bytes()
    with pytest.raises(st.ForeignStoreError, match="export it with that build"):
        st.open(path)
    assert path.read_bytes() == before


def test_a_store_of_a_newer_layout_is_left_untouched(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    st.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {schema.LAYOUT + 1}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (tmp_path / "store.db-gate").unlink()
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(st.NewerFormatError):
            st.open(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["store.db"]


@pytest.mark.parametrize("name", ["jsonl-1", "jsonl-5"])
def test_a_jsonl_store_of_an_earlier_release_opens_as_it_is(name: str, tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO((DATA / f"{name}.tar.xz").read_bytes())) as archive:
        archive.extractall(tmp_path / "folder", filter="data")
    with st.open(f"jsonl:///{tmp_path}/folder") as journal:
        check_upgraded(journal)


def test_a_jsonl_store_of_a_newer_version_is_left_untouched(tmp_path: Path) -> None:
    st.open(f"jsonl:///{tmp_path}/folder").close()
    marker = tmp_path / "folder" / "sessiontree.json"
    marker.write_text(marker.read_text(encoding="utf-8").replace('"version":1', '"version":2'), encoding="utf-8")
    before = sorted((one.name, one.stat().st_mtime_ns) for one in (tmp_path / "folder").rglob("*"))
    with pytest.raises(st.NewerFormatError):
        st.open(f"jsonl:///{tmp_path}/folder")
    assert sorted((one.name, one.stat().st_mtime_ns) for one in (tmp_path / "folder").rglob("*")) == before


@pytest.mark.parametrize("version", range(1, MIGRATIONS[-1].version))
def test_a_postgresql_schema_of_an_earlier_release_is_migrated(version: int) -> None:
    url = empty_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(unpacked(f"postgres-{version}.sql.xz"))
        assert connection.execute("SELECT max(version) FROM sessiontree.migration").fetchone() == (version,)
    if CLUSTER:
        st.open(url).close()
        distribute(url)
    with st.open(url) as journal:
        check_upgraded(journal, EXPECTED_FIRST if version == 1 else EXPECTED)
