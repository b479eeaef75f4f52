"""Journals on each store, opened in a folder of a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sessiontree as st
from sessiontree.testing import SyncOverAsync


def url_of(kind: str, place: Path) -> str:
    match kind.removesuffix("-async"):
        case "memory":
            return "memory:"
        case "jsonl":
            return f"jsonl:///{place}/journal"
        case "postgres":
            from postgres_server import process_database, with_options  # noqa: PLC0415  starts a server

            return with_options(process_database(), namespace=place)
        case _:
            return f"sqlite:///{place}/journal.db"


def open_store(kind: str, place: Path, **options: Any) -> st.Journal:
    url = url_of(kind, place)
    if kind.endswith("-async"):
        return SyncOverAsync(st.open_async(url, **options))
    return st.open(url, **options)
