"""Pure questions about paths."""

from typing import Any

import pytest

import sessiontree as st
from sessiontree.journal.operations.entries import labels_of
from sessiontree.journal.operations.leaf import retry_target
from sessiontree.journal.operations.turns import open_turns


def _path(*payloads: st.Payload | tuple[str, st.Payload]) -> list[st.Entry]:
    """Entries e1, e2, … of one chain; a pair gives the turn that an entry belongs to."""
    entries = []
    for number, item in enumerate(payloads, 1):
        turn_id, payload = item if isinstance(item, tuple) else ("", item)
        parent = f"e{number - 1}" if number > 1 else None
        entries.append(
            st.Entry(id=f"e{number}", thread_id="t", parent=parent, created_ns=0, turn_id=turn_id, payload=payload)
        )
    return entries


def _mark(status: st.TurnStatus, **fields: Any) -> st.TurnMarker:
    return st.TurnMarker(status=status, **fields)


FAILURE = st.RunFailure(error="x")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (_path(), []),
        (_path(("t1", _mark("started"))), ["t1"]),
        (_path(("t1", _mark("started")), ("t1", _mark("save_point"))), ["t1"]),
        (_path(("t1", _mark("started")), ("t1", _mark("completed")), ("t2", _mark("started"))), ["t2"]),
        (_path(("t1", _mark("started")), ("t2", _mark("started")), ("t2", _mark("failed"))), ["t1"]),
        (_path(("t1", _mark("waiting"))), []),
    ],
)
def test_open_turns_started_and_did_not_end(path: list[st.Entry], expected: list[str]) -> None:
    assert open_turns(path, path) == expected


def test_a_turn_that_ended_on_another_branch_is_not_open() -> None:
    path = _path(("t1", _mark("started")), ("t2", _mark("started")))
    elsewhere = _path(("t1", _mark("failed")))
    assert open_turns(path, [*path, *elsewhere]) == ["t2"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (_path(), None),
        (_path(st.assistant("hi")), None),
        (_path(st.user("q")), "e1"),
        (_path(st.user("q"), ("t", _mark("started")), ("t", FAILURE)), "e1"),
        (_path(st.user("q"), ("t", st.assistant("a")), ("t", _mark("save_point")), ("t", FAILURE)), "e2"),
        (_path(st.user("q"), ("t1", _mark("save_point")), ("t2", _mark("started")), ("t2", FAILURE)), "e1"),
        (_path(st.user("q"), ("t", _mark("save_point")), st.user("more"), ("t", FAILURE)), "e1"),
    ],
)
def test_a_retry_starts_before_the_failed_turns_last_save_point_or_at_the_last_user_message(
    path: list[st.Entry], expected: str | None
) -> None:
    assert retry_target(path) == expected


def test_the_newest_label_of_an_entry_counts() -> None:
    labels = [("a", "one"), ("b", "two"), ("a", "three"), ("b", "")]
    path = _path(*(st.Label(target=target, label=label) for target, label in labels))
    assert labels_of(path) == {"three": "a"}
