"""Reads that find entries without reading the whole thread."""

from __future__ import annotations

import pytest
from msgspec import UNSET

from sessiontree.errors import EntryNotFoundError, InvalidInputError, ThreadNotFoundError
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import Event, ModelChange
from sessiontree.model.builders import assistant, user
from sessiontree.model.codec import decode_payload
from sessiontree.testing.contract.base import Contract, Opened, fill, ids

__all__ = ["ReadContract"]


def _grow(journal: Journal) -> None:
    """A thread ``t`` with two branches, and a fork ``f`` of it at ``c``."""
    journal.create_thread("t")
    journal.append("t", user("one"), id="a", turn_id="t1")
    journal.append("t", ModelChange(model="m1"), id="b")
    journal.append("t", assistant("two"), id="c", turn_id="t1")
    journal.append("t", user("other"), id="d", parent="b", turn_id="t2")
    journal.append("t", ModelChange(model="m2"), id="e")
    journal.fork("t", at="c", new_id="f")
    journal.append("f", user("mine"), id="g")
    journal.append("f", ModelChange(model="m3"), id="h")


class ReadContract(Contract):
    def test_children_are_those_that_the_thread_sees(self, store: Opened) -> None:
        _grow(store.journal)
        journal = store.reopen()
        assert ids(journal.children("t", "b")) == ["c", "d"]
        assert ids(journal.children("f", "b")) == ["c"]
        assert ids(journal.children("f", "c")) == ["g"]
        assert ids(journal.children("t", "c")) == []
        assert ids(journal.children("t", None)) == ids(journal.children("f", None)) == ["a"]
        journal.append("f", user("another root"), id="r", parent=None)
        assert ids(journal.children("f", None)) == ["a", "r"]
        with pytest.raises(EntryNotFoundError):
            journal.children("f", "d")

    def test_entries_are_read_from_the_newest_one_on(self, store: Opened) -> None:
        _grow(store.journal)
        journal = store.reopen()
        assert ids(journal.entries("t", newest_first=True)) == ["e", "d", "c", "b", "a"]
        assert ids(journal.entries("t", newest_first=True, limit=2)) == ["e", "d"]
        assert ids(journal.entries("t", newest_first=True, after="d", limit=2)) == ["c", "b"]
        assert ids(journal.entries("f", newest_first=True)) == ["h", "g", "c", "b", "a"]
        assert ids(journal.entries("f", newest_first=True, after="c")) == ["b", "a"]
        assert journal.entries("f", newest_first=True, limit=0) == []

    @pytest.mark.parametrize("is_reversed", [False, True])
    def test_entries_are_chosen_by_type_and_turn(self, store: Opened, is_reversed: bool) -> None:
        _grow(store.journal)
        journal = store.reopen()

        def chosen(thread: str, **options: object) -> list[str]:
            found = ids(journal.entries(thread, newest_first=is_reversed, **options))  # type: ignore[arg-type]
            return found[::-1] if is_reversed else found

        assert chosen("t", types=["user_message", "assistant_message"]) == ["a", "c", "d"]
        assert chosen("t", types="model_change") == ["b", "e"]
        assert chosen("f", types=["model_change"]) == ["b", "h"]
        assert chosen("f", types=["model_change", "user_message"]) == ["a", "b", "g", "h"]
        assert chosen("t", turn_id="t1") == ["a", "c"]
        assert chosen("t", turn_id="t2", types=["assistant_message"]) == []
        assert chosen("t", types=["label"]) == []
        assert ids(journal.entries("t", types=["model_change"], newest_first=True, limit=1)) == ["e"]
        assert ids(journal.entries("f", types=["model_change"], after="c")) == ["h"]
        assert ids(journal.entries("f", types=["model_change"], after="g")) == ["h"]
        assert ids(journal.entries("f", types=["model_change"], after="g", newest_first=True)) == ["b"]
        with pytest.raises(InvalidInputError):
            journal.entries("t", types=[7])  # type: ignore[list-item]

    def test_a_path_is_chosen_by_type(self, store: Opened) -> None:
        _grow(store.journal)
        journal = store.reopen()
        assert ids(journal.path("t", types=["user_message"])) == ["a", "d"]
        assert ids(journal.path("t", types=["user_message"], limit=1)) == ["d"]
        assert ids(journal.path("t", "c", types=["model_change", "assistant_message"])) == ["b", "c"]
        assert ids(journal.path("f", types=["model_change"], limit=5)) == ["b", "h"]
        assert [entry.parent for entry in journal.path("f", types=["user_message"])] == [None, "c"]
        assert journal.path("t", None, types=["user_message"]) == []

    def test_a_path_is_read_as_it_is_stored(self, store: Opened) -> None:
        _grow(store.journal)
        journal = store.reopen()
        for thread, leaf, options in (
            ("t", UNSET, {}),
            ("t", UNSET, {"limit": 2}),
            ("t", "c", {"types": ["model_change", "assistant_message"]}),
            ("f", UNSET, {"types": ["user_message"], "limit": 1}),
            ("f", None, {}),
        ):
            path = journal.path(thread, leaf, **options)
            bodies = journal.path_bodies(thread, leaf, **options)
            assert [(one.id, one.type, decode_payload(one.body)) for one in bodies] == [
                (entry.id, entry.type, entry.payload) for entry in path
            ]
        with pytest.raises(ThreadNotFoundError):
            journal.path_bodies("nowhere")
        with pytest.raises(EntryNotFoundError):
            journal.path_bodies("t", "nowhere")

    def test_the_end_of_a_path_is_the_same_whoever_wrote_in_between(self, journal: Journal) -> None:
        for thread in ("alone", "other", "mixed"):
            journal.create_thread(thread)
        fill(journal, "alone", *(f"a{number}" for number in range(5)))
        for number in range(4):
            fill(journal, "mixed", f"m{number}")
            fill(journal, "other", f"o{number}")
        fill(journal, "other", "o4", "o5")
        fill(journal, "mixed", "m4", "m5", "m6")
        for thread, whole in (("alone", 5), ("mixed", 7), ("other", 6)):
            path = journal.path(thread)
            assert len(path) == whole
            for limit in range(1, whole + 2):
                assert journal.path(thread, limit=limit) == path[-limit:]
                bodies = journal.path_bodies(thread, limit=limit)
                assert [one.id for one in bodies] == ids(path[-limit:])

    def test_children_are_found_whoever_wrote_in_between(self, journal: Journal) -> None:
        for thread in ("t", "other"):
            journal.create_thread(thread)
        fill(journal, "t", "a", "b")
        fill(journal, "other", *(f"o{number}" for number in range(300)))
        fill(journal, "t", "c")
        fill(journal, "other", "near")
        fill(journal, "t", "d")
        journal.fork("t", at="c", new_id="f")
        fill(journal, "f", "e", "g")
        journal.rewind("t", "b")
        fill(journal, "t", "h")
        assert {name: ids(journal.children("t", name)) for name in "abcdh"} == {
            "a": ["b"], "b": ["c", "h"], "c": ["d"], "d": [], "h": [],
        }  # fmt: skip
        journal.delete_thread("t")
        assert [ids(journal.children("f", name)) for name in "abceg"] == [["b"], ["c"], ["e"], ["g"], []]

    def test_a_long_path_is_searched_to_its_root(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append("t", user("first"), id="first")
        journal.append_many("t", [NewEntry(content=Event(name="tick"), id=f"n{number}") for number in range(300)])
        journal.fork("t", new_id="f")
        journal.append_many("f", [NewEntry(content=Event(name="tock"), id=f"m{number}") for number in range(300)])
        for thread in ("t", "f"):
            assert ids(journal.path(thread, types=["user_message"], limit=5)) == ["first"]
            assert [one.id for one in journal.path_bodies(thread, types=["user_message"])] == ["first"]
            assert ids(journal.entries(thread, types=["user_message"], newest_first=True)) == ["first"]
        assert len(journal.entries("f", newest_first=True)) == 601
        assert len(journal.entries("f", newest_first=True, limit=400)) == 400

    def test_entries_are_found_by_their_ids(self, store: Opened) -> None:
        _grow(store.journal)
        store.journal.create_thread("u")
        fill(store.journal, "u", "a", "z")
        journal = store.reopen()
        assert ids(journal.find_entries(["e", "a", "nowhere", "e"], thread_id="t")) == ["e", "a"]
        assert ids(journal.find_entries(["d", "a", "g"], thread_id="f")) == ["a", "g"]
        assert journal.find_entries([], thread_id="t") == []
        assert [(entry.thread_id, entry.id) for entry in journal.find_entries(["g", "nowhere"])] == [("f", "g")]
        found = journal.find_entries(["z", "a"])
        assert [entry.id for entry in found] == ["z", "a", "a"]
        assert sorted(entry.thread_id for entry in found[1:]) == ["t", "u"]
        assert journal.find_entries(["a"], thread_id="u") == [journal.entry("u", "a")]
        with pytest.raises(ThreadNotFoundError):
            journal.find_entries(["a"], thread_id="nowhere")

    def test_a_list_of_threads_has_their_last_entries(self, store: Opened) -> None:
        _grow(store.journal)
        store.journal.create_thread("empty")
        store.journal.fork("t", at="a", new_id="short")
        journal = store.reopen()
        last = journal.last_entries(journal.list_threads())
        assert {thread: entry.id for thread, entry in last.items()} == {"t": "e", "f": "h", "short": "a"}
        assert last["short"] == journal.entry("t", "a")
        assert journal.last_entries(["nowhere"]) == {}

    def test_labels_survive_branches_and_forks(self, store: Opened) -> None:
        journal = store.journal
        _grow(journal)
        journal.label("t", "a", "start")
        journal.label("f", "g", "mine")
        journal.label("t", "c", "good")
        journal.label("t", "a", "")
        journal = store.reopen()
        assert journal.labels("t") == {"good": "c"}
        assert journal.labels("f") == {"mine": "g"}
        journal.fork("t", new_id="later")
        assert journal.labels("later") == {"good": "c"}
