"""Forks: a new thread shares entries, and does not see what is appended through other threads afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from sessiontree.errors import (
    DuplicateEntryError,
    EntryNotFoundError,
    InvalidInputError,
    InvalidParentError,
    MissingBlobsError,
    StaleLeafError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import make_draft
from sessiontree.journal.operations.requests import Operation
from sessiontree.journal.operations.threads import fork
from sessiontree.model import Thread
from sessiontree.model.builders import user
from sessiontree.model.codec import content_hash
from sessiontree.stores.commands import PositionedDraft
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill, ids, texts

__all__ = ["ForkContract"]


class ForkContract(Contract):
    def test_a_fork_at_an_entry_keeps_it(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        fork = journal.fork("t", at="b", new_id="f")
        assert (fork.leaf, fork.entries, fork.tree) == ("b", 2, "t")
        assert (fork.forked_from_thread, fork.forked_from_entry, fork.parent_thread) == ("t", "b", "t")
        again = store.reopen()
        assert again.thread("f") == fork
        assert ids(again.path("f")) == ids(again.entries("f")) == ["a", "b"]

    def test_a_fork_before_an_entry_stops_at_its_parent(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        fork = journal.fork("t", before="b")
        assert (fork.leaf, fork.forked_from_entry) == ("a", "a")

    def test_a_fork_without_a_place_is_at_the_leaf(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.rewind("t", "a")
        assert journal.fork("t").leaf == "a"

    def test_a_fork_before_the_first_entry_is_empty(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        fork = journal.fork("t", before="a", new_id="f")
        assert (fork.leaf, fork.entries, fork.forked_from_entry) == (None, 0, "")
        assert store.reopen().path("f") == store.journal.entries("f") == []
        assert store.journal.append("f", user("own"), id="own").parent is None

    def test_a_fork_of_an_empty_thread_is_empty(self, journal: Journal) -> None:
        journal.create_thread("t")
        fork = journal.fork("t", new_id="f")
        assert (fork.leaf, fork.forked_from_thread) == (None, "t")
        fill(journal, "f", "x")
        assert journal.entries("t") == []

    def test_a_fork_asked_for_twice_is_one_fork(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        first = journal.fork("t", at="a", new_id="f")
        assert journal.fork("t", at="a", new_id="f") == first
        fill(journal, "f", "x")
        again = store.reopen()
        assert again.fork("t", at="a", new_id="f") == again.thread("f")
        assert ids(again.path("f")) == ["a", "x"]

    def test_a_repeated_fork_at_the_leaf_may_find_the_source_grown(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        first = journal.fork("t", new_id="f")
        fill(journal, "t", "b")
        assert journal.fork("t", new_id="f") == first

    def test_another_fork_under_a_taken_id_is_refused(self, journal: Journal) -> None:
        for name in ("t", "u"):
            journal.create_thread(name)
        fill(journal, "t", "a", "b")
        fill(journal, "u", "a2")
        before = journal.fork("t", at="a", new_id="f")
        attempts: tuple[Callable[[], object], ...] = (
            lambda: journal.fork("t", at="b", new_id="f"),
            lambda: journal.fork("u", new_id="f"),
            lambda: journal.fork("t", new_id="u"),
            lambda: journal.fork("t", new_id="t"),
            lambda: journal.create_thread("f"),
        )
        for attempt in attempts:
            with pytest.raises(ThreadExistsError):
                attempt()
        assert journal.thread("f") == before

    def test_a_fork_starts_with_entries_of_its_own_in_the_same_commit(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        history = [positioned("side", "a"), positioned("deeper", "side"), positioned("leaf", "b")]
        fork = journal.run(forked(journal, history, expect_leaf="b"))
        fill(journal, "t", "in-source")
        assert (fork.leaf, fork.entries, fork.forked_from_entry) == ("leaf", 3, "b")
        journal = store.reopen()
        assert journal.thread("f") == fork
        assert ids(journal.path("f")) == ["a", "b", "leaf"]
        assert ids(journal.path("f", "deeper")) == ["a", "side", "deeper"]
        assert ids(journal.entries("f")) == ["a", "b", "side", "deeper", "leaf"]
        assert ids(journal.path("t")) == ["a", "b", "in-source"]
        assert journal.reflog("f") == []
        fill(journal, "f", "later")
        journal.delete_thread("t")
        assert ids(journal.entries("f")) == ["a", "b", "side", "deeper", "leaf", "later"]
        assert journal.check() == []

    def test_a_fork_with_entries_of_its_own_is_made_whole_or_not_at_all(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.append("t", user("side"), id="hidden", parent="a")
        journal.move_leaf("t", "b")
        refused: tuple[tuple[Operation[Thread], type[Exception]], ...] = (
            (forked(journal, [positioned("x", "hidden")]), InvalidParentError),
            (forked(journal, [positioned("x", "b"), positioned("a", "x")]), DuplicateEntryError),
            (forked(journal, [positioned("x", "b"), positioned("x", "b")]), DuplicateEntryError),
            (forked(journal, [positioned("x", "b")], expect_leaf="a"), StaleLeafError),
            (forked(journal, [positioned("x", "b", "0" * 64)]), MissingBlobsError),
        )
        for operation, problem in refused:
            with pytest.raises(problem):
                journal.run(operation)
            with pytest.raises(ThreadNotFoundError):
                journal.thread("f")
        journal.run(forked(journal, [positioned("x", "b")]))
        with pytest.raises(ThreadExistsError):
            journal.run(forked(journal, [], expect_new=True))

    def test_source_and_fork_do_not_see_each_other_grow(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        fill(journal, "t", "in-source")
        fill(journal, "f", "in-fork")
        journal = store.reopen()
        assert texts(journal, "t") == ["a", "in-source"]
        assert texts(journal, "f") == ["a", "in-fork"]
        assert ids(journal.entries("t")) == ["a", "in-source"]
        assert ids(journal.entries("f")) == ["a", "in-fork"]
        assert ids(journal.children("t", "a")) == ["in-source"]
        assert ids(journal.children("f", "a")) == ["in-fork"]
        for thread_id, hidden in (("t", "in-fork"), ("f", "in-source")):
            with pytest.raises(EntryNotFoundError):
                journal.entry(thread_id, hidden)
            with pytest.raises(EntryNotFoundError):
                journal.fork(thread_id, at=hidden)

    def test_a_fork_sees_ancestors_only_not_the_other_branches_of_its_source(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.append("t", user("side"), id="side", parent="a")
        journal.fork("t", at="b", new_id="f")
        assert ids(journal.entries("f")) == ["a", "b"]
        with pytest.raises(EntryNotFoundError):
            journal.move_leaf("f", "side")
        assert journal.move_leaf("f", "a").leaf == "a"

    def test_forks_of_forks_share_all_the_way_up(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("one")
        fill(journal, "one", "a", "b")
        journal.fork("one", new_id="two")
        fill(journal, "two", "c", "d")
        journal.fork("two", at="c", new_id="three")
        fill(journal, "three", "e")
        journal.fork("three", at="a", new_id="four")
        fill(journal, "four", "f")
        journal = store.reopen()
        assert ids(journal.path("three")) == ["a", "b", "c", "e"]
        assert [entry.thread_id for entry in journal.path("three")] == ["one", "one", "two", "three"]
        assert ids(journal.path("four")) == ["a", "f"]
        assert ids(journal.entries("three")) == ["a", "b", "c", "e"]
        assert ids(journal.path("three", limit=2)) == ["c", "e"]
        assert journal.thread("four").tree == "one"
        assert journal.append("three", user("g"), id="g", parent="a").parent == "a"

    def test_shared_entries_stay_what_they_were(self, journal: Journal, clock: ManualClock) -> None:
        journal.create_thread("t")
        originals = fill(journal, "t", "a", "b")
        clock.advance(100)
        fork = journal.fork("t", new_id="f")
        shared = journal.path("f")
        assert shared == originals
        assert [content_hash(entry.payload) for entry in shared] == [content_hash(e.payload) for e in originals]
        assert fork.created_ns == fork.updated_ns == clock()

    def test_a_fork_inherits_its_place_of_work_but_not_its_title(self, journal: Journal) -> None:
        journal.create_thread(
            "t", title="old", workspace="/w", model="m", tags=("x",), custom={"k": 1}, is_archived=True
        )
        fork = journal.fork("t", model="other")
        assert (fork.title, fork.is_archived, fork.version) == ("", False, 1)
        assert (fork.workspace, fork.model, fork.tags, fork.custom) == ("/w", "other", ("x",), {"k": 1})

    def test_a_fork_needs_one_place_that_exists(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        with pytest.raises(InvalidInputError, match="not both"):
            journal.fork("t", at="a", before="b")
        for place in ({"at": "nowhere"}, {"before": "nowhere"}):
            with pytest.raises(EntryNotFoundError, match="'nowhere'"):
                journal.fork("t", new_id="f", **place)  # type: ignore[arg-type]
        assert journal.stats().threads == 1


def positioned(name: str, parent: str, *blobs: str) -> PositionedDraft:
    return PositionedDraft(parent=parent, draft=make_draft(user(name), id=name, created_ns=7, blobs=blobs))


def forked(journal: Journal, history: Iterable[PositionedDraft], **expected: Any) -> Operation[Thread]:
    return fork(
        journal.runtime,
        "t",
        at=None,
        before=None,
        new_id="f",
        created_ns=None,
        fields={},
        history=history,
        **expected,
    )
