"""Leaf moves: recorded in the reflog, reversible, and without loss of entries."""

from __future__ import annotations

import pytest

from sessiontree.errors import EntryNotFoundError, FencedError, NothingToRedoError, NothingToUndoError, StaleLeafError
from sessiontree.journal import Journal
from sessiontree.journal.operations.requests import Operation
from sessiontree.model import Thread
from sessiontree.model.builders import user
from sessiontree.stores.commands import Redo, Undo
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill, ids

__all__ = ["LeafContract"]


class LeafContract(Contract):
    def test_a_rewind_branches_and_the_old_branch_stays_readable(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        assert journal.rewind("t", "a").leaf == "a"
        again = store.reopen()
        assert again.thread("t").leaf == "a"
        assert again.append("t", user("x"), id="x").parent == "a"
        assert ids(again.path("t")) == ["a", "x"]
        assert ids(again.path("t", "c")) == ["a", "b", "c"]
        assert ids(again.entries("t")) == ["a", "b", "c", "x"]

    def test_a_move_reaches_every_entry_forwards_and_sideways(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.append("t", user("x"), id="x", parent="a")
        for target in ("b", "x", "a", None):
            assert journal.move_leaf("t", target).leaf == target

    def test_a_reset_starts_over_and_deletes_nothing(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        emptied = journal.reset("t")
        assert (emptied.leaf, emptied.entries, emptied.messages, emptied.tokens) == (None, 0, 0, 0)
        assert journal.append("t", user("r"), id="r").parent is None
        again = store.reopen()
        assert ids(again.entries("t")) == ["a", "b", "r"]
        assert again.undo("t").leaf == "b"

    def test_moves_are_written_down(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        clock.advance(1)
        journal.rewind("t", "b")
        journal.move_leaf("t", "c")
        journal.reset("t")
        journal.undo("t")
        journal.redo("t")
        moves = store.reopen().reflog("t")
        assert [(move.reason, move.from_entry, move.to_entry) for move in moves] == [
            ("rewind", "c", "b"),
            ("move", "b", "c"),
            ("reset", "c", None),
            ("undo", None, "c"),
            ("redo", "c", None),
        ]
        assert [move.number for move in moves] == [1, 2, 3, 4, 5]
        assert {(move.thread_id, move.at_ns) for move in moves} == {("t", clock())}
        assert store.journal.thread("t").updated_ns == clock()

    def test_a_move_to_where_the_leaf_is_leaves_no_trace(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.reset("t")
        fill(journal, "t", "a")
        journal.rewind("t", "a")
        assert journal.reflog("t") == []

    def test_undo_goes_back_step_by_step_and_redo_forward(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c", "d")
        for target in ("c", "b", "a"):
            journal.rewind("t", target)
        assert [journal.undo("t").leaf for _ in range(3)] == ["b", "c", "d"]
        with pytest.raises(NothingToUndoError) as no_undo:
            journal.undo("t")
        assert no_undo.value.thread_id == "t"
        journal = store.reopen()
        assert [journal.redo("t").leaf for _ in range(3)] == ["c", "b", "a"]
        with pytest.raises(NothingToRedoError) as no_redo:
            journal.redo("t")
        assert no_redo.value.thread_id == "t"
        assert journal.undo("t").leaf == "b"

    def test_entries_between_a_move_and_its_undo_are_found_again(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.rewind("t", "a")
        fill(journal, "t", "x", "y")
        assert journal.undo("t").leaf == "b"
        assert store.reopen().redo("t").leaf == "y"

    def test_an_append_after_an_undo_closes_the_way_forward(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.rewind("t", "a")
        journal.undo("t")
        fill(journal, "t", "c")
        with pytest.raises(NothingToRedoError):
            journal.redo("t")
        assert journal.thread("t").leaf == "c"

    def test_a_new_move_closes_the_way_forward(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        journal.rewind("t", "a")
        journal.undo("t")
        journal.rewind("t", "b")
        with pytest.raises(NothingToRedoError):
            journal.redo("t")
        assert journal.undo("t").leaf == "c"

    def test_a_dry_run_tells_which_move_would_be_taken_back(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        with pytest.raises(NothingToUndoError):
            journal.undo("t", dry_run=True)
        journal.rewind("t", "b")
        journal.reset("t")
        rewind, reset = journal.reflog("t")
        assert journal.undo("t", dry_run=True).move == reset
        with pytest.raises(NothingToRedoError):
            journal.redo("t", dry_run=True)
        journal.undo("t")
        journal = store.reopen()
        assert journal.undo("t", dry_run=True).move == rewind
        taken_back = journal.redo("t", dry_run=True)
        assert (taken_back.move.number, taken_back.move.reason, taken_back.move.from_entry) == (3, "undo", None)
        assert taken_back.checkpoint is None
        assert [move.number for move in journal.reflog("t")] == [1, 2, 3]
        assert journal.thread("t").leaf == "b"

    def test_an_undo_of_another_move_than_expected_is_refused(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        journal.rewind("t", "b")
        journal.rewind("t", "a")
        with pytest.raises(StaleLeafError) as refused:
            journal.run(_take_back(Undo(thread_id="t", at_ns=0, expect_move=1)))
        assert (refused.value.thread_id, refused.value.expected, refused.value.actual) == ("t", "b", "a")
        assert journal.thread("t").leaf == "a"
        assert journal.run(_take_back(Undo(thread_id="t", at_ns=0, expect_move=2))).leaf == "b"
        assert journal.run(_take_back(Undo(thread_id="t", at_ns=0, expect_move=1))).leaf == "c"

    def test_a_redo_of_another_undo_than_expected_is_refused(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        journal.rewind("t", "b")
        journal.rewind("t", "a")
        journal.undo("t")
        journal.undo("t")
        with pytest.raises(StaleLeafError):
            journal.run(_take_back(Redo(thread_id="t", at_ns=0, expect_move=3)))
        assert journal.thread("t").leaf == "c"
        assert journal.run(_take_back(Redo(thread_id="t", at_ns=0, expect_move=4))).leaf == "b"
        assert journal.run(_take_back(Redo(thread_id="t", at_ns=0, expect_move=3))).leaf == "a"

    def test_a_later_move_that_was_undone_does_not_make_an_expectation_stale(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        journal.rewind("t", "b")
        expected = journal.undo("t", dry_run=True).move.number
        journal.rewind("t", "a")
        journal.undo("t")
        assert journal.run(_take_back(Undo(thread_id="t", at_ns=0, expect_move=expected))).leaf == "c"

    def test_undo_and_redo_can_be_compared_and_fenced(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.rewind("t", "a")
        lease = journal.acquire_lease("t", owner="me")
        with pytest.raises(StaleLeafError):
            journal.run(_take_back(Undo(thread_id="t", at_ns=0, expect_leaf="b")))
        undo = Undo(thread_id="t", at_ns=0, expect_leaf="a", token=lease.token)
        assert journal.run(_take_back(undo)).leaf == "b"
        journal.release_lease(lease)
        with pytest.raises(FencedError):
            journal.run(_take_back(Redo(thread_id="t", at_ns=0, token=lease.token)))
        assert journal.thread("t").leaf == "b"

    def test_appends_are_not_undone(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        with pytest.raises(NothingToUndoError):
            journal.undo("t")
        assert journal.thread("t").leaf == "a"

    def test_a_move_can_be_compared_and_set(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        with pytest.raises(StaleLeafError):
            journal.move_leaf("t", "a", expect_leaf="a")
        assert journal.move_leaf("t", "a", expect_leaf="b").leaf == "a"

    def test_a_move_under_a_lost_lease_is_fenced(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        lease = journal.acquire_lease("t", owner="me")
        assert journal.move_leaf("t", "a", lease=lease).leaf == "a"
        journal.release_lease(lease)
        with pytest.raises(FencedError):
            journal.move_leaf("t", "b", lease=lease)
        assert journal.thread("t").leaf == "a"

    def test_a_move_to_what_the_thread_does_not_see_is_refused(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        fill(journal, "t", "later")
        for verb in (journal.move_leaf, journal.rewind):
            for target in ("nowhere", "later"):
                with pytest.raises(EntryNotFoundError):
                    verb("f", target)
        assert journal.reflog("f") == []

    def test_moves_of_one_thread_do_not_touch_its_forks(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        journal.fork("t", new_id="f")
        journal.reset("t")
        assert ids(journal.path("f")) == ["a", "b"]
        with pytest.raises(NothingToUndoError):
            journal.undo("f")


def _take_back(command: Undo | Redo) -> Operation[Thread]:
    moved: Thread = yield command
    return moved
