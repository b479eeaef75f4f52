"""Appends: idempotent, atomic, conditional on the leaf; and which entries can be a parent."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import UNSET

from sessiontree.errors import (
    DuplicateEntryError,
    EntryNotFoundError,
    InvalidInputError,
    InvalidParentError,
    StaleLeafError,
    StaleVersionError,
)
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry, append, append_many
from sessiontree.journal.operations.leaf import move_leaf
from sessiontree.journal.operations.threads import update_command
from sessiontree.model import Message, TextPart, ThreadFields
from sessiontree.model.builders import assistant, user
from sessiontree.model.codec import content_hash
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill, ids, texts

__all__ = ["AppendContract"]


class AppendContract(Contract):
    def test_entries_hang_from_the_leaf_in_order(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        first = journal.append("t", user("one"), id="a")
        clock.advance(1)
        second = journal.append("t", assistant("two"))
        assert (first.parent, second.parent, second.created_ns) == (None, "a", clock())
        thread = journal.thread("t")
        assert (thread.leaf, thread.entries, thread.updated_ns) == (second.id, 2, clock())
        again = store.reopen()
        assert again.path("t") == again.entries("t") == [first, second]
        assert again.entry("t", "a") == first

    def test_a_plain_message_becomes_the_entry_of_its_role(self, journal: Journal) -> None:
        journal.create_thread("t")
        message = Message(role="assistant", parts=(TextPart(text="hi"),))
        entry = journal.append("t", message)
        assert (entry.type, entry.message) == ("assistant_message", message)

    def test_the_time_of_an_old_entry_does_not_turn_the_thread_back(self, journal: Journal, clock: ManualClock) -> None:
        journal.create_thread("t")
        entry = journal.append("t", user("imported"), created_ns=12)
        assert entry.created_ns == 12
        assert journal.thread("t").updated_ns == clock()

    def test_the_same_entry_twice_is_one_entry(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        first = journal.append("t", user("one"), id="a")
        fill(journal, "t", "b")
        clock.advance(5)
        assert journal.append("t", user("one"), id="a") == first
        assert store.reopen().append("t", user("one"), id="a") == first
        assert ids(store.journal.path("t")) == ["a", "b"]

    def test_a_retry_succeeds_although_the_leaf_has_moved_on(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        first = journal.append("t", user("x"), id="x", expect_leaf="a", parent="a")
        fill(journal, "t", "y")
        assert journal.append("t", user("x"), id="x", expect_leaf="a", parent="a") == first

    def test_a_retry_succeeds_although_the_lease_is_gone(self, journal: Journal) -> None:
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="me")
        first = journal.append("t", user("x"), id="x", lease=lease)
        journal.release_lease(lease)
        assert journal.append("t", user("x"), id="x", lease=lease) == first

    def test_the_same_id_with_other_content_is_refused(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        attempts: tuple[Callable[[], object], ...] = (
            lambda: journal.append("t", user("other"), id="a"),
            lambda: journal.append("t", assistant("a"), id="a"),
            lambda: journal.append("t", user("a"), id="a", turn_id="turn"),
            lambda: journal.append("t", user("b"), id="b", parent=None),
            lambda: journal.append("t", user("a"), id="a", parent="b"),
        )
        for attempt in attempts:
            with pytest.raises(DuplicateEntryError) as caught:
                attempt()
            assert caught.value.thread_id == "t"
            assert caught.value.entry_id in {"a", "b"}
        assert ids(journal.entries("t")) == ["a", "b"]

    def test_an_id_of_a_fork_is_taken_in_the_whole_tree(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        fill(journal, "f", "x")
        with pytest.raises(DuplicateEntryError):
            fill(journal, "t", "x")
        with pytest.raises(DuplicateEntryError):
            fill(journal, "f", "a")

    def test_other_trees_have_their_own_ids(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.create_thread("u")
        fill(journal, "t", "a")
        assert journal.append("u", user("different"), id="a").thread_id == "u"

    def test_a_batch_is_a_chain(self, journal: Journal) -> None:
        journal.create_thread("t")
        stored = fill(journal, "t", "a", "b", "c")
        assert [entry.parent for entry in stored] == [None, "a", "b"]
        assert fill(journal, "t", "a", "b", "c") == stored
        assert journal.thread("t").entries == 3

    def test_an_empty_batch_changes_nothing(self, journal: Journal) -> None:
        before = journal.create_thread("t")
        assert journal.append_many("t", []) == []
        assert journal.thread("t") == before

    def test_a_batch_with_one_bad_entry_leaves_nothing(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        before = journal.thread("t")
        with pytest.raises(DuplicateEntryError):
            fill(journal, "t", "x", "y", "a")
        with pytest.raises(DuplicateEntryError):
            fill(journal, "t", "a", "z")
        with pytest.raises(InvalidInputError, match="twice"):
            fill(journal, "t", "x", "x")
        with pytest.raises(InvalidInputError, match="empty"):
            journal.append_many("t", [user("x"), NewEntry(content=user("y"), id="")])
        assert journal.thread("t") == before
        assert ids(journal.entries("t")) == ["a"]

    def test_compare_and_set_lets_one_of_two_writers_win(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append("t", user("first"), id="a", expect_leaf=None)
        journal.append("t", user("winner"), id="w", expect_leaf="a")
        with pytest.raises(StaleLeafError) as caught:
            journal.append("t", user("loser"), id="l", expect_leaf="a")
        assert (caught.value.expected, caught.value.actual) == ("a", "w")
        with pytest.raises(StaleLeafError):
            journal.append("t", user("too late"), expect_leaf=None)
        assert texts(journal, "t") == ["first", "winner"]

    def test_an_append_without_expectations_never_conflicts(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append("t", user("x"), expect_leaf=UNSET, parent=UNSET)
        assert journal.thread("t").entries == 1

    def test_a_parent_must_be_seen_by_the_thread(self, journal: Journal) -> None:
        for name in ("t", "stranger"):
            journal.create_thread(name)
        fill(journal, "t", "a")
        fill(journal, "stranger", "s")
        journal.fork("t", new_id="f")
        fill(journal, "f", "only-in-fork")
        fill(journal, "t", "b")
        for thread_id, parent in (("t", "nowhere"), ("t", "s"), ("t", "only-in-fork"), ("f", "b")):
            with pytest.raises(InvalidParentError) as caught:
                journal.append(thread_id, user("x"), parent=parent)
            assert (caught.value.thread_id, caught.value.parent) == (thread_id, parent)
        assert ids(journal.entries("t")) == ["a", "b"]

    def test_an_append_elsewhere_is_a_branch_that_can_be_undone(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c")
        journal.append("t", user("x"), id="x", parent="a")
        assert ids(journal.path("t")) == ["a", "x"]
        assert ids(journal.path("t", "c")) == ["a", "b", "c"]
        move = journal.reflog("t")[0]
        assert (move.reason, move.from_entry, move.to_entry, move.number) == ("branch", "c", "a", 1)
        again = store.reopen()
        assert again.undo("t").leaf == "c"
        assert again.redo("t").leaf == "x"

    def test_a_second_root_is_a_branch_too(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.append("t", user("r"), id="r", parent=None)
        assert ids(journal.path("t")) == ["r"]
        assert journal.undo("t").leaf == "a"

    def test_naming_the_leaf_as_parent_is_not_a_branch(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.append("t", user("b"), parent="a")
        assert journal.reflog("t") == []

    def test_reads_can_be_cut_to_what_is_needed(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b", "c", "d")
        newest = journal.path("t", limit=2)
        assert ids(newest) == ["c", "d"]
        assert newest[0].parent == "b"
        assert journal.path("t", limit=0) == journal.path("t", None) == []
        assert ids(journal.path("t", "b")) == ["a", "b"]
        assert ids(journal.entries("t", after="b")) == ["c", "d"]
        assert ids(journal.entries("t", after="a", limit=2)) == ["b", "c"]
        assert ids(journal.entries("t", limit=1)) == ["a"]

    def test_reads_of_what_is_not_there_are_refused(self, journal: Journal) -> None:
        journal.create_thread("t")
        for read in (
            lambda: journal.entry("t", "nowhere"),
            lambda: journal.path("t", "nowhere"),
            lambda: journal.entries("t", after="nowhere"),
        ):
            with pytest.raises(EntryNotFoundError, match="'nowhere'") as caught:
                read()
            assert (caught.value.thread_id, caught.value.entry_id) == ("t", "nowhere")
        with pytest.raises(InvalidInputError, match="negative"):
            journal.path("t", limit=-1)
        with pytest.raises(InvalidInputError, match="negative"):
            journal.entries("t", limit=-1)

    def test_an_append_and_a_change_of_metadata_are_one_commit(self, store: Opened) -> None:
        journal = store.journal
        thread = journal.create_thread("t")
        update = update_command(journal.runtime, "t", thread.version, ThreadFields(state="idle", tags=("a",)))
        entry = journal.run(append(journal.runtime, "t", user("one"), id="a", expect_leaf=None, update=update))
        assert journal.run(append(journal.runtime, "t", user("one"), id="a", update=update)) == entry
        changed = store.reopen().thread("t")
        assert (changed.leaf, changed.state, changed.tags, changed.version) == ("a", "idle", ("a",), 2)
        assert (changed.messages, changed.entries) == (1, 1)

    def test_metadata_can_be_changed_on_condition_of_the_leaf(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a")
        fill(journal, "t", "b")
        update = update_command(journal.runtime, "t", 1, ThreadFields(state="idle"))
        with pytest.raises(StaleLeafError):
            journal.run(append_many(journal.runtime, "t", (), expect_leaf="a", update=update))
        assert (journal.thread("t").state, journal.thread("t").version) == ("", 1)
        assert journal.run(append_many(journal.runtime, "t", (), expect_leaf="b", update=update)) == []
        changed = store.reopen().thread("t")
        assert (changed.leaf, changed.state, changed.version) == ("b", "idle", 2)

    def test_a_refused_change_of_metadata_refuses_the_append_too(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a")
        stale = update_command(journal.runtime, "t", 7, ThreadFields(state="idle"))
        with pytest.raises(StaleVersionError):
            journal.run(append(journal.runtime, "t", user("no"), update=stale))
        fresh = update_command(journal.runtime, "t", 1, ThreadFields(state="idle"))
        with pytest.raises(StaleLeafError):
            journal.run(append(journal.runtime, "t", user("no"), expect_leaf=None, update=fresh))
        with pytest.raises(StaleVersionError):
            journal.run(move_leaf(journal.runtime, "t", None, "reset", update=stale))
        again = store.reopen()
        assert (ids(again.path("t")), again.thread("t").state, again.thread("t").version) == (["a"], "", 1)

    def test_a_leaf_move_and_a_change_of_metadata_are_one_commit(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        update = update_command(journal.runtime, "t", 1, ThreadFields(state="active"))
        moved = journal.run(move_leaf(journal.runtime, "t", "a", "reset", update=update))
        assert (moved.leaf, moved.state, moved.version) == ("a", "active", 2)
        again = update_command(journal.runtime, "t", 2, ThreadFields(state="idle"))
        assert journal.run(move_leaf(journal.runtime, "t", "a", "reset", update=again)).state == "idle"
        reopened = store.reopen()
        assert (reopened.thread("t").leaf, reopened.thread("t").state, len(reopened.reflog("t"))) == ("a", "idle", 1)

    def test_the_hash_depends_on_the_content_alone(self, store: Opened) -> None:
        journal = store.journal
        for name in ("t", "u"):
            journal.create_thread(name)
        first = journal.append("t", user("same"))
        other = journal.append("u", user("same"), turn_id="x", created_ns=1)
        again = store.reopen().entry("t", first.id)
        assert content_hash(first.payload) == content_hash(other.payload) == content_hash(again.payload)

    def test_a_repair_of_a_sound_store_changes_nothing(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        assert journal.repair() == []
        fill(journal, "t", "c")
        assert ids(journal.path("t")) == ["a", "b", "c"]
