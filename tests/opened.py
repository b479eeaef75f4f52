"""Journals on each store, opened in a folder of a test."""

from __future__ import annotations

from pathlib import Path

import sessiontree as st
from sessiontree.testing import SyncOverAsync


def open_store(kind: str, place: Path, **options) -> st.Journal:
    url = {"memory": "memory:", "jsonl": f"jsonl:///{place}/journal"}.get(kind, f"sqlite:///{place}/journal.db")
    if kind.endswith("-async"):
        return SyncOverAsync(st.open_async(url, **options))
    return st.open(url, **options)
