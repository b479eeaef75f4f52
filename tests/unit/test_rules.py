"""The pure rules: the reflog's replay, and decisions that write nothing."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as some

import sessiontree as st
from known import of_kind
from sessiontree.errors import ThreadNotFoundError
from sessiontree.model import Move
from sessiontree.stores._tree_state import TreeState
from sessiontree.stores.commands import AcquireLease, MoveLeaf
from sessiontree.stores.rules.decide import decide
from sessiontree.stores.rules.reflog import replay


def _moves(*steps: tuple[st.MoveReason, str | None, str | None]) -> list[Move]:
    return [
        Move(number=number, thread_id="t", from_entry=start, to_entry=end, reason=reason)
        for number, (reason, start, end) in enumerate(steps, 1)
    ]


def test_without_moves_there_is_nothing_to_undo_or_redo() -> None:
    history = replay([])
    assert (history.undo, history.redo, history.last) == ((), (), None)


def test_an_undo_takes_a_move_off_one_stack_and_onto_the_other() -> None:
    history = replay(_moves(("rewind", "c", "b"), ("rewind", "b", "a"), ("undo", "a", "b")))
    assert (history.undo, history.redo) == (("c",), ("a",))


def test_a_redo_finds_what_was_appended_before_the_undo() -> None:
    history = replay(_moves(("rewind", "c", "a"), ("undo", "x", "c"), ("redo", "c", "x")))
    assert (history.undo, history.redo) == (("c",), ())


def test_a_new_move_forgets_what_could_be_redone() -> None:
    history = replay(_moves(("rewind", "c", "a"), ("undo", "a", "c"), ("reset", "c", None)))
    assert (history.undo, history.redo) == (("c",), ())


@given(some.lists(some.sampled_from(["move", "undo", "redo"]), max_size=30))
def test_undoing_everything_leads_back_to_the_start(wishes: list[Literal["move", "undo", "redo"]]) -> None:
    leaf: str | None = "start"
    moves: list[Move] = []
    for number, wish in enumerate(wishes):
        history = replay(moves)
        target = {"move": (f"e{number}",), "undo": history.undo, "redo": history.redo}[wish]
        if target:
            moves += _moves((wish, leaf, target[-1]))
            leaf = target[-1]
    while undo := replay(moves).undo:
        moves += _moves(("undo", leaf, undo[-1]))
        leaf = undo[-1]
    assert leaf == "start"


def test_a_command_for_an_unknown_thread_is_refused_without_a_fact() -> None:
    state = TreeState(lambda node: pytest.fail("nothing to read"))
    for command in (
        MoveLeaf(thread_id="no", to_entry=None, reason="move", at_ns=0),
        AcquireLease(thread_id="no", turn_id="t", owner="o", now_ns=0, expires_ns=1),
    ):
        with pytest.raises(ThreadNotFoundError):
            decide(command, state)
    assert state.states == {}


def test_a_batch_that_was_never_appended_like_this_is_not_a_repetition() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        first, second = st.NewEntry(content=st.user("a"), id="a"), st.NewEntry(content=st.user("b"), id="b")
        journal.append_many("t", [first, second])
        assert [entry.id for entry in journal.append_many("t", [first, second])] == ["a", "b"]
        with pytest.raises(st.DuplicateEntryError):
            journal.append_many("t", [second, first])
        with pytest.raises(st.InvalidInputError):
            journal.append_many("t", [first, first])


def test_an_empty_batch_is_held_to_what_it_expects() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        assert journal.append_many("t", []) == []
        with pytest.raises(st.StaleLeafError):
            journal.append_many("t", [], expect_leaf="nowhere")


def test_what_was_undone_before_an_append_is_not_redone_later() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        for name in "abc":
            journal.append("t", st.user(name), id=name)
        journal.rewind("t", "b")
        journal.rewind("t", "a")
        journal.undo("t")
        journal.append("t", st.user("n"), id="n")
        with pytest.raises(st.NothingToRedoError):
            journal.redo("t")
        assert journal.undo("t").leaf == "c"
        assert journal.redo("t").leaf == "n"
        with pytest.raises(st.NothingToRedoError):
            journal.redo("t")


def test_a_lease_of_one_thread_gives_no_right_on_another() -> None:
    with st.open("memory:", clock=lambda: 1_000) as journal:
        journal.create_thread("t")
        journal.create_thread("other")
        lease = journal.acquire_lease("t", owner="w")
        journal.acquire_lease("other", owner="v")
        with pytest.raises(st.InvalidInputError, match="'other'"):
            journal.append("other", st.user("x"), lease=lease)


def test_a_fork_can_be_given_empty_fields_of_its_own() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t", tags=("home",), model="m")
        assert journal.fork("t", tags=()).tags == ()
        assert journal.fork("t").tags == ("home",)


def test_an_update_of_nothing_changes_nothing() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        assert journal.update_thread("t").version == 1


def test_what_a_caller_does_to_an_answer_does_not_reach_the_store() -> None:
    with st.open("memory:") as journal:
        thread = journal.create_thread("t", custom={"k": [1]})
        entry = journal.append("t", st.Custom(name="n", data={"k": [1]}))
        thread.custom["k"].append(2)
        of_kind(st.Custom, entry.payload).data["k"].append(2)
        assert journal.thread("t").custom == {"k": [1]}
        assert of_kind(st.Custom, journal.entry("t", entry.id).payload).data == {"k": [1]}
        assert journal.check() == []


def test_keys_that_are_one_in_json_are_refused() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        with pytest.raises(st.InvalidInputError):
            journal.append("t", st.Custom(name="n", data={1: 2, "1": 3}))


def test_resuming_without_a_name_does_not_end_a_turn_that_runs() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        with journal.turn("t") as turn:
            with pytest.raises(st.ActiveTurnError):
                journal.resume("t")
            turn.append(st.assistant("still mine"))
