"""Turns: markers, heartbeat, resuming after a crash, retrying after a failure."""

from __future__ import annotations

import contextlib
import time

import pytest

from sessiontree.errors import ActiveTurnError, FencedError, NothingToRetryError
from sessiontree.journal import Journal
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model import Entry, RunFailure, TurnMarker
from sessiontree.model.builders import assistant, user
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill, ids

__all__ = ["TurnContract"]


_PATIENCE_SECONDS = 10.0


class TurnContract(Contract):
    def test_a_turn_writes_its_start_its_entries_and_its_end(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        with journal.turn("t", owner="me", turn_id="turn") as turn:
            turn.append(assistant("one"), id="one")
            turn.save_point("tools done")
            turn.append_many([assistant("two"), NewEntry(content=assistant("three"), id="three")])
            assert journal.active_lease("t") == turn.lease
        path = store.reopen().path("t")
        assert _kinds(path) == ["started", "assistant_message", "save_point", *["assistant_message"] * 2, "completed"]
        assert {entry.turn_id for entry in path} == {"turn"}
        assert path[2].payload == TurnMarker(status="save_point", reason="tools done")
        assert store.journal.active_lease("t") is None

    def test_a_turn_that_raises_has_failed(self, journal: Journal) -> None:
        journal.create_thread("t")
        with contextlib.suppress(RuntimeError), journal.turn("t", turn_id="turn") as turn:
            turn.append(assistant("half"))
            raise RuntimeError("no model")
        path = journal.path("t")
        assert _kinds(path) == ["started", "assistant_message", "run_failure", "failed"]
        assert path[2].payload == RunFailure(error="RuntimeError: no model")
        assert journal.active_lease("t") is None

    def test_a_turn_that_is_interrupted_can_be_taken_up_again(self, journal: Journal) -> None:
        journal.create_thread("t")
        with pytest.raises(KeyboardInterrupt), journal.turn("t"):
            raise KeyboardInterrupt
        last = journal.path("t")[-1].payload
        assert last == TurnMarker(status="aborted", reason="KeyboardInterrupt", is_recoverable=True)

    def test_a_turn_can_end_waiting_or_aborted(self, journal: Journal) -> None:
        journal.create_thread("t")
        with journal.turn("t") as turn:
            turn.wait("for an answer")
        with journal.turn("t") as turn:
            turn.abort("by the user")
        ends = [journal.path("t")[place].payload for place in (1, 3)]
        assert ends == [
            TurnMarker(status="waiting", reason="for an answer"),
            TurnMarker(status="aborted", reason="by the user"),
        ]

    def test_one_turn_at_a_time(self, journal: Journal) -> None:
        journal.create_thread("t")
        with journal.turn("t", owner="first") as turn:
            with pytest.raises(ActiveTurnError, match="'first'"), journal.turn("t", owner="second"):
                pass
            turn.append(assistant("undisturbed"))
        assert _kinds(journal.path("t")) == ["started", "assistant_message", "completed"]

    def test_a_turn_that_was_overtaken_writes_nothing_more(self, journal: Journal, clock: ManualClock) -> None:
        journal.create_thread("t")
        with pytest.raises(FencedError), journal.turn("t", owner="old", ttl_seconds=60) as turn:  # noqa: PT012
            clock.advance(61)
            journal.acquire_lease("t", owner="new")
            with pytest.raises(FencedError):
                turn.append(assistant("late"))
        assert _kinds(journal.path("t")) == ["started"]

    def test_the_end_of_an_overtaken_turn_is_refused_too(self, journal: Journal, clock: ManualClock) -> None:
        journal.create_thread("t")
        with pytest.raises(FencedError), journal.turn("t", owner="old", ttl_seconds=60):  # noqa: PT012
            clock.advance(61)
            journal.acquire_lease("t", owner="new")
        assert _kinds(journal.path("t")) == ["started"]

    def test_the_heart_of_a_turn_keeps_its_lease_alive(self, journal: Journal, clock: ManualClock) -> None:
        journal.create_thread("t")
        with journal.turn("t", ttl_seconds=0.06) as turn:
            first = turn.lease.expires_ns
            clock.advance(0.05)
            end = time.monotonic() + _PATIENCE_SECONDS
            while (lease := journal.active_lease("t")) and lease.expires_ns == first and time.monotonic() < end:
                pass
            assert lease is not None
            assert (lease.token, lease.expires_ns) == (turn.lease.token, clock() + 60_000_000)

    def test_a_crashed_turn_is_found_and_closed_by_resume(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        _crash(journal, "t", turn_id="lost", ttl_seconds=30)
        clock.advance(31)
        resumed = store.reopen().resume("t", owner="another")
        assert resumed.interrupted == ("lost",)
        path = store.journal.path("t")
        assert _kinds(path) == ["started", "assistant_message", "run_failure", "aborted"]
        assert path[-1].payload == TurnMarker(status="aborted", reason="interrupted", is_recoverable=True)
        assert {entry.turn_id for entry in path} == {"lost"}
        assert resumed.thread == store.journal.thread("t")
        assert store.journal.active_lease("t") is None

    def test_resume_waits_for_the_lease_of_another_owner_but_not_for_its_own(self, journal: Journal) -> None:
        journal.create_thread("t")
        _crash(journal, "t", owner="worker", turn_id="lost", ttl_seconds=3600)
        with pytest.raises(ActiveTurnError, match="'worker'"):
            journal.resume("t", owner="another")
        assert journal.resume("t", owner="worker").interrupted == ("lost",)

    def test_resume_of_a_thread_without_open_turns_changes_nothing(self, journal: Journal) -> None:
        journal.create_thread("t")
        with journal.turn("t"):
            pass
        before = journal.thread("t")
        resumed = journal.resume("t")
        assert (resumed.interrupted, resumed.thread) == ((), before)
        assert journal.resume("t").thread == before

    def test_resume_looks_at_the_active_path_only(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        _crash(journal, "t", owner="me", turn_id="abandoned")
        journal.rewind("t", "a")
        assert journal.resume("t", owner="me").interrupted == ()

    def test_a_turn_that_was_retried_is_not_interrupted(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "question")
        with contextlib.suppress(RuntimeError), journal.turn("t") as turn:
            turn.append(assistant("one"))
            turn.save_point()
            raise RuntimeError
        journal.retry("t")
        with journal.turn("t") as turn:
            turn.append(assistant("two"))
        before = journal.thread("t")
        assert journal.resume("t").interrupted == ()
        assert journal.thread("t") == before

    def test_retry_goes_back_to_before_the_last_save_point(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "question")
        with contextlib.suppress(RuntimeError), journal.turn("t") as turn:
            turn.append(assistant("one"), id="one")
            turn.save_point()
            turn.append(assistant("two"), id="two")
            turn.save_point()
            turn.append(assistant("half"), id="half")
            raise RuntimeError
        assert journal.retry("t").leaf == "two"
        assert journal.reflog("t")[-1].reason == "retry"

    def test_retry_without_a_save_point_goes_back_to_the_user_message(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "old", "question")
        with contextlib.suppress(RuntimeError), journal.turn("t") as turn:
            turn.append(assistant("half"))
            raise RuntimeError
        assert journal.retry("t").leaf == "question"
        with journal.turn("t") as turn:
            turn.append(assistant("answer"))
        questions = [entry for entry in journal.path("t") if entry.type == "user_message"]
        assert ids(questions) == ["old", "question"]

    def test_a_save_point_of_an_earlier_turn_is_not_a_target(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "first")
        with journal.turn("t") as turn:
            turn.save_point()
        fill(journal, "t", "second")
        with contextlib.suppress(RuntimeError), journal.turn("t"):
            raise RuntimeError
        assert journal.retry("t").leaf == "second"

    def test_retry_after_a_crash_starts_at_the_save_point(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        fill(journal, "t", "question")
        lease = journal.acquire_lease("t", owner="me", turn_id="lost")
        journal.append("t", TurnMarker(status="started"), lease=lease)
        journal.append("t", assistant("kept"), id="kept", lease=lease)
        journal.append("t", TurnMarker(status="save_point"), lease=lease)
        journal.append("t", assistant("half"), lease=lease)
        again = store.reopen()
        again.resume("t", owner="me")
        assert again.retry("t").leaf == "kept"

    def test_without_a_failure_and_a_user_message_there_is_nothing_to_retry(self, journal: Journal) -> None:
        journal.create_thread("t")
        with pytest.raises(NothingToRetryError) as caught:
            journal.retry("t")
        assert caught.value.thread_id == "t"

    def test_a_user_message_in_mid_turn_lands_in_the_turn(self, journal: Journal) -> None:
        journal.create_thread("t")
        with journal.turn("t") as turn:
            journal.append("t", user("wait, also this"), id="inbound")
            turn.append(assistant("both"))
        path = journal.path("t")
        assert _kinds(path) == ["started", "user_message", "assistant_message", "completed"]
        assert path[1].turn_id == ""


def _kinds(path: list[Entry]) -> list[str]:
    return [entry.payload.status if isinstance(entry.payload, TurnMarker) else entry.type for entry in path]


def _crash(journal: Journal, thread_id: str, *, turn_id: str, owner: str = "gone", ttl_seconds: float = 60) -> None:
    """Leave a turn as if its process had died."""
    lease = journal.acquire_lease(thread_id, owner=owner, turn_id=turn_id, ttl_seconds=ttl_seconds)
    journal.append(thread_id, TurnMarker(status="started"), lease=lease)
    journal.append(thread_id, assistant("half an answer"), lease=lease)
