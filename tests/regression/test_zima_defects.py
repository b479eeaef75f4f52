"""The defects D1 to D16 of the session manager of seed 003, each named after what goes wrong there."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import sessiontree as st
from known import of_kind, present
from long_conversations import SMALL, FakeModel, round_of, talk, texts
from sessiontree.sessions import Lifetimes, SessionManager, format_key, parse_key
from sessiontree.stores.commands import ClaimCompaction
from sessiontree.testing import ManualClock
from stores import ALL, open_journal, reopened

KEY = st.SessionKey(agent="bot", channel="web", peer="ann")
on_all = pytest.mark.parametrize("store", ALL)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def journal(clock: ManualClock) -> Iterator[st.Journal]:
    with st.open("memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def manager(journal: st.Journal, clock: ManualClock) -> Iterator[SessionManager]:
    with SessionManager(journal, policy=SMALL, auto_compact="inline") as made:
        yield made


@on_all
def test_d1_the_system_prompt_survives_any_number_of_compactions_and_no_summary_is_forgotten(
    store: str, tmp_path: Path
) -> None:
    journal = open_journal(store, tmp_path)
    journal.create_thread("t")
    journal.append("t", st.system("You are a pirate."))
    asked = []
    summary = ""

    def summarize(request: st.SummaryRequest) -> str:
        asked.append(request)
        return f"notes {len(asked)}"

    for generation in range(3):
        talk(journal, "t", 12, start=generation * 12)
        before = journal.context("t")
        result = journal.compact("t", summarize, policy=SMALL)
        assert result.generation == generation + 1
        first = next(request for request in asked if request.kind == "history")
        assert first.previous_summary == summary
        assert len(before.messages) > len(journal.context("t").messages)
        summary = result.summary.split("\n\n<modified-files>")[0]
        asked.clear()
        journal = reopened(journal, store, tmp_path)
        assert journal.context("t").system == "You are a pirate."
    journal.close()


def test_d2_messages_that_arrive_while_the_model_summarises_are_kept(journal: st.Journal) -> None:
    journal.create_thread("t")
    talk(journal, "t")

    def summarize(request: st.SummaryRequest) -> str:
        journal.append("t", st.user("are you there?"), id="late")
        return "notes"

    result = journal.compact("t", summarize, policy=SMALL)
    assert result.is_installed
    assert texts(journal, "t")[-1] == "are you there?"


def test_d2_they_are_kept_also_when_nothing_else_is(journal: st.Journal) -> None:
    journal.create_thread("t")
    journal.append_many("t", [st.user("x" * 9_000), st.assistant("y" * 9_000), st.assistant("z" * 9_000)])

    def summarize(request: st.SummaryRequest) -> str:
        journal.append("t", st.user("are you there?"))
        return "notes"

    result = journal.compact("t", summarize, policy=SMALL)
    assert (result.status, result.kept_messages) == ("installed", 0)
    assert [message.text for message in journal.context("t").messages[1:]] == ["are you there?"]


def test_d3_two_compactions_of_a_thread_do_not_run_at_once(journal: st.Journal) -> None:
    journal.create_thread("t")
    talk(journal, "t")
    inside, go_on = threading.Event(), threading.Event()

    def slow(request: st.SummaryRequest) -> str:
        inside.set()
        assert go_on.wait(30)
        return "notes"

    results = []
    first = threading.Thread(target=lambda: results.append(journal.compact("t", slow, policy=SMALL)))
    first.start()
    assert inside.wait(30)
    with pytest.raises(st.CompactionClaimedError) as caught:
        journal.compact("t", FakeModel("other notes"), policy=SMALL)
    assert caught.value.thread_id == "t"
    assert journal.compact_if_needed("t", FakeModel("other notes"), policy=SMALL) is None
    go_on.set()
    first.join()
    assert results[0].is_installed
    assert sum(entry.type == "compaction" for entry in journal.path("t")) == 1


def test_d3_a_compactor_that_slept_through_its_claim_installs_nothing(journal: st.Journal, clock: ManualClock) -> None:
    journal.create_thread("t")
    talk(journal, "t")

    def slept(request: st.SummaryRequest) -> str:
        clock.advance(601)
        assert journal.compact("t", FakeModel("notes of the other"), policy=SMALL).is_installed
        return "stale notes"

    with pytest.raises(st.ClaimLostError):
        journal.compact("t", slept, policy=SMALL)
    assert [
        entry.payload.summary.split("\n")[0] for entry in journal.path("t") if isinstance(entry.payload, st.Compaction)
    ] == ["notes of the other"]


@pytest.mark.parametrize("recent", range(1, 12))
def test_d4_no_cut_parts_a_tool_call_from_its_result(journal: st.Journal, recent: int) -> None:
    journal.create_thread("t")
    talk(journal, "t", 6)
    policy = st.ratio_policy(4_000, preserve_recent=recent)
    journal.compact("t", FakeModel("notes"), policy=policy, force=True)
    messages = journal.context("t").messages
    assert not any(message.kind == "missing_result" for message in messages)
    calls = [call.id for message in messages for call in message.tool_calls]
    assert sorted(calls) == sorted(result.call_id for message in messages for result in message.tool_results)
    kept = {segment.entry_id for segment in journal.context("t").segments}
    path = journal.path("t")
    batches = [path[at + 1 : at + 4] for at in range(0, 30, 5)]
    assert all(len({entry.id in kept for entry in batch}) == 1 for batch in batches)


@pytest.mark.parametrize("answer", ["", "  \n"])
def test_d5_an_empty_summary_changes_nothing_and_says_so(journal: st.Journal, answer: str) -> None:
    journal.create_thread("t")
    talk(journal, "t")
    before = journal.context("t")
    with pytest.raises(st.EmptySummaryError):
        journal.compact("t", FakeModel(answer), policy=SMALL)
    assert journal.context("t") == before
    assert journal.thread("t").compaction_claim is None


def test_d6_hybrid_without_a_model_says_what_is_missing_and_why(journal: st.Journal) -> None:
    journal.create_thread("t")
    talk(journal, "t")
    policy = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=600, strategy="hybrid")
    result = journal.compact("t", FakeModel(RuntimeError("no model today")), policy=policy)
    assert (result.strategy, result.is_installed) == ("truncate", True)
    assert "no model today" in result.failure
    assert f"{result.removed_messages} earlier messages were left out" in texts(journal, "t")[0]


def test_d6_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(st.InvalidInputError):
        st.CompactionPolicy(window_tokens=0)
    with pytest.raises(st.InvalidInputError):
        st.CompactionPolicy(strategy="magic")  # type: ignore[arg-type]


def test_d7_a_message_bigger_than_the_window_drops_nothing_behind_our_back(manager: SessionManager) -> None:
    manager.add_message(KEY, st.user("small"))
    manager.add_message(KEY, st.user("x" * 60_000))
    assert [message.text[:5] for message in manager.get_messages(KEY)][-1] == "xxxxx"
    thread_id = present(manager.get(KEY)).thread_id
    assert [entry.message.text[:5] for entry in manager.journal.path(thread_id) if entry.message] == ["small", "xxxxx"]


def test_d8_archived_sessions_are_deleted_when_their_time_has_come(manager: SessionManager, clock: ManualClock) -> None:
    manager.add_message(KEY, st.user("hello"))
    manager.archive(KEY)
    clock.advance(29 * 86_400)
    assert manager.sweep().deleted == 0
    clock.advance(86_400)
    assert manager.sweep().deleted == 1
    assert manager.get(KEY) is None
    assert manager.journal.stats().entries == 0


def test_d9_a_compaction_does_not_keep_a_dead_session_alive(manager: SessionManager, clock: ManualClock) -> None:
    fill(manager)
    clock.advance(29 * 60)
    assert manager.compact(KEY, force=True).is_installed
    clock.advance(60)
    assert manager.sweep().idle == 1
    assert manager.info(KEY).state == "idle"


def test_d9_a_compaction_does_not_wake_an_idle_or_an_archived_session(
    manager: SessionManager, clock: ManualClock
) -> None:
    fill(manager)
    clock.advance(31 * 60)
    manager.sweep()
    assert manager.compact(KEY, force=True).is_installed
    assert manager.info(KEY).state == "idle"
    fill(manager)
    manager.archive(KEY)
    assert manager.compact(KEY, force=True).is_installed
    assert manager.info(KEY).state == "archived"


def test_d9_a_session_that_is_archived_while_the_model_works_stays_archived(
    journal: st.Journal, clock: ManualClock
) -> None:
    def summarize(request: st.SummaryRequest) -> str:
        sessions.archive(KEY)
        return "notes"

    with SessionManager(journal, summarize=summarize, policy=SMALL, auto_compact="off") as sessions:
        fill(sessions)
        assert sessions.compact(KEY).is_installed
        assert sessions.info(KEY).state == "archived"


def test_d9_a_session_that_is_deleted_while_the_model_works_does_not_come_back(
    journal: st.Journal, clock: ManualClock
) -> None:
    def summarize(request: st.SummaryRequest) -> str:
        sessions.delete(KEY)
        return "notes"

    with SessionManager(journal, summarize=summarize, policy=SMALL, auto_compact="off") as sessions:
        fill(sessions)
        with pytest.raises(st.ThreadNotFoundError):
            sessions.compact(KEY)
        assert sessions.get(KEY) is None


def test_d10_recover_finds_sessions_that_a_crash_left_compacting(
    manager: SessionManager, journal: st.Journal, clock: ManualClock
) -> None:
    fill(manager)
    thread_id = present(manager.get(KEY)).thread_id
    claim = st.CompactionClaim(id="c", owner="a crashed process", expires_ns=clock() + 10**9)
    journal.store.commit(ClaimCompaction(thread_id=thread_id, claim=claim, now_ns=clock()))
    assert manager.info(KEY).state == "compacting"
    clock.advance(1)
    assert manager.recover().released == (thread_id,)
    assert journal.thread(thread_id).compaction_claim is None
    assert manager.info(KEY).state == "active"


def test_d10_recover_leaves_a_running_compaction_alone(journal: st.Journal, clock: ManualClock) -> None:
    seen = []

    def summarize(request: st.SummaryRequest) -> str:
        seen.append((sessions.info(KEY).state, sessions.recover().released))
        return "notes"

    with SessionManager(journal, summarize=summarize, policy=SMALL, auto_compact="off") as sessions:
        fill(sessions)
        sessions.compact(KEY)
    assert seen[0] == ("compacting", ())


def test_d11_custom_instructions_reach_the_model_and_the_extractive_summary(journal: st.Journal) -> None:
    journal.create_thread("t")
    talk(journal, "t")
    summarize = FakeModel("notes")
    journal.compact("t", summarize, policy=SMALL, instructions="keep every price")
    assert all("keep every price" in request.prompt for request in summarize.requests)
    assert of_kind(st.Compaction, journal.path("t")[-1].payload).instructions == "keep every price"
    journal.create_thread("u")
    journal.append_many("u", [st.user("The price is 12 euros. " + "word " * 200), st.assistant("noted " * 900)])
    talk(journal, "u")
    assert "The price is 12 euros." in journal.compact("u", policy=SMALL, instructions="every price").summary


def test_d12_keys_with_colons_do_not_collide() -> None:
    keys = [
        st.SessionKey(agent="a", channel="b", peer="c:d"),
        st.SessionKey(agent="a", channel="b", peer="c", thread="d"),
        st.SessionKey(agent="a", channel="b:c", peer="d"),
        st.SessionKey(agent="a", channel="b", peer="c%3Ad"),
    ]
    names = [format_key(key) for key in keys]
    assert len(set(names)) == 4
    assert [parse_key(name) for name in names] == keys


def test_d13_an_unused_session_becomes_idle_and_then_active_again(manager: SessionManager, clock: ManualClock) -> None:
    heard = []
    manager.hooks.add(lambda end: heard.append((end.phase, end.reason)))
    manager.add_message(KEY, st.user("hello"))
    clock.advance(30 * 60 - 1)
    assert manager.sweep().idle == 0
    clock.advance(1)
    assert manager.sweep().idle == 1
    assert (manager.info(KEY).state, heard) == ("idle", [("before", "timeout")])
    manager.add_message(KEY, st.user("again"))
    assert manager.info(KEY).state == "active"


def test_d14_stop_twice_is_not_an_error(journal: st.Journal) -> None:
    manager = SessionManager(journal)
    manager.start(sweep_every_seconds=60)
    manager.stop()
    manager.stop()


def test_d15_info_can_be_read_while_others_write(manager: SessionManager) -> None:
    manager.add_message(KEY, st.user("hello"))
    over = threading.Event()

    def write() -> None:
        for _ in range(50):
            manager.add_message(KEY, st.user("x"))
        over.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not over.is_set():
        assert manager.info(KEY).messages >= 1
        assert manager.token_usage(KEY) >= 0
    writer.join()


@on_all
def test_d16_new_on_a_session_that_is_only_in_the_store_starts_empty_and_tells_the_hooks(
    store: str, tmp_path: Path
) -> None:
    journal = open_journal(store, tmp_path)
    with SessionManager(journal) as manager:
        manager.add_message(KEY, st.user("old words"))
        manager.set_title(KEY, "Old")
        manager.add_tag(KEY, "vip")
    journal = reopened(journal, store, tmp_path)
    heard = []
    with SessionManager(journal) as manager:
        manager.hooks.add(lambda end: heard.append((end.reason, journal.context(end.thread.id).messages[0].text)))
        session = manager.new(KEY)
        assert session.get_messages() == []
        assert heard == [("new", "old words")]
        assert (session.info().title, session.info().tags) == ("", ())
        old = next(info for info in manager.list(state="archived"))
        assert [entry.message.text for entry in journal.path(old.thread_id) if entry.message] == ["old words"]
    journal.close()


def test_a_read_creates_nothing(manager: SessionManager) -> None:
    with pytest.raises(st.SessionNotFoundError):
        manager.get_messages(KEY)
    assert manager.get(KEY) is None
    assert manager.stats().total == 0


def test_a_summary_never_counts_as_a_message_of_the_system(journal: st.Journal) -> None:
    journal.create_thread("t")
    talk(journal, "t")
    journal.compact("t", FakeModel("notes"), policy=SMALL)
    assert {message.role for message in journal.context("t").messages} == {"user", "assistant", "tool"}


def test_an_archived_session_is_not_woken_by_a_message_but_a_new_one_begins(manager: SessionManager) -> None:
    manager.add_message(KEY, st.user("old"))
    manager.archive(KEY)
    manager.add_message(KEY, st.user("fresh"))
    assert [message.text for message in manager.get_messages(KEY)] == ["fresh"]
    assert [info.state for info in manager.list()].count("archived") == 1


def test_lifetimes_can_be_switched_off(journal: st.Journal, clock: ManualClock) -> None:
    never = Lifetimes(idle_after_seconds=None, archive_after_seconds=None, delete_after_seconds=None)
    with SessionManager(journal, lifetimes=never) as manager:
        manager.add_message(KEY, st.user("hello"))
        clock.advance(10**8)
        assert manager.sweep() == type(manager.sweep())()


def fill(manager: SessionManager) -> None:
    for number in range(5):
        for payload in round_of(number, 60):
            manager.add_message(KEY, payload)
