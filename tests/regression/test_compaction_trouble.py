"""Compactions when something goes wrong: summaries that are too long, models that fail, others that are at it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sessiontree as st
from known import present
from long_conversations import SMALL, FakeModel, round_of, talk
from sessiontree.journal.memory import JournalMemory
from sessiontree.sessions import SessionManager
from sessiontree.sessions.hooks import Fault
from sessiontree.stores.commands import ClaimCompaction, Command, ReleaseClaim, Result
from sessiontree.testing import ManualClock

KEY = st.SessionKey(agent="bot", channel="web", peer="ann")
OVERFLOW = ValueError("maximum context length exceeded")


class LookedAt(ManualClock):
    """Does something when it has been looked at so often: who waits for somebody else looks at it again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.to_do: dict[int, Callable[[], object]] = {}
        self.looks = 0

    def __call__(self) -> int:
        self.looks += 1
        self.to_do.pop(self.looks, lambda: None)()
        return super().__call__()

    def at_look(self, number: int, action: Callable[[], object]) -> None:
        """Counted from now on."""
        self.to_do[self.looks + number] = action


@pytest.fixture
def clock() -> LookedAt:
    return LookedAt()


@pytest.fixture
def journal(clock: LookedAt) -> Iterator[st.Journal]:
    with st.open("memory:", clock=clock) as opened:
        opened.create_thread("t")
        yield opened


# Summaries that are too long


@pytest.mark.parametrize("force", [True, False])
def test_a_summary_that_is_longer_than_the_window_is_not_installed(journal: st.Journal, force: bool) -> None:
    talk(journal, "t", 60)
    before = journal.context("t")
    with pytest.raises(st.OversizedSummaryError) as caught:
        journal.compact("t", FakeModel("word " * 12_000), policy=SMALL, force=force)
    assert caught.value.tokens > caught.value.max_tokens == SMALL.max_summary_tokens
    assert journal.context("t") == before
    assert journal.thread("t").compaction_claim is None


def test_hybrid_puts_a_notice_in_the_place_of_a_summary_that_is_too_long(journal: st.Journal) -> None:
    talk(journal, "t", 60)
    result = journal.compact("t", FakeModel("word " * 12_000), policy=replace(SMALL, strategy="hybrid"))
    assert (result.strategy, result.is_over_budget) == ("truncate", False)
    assert "tokens" in result.failure


def test_a_summary_that_is_a_little_long_but_fits_is_installed(journal: st.Journal) -> None:
    talk(journal, "t", 60)
    result = journal.compact("t", FakeModel("word " * (SMALL.max_summary_tokens + 100)), policy=SMALL)
    assert result.is_installed
    assert not result.is_over_budget


def test_a_branch_summary_that_is_longer_than_the_window_is_not_installed(journal: st.Journal) -> None:
    start = journal.append("t", st.user("start")).id
    talk(journal, "t", 5)
    leaf = journal.thread("t").leaf
    with pytest.raises(st.OversizedSummaryError):
        journal.leave_branch("t", start, FakeModel("word " * 12_000), policy=SMALL)
    assert journal.thread("t").leaf == leaf


# Models that fail


def test_the_error_of_a_summariser_is_not_hidden_by_that_of_giving_the_claim_back(journal: st.Journal) -> None:
    talk(journal, "t")

    def summarize(request: st.SummaryRequest) -> str:
        journal.delete_thread("t")
        raise RuntimeError("the model is away")

    with pytest.raises(st.SummaryError, match="the model is away") as caught:
        journal.compact("t", summarize, policy=SMALL)
    assert any("claim" in note for note in caught.value.__notes__)


def test_an_installed_compaction_is_a_success_whatever_happens_to_its_claim(journal: st.Journal) -> None:
    talk(journal, "t")
    store = journal.store

    class Unreleasing:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def commit(self, command: Command) -> Result:
            if isinstance(command, ReleaseClaim):
                raise st.StoreUnavailableError("here", "gone for a moment")
            return store.commit(command)

    journal.store = Unreleasing()
    assert journal.compact("t", FakeModel("notes"), policy=SMALL).is_installed
    journal.store = store
    assert journal.thread("t").compaction_claim is None


@pytest.mark.parametrize("answer", [RuntimeError("no model"), "word " * 12_000, ""])
def test_a_manager_does_not_ask_a_failing_model_with_each_message(
    journal: st.Journal, clock: LookedAt, answer: RuntimeError | str
) -> None:
    faults: list[Fault] = []
    summarize = FakeModel(answer)
    with SessionManager(
        journal, summarize=summarize, policy=SMALL, auto_compact="inline", report=faults.append
    ) as manager:
        for number in range(60):
            for payload in round_of(number):
                manager.add_message(KEY, payload)
        once = len(summarize.requests)
        assert len(faults) == 1
        clock.advance(29)
        manager.add_message(KEY, st.user("too early"))
        assert len(summarize.requests) == once
        clock.advance(1)
        manager.add_message(KEY, st.user("now"))
        assert len(faults) == 2
        clock.advance(59)
        manager.add_message(KEY, st.user("twice as long"))
        assert len(faults) == 2
        summarize.answers = ["notes"]
        clock.advance(1)
        manager.add_message(KEY, st.user("well again"))
        assert len(faults) == 2
        assert manager.token_usage(KEY) < 0.5


def test_a_manager_does_not_pay_for_a_summary_that_saves_nothing_with_each_message(journal: st.Journal) -> None:
    summarize = FakeModel("word " * 250)
    with SessionManager(journal, summarize=summarize, policy=SMALL, auto_compact="inline") as manager:
        for payload in [st.user("start"), st.assistant("ok"), st.user("word " * 7_000)]:
            manager.add_message(KEY, payload)
        for _ in range(20):
            manager.add_message(KEY, st.user("and on"))
        path = journal.path(present(manager.get(KEY)).thread_id)
    assert not any(entry.type == "compaction" for entry in path)
    assert len(summarize.requests) == 1


def test_a_manager_does_not_compact_with_each_message_where_what_must_stay_is_too_much(journal: st.Journal) -> None:
    summarize = FakeModel("notes")
    with SessionManager(journal, summarize=summarize, policy=SMALL, auto_compact="inline") as manager:
        for payload in round_of(0, 200):
            manager.add_message(KEY, payload)
        for number in range(12):
            manager.add_message(KEY, st.user(f"{number} " + "word " * 7_000))
        assert len(summarize.requests) <= 2


def test_a_window_that_cannot_be_compacted_yet_is_compacted_as_soon_as_it_can_be(journal: st.Journal) -> None:
    with SessionManager(journal, summarize=FakeModel("notes"), policy=SMALL, auto_compact="inline") as manager:
        manager.add_message(KEY, st.user("word " * 7_500))
        for payload in [st.assistant("done"), *round_of(1), *round_of(2)]:
            manager.add_message(KEY, payload)
        assert manager.token_usage(KEY) < 0.5


def test_a_time_to_wait_that_the_model_names_is_heeded(journal: st.Journal, clock: LookedAt) -> None:
    talk(journal, "t")
    busy = FakeModel(st.SummaryError("429", retry_after_seconds=90))
    with pytest.raises(st.SummaryError):
        journal.compact_if_needed("t", busy, policy=SMALL)
    clock.advance(89)
    assert journal.compact_if_needed("t", busy, policy=SMALL) is None
    assert len(busy.requests) == 1
    clock.advance(1)
    assert present(journal.compact_if_needed("t", FakeModel("notes"), policy=SMALL)).is_installed


def test_a_failing_summariser_is_not_asked_with_each_call_of_a_model_that_still_fits(
    journal: st.Journal, clock: LookedAt
) -> None:
    policy = replace(SMALL, threshold_ratio=0.1)
    talk(journal, "t", 4)
    failing = FakeModel(RuntimeError("no model"))
    for _ in range(5):
        assert journal.call_model("t", lambda context: "fine", failing, policy=policy) == "fine"
    assert len(failing.requests) == 1


def test_a_compaction_that_is_asked_for_is_tried_during_a_pause_and_ends_it(journal: st.Journal) -> None:
    talk(journal, "t")
    with pytest.raises(st.SummaryError):
        journal.compact_if_needed("t", FakeModel(RuntimeError("no model")), policy=SMALL)
    assert journal.compact("t", FakeModel("notes"), policy=SMALL).is_installed
    talk(journal, "t", start=20)
    assert present(journal.compact_if_needed("t", FakeModel("notes"), policy=SMALL)).is_installed


def test_a_manager_and_a_bare_compact_if_needed_share_one_pause(journal: st.Journal) -> None:
    failing, waiting = FakeModel(RuntimeError("no model")), FakeModel("notes")
    with SessionManager(
        journal, summarize=failing, policy=SMALL, auto_compact="inline", report=lambda fault: None
    ) as manager:
        for number in range(20):
            for payload in round_of(number):
                thread_id = manager.add_message(KEY, payload).thread_id
        assert len(failing.requests) == 1
        assert journal.compact_if_needed(thread_id, waiting, policy=SMALL) is None
    assert waiting.requests == []


def test_a_pause_of_compact_if_needed_holds_for_a_manager_too(journal: st.Journal) -> None:
    failing, waiting = FakeModel(RuntimeError("no model")), FakeModel("notes")
    with SessionManager(journal, policy=SMALL, auto_compact="off") as quiet:
        for number in range(20):
            for payload in round_of(number):
                thread_id = quiet.add_message(KEY, payload).thread_id
    with pytest.raises(st.SummaryError):
        journal.compact_if_needed(thread_id, failing, policy=SMALL)
    with SessionManager(journal, summarize=waiting, policy=SMALL, auto_compact="inline") as manager:
        manager.add_message(KEY, st.user("one more"))
    assert waiting.requests == []


def test_memories_are_not_asked_for_with_each_message_while_compactions_fail(journal: st.Journal) -> None:
    extract = FakeModel(RuntimeError("no model"))
    with SessionManager(
        journal, summarize=FakeModel(RuntimeError("no model")), policy=SMALL, auto_compact="inline",
        refresher=JournalMemory(journal), extract=extract, report=lambda fault: None,
    ) as manager:  # fmt: skip
        for number in range(40):
            for payload in round_of(number):
                manager.add_message(KEY, payload)
    assert len(extract.requests) <= 2


# Others that are at it


def claim(journal: st.Journal, clock: LookedAt, seconds: float = 600.0) -> None:
    held = st.CompactionClaim(id="theirs", owner="another process", expires_ns=clock() + int(seconds * 10**9))
    journal.store.commit(ClaimCompaction(thread_id="t", claim=held, now_ns=clock()))


class Model:
    """Too small for the first conversation it is given."""

    def __init__(self, on_overflow: Callable[[], object] = lambda: None) -> None:
        self.contexts: list[st.Context] = []
        self.on_overflow = on_overflow

    def __call__(self, context: st.Context) -> str:
        self.contexts.append(context)
        if len(self.contexts) == 1:
            self.on_overflow()
            raise OVERFLOW
        return "fine"


def test_a_model_that_overflows_waits_for_another_compaction_and_uses_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'j.db'}"
    clock = LookedAt()
    with st.open(url, clock=clock) as journal, st.open(url, clock=ManualClock()) as other:
        journal.create_thread("t")
        talk(journal, "t", 10)
        is_asked, may_answer = threading.Event(), threading.Event()

        def slow(request: st.SummaryRequest) -> str:
            is_asked.set()
            assert may_answer.wait(30)
            return "their notes"

        def begin() -> None:
            theirs.start()
            assert is_asked.wait(30)
            clock.at_look(3, may_answer.set)

        theirs = threading.Thread(target=lambda: other.compact("t", slow, policy=SMALL))
        model, mine = Model(begin), FakeModel("my notes")
        assert journal.call_model("t", model, mine, policy=replace(SMALL, window_tokens=20_000)) == "fine"
        theirs.join()
        assert mine.requests == []
        assert "their notes" in model.contexts[1].messages[0].text


def test_waiting_for_another_compaction_has_a_limit(journal: st.Journal, clock: LookedAt) -> None:
    talk(journal, "t", 4)
    claim(journal, clock)
    with pytest.raises(st.CompactionClaimedError):
        journal.call_model("t", Model(), FakeModel("notes"), policy=SMALL, wait_seconds=0.1)


def test_who_waits_for_a_crashed_compactor_compacts_when_its_claim_has_expired(
    journal: st.Journal, clock: LookedAt
) -> None:
    talk(journal, "t", 4)
    claim(journal, clock, seconds=5)
    model, mine = Model(lambda: clock.at_look(3, lambda: clock.advance(5))), FakeModel("my notes")
    assert journal.call_model("t", model, mine, policy=SMALL) == "fine"
    assert "my notes" in model.contexts[1].messages[0].text


def test_waiting_does_not_hold_up_an_event_loop() -> None:
    async def run() -> tuple[list[int], str]:
        clock = LookedAt()
        async with st.open_async("memory:", clock=clock) as journal:
            await journal.create_thread("t")
            for number in range(4):
                await journal.append_many("t", round_of(number))
            held = st.CompactionClaim(id="theirs", owner="another", expires_ns=clock() + 10**9)
            await journal.store.acommit(ClaimCompaction(thread_id="t", claim=held, now_ns=clock()))
            ticks, noted = 0, []

            def begin() -> None:
                for look in (1, 2, 3):
                    clock.at_look(look, lambda: noted.append(ticks))
                clock.at_look(4, lambda: clock.advance(1))

            waiting = asyncio.create_task(journal.call_model("t", Model(begin), FakeModel("notes"), policy=SMALL))
            while not waiting.done():
                await asyncio.sleep(0)
                ticks += 1
            return noted, await waiting

    noted, answer = asyncio.run(run())
    assert answer == "fine"
    assert noted[0] < noted[1] < noted[2]
