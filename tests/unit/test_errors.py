"""Errors: one tree, ids as attributes, and what to do at the end."""

import inspect
import pickle
import re

import pytest

import sessiontree as st
from sessiontree import errors

EXAMPLES = [
    (st.ThreadNotFoundError("t"), "list the threads"),
    (st.EntryNotFoundError("t", "e"), "list its entries"),
    (st.NothingToUndoError("t"), "reflog"),
    (st.NothingToRedoError("t"), "reflog"),
    (st.NothingToRetryError("t"), "user message"),
    (st.ThreadExistsError("t"), "another id"),
    (st.ThreadChangedError("t"), "read it again"),
    (st.DuplicateEntryError("t", "e"), "new id"),
    (st.InvalidParentError("t", "p"), "fork there instead"),
    (st.StaleLeafError("t", "a", None), "try again"),
    (st.StaleVersionError("t", 1, 2), "read it again"),
    (st.ActiveTurnError("t", "me", "turn", 5), "wait for it"),
    (st.FencedError("t", 1, 2), "acquire a new lease"),
    (st.DamagedDataError("place", 7, "torn"), "doctor"),
    (st.StoreFullError("place"), "free some space"),
    (st.StoreClosedError("place"), "open it again"),
    (st.StorePoisonedError("place", "EIO"), "open it again"),
    (st.CommitUnknownError("place", "cut", ["e"]), "same ids"),
]


@pytest.mark.parametrize(("error", "advice"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_an_error_says_what_to_do_and_carries_its_ids(error: st.SessionTreeError, advice: str) -> None:
    assert advice in str(error)
    assert vars(error)
    for name, value in vars(error).items():
        said = list(value) if isinstance(value, tuple) else "1970-01-01T" if name == "expires_ns" else value
        assert str(said) in str(error)


DEFINED = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, Exception)}


def test_every_error_is_a_public_name() -> None:
    assert set(st.__all__) >= DEFINED


def test_the_tree_is_drawn_as_it_is() -> None:
    drawn = re.findall(r"^    ([│├└─ ]*)(\w+Error)", errors.__doc__, re.MULTILINE)
    assert sorted(name for _, name in drawn) == sorted(DEFINED)
    above = {}
    for branch, name in drawn:
        above[len(branch) // 4] = getattr(errors, name)
        if branch:
            assert getattr(errors, name).__bases__[0] is above[len(branch) // 4 - 1]


def test_input_and_address_errors_are_value_errors_too() -> None:
    assert issubclass(st.InvalidInputError, ValueError)
    assert issubclass(st.StoreUrlError, ValueError)


@pytest.mark.parametrize("error", [error for error, _ in EXAMPLES], ids=lambda error: type(error).__name__)
def test_an_error_crosses_to_another_process(error: st.SessionTreeError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
