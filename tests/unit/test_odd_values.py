"""Values of the wrong type are refused as InvalidInputError before anything is written."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from stores import ALL, open_journal

ODD = [st.UNSET, None, 1.5, b"x", object(), datetime(2026, 1, 1, tzinfo=UTC), "\ud800", 2**70, st.user("x"), (1,)]
FIELDS = sorted(st.ThreadFields.__annotations__)
HASH = "a" * 64

on_every_store = pytest.mark.parametrize("store", ALL)


@on_every_store
@pytest.mark.parametrize("field", FIELDS)
def test_no_field_of_a_thread_takes_a_value_of_another_type(store: str, field: str, tmp_path: Path) -> None:
    with open_journal(store, tmp_path) as journal:
        before = journal.create_thread("t")
        for value in ODD:
            given: Any = {field: value}
            with pytest.raises(st.InvalidInputError):
                journal.create_thread("new", **given)
            with pytest.raises(st.InvalidInputError):
                journal.update_thread("t", **given)
            with pytest.raises(st.InvalidInputError):
                journal.fork("t", new_id="new", **given)
        assert list(journal.list_threads()) == [before]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", {"agent": "a"}),
        ("key", st.SessionKey(agent=st.UNSET)),  # type: ignore[arg-type]
        ("tags", "ab"),
        ("tags", ("a", st.UNSET)),
        ("tags", {b"a": 1}),
        ("custom", {"a": st.UNSET}),
        ("custom", st.SessionKey(agent="a")),
        ("origin", {"a": "\ud800"}),
        ("title_updated_ns", True),
        ("is_archived", 1),
    ],
)
def test_what_json_would_turn_into_something_else_is_refused(field: str, value: Any) -> None:
    with st.open("memory:") as journal:
        with pytest.raises(st.InvalidInputError):
            journal.create_thread("t", **{field: value})
        assert len(journal.list_threads()) == 0


def test_tags_may_come_as_any_row_of_words() -> None:
    with st.open("memory:") as journal:
        tags: Any = iter(["b", "a"])
        assert journal.create_thread("t", tags=tags).tags == ("b", "a")


@on_every_store
@pytest.mark.parametrize(
    "blobs",
    [
        None, st.UNSET, 5, HASH, [HASH], {HASH}, (1,), ([],), (b"a" * 64,), ("zz",), (HASH[1:],), (HASH.upper(),),
        ("\ud800" * 64,), ("\u0660" * 64,), (HASH, "g" * 64),
    ],
)  # fmt: skip
def test_blobs_of_an_entry_must_be_a_tuple_of_hashes(store: str, blobs: Any, tmp_path: Path) -> None:
    with open_journal(store, tmp_path) as journal:
        journal.create_thread("t")
        contents: list[st.Payload | st.NewEntry] = [st.user("first"), st.NewEntry(content=st.user("x"), blobs=blobs)]
        with pytest.raises(st.InvalidInputError, match="blob"):
            journal.append_many("t", contents)
        assert journal.entries("t") == []


@pytest.mark.parametrize("turn_id", [None, st.UNSET, 5, b"x"])
def test_a_turn_id_must_be_a_text(turn_id: Any) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        with pytest.raises(st.InvalidInputError, match="turn id"):
            journal.append("t", st.user("x"), turn_id=turn_id)
        assert journal.entries("t") == []
