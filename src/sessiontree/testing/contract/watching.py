"""Watching: new entries as they are committed, each once, in order."""

from __future__ import annotations

from itertools import islice

import pytest

from sessiontree.errors import EntryNotFoundError, ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.model.builders import user
from sessiontree.testing.contract.base import Contract, Opened, fill, ids

__all__ = ["WatchContract"]


_PATIENCE_SECONDS = 30.0


class WatchContract(Contract):
    def test_a_watcher_sees_what_comes_after_it_started(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "before")
        watched = journal.watch("t", timeout=_PATIENCE_SECONDS)
        stored = fill(journal, "t", "a", "b")
        assert list(islice(watched, 2)) == stored
        stored = fill(journal, "t", "c")
        assert next(watched) == stored[0]

    def test_a_watcher_can_start_after_an_entry(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        watched = journal.watch("t", after="a", timeout=_PATIENCE_SECONDS)
        fill(journal, "t", "d")
        assert ids(list(islice(watched, 3))) == ["b", "c", "d"]
        fill(journal, "t", "e")
        assert next(watched).id == "e"

    def test_a_watcher_can_start_at_the_beginning(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        watched = journal.watch("t", after=None, timeout=_PATIENCE_SECONDS)
        assert ids(list(islice(watched, 2))) == ["a", "b"]
        fill(journal, "t", "c")
        assert next(watched).id == "c"

    def test_a_watcher_without_new_entries_ends_after_its_timeout(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        assert list(journal.watch("t", timeout=0.01)) == []
        assert ids(list(journal.watch("t", after=None, timeout=0.01))) == ["a"]

    def test_a_watcher_of_a_fork_sees_the_fork_alone(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        fill(journal, "f", "own")
        watched = journal.watch("f", after=None, timeout=_PATIENCE_SECONDS)
        fill(journal, "t", "elsewhere")
        fill(journal, "f", "later")
        assert ids(list(islice(watched, 2))) == ["own", "later"]

    def test_a_watcher_of_a_fork_can_start_at_a_shared_entry(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.fork("t", new_id="f")
        fill(journal, "f", "own")
        assert ids(list(journal.watch("f", after="a", timeout=0.01))) == ["own"]

    def test_a_watcher_sees_branches_and_no_moves(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        watched = journal.watch("t", timeout=_PATIENCE_SECONDS)
        journal.rewind("t", "a")
        journal.append("t", user("x"), id="x", parent="a")
        journal.undo("t")
        assert next(watched).id == "x"

    def test_two_watchers_each_see_everything(self, journal: Journal) -> None:
        journal.create_thread("t")
        first, second = journal.watch("t", timeout=_PATIENCE_SECONDS), journal.watch("t", timeout=_PATIENCE_SECONDS)
        fill(journal, "t", "a", "b")
        assert ids(list(islice(first, 2))) == ids(list(islice(second, 2))) == ["a", "b"]

    def test_a_watcher_sees_what_another_journal_writes(self, store: Opened) -> None:
        store.journal.create_thread("t")
        with store.another() as other:
            watched = store.journal.watch("t", timeout=_PATIENCE_SECONDS)
            fill(other, "t", "a")
            assert next(watched).id == "a"
            fill(store.journal, "t", "b")
            fill(other, "t", "c")
            assert ids(list(islice(watched, 2))) == ["b", "c"]

    def test_a_watcher_goes_on_after_a_delete_elsewhere(self, journal: Journal) -> None:
        for name in ("t", "other"):
            journal.create_thread(name)
        fill(journal, "t", "a")
        fill(journal, "other", "x", "y")
        watched = journal.watch("t", after=None, timeout=_PATIENCE_SECONDS)
        assert next(watched).id == "a"
        journal.delete_thread("other")
        fill(journal, "t", "b")
        assert next(watched).id == "b"

    def test_watching_what_is_not_there_is_refused(self, journal: Journal) -> None:
        with pytest.raises(ThreadNotFoundError):
            list(journal.watch("no", timeout=0))
        journal.create_thread("t")
        with pytest.raises(EntryNotFoundError):
            list(journal.watch("t", after="nowhere", timeout=0))

    def test_watching_a_deleted_thread_raises(self, journal: Journal) -> None:
        journal.create_thread("t")
        watched = journal.watch("t", timeout=_PATIENCE_SECONDS)
        journal.delete_thread("t")
        with pytest.raises(ThreadNotFoundError):
            next(watched)
