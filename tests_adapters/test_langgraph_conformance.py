"""LangGraph's conformance suite for checkpointers, with every capability, on every store."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

from opened import url_of
from sessiontree.adapters.langgraph import SessionTreeSaver


@pytest.mark.parametrize("store", ["memory", "sqlite", "jsonl", "postgres"])
def test_every_capability_conforms(store: str, tmp_path: Path) -> None:
    number = itertools.count()

    @checkpointer_test(name="SessionTreeSaver")
    async def saver() -> AsyncIterator[SessionTreeSaver]:
        folder = tmp_path / str(next(number))
        folder.mkdir()
        async with SessionTreeSaver(url_of(store, folder)) as made:
            yield made

    report = asyncio.run(validate(saver))
    results = report.results.values()
    assert [failure for result in results for failure in result.failures or ()] == []
    assert [result.passed for result in results] == [True] * 8
    assert sum(result.tests_passed for result in results) == 81
