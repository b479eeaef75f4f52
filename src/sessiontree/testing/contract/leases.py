"""Leases: one turn at a time; the token of a lost lease is refused."""

from __future__ import annotations

import pytest

from sessiontree.errors import ActiveTurnError, FencedError, InvalidInputError
from sessiontree.journal import Journal
from sessiontree.model.builders import user
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, fill, ids

__all__ = ["LeaseContract"]


class LeaseContract(Contract):
    def test_a_lease_names_its_holder_and_its_end(self, store: Opened, clock: ManualClock) -> None:
        store.journal.create_thread("t")
        lease = store.journal.acquire_lease("t", owner="me", turn_id="turn", ttl_seconds=10)
        assert (lease.thread_id, lease.owner, lease.turn_id) == ("t", "me", "turn")
        assert (lease.created_ns, lease.expires_ns) == (clock(), clock() + 10_000_000_000)
        assert store.reopen().active_lease("t") == lease

    def test_the_error_of_a_second_turn_names_the_holder_of_the_thread(self, journal: Journal) -> None:
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="first")
        for owner in ("second", "first"):
            with pytest.raises(ActiveTurnError) as caught:
                journal.acquire_lease("t", owner=owner)
            refusal = caught.value
            assert (refusal.thread_id, refusal.owner, refusal.turn_id) == ("t", "first", lease.turn_id)
            assert refusal.expires_ns == lease.expires_ns

    def test_asking_twice_for_the_same_turn_is_one_lease(self, journal: Journal) -> None:
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="me", turn_id="turn")
        assert journal.acquire_lease("t", owner="me", turn_id="turn") == lease

    def test_every_thread_has_its_own_lease(self, journal: Journal) -> None:
        journal.create_thread("t")
        fill(journal, "t", "a")
        journal.fork("t", new_id="f")
        journal.acquire_lease("t", owner="me")
        assert journal.acquire_lease("f", owner="you").thread_id == "f"

    def test_an_expired_lease_can_be_taken_over(self, journal: Journal, clock: ManualClock) -> None:
        journal.create_thread("t")
        old = journal.acquire_lease("t", owner="old", ttl_seconds=10)
        clock.advance(9.999)
        with pytest.raises(ActiveTurnError):
            journal.acquire_lease("t", owner="new")
        clock.advance(0.001)
        assert journal.active_lease("t") is None
        new = journal.acquire_lease("t", owner="new")
        assert new.token > old.token
        assert journal.active_lease("t") == new

    def test_a_turn_that_comes_back_after_its_expiry_gets_a_lease_that_lasts(
        self, journal: Journal, clock: ManualClock
    ) -> None:
        journal.create_thread("t")
        old = journal.acquire_lease("t", owner="me", turn_id="turn", ttl_seconds=10)
        clock.advance(11)
        new = journal.acquire_lease("t", owner="me", turn_id="turn", ttl_seconds=10)
        assert new.expires_ns == clock() + 10_000_000_000
        assert new.token > old.token

    def test_a_holder_that_was_overtaken_writes_nothing(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        old = journal.acquire_lease("t", owner="old", ttl_seconds=10)
        clock.advance(11)
        new = journal.acquire_lease("t", owner="new")
        for late in (
            lambda: journal.append("t", user("late"), lease=old),
            lambda: journal.renew_lease(old),
            lambda: journal.move_leaf("t", None, lease=old),
        ):
            with pytest.raises(FencedError) as caught:
                late()
            assert (caught.value.thread_id, caught.value.token, caught.value.current) == ("t", old.token, new.token)
        journal.release_lease(old)
        assert store.reopen().active_lease("t") == new
        assert store.journal.entries("t") == []

    def test_a_late_holder_may_write_until_another_takes_over(self, journal: Journal, clock: ManualClock) -> None:
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="me", ttl_seconds=1)
        clock.advance(100)
        journal.append("t", user("slow"), id="slow", lease=lease)
        assert journal.renew_lease(lease, ttl_seconds=5).expires_ns == clock() + 5_000_000_000

    def test_a_renewed_lease_keeps_its_token(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="me", ttl_seconds=10)
        clock.advance(8)
        renewed = journal.renew_lease(lease, ttl_seconds=10)
        assert (renewed.token, renewed.created_ns) == (lease.token, lease.created_ns)
        clock.advance(8)
        assert store.reopen().active_lease("t") == renewed

    def test_tokens_grow_over_release_restart_and_a_clock_that_steps_back(
        self, store: Opened, clock: ManualClock
    ) -> None:
        store.journal.create_thread("t")
        tokens = []
        for _ in range(3):
            lease = store.journal.acquire_lease("t", owner="me")
            tokens.append(lease.token)
            store.journal.release_lease(lease)
            store.reopen()
            clock.advance(-1000)
        assert sorted(set(tokens)) == tokens

    def test_a_released_lease_is_over(self, journal: Journal) -> None:
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="me")
        journal.release_lease(lease)
        journal.release_lease(lease)
        assert journal.active_lease("t") is None
        with pytest.raises(FencedError):
            journal.append("t", user("late"), lease=lease)
        assert journal.acquire_lease("t", owner="you").token > lease.token

    def test_only_an_expired_lease_is_cleared(self, journal: Journal, clock: ManualClock) -> None:
        journal.create_thread("t")
        assert journal.clear_expired_lease("t") is None
        lease = journal.acquire_lease("t", owner="me", ttl_seconds=10)
        assert journal.clear_expired_lease("t") is None
        clock.advance(10)
        assert journal.clear_expired_lease("t") == lease
        assert journal.clear_expired_lease("t") is None
        assert journal.stats().leases == 0
        with pytest.raises(FencedError):
            journal.renew_lease(lease)

    def test_a_cut_off_clears_a_lease_that_began_before_it(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="me", ttl_seconds=3600)
        clock.advance(60)
        assert journal.clear_expired_lease("t", created_before_ns=lease.created_ns) is None
        assert store.reopen().active_lease("t") == lease
        assert store.journal.clear_expired_lease("t", created_before_ns=lease.created_ns + 1) == lease
        assert store.reopen().active_lease("t") is None
        with pytest.raises(FencedError):
            store.journal.append("t", user("late"), lease=lease)
        assert store.journal.acquire_lease("t", owner="you").token > lease.token

    def test_messages_come_in_while_a_turn_runs(self, journal: Journal) -> None:
        journal.create_thread("t")
        lease = journal.acquire_lease("t", owner="me")
        journal.append("t", user("from outside"), id="in")
        entry = journal.append("t", user("from the turn"), id="turn", lease=lease)
        assert (entry.parent, entry.turn_id) == ("in", lease.turn_id)
        assert ids(journal.path("t")) == ["in", "turn"]

    def test_a_lease_does_not_outlive_its_thread(self, store: Opened, clock: ManualClock) -> None:
        journal = store.journal
        journal.create_thread("t")
        zombie = journal.acquire_lease("t", owner="old")
        journal.delete_thread("t")
        clock.advance(0.001)
        journal.create_thread("t")
        assert journal.active_lease("t") is None
        with pytest.raises(FencedError):
            journal.append("t", user("late"), lease=zombie)
        new = journal.acquire_lease("t", owner="new")
        assert new.token > zombie.token
        with pytest.raises(FencedError):
            store.reopen().append("t", user("late"), lease=zombie)

    def test_a_lease_must_last(self, journal: Journal) -> None:
        journal.create_thread("t")
        for ttl in (0, -1, float("nan"), float("inf")):
            with pytest.raises(InvalidInputError, match="lease"):
                journal.acquire_lease("t", owner="me", ttl_seconds=ttl)
        assert journal.stats().leases == 0
