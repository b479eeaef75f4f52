"""What errors say: for a person at a terminal as well as for a program, and always what to do."""

import inspect
import pickle
import re

import pytest

import sessiontree as st
from sessiontree import errors

CALL = re.compile(r"[\w.]+\([^)]*\)")
ONLY_PROGRAMS_MEET = {"SessionNotFoundError", "SessionNotArchivedError", "InvalidTransitionError"}
SAMPLES = {
    "str": "one",
    "int": 7,
    "str | None": "one",
    "Iterable[str]": ["one"],
    "Iterable[int]": [7],
    "float | None": 1.5,
}


def sample_of(kind: type[st.SessionTreeError]) -> st.SessionTreeError:
    signature = inspect.signature(kind.__init__)
    given = [name for name in signature.parameters.values() if name.name not in {"self", "args", "kwargs"}]
    return kind(*(SAMPLES[name.annotation] for name in given if name.kind is name.POSITIONAL_OR_KEYWORD))


NAMES = {
    name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
}


@pytest.mark.parametrize("name", sorted(NAMES - ONLY_PROGRAMS_MEET))
def test_an_error_names_no_function_because_people_read_it_at_a_terminal_too(name: str) -> None:
    assert not CALL.search(str(sample_of(getattr(errors, name))))


def test_a_time_in_an_error_is_one_that_people_can_read() -> None:
    error = st.ActiveTurnError("t", "me", "turn", 1_700_000_000_000_000_000)
    assert "until 2023-11-14T22:13:20Z" in str(error)
    assert "until 9223372036854775807000 ns" in str(st.ActiveTurnError("t", "me", "turn", (2**63 - 1) * 1000))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_error_can_be_pickled(name: str) -> None:
    error = sample_of(getattr(errors, name))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
