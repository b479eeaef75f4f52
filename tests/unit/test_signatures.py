"""The sync and the async journal are the same, word for word."""

import inspect

import pytest

import sessiontree as st
from sessiontree.journal.turn import Turn
from sessiontree.journal.turn_async import AsyncTurn

TWINS = {"__enter__": "__aenter__", "__exit__": "__aexit__"}
RETURNS_AT_ONCE = {"turn", "watch", "iter_threads"}


def _methods(kind):
    return {name: value for name, value in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


@pytest.mark.parametrize(("blocking", "awaiting"), [(st.Journal, st.AsyncJournal), (Turn, AsyncTurn)])
def test_both_have_the_same_names(blocking, awaiting):
    assert set(_methods(blocking)) == set(_methods(awaiting))


@pytest.mark.parametrize("name", _methods(st.Journal))
def test_both_journals_have_the_same_parameters_and_words(name):
    blocking, awaiting = getattr(st.Journal, name), getattr(st.AsyncJournal, name)
    assert _parameters(blocking) == _parameters(awaiting)
    assert _neutral(blocking.__doc__) == _neutral(awaiting.__doc__)
    assert inspect.iscoroutinefunction(awaiting) == (name not in RETURNS_AT_ONCE)


@pytest.mark.parametrize("name", _methods(Turn))
def test_both_turns_have_the_same_parameters_and_words(name):
    blocking, awaiting = getattr(Turn, name), getattr(AsyncTurn, name)
    assert inspect.signature(blocking) == inspect.signature(awaiting)
    assert blocking.__doc__ == awaiting.__doc__


def test_both_are_context_managers():
    for kinds in ((st.Journal, st.AsyncJournal), (Turn, AsyncTurn)):
        for plain, doubled in TWINS.items():
            assert hasattr(kinds[0], plain)
            assert hasattr(kinds[1], doubled)


def test_both_are_opened_with_the_same_options():
    assert _parameters(st.open) == _parameters(st.open_async)


def _parameters(function):
    return list(inspect.signature(function).parameters.values())


def _neutral(text):
    return text.replace("async with", "with").replace("await ", "")
