"""What is done in one commit: entries with metadata, with the thread itself, on several branches, beside the path."""

from __future__ import annotations

import pytest

from sessiontree.errors import (
    DuplicateEntryError,
    InvalidInputError,
    InvalidParentError,
    StaleLeafError,
    StaleVersionError,
    ThreadExistsError,
    ThreadNotFoundError,
)
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import ModelChange
from sessiontree.model.builders import assistant, user
from sessiontree.testing.contract.base import Contract, Opened, fill, ids

__all__ = ["TogetherContract"]


def _new(name: str, **options: object) -> NewEntry:
    return NewEntry(content=user(name), id=name, **options)  # type: ignore[arg-type]


class TogetherContract(Contract):
    def test_entries_and_metadata_are_written_together_or_not_at_all(self, store: Opened) -> None:
        journal = store.journal
        thread = journal.create_thread("t", title="old")
        journal.append(
            "t", user("a"), id="a", fields={"title": "new", "custom": {"n": 1}}, expect_version=thread.version
        )
        changed = store.reopen().thread("t")
        assert (changed.title, changed.custom, changed.leaf, changed.version) == (
            "new",
            {"n": 1},
            "a",
            thread.version + 1,
        )
        journal = store.journal
        with pytest.raises(StaleVersionError):
            journal.append_many("t", [_new("b")], fields={"title": "lost"}, expect_version=thread.version)
        with pytest.raises(StaleLeafError):
            journal.append_many("t", [_new("b")], fields={"title": "lost"}, expect_leaf=None)
        with pytest.raises(InvalidInputError):
            journal.append_many("t", [_new("b")], fields={"colour": "red"})  # type: ignore[arg-type]
        assert journal.thread("t") == changed
        assert journal.append_many("t", [], fields={"title": "only fields"}) == []
        assert journal.thread("t").title == "only fields"

    def test_a_missing_thread_is_created_with_its_first_entries(self, store: Opened) -> None:
        journal = store.journal
        with pytest.raises(ThreadNotFoundError):
            journal.append("t", user("a"), id="a", fields={"title": "x"})
        for name in ("a", "b"):
            journal.append(
                "t",
                user(name),
                id=name,
                create=True,
                fields={"tags": (name,)},
                expect_leaf=None if name == "a" else "a",
            )
        journal = store.reopen()
        assert ids(journal.path("t")) == ["a", "b"]
        assert (journal.thread("t").tags, journal.thread("t").title) == (("b",), "a")
        assert journal.append_many("t", [_new("a"), _new("b")], create=True) == journal.path("t")
        journal.append_many("empty", [], create=True, expect_version=0)
        assert journal.thread("empty").leaf is None
        with pytest.raises(StaleVersionError):
            journal.append("empty", user("x"), create=True, expect_version=0)
        with pytest.raises(StaleLeafError):
            journal.append("u", user("x"), create=True, expect_leaf="a")
        with pytest.raises(StaleVersionError):
            journal.append("u", user("x"), create=True, expect_version=1)
        with pytest.raises(InvalidParentError):
            journal.append("u", user("x"), create=True, parent="a")
        with pytest.raises(ThreadNotFoundError):
            journal.thread("u")

    def test_a_name_that_forks_kept_alive_is_created_again(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        journal.delete_thread("t")
        with pytest.raises(DuplicateEntryError):
            journal.append("t", user("a"), id="a", create=True)
        journal.append("t", user("b"), id="b", create=True)
        journal = store.reopen()
        assert ids(journal.path("t")) == ["b"]
        assert ids(journal.path("f")) == ["a"]

    def test_each_entry_of_a_batch_may_have_its_own_parent(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        batch = [_new("c", parent="a"), _new("d"), _new("e", parent="c"), _new("r", parent=None), _new("f", parent="e")]
        stored = journal.append_many("t", batch)
        assert [(entry.id, entry.parent) for entry in stored] == [
            ("c", "a"), ("d", "c"), ("e", "c"), ("r", None), ("f", "e"),
        ]  # fmt: skip
        journal = store.reopen()
        assert ids(journal.path("t")) == ["a", "c", "e", "f"]
        assert ids(journal.children("t", None)) == ["a", "r"]
        assert journal.append_many("t", batch) == stored
        assert [(move.from_entry, move.to_entry, move.reason) for move in journal.reflog("t")] == [("b", "a", "branch")]
        assert journal.undo("t").leaf == "b"
        with pytest.raises(InvalidParentError):
            journal.append_many("t", [_new("x"), _new("y", parent="z"), _new("z")])
        with pytest.raises(DuplicateEntryError):
            journal.append_many("t", [*batch[:-1], _new("f", parent="c")])
        assert ids(journal.path("t")) == ["a", "b"]

    def test_a_batch_that_is_stored_in_part_is_completed(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        with pytest.raises(DuplicateEntryError):
            fill(journal, "t", "b", "c")
        for _ in range(2):
            stored = journal.append_many("t", [_new("b"), _new("c"), _new("d")], on_duplicate="skip")
            assert [(entry.id, entry.parent) for entry in stored] == [("b", "a"), ("c", "b"), ("d", "c")]
        assert ids(store.reopen().path("t")) == ["a", "b", "c", "d"]
        journal = store.journal
        with pytest.raises(DuplicateEntryError):
            journal.append_many("t", [NewEntry(content=user("other"), id="a"), _new("e")], on_duplicate="skip")
        with pytest.raises(InvalidInputError):
            journal.append_many("t", [_new("e")], on_duplicate="maybe")  # type: ignore[arg-type]
        assert ids(journal.path("t")) == ["a", "b", "c", "d"]

    def test_an_entry_beside_the_path_leaves_the_leaf_alone(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.append("t", ModelChange(model="m"), id="side", moves_leaf=False)
        journal.append_many("t", [_new("x"), _new("y")], moves_leaf=False)
        journal = store.reopen()
        assert (journal.thread("t").leaf, journal.thread("t").entries) == ("a", 1)
        assert ids(journal.path("t")) == ["a"]
        assert ids(journal.entries("t")) == ["a", "side", "x", "y"]
        assert ids(journal.children("t", "a")) == ["side", "x"]
        assert journal.reflog("t") == []
        fill(journal, "t", "b")
        assert ids(store.reopen().path("t")) == ["a", "b"]

    def test_a_thread_is_deleted_only_at_the_expected_leaf(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "a", "b")
        with pytest.raises(StaleLeafError):
            journal.delete_thread("t", expect_leaf="a")
        assert journal.delete_thread("t", expect_leaf="b").entries_removed == 2
        journal.create_thread("t")
        assert journal.delete_thread("t", expect_leaf=None).entries_removed == 0

    def test_a_fork_of_all_branches_shows_what_its_source_shows(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t", title="source", tags=("x",))
        fill(journal, "t", "a", "b")
        journal.append("t", assistant("other"), id="c", parent="a")
        journal.label("t", "b", "good")
        journal.rewind("t", "b")
        journal.fork("t", new_id="shared")
        fill(journal, "shared", "own")
        fork = journal.fork("shared", branches="all", new_id="f", title="mine")
        assert (fork.leaf, fork.forked_from_thread, fork.forked_from_entry, fork.tags) == (
            "own",
            "shared",
            "own",
            ("x",),
        )
        journal.fork("t", branches="all", new_id="g")
        for source, copy in (("shared", "f"), ("t", "g")):
            journal = store.reopen()
            for verb in ("entries", "path"):
                old, new = getattr(journal, verb)(source), getattr(journal, verb)(copy)
                assert [(e.id, e.parent, e.created_ns, e.raw_hash) for e in old] == [
                    (e.id, e.parent, e.created_ns, e.raw_hash) for e in new
                ]
        assert journal.labels("g") == {"good": "b"}
        assert ids(journal.children("g", "a")) == ["b", "c"]
        assert (journal.thread("g").tokens, journal.thread("g").messages) == (
            journal.thread("t").tokens, journal.thread("t").messages,
        )  # fmt: skip
        journal.delete_thread("t")
        assert ids(journal.path("g")) == ["a", "b"]
        with pytest.raises(ThreadExistsError):
            journal.fork("g", branches="all", new_id="f")
        with pytest.raises(InvalidInputError):
            journal.fork("g", branches="all", at="a")
