"""Addresses of stores."""

from pathlib import Path

import pytest

from sessiontree.journal.address import StoreAddress, parse_url


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
def test_an_address_names_a_store(url, kind, target):
    assert parse_url(url) == StoreAddress(kind=kind, target=target)


def test_a_path_object_is_a_plain_path(tmp_path):
    assert parse_url(tmp_path / "a.db").kind == "sqlite"
    assert parse_url(tmp_path).kind == "jsonl"
    assert parse_url(Path("memory:")).target == "memory:"
