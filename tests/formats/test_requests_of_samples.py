"""Every sample transcript gives requests that every provider accepts, at each of its leaves and at every step before."""

from __future__ import annotations

from pathlib import Path

import pytest

import sessiontree as st
from golden_sets import STORE_FORMATS, sets
from sessiontree.context import build_context
from sessiontree.transfer.formats import import_sessions
from validation.validators import faults

PI = sorted((Path(__file__).parent.parent / "data" / "pi").glob("*.jsonl"))


@pytest.mark.parametrize("name", STORE_FORMATS)
def test_every_sample_of_a_format_gives_valid_requests(name: str, seed_fixtures: Path) -> None:
    samples = PI if name == "pi" else [store for one in sets(seed_fixtures, name) for store in one.stores()]
    with st.open("memory:") as journal:
        for source in samples:
            import_sessions(journal, source)
        for thread in journal.list_threads(is_archived=None, limit=10_000):
            check(list(journal.path(thread.id)))


def check(path: list[st.Entry]) -> None:
    for end in {len(path), len(path) // 2, len(path) // 3}:
        context = build_context(path[:end])
        for dialect, writer in st.DIALECTS.items():
            assert faults(dialect, writer.to_request(context)) == []
