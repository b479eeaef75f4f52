"""Erased contents: they are gone for good, and the entries keep their ids and places."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessiontree.errors import StaleLeafError
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import erase_contents
from sessiontree.model import Custom
from sessiontree.model.builders import ERASED, user
from sessiontree.testing.contract.base import Contract, Opened, fill, ids, is_on_disk

__all__ = ["EraseContract"]

_WORDS = "battery-staple-correct-horse"
_NOTE = Custom(name="note")


def _erase(journal: Journal, *names: str, thread: str = "t") -> int:
    leaf = journal.thread(thread).leaf
    return journal.run(erase_contents(journal.runtime, thread, names, _NOTE, expect_leaf=leaf)).entries


class EraseContract(Contract):
    def test_erased_entries_keep_everything_but_their_contents(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        before, counted = journal.path("t"), journal.thread("t")
        assert _erase(journal, "a", "b") == 2
        again = store.reopen()
        after = again.path("t")
        assert ids(after[:3]) == ["a", "b", "c"]
        assert [entry.payload for entry in after[:2]] == [ERASED, ERASED]
        assert [(entry.parent, entry.created_ns) for entry in after[:3]] == [
            (entry.parent, entry.created_ns) for entry in before
        ]
        assert after[2] == before[2]
        assert after[3].payload == _NOTE
        assert (again.thread("t").messages, again.thread("t").tokens) == (counted.messages, counted.tokens)
        fill(again, "t", "d")
        assert ids(again.path("t"))[-1] == "d"

    def test_the_bytes_of_erased_contents_are_gone_and_nothing_finds_them(
        self, journal: Journal, tmp_path: Path
    ) -> None:
        journal.create_thread("t")
        gone = [journal.append("t", user(f"{_WORDS} {number} " * 50)).id for number in range(50)]
        journal.append("t", user("this stays"))
        assert journal.search(_WORDS).hits
        assert is_on_disk(tmp_path, _WORDS) == self.has_files
        size = journal.stats().bytes
        assert _erase(journal, *gone) == 50
        assert not is_on_disk(tmp_path, _WORDS)
        assert is_on_disk(tmp_path, "this stays") == self.has_files
        assert not journal.search(_WORDS).hits
        assert [hit.entry.message.text for hit in journal.search("stays").hits if hit.entry.message] == ["this stays"]
        assert not self.has_files or journal.stats().bytes < size

    def test_a_title_goes_with_the_text_that_it_was_made_from(self, store: Opened, tmp_path: Path) -> None:
        journal = store.journal
        for name in ("t", "u"):
            journal.create_thread(name)
            journal.append(name, user(_WORDS), id=name)
        journal.update_thread("u", title="Mine")
        assert (_erase(journal, "t"), _erase(journal, "u", thread="u")) == (1, 1)
        assert not is_on_disk(tmp_path, _WORDS)
        journal = store.reopen()
        assert [journal.thread(name).title for name in ("t", "u")] == ["", "Mine"]
        journal.append("t", user("a new question"))
        assert journal.thread("t").title == "a new question"

    def test_what_a_fork_shows_is_not_erased(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        journal.fork("t", at="b", new_id="f")
        fill(journal, "f", "x")
        shown = journal.path("f")
        assert _erase(journal, "a", "b", "c", "x", "unknown") == 1
        again = store.reopen()
        assert again.path("f") == shown
        assert again.entry("t", "c").payload == ERASED
        assert _erase(again, "a", "b", thread="f") == 0
        assert again.path("f") == shown

    def test_nothing_is_erased_if_the_leaf_has_moved(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        with pytest.raises(StaleLeafError):
            journal.run(erase_contents(journal.runtime, "t", ["a"], _NOTE, expect_leaf="a"))
        with pytest.raises(StaleLeafError):
            journal.run(erase_contents(journal.runtime, "t", ["a"], _NOTE, expect_leaf=None))
        assert [entry.message.text for entry in journal.path("t") if entry.message] == ["a", "b"]

    def test_an_erasure_of_nothing_changes_nothing(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        assert _erase(journal) == 0
        assert _erase(journal, "nobody") == 0
        assert ids(journal.path("t")) == ["a"]

    def test_a_write_that_is_repeated_after_an_erasure_is_still_the_same(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        assert _erase(journal, "a") == 1
        assert fill(journal, "t", "a", "b")[0].payload == ERASED
        assert len(journal.path("t")) == 3
