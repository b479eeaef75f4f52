"""A simple store walks back step by step, whatever was done, and forth again."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as hs

import sessiontree as st
from sessiontree.sessions import histories
from sessiontree.sessions.simple_store import SimpleStore

KEY = "chat"


def shown(store: SimpleStore) -> tuple[list[str], str]:
    return [message.text for message in store.get_history(KEY)], store.get_summary(KEY)


def filled(journal: st.Journal, count: int = 4) -> SimpleStore:
    store = SimpleStore(journal)
    for number in range(count):
        store.add_message(KEY, "user", f"m{number}")
    return store


def test_a_truncation_before_a_replaced_history_can_still_be_taken_back() -> None:
    with st.open("memory:") as journal:
        store = filled(journal)
        states = [shown(store)]
        store.truncate_history(KEY, 2)
        states.append(shown(store))
        store.set_history(KEY, [st.user("anew").message])
        states.append(shown(store))
        for state in states[-2::-1]:
            store.undo(KEY)
            assert shown(store) == state
        with pytest.raises(st.NothingToUndoError):
            store.undo(KEY)
        for state in states[1:]:
            store.redo(KEY)
            assert shown(store) == state
        with pytest.raises(st.NothingToRedoError):
            store.redo(KEY)


def test_messages_that_came_after_a_truncation_stay_when_it_is_taken_back_also_after_a_redo() -> None:
    with st.open("memory:") as journal:
        store = filled(journal)
        store.truncate_history(KEY, 1)
        store.undo(KEY)
        store.redo(KEY)
        store.add_message(KEY, "user", "later")
        assert shown(store)[0] == ["m3", "later"]
        store.undo(KEY)
        assert shown(store)[0] == ["m0", "m1", "m2", "m3", "later"]


def test_what_is_said_after_an_undo_ends_the_redo() -> None:
    with st.open("memory:") as journal:
        store = filled(journal)
        store.truncate_history(KEY, 1)
        store.undo(KEY)
        store.add_message(KEY, "user", "something else")
        with pytest.raises(st.NothingToRedoError):
            store.redo(KEY)


def test_an_unknown_key_has_nothing_to_undo_or_redo() -> None:
    with st.open("memory:") as journal:
        store = SimpleStore(journal)
        with pytest.raises(st.NothingToUndoError):
            store.undo("nobody")
        with pytest.raises(st.NothingToRedoError):
            store.redo("nobody")


steps = hs.lists(
    hs.one_of(
        hs.tuples(hs.just("truncate_history"), hs.integers(0, 3)),
        hs.tuples(hs.just("set_summary"), hs.sampled_from(["one", "two"])),
        hs.tuples(hs.just("set_history"), hs.integers(0, 3)),
        hs.tuples(hs.just("undo"), hs.none()),
        hs.tuples(hs.just("redo"), hs.none()),
    ),
    max_size=14,
)


@pytest.fixture(params=[1, 3, 1_000], ids="read {} first".format)
def first_read(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many of the last events are read at first: whatever it is, more are read if the answer depends on them."""
    monkeypatch.setattr(histories, "_FIRST_READ", request.param)


@pytest.mark.usefixtures("first_read")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_undo_and_redo_walk_through_every_state_that_there_was(todo: list[tuple[str, Any]]) -> None:
    """Against the plainest model there is: a list of states, and a finger in it."""
    with st.open("memory:") as journal:
        store = filled(journal)
        thread_id = SimpleStore.thread_id(KEY)
        states, at, fresh = [shown(store)], 0, 0
        for verb, argument in todo:
            if verb in {"undo", "redo"}:
                target = at - 1 if verb == "undo" else at + 1
                if not 0 <= target < len(states):
                    with pytest.raises(st.NotFoundError):
                        getattr(store, verb)(KEY)
                    continue
                getattr(store, verb)(KEY)
                at = target
                assert shown(store) == states[at]
                continue
            before = journal.thread(thread_id).leaf, len(journal.reflog(thread_id))
            if verb == "set_history":
                fresh += 1
                store.set_history(KEY, [st.user(f"{fresh}-{number}").message for number in range(argument)])
            else:
                getattr(store, verb)(KEY, argument)
            if before[0] is None and verb == "set_history":
                # Nothing was replaced: that is the same as adding messages.
                states = [*states[:at], shown(store)] if argument or shown(store)[1] else states
            elif before != (journal.thread(thread_id).leaf, len(journal.reflog(thread_id))):
                states, at = [*states[: at + 1], shown(store)], at + 1
