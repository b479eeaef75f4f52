"""Compaction: one at a time per thread, fenced when it is installed, and appends go on meanwhile."""

from __future__ import annotations

import threading

import pytest

from sessiontree.compaction import CompactionPolicy, SummaryRequest
from sessiontree.errors import (
    ClaimLostError,
    CompactionClaimedError,
    FencedError,
    InvalidInputError,
    NothingToUncompactError,
)
from sessiontree.journal import Journal
from sessiontree.model.builders import assistant, call, system, tool_result, user
from sessiontree.testing.clock import ManualClock
from sessiontree.testing.contract.base import Contract, Opened, ids, texts

__all__ = ["CompactionContract"]


_POLICY = CompactionPolicy(window_tokens=2_000, keep_recent_messages=3, keep_user_tokens=0, summary_tokens=200)
_PATIENCE_SECONDS = 30


class CompactionContract(Contract):
    def test_a_compaction_and_its_undoing_survive_a_restart(self, store: Opened) -> None:
        _talk(store.journal)
        whole = store.journal.context("t")
        result = store.journal.compact("t", _notes, policy=_POLICY)
        shorter = store.journal.context("t")
        assert result.is_installed
        assert result.tokens_saved > 0
        assert "the notes" in shorter.messages[0].text
        assert store.reopen().context("t") == shorter
        store.journal.uncompact("t")
        restored = store.reopen().context("t")
        assert (restored.messages, restored.system) == (whole.messages, whole.system)
        with pytest.raises(NothingToUncompactError):
            store.journal.uncompact("t")

    def test_a_dry_run_says_what_a_compaction_would_do_and_changes_nothing(self, store: Opened) -> None:
        _talk(store.journal)
        before = (store.journal.thread("t"), store.journal.entries("t"))
        planned = store.journal.compact("t", _notes, policy=_POLICY, dry_run=True)
        assert (store.journal.thread("t"), store.journal.entries("t")) == before
        done = store.journal.compact("t", _notes, policy=_POLICY)
        figures = ("summary", "tokens_before", "tokens_after", "removed_messages", "kept_messages", "generation")
        assert [getattr(planned, name) for name in figures] == [getattr(done, name) for name in figures]
        assert (planned.status, planned.entry, done.status) == ("planned", None, "installed")
        assert store.journal.compact("t", _notes, dry_run=True).status == "nothing_to_compact"

    def test_a_summary_replaces_the_context_in_one_call(self, store: Opened) -> None:
        journal = store.journal
        journal.create_thread("t")
        stored = journal.append_many("t", [user("one"), assistant("two"), user("three"), assistant("four")])
        entry = journal.replace_context("t", "the notes", 1)
        journal.append("t", user("five"))
        first, *rest = store.reopen().context("t").messages
        assert "the notes" in first.text
        assert [message.text for message in rest] == ["four", "five"]
        assert texts(store.journal, "t") == ["one", "two", "three", "four", "five"]
        assert entry.id in ids(store.journal.path("t"))
        store.journal.uncompact("t")
        assert len(store.journal.context("t").messages) == 5
        store.journal.replace_context("t", "other notes", stored[2].id)
        assert [message.text for message in store.journal.context("t").messages][1:] == ["three", "four", "five"]
        store.journal.replace_context("t", "last notes")
        assert len(store.journal.context("t").messages) == 1

    def test_a_replaced_context_keeps_calls_and_results_together(self, journal: Journal) -> None:
        journal.create_thread("t")
        journal.append_many(
            "t", [user("list"), assistant(calls=[call("1", "ls")]), tool_result("1", "a"), assistant("done")]
        )
        journal.replace_context("t", "notes", 2)
        assert [message.role for message in journal.context("t").messages] == ["user", "assistant", "tool", "assistant"]

    def test_what_cannot_be_kept_is_refused(self, journal: Journal) -> None:
        journal.create_thread("t")
        for kept in (-1, True, "unknown", None):
            with pytest.raises(InvalidInputError, match="kept"):
                journal.replace_context("t", "notes", kept)  # type: ignore[arg-type]
        assert journal.path("t") == []
        journal.replace_context("t", "from an earlier talk", 5)
        assert "from an earlier talk" in journal.context("t").messages[0].text

    def test_a_compaction_keeps_others_from_compacting_but_not_from_appending(self, store: Opened) -> None:
        _talk(store.journal)
        model = _SlowModel()
        other = store.another()
        with model.at_work(store.journal):
            with pytest.raises(CompactionClaimedError) as caught:
                other.compact("t", _notes, policy=_POLICY)
            assert caught.value.thread_id == "t"
            other.append("t", user("are you there?"))
            other.update_thread("t", title="meanwhile")
        assert model.error is None
        assert other.context("t").messages[-1].text == "are you there?"
        assert other.thread("t").compaction_claim is None
        assert other.thread("t").title == "meanwhile"
        other.close()

    def test_who_slept_through_his_claim_installs_nothing(self, store: Opened, clock: ManualClock) -> None:
        _talk(store.journal)
        model = _SlowModel()
        other = store.another()
        with model.at_work(store.journal):
            clock.advance(601)
            assert other.compact("t", _notes, policy=_POLICY).is_installed
        assert isinstance(model.error, ClaimLostError)
        assert sum(entry.type == "compaction" for entry in other.path("t")) == 1
        other.close()

    def test_a_compaction_under_a_lost_lease_is_refused_and_gives_its_claim_back(self, journal: Journal) -> None:
        _talk(journal)
        lease = journal.acquire_lease("t", owner="me")
        assert journal.compact("t", _notes, policy=_POLICY, lease=lease).is_installed
        journal.uncompact("t")
        journal.release_lease(lease)
        with pytest.raises(FencedError):
            journal.compact("t", _notes, policy=_POLICY, lease=lease)
        assert journal.thread("t").compaction_claim is None

    def test_a_fork_shares_a_compaction_and_can_take_it_back_for_itself(self, journal: Journal) -> None:
        _talk(journal)
        journal.compact("t", _notes, policy=_POLICY)
        shorter = journal.context("t")
        journal.fork("t", new_id="f")
        assert journal.context("f") == shorter
        journal.uncompact("f")
        assert len(journal.context("f").messages) > len(shorter.messages)
        assert journal.context("t") == shorter


class _SlowModel:
    """A compaction in another thread whose summariser returns when the block is left."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._is_asked = threading.Event()
        self._may_answer = threading.Event()
        self._thread: threading.Thread | None = None

    def at_work(self, journal: Journal) -> _SlowModel:
        self._thread = threading.Thread(target=self._compact, args=(journal,))
        return self

    def __enter__(self) -> None:
        assert self._thread is not None
        self._thread.start()
        assert self._is_asked.wait(_PATIENCE_SECONDS)

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self._may_answer.set()
        self._thread.join()

    def _compact(self, journal: Journal) -> None:
        try:
            journal.compact("t", self._answer, policy=_POLICY)
        except BaseException as error:  # noqa: BLE001  the test looks at it
            self.error = error

    def _answer(self, request: SummaryRequest) -> str:
        self._is_asked.set()
        assert self._may_answer.wait(_PATIENCE_SECONDS)
        return "slow notes"


def _notes(_: SummaryRequest) -> str:
    return "the notes"


def _talk(journal: Journal) -> None:
    journal.create_thread("t")
    journal.append("t", system("Be kind."))
    for number in range(12):
        journal.append_many("t", [user(f"question {number} " + "word " * 60), assistant(f"answer {number}")])
