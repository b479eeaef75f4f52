"""The verbs of floret's repositories, called by their names here and compared with what floret does."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from floret_rows import both, everywhere, ids, say
from seed_rows import covers
from sessiontree.journal.operations.entries import NewEntry
from sessiontree.model.thread import Lease, Thread
from sessiontree.stores._io import Files
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.jsonl import JsonlBackend
from sessiontree.testing.clock import ManualClock

HOUR = 3600
DAY_NS = 24 * HOUR * 1_000_000_000


@covers(*everywhere("CreateThread", "Thread"), "ThreadMeta")
def test_a_thread_is_created_with_florets_fields(journal: st.Journal, clock: ManualClock) -> None:
    given: dict[str, Any] = {
        "parent_thread": "p", "is_archived": True, "title": "T", "title_status": "ready", "title_source": "host",
        "title_updated_ns": 5, "title_error": "none", "status": "unread", "last_viewed_ns": 6,
    }  # fmt: skip
    created = journal.create_thread(" a/b ", created_ns=3, updated_ns=4, **given)
    assert isinstance(created, Thread)
    assert journal.thread(" a/b ") == created
    assert {name: getattr(created, name) for name in given} == given
    assert (created.created_ns, created.updated_ns, created.leaf, created.forked_from_thread) == (3, 4, None, "")
    named = journal.create_thread()
    assert named.id not in ("", " a/b ")
    assert named.created_ns == named.updated_ns == clock()
    with pytest.raises(st.ThreadExistsError):
        journal.create_thread(" a/b ")
    with pytest.raises(st.ThreadNotFoundError):
        journal.thread("a/b")


@covers(*everywhere("UpdateThread"))
def test_an_update_changes_fields_and_the_time_if_it_is_given(journal: st.Journal, clock: ManualClock) -> None:
    before = journal.create_thread("t", title="old", model="m")
    clock.advance(60)
    titled = journal.update_thread("t", title="new")
    assert (titled.title, titled.model, titled.updated_ns) == ("new", "m", before.updated_ns)
    assert journal.update_thread("t", updated_ns=clock()).updated_ns == clock()
    say(journal, "t", "a")
    # floret replaces the whole record, and an old copy takes the leaf back; a stale copy is refused here.
    with pytest.raises(st.StaleVersionError):
        journal.update_thread("t", title="late", expect_version=before.version)
    assert (journal.thread("t").leaf, journal.thread("t").title) == ("a", "new")
    with pytest.raises(st.ThreadNotFoundError):
        journal.update_thread("no", title="x")


@covers(*everywhere("DeleteThread"))
def test_a_deleted_thread_is_gone_with_its_lease_and_its_forks_stay(journal: st.Journal) -> None:
    journal.create_thread("t")
    say(journal, "t", "a", "b")
    journal.fork("t", at="a", new_id="fork")
    journal.acquire_lease("t", owner="me")
    journal.delete_thread("t")
    for verb in (journal.thread, journal.entries, journal.delete_thread):
        with pytest.raises(st.ThreadNotFoundError):
            verb("t")
    assert ids(journal.path("fork")) == ["a"]
    journal.create_thread("t")
    assert journal.active_lease("t") is None


@covers(*everywhere("Append"), "AppendOptions")
def test_an_append_goes_under_a_parent_and_moves_the_leaf(journal: st.Journal, clock: ManualClock) -> None:
    journal.create_thread("t")
    first = journal.append("t", st.user("1"), id="a", created_ns=clock() + 5)
    (second,) = journal.append_many("t", [NewEntry(content=st.user("2"), id="b", created_ns=9, turn_id="turn")])
    assert (first.parent, second.parent, second.created_ns, second.turn_id) == (None, "a", 9, "turn")
    side = journal.append("t", st.user("3"), parent="a")
    assert (side.parent, journal.thread("t").leaf) == ("a", side.id)
    assert journal.append("t", st.user("4"), parent=None).parent is None
    # A repeated append is stored once; other content under the same id is refused.
    assert journal.append("t", st.user("1"), id="a", created_ns=clock() + 5, parent=None) == first
    with pytest.raises(st.DuplicateEntryError):
        journal.append("t", st.user("other"), id="a")
    with pytest.raises(st.InvalidParentError):
        journal.append("t", st.user("x"), parent="no")
    with pytest.raises(st.ThreadNotFoundError):
        journal.append("no", st.user("x"))


@covers(*everywhere("Entry", "Entries", "Path"))
def test_entries_and_paths_are_read(journal: st.Journal) -> None:
    journal.create_thread("t")
    assert (journal.path("t"), journal.entries("t")) == ([], [])
    say(journal, "t", "a", "b")
    journal.append("t", st.user("c"), id="c", parent="a")
    assert ids(journal.entries("t")) == ["a", "b", "c"]
    assert (ids(journal.path("t")), ids(journal.path("t", "b"))) == (["a", "c"], ["a", "b"])
    assert journal.entry("t", "b").message == st.user("b").message
    for verb in (journal.entry, journal.path):
        with pytest.raises(st.EntryNotFoundError):
            verb("t", "no")
    with pytest.raises(st.ThreadNotFoundError):
        journal.entries("no")
    with pytest.raises(st.ThreadNotFoundError):
        journal.entry("no", "a")


@covers(*everywhere("MoveLeaf"))
def test_the_leaf_moves_and_nothing_is_deleted(journal: st.Journal, clock: ManualClock) -> None:
    journal.create_thread("t")
    say(journal, "t", "a", "b")
    clock.advance(9)
    moved = journal.move_leaf("t", "a")
    assert (moved.leaf, moved.updated_ns) == ("a", clock())
    assert journal.move_leaf("t", None).leaf is None
    say(journal, "t", "root")
    assert journal.entry("t", "root").parent is None
    assert ids(journal.entries("t")) == ["a", "b", "root"]
    with pytest.raises(st.EntryNotFoundError):
        journal.move_leaf("t", "no")


@covers("TurnLease", *both("AcquireTurnLease", "ActiveTurnLease", "ReleaseTurnLease", "ClearExpiredTurnLease"))
def test_one_turn_holds_a_thread_until_it_ends_or_is_cleared(journal: st.Journal, clock: ManualClock) -> None:
    journal.create_thread("t")
    assert journal.active_lease("t") is None
    lease = journal.acquire_lease("t", owner="me", turn_id="turn", ttl_seconds=2 * HOUR)
    assert lease == Lease(
        thread_id="t", turn_id="turn", owner="me", token=lease.token, created_ns=clock(), expires_ns=lease.expires_ns
    )
    assert journal.active_lease("t") == lease
    with pytest.raises(st.ActiveTurnError):
        journal.acquire_lease("t", owner="you")
    clock.advance(HOUR)
    assert journal.clear_expired_lease("t") is None
    assert journal.clear_expired_lease("t", created_before_ns=clock() - DAY_NS) is None
    assert journal.clear_expired_lease("t", created_before_ns=lease.created_ns) is None
    assert journal.clear_expired_lease("t", created_before_ns=clock()) == lease
    assert journal.active_lease("t") is None
    second = journal.acquire_lease("t", owner="you")
    journal.release_lease(lease)
    assert journal.active_lease("t") == second
    journal.release_lease(second)
    assert journal.active_lease("t") is None
    for verb in (journal.active_lease, journal.clear_expired_lease):
        with pytest.raises(st.ThreadNotFoundError):
            verb("no")


class StuckFiles(Files):
    """A disk on which a write fails halfway and cannot be taken back."""

    is_stuck = False

    def append(self, file: int, data: bytes) -> None:
        super().append(file, data[:9] if self.is_stuck else data)
        if self.is_stuck:
            raise OSError(errno.ENOSPC, "full")

    def truncate(self, file: int, size: int) -> None:
        if self.is_stuck:
            raise OSError(errno.EIO, "stuck")
        super().truncate(file, size)


@covers("AppendCommittedError", "AppendCommittedError.Error", "AppendCommittedError.Unwrap")
def test_an_append_whose_outcome_is_unknown_names_its_ids_and_its_cause(tmp_path: Path) -> None:
    files = StuckFiles()
    with st.Journal(EmbeddedStore(JsonlBackend(tmp_path / "s", files=files))) as journal:
        journal.create_thread("t")
        files.is_stuck = True
        with pytest.raises(st.errors.CommitUnknownError, match="same ids") as told:
            journal.append("t", st.user("x"), id="e")
        files.is_stuck = False
        assert told.value.entry_ids == ("e",)
        assert isinstance(told.value.__cause__, OSError)
        journal.append("t", st.user("x"), id="e")
        assert ids(journal.entries("t")) == ["e"]
