"""The session manager: keys, scopes, states, lifetimes, hooks, compaction, many sessions, many processes."""

import asyncio
import gc
import inspect
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as hs

import sessiontree as st
from known import present
from long_conversations import SMALL, FakeModel, round_of
from sessiontree.journal.memory import JournalMemory
from sessiontree.sessions import (
    TRANSITIONS,
    Lifetimes,
    Session,
    SessionManager,
    can_transition,
    format_key,
    parse_key,
    route,
)
from sessiontree.sessions.hooks import Fault, SessionEnd
from sessiontree.sessions.keys import DirectScope
from sessiontree.sessions.manager_async import AsyncSession, AsyncSessionManager
from sessiontree.testing import ManualClock
from stores import ALL, DURABLE, open_journal, reopened, url_of

KEY = st.SessionKey(agent="bot", channel="web", peer="ann")
NOON_NS = 1_700_000_000_000_000_000 // (86_400 * 10**9) * 86_400 * 10**9 + 43_200 * 10**9


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON_NS)


@pytest.fixture
def journal(clock: ManualClock) -> Iterator[st.Journal]:
    with st.open("memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def manager(journal: st.Journal, clock: ManualClock) -> Iterator[SessionManager]:
    with reported() as faults, SessionManager(journal, policy=SMALL, auto_compact="inline", report=faults) as made:
        yield made


@contextmanager
def reported() -> Iterator[Callable[[Fault], None]]:
    """Nothing may be reported in a test that does not ask for it."""
    faults: list[Fault] = []
    yield faults.append
    assert faults == []


parts = hs.text(hs.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(hs.builds(st.SessionKey, agent=parts, channel=parts, peer=parts, thread=hs.one_of(hs.just(""), parts)))
def test_every_key_has_one_text_and_comes_back_from_it(key: st.SessionKey) -> None:
    assert parse_key(format_key(key)) == key


@pytest.mark.parametrize("text", ["", "a", "a:b", "::", "a:b:", ":b:c", "a:b:c:", "a:b:c:d:e", "a:b:%zz", "a:b:%41"])
def test_an_invalid_key_is_refused(text: str) -> None:
    with pytest.raises(st.InvalidInputError):
        parse_key(text)


@pytest.mark.parametrize("key", ["bot:web:ann", None, ("bot", "web", "ann")])
def test_a_key_is_a_record_and_not_a_text(manager: SessionManager, key: Any) -> None:
    for call in (manager.get, manager.get_or_create, manager.info, manager.delete):
        with pytest.raises(st.InvalidInputError, match="parse_key"):
            call(key)
    with pytest.raises(st.InvalidInputError, match="parse_key"):
        manager.add_message(key, st.user("hello"))


def test_a_state_that_no_session_has_cannot_be_listed(manager: SessionManager) -> None:
    unknown: Any = "busy"
    with pytest.raises(st.InvalidInputError, match="state must be one of"):
        manager.list(state=unknown)


def test_a_key_without_a_peer_is_refused(manager: SessionManager) -> None:
    with pytest.raises(st.InvalidInputError, match="peer"):
        manager.get_or_create(st.SessionKey(agent="bot", channel="web"))


def test_scopes_say_who_shares_a_session() -> None:
    def key(scope: DirectScope, channel: str, peer: str, **more: Any) -> str:
        return format_key(route("bot", channel, peer, scope=scope, **more))

    assert key("main", "telegram", "1") == key("main", "discord", "2")
    assert key("per-peer", "telegram", "1") == key("per-peer", "discord", "1") != key("per-peer", "discord", "2")
    assert key("per-channel-peer", "telegram", "1") != key("per-channel-peer", "discord", "1")
    one, two = (key("per-account-channel-peer", "telegram", "1", account=name) for name in ("work", "home"))
    assert one != two
    assert key("per-peer", "telegram", "") == key("main", "telegram", "1")


def test_one_person_on_two_channels_is_one_person_if_linked_but_not_in_main() -> None:
    links = {"ann": ["telegram:1", "discord:Ann#7"]}
    assert route("bot", "telegram", "1", scope="per-peer", identity_links=links).peer == "ann"
    assert route("bot", "discord", "Ann#7", scope="per-peer", identity_links=links).peer == "ann"
    assert route("bot", "discord", "1", scope="per-peer", identity_links=links).peer == "1"
    assert route("bot", "telegram", "1", scope="main", identity_links=links).peer == "main"


def test_groups_threads_and_case_are_kept_apart() -> None:
    keys = {
        format_key(route("bot", "matrix", "!Room:x", kind="group")),
        format_key(route("bot", "matrix", "!room:x", kind="group")),
        format_key(route("bot", "matrix", "!Room:x", kind="channel")),
        format_key(route("bot", "matrix", "!Room:x", kind="group", thread="7")),
        format_key(route("bot", "matrix", "!Room:x")),
        format_key(route("bot", "matrix:direct", "!Room:x")),
    }
    assert len(keys) == 6


def test_states_move_only_where_they_may(manager: SessionManager) -> None:
    manager.add_message(KEY, st.user("hello"))
    assert manager.suspend(KEY).state == "suspended"
    manager.add_message(KEY, st.user("still stored"))
    assert manager.info(KEY).state == "suspended"
    assert manager.resume(KEY).state == "active"
    manager.archive(KEY)
    with pytest.raises(st.InvalidTransitionError) as caught:
        manager.suspend(KEY)
    assert (caught.value.state, caught.value.wanted, caught.value.allowed) == ("archived", "suspended", ("active",))
    assert manager.unarchive(KEY).state == "active"
    assert [message.text for message in manager.get_messages(KEY)] == ["hello", "still stored"]


def test_every_state_can_be_left() -> None:
    assert all(TRANSITIONS[state] for state in TRANSITIONS)
    assert all(can_transition(state, "active") for state in TRANSITIONS if state != "active")


@pytest.mark.parametrize("store", ALL)
def test_sessions_survive_a_restart_with_everything(store: str, tmp_path: Path) -> None:
    journal = open_journal(store, tmp_path)
    with SessionManager(journal, system_prompt="Be kind.") as manager:
        session = manager.get_or_create(KEY)
        session.add_message(st.user("hello"))
        session.set_title("Greeting")
        session.add_tag("vip")
        session.add_tag("vip")
        session.add_tag("new")
        session.remove_tag("new")
        session.set_custom("plan", {"tier": 3})
        before = session.info()
    journal = reopened(journal, store, tmp_path)
    with SessionManager(journal) as manager:
        session = present(manager.get(KEY))
        assert session.info() == before
        assert (before.title, before.tags, before.custom) == ("Greeting", ("vip",), {"plan": {"tier": 3}})
        assert (session.system_prompt(), len(session.get_messages())) == ("Be kind.", 1)
    journal.close()


def test_reset_empties_the_conversation_keeps_the_prompt_and_can_be_undone(
    manager: SessionManager, journal: st.Journal
) -> None:
    session = manager.get_or_create(KEY)
    session.set_system_prompt("Be brief.")
    session.add_message(st.user("hello"))
    session.reset()
    assert (session.get_messages(), session.system_prompt()) == ([], "Be brief.")
    journal.undo(session.thread_id)
    assert [message.text for message in session.get_messages()] == ["hello"]


def test_hooks_are_called_before_and_after_every_end_and_a_failing_one_does_not_stop_the_others(
    journal: st.Journal, clock: ManualClock
) -> None:
    faults: list[Fault] = []
    heard: list[tuple[str, str, int]] = []
    manager = SessionManager(journal, report=faults.append)

    def broken(end: SessionEnd) -> None:
        raise RuntimeError("broken hook")

    manager.hooks.add(broken)
    for phase in ("before", "after"):
        manager.hooks.add(lambda end: heard.append((end.phase, end.reason, end.thread.messages)), phase=phase)
    manager.add_message(KEY, st.user("hello"))
    manager.reset(KEY)
    manager.add_message(KEY, st.user("hello again"))
    manager.new(KEY)
    manager.archive(KEY)
    manager.delete(KEY)
    assert [entry[:2] for entry in heard] == [
        ("before", "reset"), ("after", "reset"),
        ("before", "new"), ("after", "new"),
        ("before", "archive"), ("after", "archive"),
        ("before", "delete"), ("after", "delete"),
        ("before", "delete"), ("after", "delete"),
    ]  # fmt: skip
    assert heard[0][2] == 1
    assert [str(fault.error) for fault in faults] == ["broken hook"] * 5
    manager.hooks.remove(broken)
    manager.stop()


def test_hooks_can_listen_to_some_reasons_only(manager: SessionManager) -> None:
    heard = []
    manager.hooks.add(lambda end: heard.append(end.reason), reasons={"archive"})
    manager.add_message(KEY, st.user("hello"))
    manager.reset(KEY)
    manager.archive(KEY)
    assert heard == ["archive"]


def test_a_day_ends_at_the_hour_that_was_set_in_the_zone_that_was_set(journal: st.Journal, clock: ManualClock) -> None:
    zone = timezone(timedelta(hours=5, minutes=45))
    rules = Lifetimes(daily_reset_hour=4, zone=zone)
    heard = []
    with SessionManager(journal, lifetimes=rules) as manager:
        manager.hooks.add(lambda end: heard.append(end.reason))
        manager.add_message(KEY, st.user("at noon, UTC"))
        clock.advance((10 * 60 + 14) * 60)  # 03:59 there
        manager.add_message(KEY, st.user("before four"))
        assert len(manager.get_messages(KEY)) == 2
        clock.advance(60)
        manager.add_message(KEY, st.user("after four"))
        assert [message.text for message in manager.get_messages(KEY)] == ["after four"]
        assert heard == ["reset"]
        assert len(manager.list(state="archived")) == 1


def test_a_conversation_that_was_used_today_is_not_deleted_for_an_archiving_long_ago(
    journal: st.Journal, clock: ManualClock
) -> None:
    manager = SessionManager(journal)
    manager.add_message(KEY, st.user("long ago"))
    manager.archive(KEY)
    manager.unarchive(KEY)
    clock.advance(40 * 86_400)
    thread = manager.add_message(KEY, st.user("today")).thread_id
    journal.update_thread(thread, is_archived=True, state="archived")
    assert manager.sweep().deleted == 0
    assert [entry.message.text for entry in journal.path(thread) if entry.message] == ["long ago", "today"]


def test_archive_and_delete_by_age_work_for_sessions_of_other_managers(journal: st.Journal, clock: ManualClock) -> None:
    with SessionManager(journal) as first:
        first.add_message(KEY, st.user("hello"))
    clock.advance(7 * 86_400)
    with SessionManager(journal) as second:
        assert second.sweep().archived == 1
        assert second.sweep().archived == 0
        clock.advance(30 * 86_400)
        assert second.sweep().deleted == 1
        assert second.stats().total == 0


def test_a_sweep_leaves_a_session_alone_on_which_a_turn_runs(
    manager: SessionManager, journal: st.Journal, clock: ManualClock
) -> None:
    session = manager.get_or_create(KEY)
    session.add_message(st.user("hello"))
    clock.advance(31 * 60)
    lease = journal.acquire_lease(session.thread_id, owner="worker")
    report = manager.sweep()
    assert (report.idle, report.busy) == (0, 1)
    assert manager.info(KEY).state == "active"
    journal.release_lease(lease)
    assert manager.sweep().idle == 1


def test_lists_filter_by_key_state_tag_and_time_and_leave_other_threads_out(
    manager: SessionManager, journal: st.Journal, clock: ManualClock
) -> None:
    journal.create_thread("not a session")
    for peer in ("ann", "bob", "eve"):
        manager.add_message(st.SessionKey(agent="bot", channel="web", peer=peer), st.user("hello"))
        clock.advance(1)
    manager.archive(st.SessionKey(agent="bot", channel="web", peer="eve"))
    manager.add_tag(st.SessionKey(agent="bot", channel="web", peer="bob"), "vip")
    assert [info.key.peer for info in manager.list()] == ["eve", "bob", "ann"]
    assert [info.key.peer for info in manager.list(peer="ann")] == ["ann"]
    assert [info.key.peer for info in manager.list(state="archived")] == ["eve"]
    assert [info.key.peer for info in manager.list(tags=("vip",))] == ["bob"]
    assert [info.key.peer for info in manager.list(created_before_ns=NOON_NS + 1)] == ["ann"]
    first = manager.list(limit=2)
    rest = manager.list(limit=2, cursor=first.cursor)
    assert [info.key.peer for info in (*first, *rest)] == ["eve", "bob", "ann"]
    stats = manager.stats()
    assert (stats.total, stats.active, stats.archived, stats.messages) == (3, 2, 1, 3)


def test_a_full_window_is_compacted_and_memories_are_drawn_out_once_a_cycle(
    journal: st.Journal, clock: ManualClock
) -> None:
    extractions = []

    def extract(request: st.SummaryRequest) -> str:
        extractions.append(request)
        return f"- User prefers number {len(extractions)}"

    with reported() as faults, SessionManager(
        journal, summarize=FakeModel("notes"), policy=SMALL, auto_compact="inline",
        refresher=JournalMemory(journal), extract=extract, report=faults,
    ) as manager:  # fmt: skip
        for number in range(60):
            for payload in round_of(number):
                manager.add_message(KEY, payload)
        path = journal.path(present(manager.get(KEY)).thread_id)
    compactions = [entry for entry in path if entry.type == "compaction"]
    assert len(compactions) > 2
    assert len(extractions) in {len(compactions), len(compactions) + 1}
    assert all(request.kind == "memory" for request in extractions)
    assert JournalMemory(journal).recall("number 1")[0].text == "User prefers number 1"


def test_a_failing_memory_refresh_is_reported_and_does_not_block_the_compaction(
    journal: st.Journal, clock: ManualClock
) -> None:
    faults: list[Fault] = []
    with SessionManager(
        journal, summarize=FakeModel("notes"), policy=SMALL, auto_compact="inline",
        refresher=JournalMemory(journal), extract=FakeModel(RuntimeError("no model")), report=faults.append,
    ) as manager:  # fmt: skip
        for number in range(20):
            for payload in round_of(number):
                manager.add_message(KEY, payload)
        assert any(entry.type == "compaction" for entry in journal.path(present(manager.get(KEY)).thread_id))
    assert {fault.what for fault in faults} == {"a memory refresh"}
    assert isinstance(faults[0].error, st.SummaryError)


def test_a_compaction_in_the_background_is_finished_by_stop_and_its_failure_is_reported(
    journal: st.Journal, clock: ManualClock
) -> None:
    faults: list[Fault] = []
    manager = SessionManager(journal, summarize=FakeModel(RuntimeError("no model")), policy=SMALL, report=faults.append)
    for number in range(20):
        for payload in round_of(number):
            manager.add_message(KEY, payload)
    manager.stop()
    assert len(manager.get_messages(KEY)) == 100
    assert {type(fault.error) for fault in faults} == {st.SummaryError}
    assert manager.info(KEY).state == "active"


def test_token_usage_follows_a_compaction(manager: SessionManager) -> None:
    for number in range(6):
        for payload in round_of(number, 60):
            manager.add_message(KEY, payload)
    before = manager.token_usage(KEY)
    result = manager.compact(KEY, force=True)
    assert manager.token_usage(KEY) == result.tokens_after / SMALL.window_tokens < before
    manager.uncompact(KEY)
    assert manager.token_usage(KEY) == pytest.approx(before)


@pytest.mark.parametrize("store", DURABLE)
def test_two_processes_that_begin_a_session_at_once_share_it(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path)
    st.open(url).close()
    program = (
        "import sys, sessiontree as st\n"
        "from sessiontree.sessions import SessionManager\n"
        "with st.open(sys.argv[1]) as journal, SessionManager(journal) as manager:\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    for n in range(20):\n"
        "        key = st.SessionKey(agent='bot', channel='web', peer=str(n))\n"
        "        manager.add_message(key, st.user(sys.argv[2]))\n"
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", program, url, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    for process in workers:
        assert present(process.stdout).readline() == "ready\n"
    for process in workers:
        stdin = present(process.stdin)
        stdin.write("go\n")
        stdin.close()
    for process in workers:
        assert process.wait(60) == 0
        present(process.stdout).close()
    with st.open(url) as journal, SessionManager(journal) as manager:
        assert manager.stats().total == 20
        for info in manager.list(limit=20):
            assert sorted(message.text for message in manager.get_messages(info.key)) == ["one", "two"]


def test_a_thousand_live_sessions_stay_in_the_store_not_in_memory(tmp_path: Path) -> None:
    check_memory_of(1_000, tmp_path)


def check_memory_of(sessions: int, folder: Path) -> int:
    """Each session gets 20 kB; the process must grow by less than a third of that."""
    text = "x" * 20_000

    async def run() -> int:
        store = st.open_async(f"sqlite:///{folder / 'journal'}", durability="process_crash")
        async with store as journal, AsyncSessionManager(journal, most_remembered=100) as manager:
            await say(manager, 0, 100)
            before = resident_bytes()
            await say(manager, 100, sessions)
            grown = resident_bytes() - before
            stats = await manager.stats()
            assert (stats.total, stats.messages) == (sessions, sessions)
            return grown

    async def say(manager: AsyncSessionManager, start: int, end: int) -> None:
        for first in range(start, end, 50):
            keys = [st.SessionKey(agent="bot", channel="web", peer=str(n)) for n in range(first, first + 50)]
            await asyncio.gather(*(manager.add_message(key, st.user(text)) for key in keys))

    grown = asyncio.run(run())
    assert grown < sessions * len(text) // 3
    return grown


def resident_bytes() -> int:
    gc.collect()
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


def test_the_async_manager_does_the_same(tmp_path: Path) -> None:
    heard: list[tuple[str, str]] = []
    faults: list[Fault] = []

    async def hook(end: SessionEnd) -> None:
        await asyncio.sleep(0)
        heard.append((end.phase, end.reason))

    async def run() -> None:
        clock = ManualClock()
        store = st.open_async(f"sqlite:///{tmp_path / 'journal'}", clock=clock)
        async with store as journal:
            manager = AsyncSessionManager(journal, policy=SMALL, summarize=slow, report=faults.append)
            async with manager:
                manager.hooks.add(hook)
                session = await manager.get_or_create(KEY)
                for number in range(20):
                    for payload in round_of(number):
                        await session.add_message(payload)
                await manager.stop()
                path = await journal.path(session.thread_id)
                assert any(entry.type == "compaction" for entry in path)
                clock.advance(31 * 60)
                assert (await manager.sweep()).idle == 1
                fresh = await manager.new(KEY)
                assert await fresh.get_messages() == []
                assert await manager.delete(KEY) == 2
                assert await manager.get(KEY) is None

    async def slow(request: st.SummaryRequest) -> str:
        await asyncio.sleep(0)
        return "notes"

    asyncio.run(run())
    assert faults == []
    assert heard == [("before", "timeout"), ("before", "new"), ("before", "delete"), ("before", "delete")]


@pytest.mark.parametrize(("sync", "asynchronous"), [(SessionManager, AsyncSessionManager), (Session, AsyncSession)])
def test_sync_and_async_have_the_same_verbs(sync: type, asynchronous: type) -> None:
    def verbs(kind: type) -> dict[str, Callable[..., object]]:
        return {name: value for name, value in vars(kind).items() if not name.startswith("_") and callable(value)}

    assert verbs(sync).keys() == verbs(asynchronous).keys()
    for name, verb in verbs(sync).items():
        twin = verbs(asynchronous)[name]
        assert inspect.iscoroutinefunction(twin)
        assert verb.__doc__ == twin.__doc__
        assert list(inspect.signature(verb).parameters) == list(inspect.signature(twin).parameters)
