"""Deletes: entries that no thread sees are removed, entries that a fork sees stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from sessiontree.errors import EntryNotFoundError, StaleVersionError, ThreadChangedError, ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.model import ThreadQuery
from sessiontree.model.builders import user
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill, ids, is_on_disk

__all__ = ["DeleteContract"]


_WORDS = "correct-horse-battery-staple"


class DeleteContract(Contract):
    def test_a_delete_can_expect_an_unchanged_thread(self, journal: Journal) -> None:
        version = journal.create_thread("t").version
        journal.update_thread("t", title="changed")
        with pytest.raises(StaleVersionError):
            journal.delete_thread("t", expect_version=version)
        assert journal.thread("t").title == "changed"
        journal.delete_thread("t", expect_version=journal.thread("t").version)
        with pytest.raises(ThreadNotFoundError):
            journal.thread("t")

    def test_a_delete_can_expect_a_thread_that_still_matches_a_query(
        self, journal: Journal, clock: ManualClock
    ) -> None:
        old = ThreadQuery(updated_before_ns=clock.now_ns + 1, tags=("x",))
        journal.create_thread("t", tags=("x", "y"))
        clock.advance(1)
        fill(journal, "t", "a")
        with pytest.raises(ThreadChangedError):
            journal.delete_thread("t", expect_match=old)
        journal.update_thread("t", is_archived=True)
        with pytest.raises(ThreadChangedError):
            journal.delete_thread("t", expect_match=ThreadQuery(tags=("x",)))
        assert ids(journal.path("t")) == ["a"]
        assert journal.delete_thread("t", expect_match=ThreadQuery(is_archived=True)).entries_removed == 1

    def test_a_thread_that_is_used_again_is_not_deleted_as_old(self, journal: Journal, clock: ManualClock) -> None:
        for name in ("old", "used"):
            journal.create_thread(name)
        clock.advance(60)
        cut = clock.now_ns
        fill(journal, "used", "a")
        assert [thread.id for thread in journal.delete_older_than(cut)] == ["old"]
        assert ids(journal.path("used")) == ["a"]

    def test_a_deleted_thread_is_gone_with_everything_it_had(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t", tags=("x",))
        fill(journal, "t", "a", "b")
        journal.rewind("t", "a")
        journal.acquire_lease("t", owner="me")
        report = journal.delete_thread("t")
        assert (report.thread_id, report.entries_removed, report.entries_kept) == ("t", 2, 0)
        again = store.reopen()
        with pytest.raises(ThreadNotFoundError):
            again.thread("t")
        with pytest.raises(ThreadNotFoundError):
            again.delete_thread("t")
        stats = again.stats()
        assert (stats.threads, stats.entries, stats.moves, stats.leases) == (0, 0, 0, 0)
        assert not again.list_threads(tags=("x",)).threads

    def test_the_bytes_of_a_deleted_thread_are_gone_from_disk(self, journal: Journal, tmp_path: Path) -> None:
        journal.create_thread("keep")
        journal.append("keep", user("this stays"))
        journal.create_thread(f"id-{_WORDS}", title=f"title-{_WORDS}")
        for number in range(50):
            journal.append(f"id-{_WORDS}", user(f"{_WORDS} {number}" * 50))
        assert is_on_disk(tmp_path, _WORDS) == self.has_files
        journal.delete_thread(f"id-{_WORDS}")
        assert not is_on_disk(tmp_path, _WORDS)
        assert is_on_disk(tmp_path, "this stays") == self.has_files

    def test_the_bytes_go_although_a_fork_keeps_the_tree(self, journal: Journal, tmp_path: Path) -> None:
        journal.create_thread("t")
        fill(journal, "t", "shared")
        journal.fork("t", new_id="f")
        for number in range(20):
            journal.append("t", user(f"{_WORDS} {number}"))
        journal.delete_thread("t")
        assert not is_on_disk(tmp_path, _WORDS)
        assert ids(journal.path("f")) == ["shared"]

    def test_what_a_fork_shows_stays(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        before = journal.path("t")
        journal.fork("t", at="b", new_id="f")
        fill(journal, "f", "x")
        report = journal.delete_thread("t")
        assert (report.entries_removed, report.entries_kept) == (1, 2)
        again = store.reopen()
        assert ids(again.path("f")) == ["a", "b", "x"]
        assert again.path("f")[:2] == before[:2]
        assert again.stats().entries == 3
        with pytest.raises(EntryNotFoundError):
            again.entry("f", "c")

    def test_a_fork_of_a_fork_outlives_both(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("one")
        fill(journal, "one", "a", "b")
        journal.fork("one", at="a", new_id="two")
        fill(journal, "two", "c", "d")
        journal.fork("two", at="c", new_id="three")
        fill(journal, "three", "e")
        journal.delete_thread("one")
        journal = store.reopen()
        journal.delete_thread("two")
        journal = store.reopen()
        assert ids(journal.path("three")) == ["a", "c", "e"]
        assert journal.stats().entries == 3
        assert journal.delete_thread("three").entries_removed == 3
        assert journal.stats().entries == 0

    def test_deleting_a_fork_leaves_its_source_alone(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        fill(journal, "f", "x")
        report = journal.delete_thread("f")
        assert (report.entries_removed, report.entries_kept) == (1, 0)
        assert ids(journal.entries("t")) == ["a"]
        assert fill(journal, "t", "x")[0].parent == "a"

    def test_the_last_thread_of_a_family_takes_what_was_kept_for_it(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.fork("t", new_id="f")
        journal.delete_thread("t")
        assert journal.delete_thread("f").entries_removed == 2
        assert journal.stats().entries == 0

    def test_an_id_can_be_used_again_after_a_delete(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t", title="old")
        fill(journal, "t", "a")
        journal.delete_thread("t")
        fresh = journal.create_thread("t")
        assert (fresh.title, fresh.leaf, fresh.version) == ("", None, 1)
        fill(journal, "t", "a")
        assert ids(store.reopen().entries("t")) == ["a"]

    def test_a_new_thread_under_an_old_id_does_not_see_what_a_fork_kept(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        journal.delete_thread("t")
        journal.create_thread("t")
        fill(journal, "t", "b")
        journal = store.reopen()
        assert ids(journal.entries("t")) == ["b"]
        assert ids(journal.entries("f")) == ["a"]
        journal.delete_thread("f")
        assert ids(journal.entries("t")) == ["b"]
        assert journal.stats().entries == 1

    def test_a_fork_id_can_become_a_root(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        journal.delete_thread("f")
        journal.create_thread("f")
        fill(journal, "f", "x")
        journal = store.reopen()
        assert (journal.thread("f").tree, ids(journal.entries("f"))) == ("f", ["x"])
        assert ids(journal.entries("t")) == ["a"]
