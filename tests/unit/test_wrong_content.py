"""What is no entry, no time and no number is refused with a word about what to give instead."""

from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from stores import ALL, open_journal


@pytest.mark.parametrize("store", ALL)
@pytest.mark.parametrize("content", ["hello", {"role": "user", "content": "hello"}, None, 1, b"x"])
def test_content_that_is_not_a_payload_is_refused(tmp_path: Path, store: str, content: Any) -> None:
    with open_journal(store, tmp_path) as journal:
        journal.create_thread("t")
        for attempt in (
            lambda: journal.append("t", content),
            lambda: journal.append_many("t", [content]),
            lambda: journal.create_thread("u", contents=[content]),
        ):
            with pytest.raises(st.InvalidInputError, match="such as user"):
                attempt()
        assert journal.stats().entries == 0


@pytest.mark.parametrize("value", ["1", b"1", [], 1.5])
def test_times_and_limits_that_are_no_numbers_are_refused(value: Any) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        for attempt in (
            lambda: journal.append("t", st.user("x"), created_ns=value),
            lambda: journal.entries("t", limit=value),
            lambda: journal.path("t", limit=value),
        ):
            with pytest.raises(st.InvalidInputError):
                attempt()
