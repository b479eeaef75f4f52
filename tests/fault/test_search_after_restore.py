"""The index of a search stands beside its store: whatever is put in the store's place, it finds what is there now."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import sessiontree as st
from stores import DURABLE, open_journal

on_durable = pytest.mark.parametrize("store", DURABLE)


def _found(journal: st.Journal, word: str) -> list[str]:
    return [hit.entry.message.text for hit in journal.search(word).hits if hit.entry.message]


def _say(journal: st.Journal, *texts: str) -> None:
    for text in texts:
        journal.append("t", st.user(text))


def _copied(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        shutil.copyfile(source, target)


def _data_of(store: str, folder: Path) -> Path:
    return folder / "journal" / "trees" if store == "jsonl" else folder / "journal"


def test_a_new_store_beside_the_index_of_a_deleted_one_is_searched_itself(tmp_path: Path) -> None:
    for text in ("apple", "banana"):
        (tmp_path / "journal").unlink(missing_ok=True)
        with open_journal("sqlite", tmp_path) as journal:
            journal.create_thread("t")
            _say(journal, text)
            assert _found(journal, text) == [text]
    with open_journal("sqlite", tmp_path) as journal:
        assert _found(journal, "apple") == []


@on_durable
@pytest.mark.parametrize("since", [("cherry",), ("cherry", "damson", "elder")])
def test_a_search_after_a_backup_was_put_back_finds_what_is_there(
    tmp_path: Path, store: str, since: tuple[str, ...]
) -> None:
    with open_journal(store, tmp_path) as journal:
        journal.create_thread("t")
        _say(journal, "apple", "banana")
    _copied(_data_of(store, tmp_path), tmp_path / "backup")
    with open_journal(store, tmp_path) as journal:
        _say(journal, *since)
        assert _found(journal, "cherry") == ["cherry"]
    _copied(tmp_path / "backup", _data_of(store, tmp_path))
    with open_journal(store, tmp_path) as journal:
        assert _found(journal, "cherry") == []
        _say(journal, "fig", "grape")
        assert [_found(journal, word) for word in ("fig", "grape", "apple")] == [["fig"], ["grape"], ["apple"]]
        assert _found(journal, "cherry") == []


@on_durable
def test_a_label_that_a_backup_takes_back_is_not_found(tmp_path: Path, store: str) -> None:
    with open_journal(store, tmp_path) as journal:
        journal.create_thread("t")
        first = journal.append("t", st.user("apple"))
    _copied(_data_of(store, tmp_path), tmp_path / "backup")
    with open_journal(store, tmp_path) as journal:
        journal.label("t", first.id, "keep")
        assert len(journal.search("label:keep").hits) == 1
    _copied(tmp_path / "backup", _data_of(store, tmp_path))
    with open_journal(store, tmp_path) as journal:
        assert journal.search("label:keep").hits == ()
        _say(journal, "banana")
        assert _found(journal, "banana") == ["banana"]


@on_durable
def test_a_delete_of_the_newest_entries_keeps_the_index_of_the_others(tmp_path: Path, store: str) -> None:
    with open_journal(store, tmp_path) as journal:
        journal.create_thread("t")
        _say(journal, "apple")
        fork = journal.fork("t").id
        journal.append(fork, st.user("banana"))
        journal.append(fork, st.Custom(name="note", data=1))
        assert _found(journal, "banana") == ["banana"]
        journal.delete_thread(fork)
        assert (_found(journal, "banana"), _found(journal, "apple")) == ([], ["apple"])
        _say(journal, "cherry")
        assert (_found(journal, "cherry"), _found(journal, "apple")) == (["cherry"], ["apple"])


@pytest.mark.parametrize("body", [b'{"type"', b"\xff\xfe", b'{"type":"user_message"}', b"[]"])
def test_an_entry_that_cannot_be_read_does_not_end_the_search_of_all_others(tmp_path: Path, body: bytes) -> None:
    with open_journal("sqlite", tmp_path) as journal:
        journal.create_thread("t")
        _say(journal, "apple", "banana")
    with closing(sqlite3.connect(tmp_path / "journal")) as connection, connection:
        connection.execute("UPDATE entry SET body = ? WHERE key = 1", (body,))
    with open_journal("sqlite", tmp_path) as journal:
        assert _found(journal, "banana") == ["banana"]
