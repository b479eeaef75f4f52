"""Damage to what only names a place does not hide the conversation."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import sessiontree as st
from stores import open_journal


def test_entries_of_a_deleted_thread_whose_name_is_lost_are_still_shown(tmp_path: Path) -> None:
    with open_journal("sqlite", tmp_path) as journal:
        journal.create_thread("source")
        journal.append("source", st.user("hello"), id="e")
        journal.fork("source", new_id="fork")
        journal.delete_thread("source")
    with closing(sqlite3.connect(tmp_path / "journal")) as connection, connection:
        connection.execute("DELETE FROM deleted_thread")
    with open_journal("sqlite", tmp_path) as journal:
        for found in (journal.path("fork"), journal.entries("fork")):
            assert [(entry.id, entry.thread_id) for entry in found] == [("e", "")]


def test_a_pointer_to_a_fork_that_is_not_text_is_ignored(tmp_path: Path) -> None:
    with open_journal("jsonl", tmp_path) as journal:
        journal.create_thread("source")
        journal.fork("source", new_id="fork")
    (pointer,) = (tmp_path / "journal" / "forks").iterdir()
    pointer.write_bytes(b'"\xed"')
    with open_journal("jsonl", tmp_path) as journal:
        assert journal.thread("source").id == "source"
        with pytest.raises(st.ThreadNotFoundError):
            journal.thread("fork")
        assert journal.check()


def test_a_marker_that_is_not_text_is_refused(tmp_path: Path) -> None:
    open_journal("jsonl", tmp_path).close()
    (tmp_path / "journal" / "sessiontree.json").write_bytes(b'{"format":"\xfe"}')
    with pytest.raises(st.ForeignStoreError):
        open_journal("jsonl", tmp_path)
