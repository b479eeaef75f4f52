"""Arguments that a caller got wrong are refused with a word, on every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from stores import ALL, open_journal

CALLS: dict[str, tuple[Callable[[st.Journal, Any], object], tuple[object, ...]]] = {
    "erase": (lambda journal, value: journal.erase("t", value), (None, 3, b"x", [3], ["\ud800"])),
    "find_entries": (lambda journal, value: journal.find_entries(value), (None, 3, b"x", [3])),
    "entries": (lambda journal, value: journal.entries("t", types=value), (3, b"x", ["\ud800"])),
    "path": (lambda journal, value: journal.path("t", types=value), (3, b"x", ["\ud800"])),
    "search": (lambda journal, value: journal.search(value), (None, 3, b"x")),
    "enqueue": (lambda journal, value: journal.enqueue("t", st.user("x"), when=value), (["a"], {}, 3)),
    "label": (lambda journal, value: journal.label("t", "one", value), (b"x", 3)),
    "list_threads": (lambda journal, value: journal.list_threads(limit=value), (float("nan"), b"x")),
    "delete_older_than": (lambda journal, value: journal.delete_older_than(value), (10**30, None)),
}


@pytest.fixture(params=ALL)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with open_journal(request.param, tmp_path) as opened:
        opened.append("t", st.user("hello"), id="one", create=True)
        yield opened


@pytest.mark.parametrize("verb", CALLS)
def test_a_wrong_argument_is_refused_and_nothing_is_written(journal: st.Journal, verb: str) -> None:
    call, values = CALLS[verb]
    for value in values:
        with pytest.raises(st.InvalidInputError):
            call(journal, value)
    assert [entry.id for entry in journal.entries("t")] == ["one"]


def test_a_single_text_is_one_id(journal: st.Journal) -> None:
    assert [entry.id for entry in journal.find_entries("one")] == ["one"]
    assert journal.erase("t", "one").entries == 1
