"""Addresses of stores."""

import asyncio
import os
from pathlib import Path
from typing import Literal

import pytest

import sessiontree as st
from sessiontree.cli.context import locate
from sessiontree.errors import StoreUrlError
from sessiontree.journal.address import Embedded, StoreAddress, default_url, parse_url


@pytest.mark.parametrize(
    ("url", "kind", "target"),
    [
        ("memory:", "memory", ""),
        ("memory://", "memory", ""),
        ("sqlite:///a.db", "sqlite", "a.db"),
        ("sqlite:////srv/a.db", "sqlite", "/srv/a.db"),
        ("sqlite:///with%20space.db", "sqlite", "with space.db"),
        ("jsonl:///folder", "jsonl", "folder"),
        ("jsonl:////srv/folder", "jsonl", "/srv/folder"),
        ("postgresql://host/db", "postgres", "postgresql://host/db"),
        ("notes.db", "sqlite", "notes.db"),
        ("notes/", "jsonl", "notes/"),
        ("/srv/notes.jsonl", "jsonl", "/srv/notes.jsonl"),
    ],
)
def test_an_address_names_a_store(url: str, kind: Embedded | Literal["postgres"], target: str) -> None:
    assert parse_url(url) == StoreAddress(kind=kind, target=target)


def test_a_path_object_is_a_plain_path(tmp_path: Path) -> None:
    assert parse_url(tmp_path / "a.db").kind == "sqlite"
    assert parse_url(tmp_path).kind == "jsonl"
    assert parse_url(Path("memory:")).target == "memory:"


def test_without_an_address_the_store_is_the_one_of_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SESSIONTREE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with st.open() as journal:
        journal.create_thread("t")
    assert locate(None, os.environ, tmp_path).url == str(tmp_path / "data" / "sessiontree" / "journal.db")
    with st.open(tmp_path / "data" / "sessiontree" / "journal.db") as journal:
        assert journal.thread("t").id == "t"
    monkeypatch.setenv("SESSIONTREE_STORE", "memory:")
    with st.open() as journal:
        assert journal.list_threads().threads == ()


def test_without_a_data_folder_of_its_own_the_default_is_below_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SESSIONTREE_STORE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Path(default_url()).is_relative_to(tmp_path)
    assert Path(default_url()).parts[-2:] == ("sessiontree", "journal.db")


def test_an_async_journal_has_the_same_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONTREE_STORE", str(tmp_path / "named.db"))
    asyncio.run(st.open_async().close())
    assert (tmp_path / "named.db").is_file()


@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
def test_a_path_that_was_meant_to_be_absolute_is_refused_with_the_right_spelling(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path.parts[1]
    with pytest.raises(StoreUrlError, match=f"did you mean {kind}:////{root}/x"):
        parse_url(f"{kind}:///{root}/x")
    assert parse_url(f"{kind}:///./{root}/x").target == f"./{root}/x"
    assert parse_url(f"{kind}:////{root}/x").target == f"/{root}/x"
    (tmp_path / root).mkdir()
    assert parse_url(f"{kind}:///{root}/x").target == f"{root}/x"
