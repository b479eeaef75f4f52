"""How a turn ends, and what it says about an end that could not be written."""

import pytest

import sessiontree as st
from known import of_kind
from sessiontree.journal._background import Background
from sessiontree.journal.operations.turns import ending_for
from sessiontree.testing import ManualClock


@pytest.mark.parametrize(
    ("error", "status", "is_recoverable", "text"),
    [
        (ValueError("bad"), "failed", False, "ValueError: bad"),
        (ValueError(), "failed", False, "ValueError"),
        (KeyboardInterrupt(), "aborted", True, "KeyboardInterrupt"),
        (SystemExit(1), "aborted", True, "SystemExit: 1"),
    ],
)
def test_a_fault_is_a_failure_and_an_interruption_can_be_taken_up(
    error: BaseException, status: str, is_recoverable: bool, text: str
) -> None:
    marker, said = ending_for(error)
    assert (marker.status, marker.is_recoverable, said) == (status, is_recoverable, text)


def test_an_end_that_cannot_be_written_is_noted_on_the_error_that_caused_it() -> None:
    clock = ManualClock()
    with st.open("memory:", clock=clock) as journal:
        journal.create_thread("t")
        with pytest.raises(RuntimeError) as caught, journal.turn("t", ttl_seconds=60):  # noqa: PT012
            clock.advance(61)
            journal.acquire_lease("t", owner="new")
            raise RuntimeError("first cause")
        assert "could not be written" in caught.value.__notes__[0]


def test_a_turn_that_has_not_begun_has_no_lease() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        with pytest.raises(AssertionError, match="context manager"):
            journal.turn("t").lease  # noqa: B018


def test_a_turn_without_an_owner_is_named_after_its_process() -> None:
    with st.open("memory:") as journal:
        journal.create_thread("t")
        with journal.turn("t") as turn:
            assert turn.lease.owner.rpartition(":")[2].isdigit()


def test_a_turn_ends_even_if_stopping_its_heartbeat_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(background: Background) -> None:
        close(background)
        raise KeyboardInterrupt

    close = Background.close
    with st.open("memory:") as journal:
        journal.create_thread("t")
        with pytest.raises(KeyboardInterrupt), journal.turn("t"):
            monkeypatch.setattr(Background, "close", interrupted)
        assert of_kind(st.TurnMarker, journal.path("t")[-1].payload).status == "completed"
        assert journal.active_lease("t") is None
