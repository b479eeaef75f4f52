"""The records of frameworks beside the messages that were made of them."""

from __future__ import annotations

import math
from typing import Any

import pytest

import sessiontree as st
from sessiontree.adapters._records import kept, record_of


@pytest.mark.parametrize(
    "record", [{"a": 1}, {"json": "{}"}, {"json": 1}, {"json": {"json": "x"}}, {"a": "cut \ud83d"}, []]
)
def test_a_record_comes_back_as_it_was_given(record: Any) -> None:
    with st.open("memory://") as journal:
        entry = journal.append("t", kept(st.user("hello"), "x", record), create=True)
        assert record_of(journal.entry("t", entry.id), "x") == record


def test_a_score_that_is_not_a_number_comes_back_beside_half_an_emoji() -> None:
    with st.open("memory://") as journal:
        journal.append("t", kept(st.user("cut \ud83d"), "x", {"score": math.nan, "text": "cut \ud83d"}), create=True)
        assert math.isnan(record_of(journal.path("t")[0], "x")["score"])
