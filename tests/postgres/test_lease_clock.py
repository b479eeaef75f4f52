"""Leases expire by the clock of the server, whatever the machines of their owners say."""

import time
from pathlib import Path

import pytest

import sessiontree as st
from postgres_server import process_database, with_options
from sessiontree.compaction.summarizers.extractive import extractive
from sessiontree.journal.operations import clock
from sessiontree.journal.operations.compaction_options import CompactionOptions
from sessiontree.journal.operations.summaries import claim
from sessiontree.stores.commands import AcquireLease, ClearLease, RenewLease

HOUR = 3_600_000_000_000
MINUTE = 60_000_000_000


def acquire(owner: str, ahead: int, ttl: int = MINUTE) -> AcquireLease:
    """The command of a machine whose clock is ahead."""
    now = time.time_ns() + ahead
    return AcquireLease(
        thread_id="t", turn_id=owner, owner=owner, now_ns=now, expires_ns=now + ttl, by_store_clock=True
    )


@pytest.fixture
def journal(tmp_path: Path) -> st.Journal:
    journal = st.open(with_options(process_database(), namespace=tmp_path))
    journal.create_thread("t")
    return journal


def test_a_machine_whose_clock_is_ahead_takes_no_lease_in_force(journal: st.Journal) -> None:
    with journal:
        lease = journal.acquire_lease("t", owner="right")
        with pytest.raises(st.ActiveTurnError):
            journal.store.commit(acquire("ahead", ahead=HOUR))
        cleared = journal.store.commit(ClearLease(thread_id="t", now_ns=time.time_ns() + HOUR, by_store_clock=True))
        assert cleared is None
        journal.append("t", st.user("still mine"), lease=lease)


def test_a_machine_whose_clock_is_behind_need_not_wait_for_it(journal: st.Journal) -> None:
    with journal:
        journal.store.commit(acquire("gone", ahead=HOUR, ttl=0))
        lease = journal.store.commit(acquire("behind", ahead=-HOUR))
        assert isinstance(lease, st.Lease)
        assert lease.owner == "behind"


def test_a_lease_lasts_as_long_as_was_asked_for_from_the_servers_time_on(journal: st.Journal) -> None:
    with journal:
        lease = journal.store.commit(acquire("ahead", ahead=HOUR))
        assert isinstance(lease, st.Lease)
        assert abs(lease.expires_ns - time.time_ns() - MINUTE) < MINUTE / 2
        assert journal.store.commit(acquire("ahead", ahead=HOUR)) == lease
        now = time.time_ns() - HOUR
        renewed = journal.store.commit(
            RenewLease(thread_id="t", token=lease.token, now_ns=now, expires_ns=now + 2 * MINUTE, by_store_clock=True)
        )
        assert isinstance(renewed, st.Lease)
        assert lease.expires_ns < renewed.expires_ns < time.time_ns() + 3 * MINUTE


@pytest.fixture
def ahead(journal: st.Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> st.Journal:
    """The same store from a machine whose clock is an hour ahead."""

    def machine_clock() -> int:
        return time.time_ns() + HOUR

    monkeypatch.setattr(clock, "system_clock", machine_clock)
    return st.open(with_options(process_database(), namespace=tmp_path), clock=machine_clock)


def test_a_lease_in_force_is_active_for_a_machine_whose_clock_is_ahead(journal: st.Journal, ahead: st.Journal) -> None:
    with journal, ahead:
        lease = journal.store.commit(acquire("right", ahead=0))
        assert ahead.active_lease("t") == lease


def test_a_compaction_under_way_is_not_taken_over_by_a_machine_whose_clock_is_ahead(
    journal: st.Journal, ahead: st.Journal
) -> None:
    with journal, ahead:
        options = CompactionOptions(summarize=extractive)
        journal.run(claim(journal.runtime, "t", "right", options))
        with pytest.raises(st.CompactionClaimedError):
            ahead.run(claim(ahead.runtime, "t", "ahead", options))
        assert ahead.clear_expired_claim("t") is None
        assert journal.thread("t").compaction_claim is not None
