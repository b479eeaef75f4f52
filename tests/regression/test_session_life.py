"""Sessions: one truth about their state, and nothing that time, hooks, races or crashes can do to them unseen."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import pytest

import sessiontree as st
from cli_shell import Shell
from known import of_kind, present
from long_conversations import SMALL, round_of
from sessiontree.journal.memory import ExtractedMemory, JournalMemory, refresh_memory
from sessiontree.sessions import Lifetimes, SessionManager, format_key, route
from sessiontree.sessions.hooks import EndReason, Fault, HookPhase, SessionEnd
from sessiontree.sessions.keys import ChatKind, DirectScope
from sessiontree.sessions.manager_async import AsyncSessionManager
from sessiontree.stores.commands import ClaimCompaction, Command, Result
from sessiontree.stores.protocol import Store
from sessiontree.stores.queries import Query
from sessiontree.testing import ManualClock

KEY = st.SessionKey(agent="bot", channel="web", peer="ann")
DAY = 86_400
NEW_YORK = ZoneInfo("America/New_York")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def journal(clock: ManualClock) -> Iterator[st.Journal]:
    with st.open("memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def manager(journal: st.Journal) -> Iterator[SessionManager]:
    with SessionManager(journal) as made:
        yield made


def texts(manager: SessionManager, key: st.SessionKey = KEY) -> list[str]:
    return [message.text for message in manager.get_messages(key)]


# One truth about the state


@pytest.mark.parametrize("is_by_manager", [True, False])
def test_each_archiving_restarts_the_time_to_deletion(
    manager: SessionManager, journal: st.Journal, clock: ManualClock, is_by_manager: bool
) -> None:
    thread_id = manager.add_message(KEY, st.user("hello")).thread_id
    manager.archive(KEY)
    clock.advance(29 * DAY)
    manager.unarchive(KEY)
    if is_by_manager:
        manager.archive(KEY)
    else:
        journal.update_thread(thread_id, is_archived=True)
    clock.advance(29 * DAY)
    assert manager.sweep().deleted == 0
    clock.advance(DAY)
    assert manager.sweep().deleted == 1


def test_what_the_command_archives_and_brings_back_the_manager_sees_alike(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    with st.open(f"sqlite:///{tmp_path / 'j.db'}") as journal, SessionManager(journal) as manager:
        thread_id = manager.add_message(KEY, st.user("hello")).thread_id
        shell("archive", thread_id)
        assert manager.info(KEY).state == "archived"
        assert len(manager.list(state="archived")) == 1
        assert manager.stats().archived == 1
        shell("archive", thread_id, "--undo")
        assert manager.info(KEY).state == "active"
        assert [len(manager.list(state=state)) for state in ("active", "archived")] == [1, 0]
        manager.archive(KEY)
        shell("archive", thread_id, "--undo")
        assert manager.add_message(KEY, st.user("again")).thread_id == thread_id
        assert manager.stats().active == 1


def test_lists_find_sessions_by_the_state_that_they_are_in(
    manager: SessionManager, journal: st.Journal, clock: ManualClock
) -> None:
    for peer in ("active", "idle", "suspended", "archived", "compacting"):
        manager.add_message(st.SessionKey(agent="bot", channel="web", peer=peer), st.user("hello"))
    key = {info.key.peer: info.key for info in manager.list()}
    clock.advance(31 * 60)
    manager.sweep()
    for peer in ("active", "compacting"):
        manager.add_message(key[peer], st.user("again"))
    manager.suspend(key["suspended"])
    manager.archive(key["archived"])
    claimed_by_a_crash(journal, present(manager.get(key["compacting"])).thread_id, clock, seconds=60)
    for state in ("active", "idle", "suspended", "archived", "compacting"):
        assert [info.key.peer for info in manager.list(state=state)] == [state]
    stats = manager.stats()
    assert (stats.active, stats.idle, stats.suspended, stats.archived, stats.compacting) == (1, 1, 1, 1, 1)


def claimed_by_a_crash(journal: st.Journal, thread_id: str, clock: ManualClock, seconds: int) -> None:
    claim = st.CompactionClaim(id="lost", owner="a process that is gone", expires_ns=clock() + seconds * 10**9)
    journal.store.commit(ClaimCompaction(thread_id=thread_id, claim=claim, now_ns=clock()))


def test_a_session_that_a_crash_left_compacting_settles_when_the_claim_expires(
    manager: SessionManager, journal: st.Journal, clock: ManualClock
) -> None:
    thread_id = manager.add_message(KEY, st.user("hello")).thread_id
    claimed_by_a_crash(journal, thread_id, clock, seconds=600)
    assert manager.info(KEY).state == "compacting"
    clock.advance(600)
    assert manager.info(KEY).state == "active"
    clock.advance(31 * 60)
    assert manager.sweep().idle == 1


def test_who_comes_second_to_a_compaction_does_not_change_the_state(
    manager: SessionManager, journal: st.Journal, clock: ManualClock
) -> None:
    thread_id = manager.add_message(KEY, st.user("hello")).thread_id
    claimed_by_a_crash(journal, thread_id, clock, seconds=600)
    with pytest.raises(st.CompactionClaimedError):
        manager.compact(KEY)
    assert manager.info(KEY).state == "compacting"


# Bringing back counts as use


def test_a_session_that_was_brought_back_is_not_archived_again_by_the_next_sweep(
    manager: SessionManager, clock: ManualClock
) -> None:
    manager.add_message(KEY, st.user("hello"))
    clock.advance(8 * DAY)
    assert manager.sweep().archived == 1
    manager.unarchive(KEY)
    assert manager.sweep() == type(manager.sweep())()
    assert manager.info(KEY).state == "active"
    clock.advance(7 * DAY)
    assert manager.sweep().archived == 1


def test_a_session_that_was_brought_back_goes_on_in_spite_of_the_daily_reset(
    journal: st.Journal, clock: ManualClock
) -> None:
    with SessionManager(journal, lifetimes=Lifetimes(daily_reset_hour=4)) as manager:
        manager.add_message(KEY, st.user("yesterday"))
        manager.archive(KEY)
        clock.advance(2 * DAY)
        manager.unarchive(KEY)
        manager.add_message(KEY, st.user("today"))
        assert texts(manager) == ["yesterday", "today"]
        clock.advance(DAY)
        manager.add_message(KEY, st.user("tomorrow"))
        assert texts(manager) == ["tomorrow"]


def test_a_suspended_session_is_left_alone_until_it_is_resumed_and_that_counts_as_use(
    journal: st.Journal, clock: ManualClock
) -> None:
    with SessionManager(journal, lifetimes=Lifetimes(daily_reset_hour=4)) as manager:
        manager.add_message(KEY, st.user("first"))
        manager.suspend(KEY)
        clock.advance(100 * DAY)
        sweep = manager.sweep()
        assert (sweep.idle, sweep.archived, sweep.deleted) == (0, 0, 0)
        manager.add_message(KEY, st.user("second"))
        clock.advance(100 * DAY)
        manager.resume(KEY)
        assert manager.sweep().archived == 0
        manager.add_message(KEY, st.user("third"))
        assert texts(manager) == ["first", "second", "third"]


def test_an_earlier_conversation_can_be_brought_back_by_its_generation(
    manager: SessionManager, clock: ManualClock
) -> None:
    first = manager.add_message(KEY, st.user("first")).thread_id
    manager.new(KEY)
    manager.add_message(KEY, st.user("second"))
    with pytest.raises(st.SessionNotArchivedError) as caught:
        manager.unarchive(KEY)
    assert caught.value.generations == (1,)
    assert manager.unarchive(KEY, generation=1).generation == 1
    assert manager.add_message(KEY, st.user("first again")).thread_id == first
    assert texts(manager) == ["first", "first again"]
    assert [info.generation for info in manager.list(state="archived")] == [2]
    fresh = manager.new(KEY)
    assert fresh.info().generation == 3
    with pytest.raises(st.SessionNotFoundError):
        manager.unarchive(KEY, generation=9)


def test_an_archived_session_cannot_be_reset_and_the_error_says_what_can_be_done(manager: SessionManager) -> None:
    manager.add_message(KEY, st.user("hello"))
    manager.archive(KEY)
    with pytest.raises(st.InvalidTransitionError, match="active"):
        manager.reset(KEY)
    assert texts(manager) == ["hello"]


# Who is who


def test_an_id_that_reads_like_the_name_of_a_linked_person_is_not_that_person() -> None:
    links = {"ann": ["telegram:42"]}

    def person(channel: str, peer: str, scope: DirectScope = "per-peer") -> str:
        return format_key(route("bot", channel, peer, scope=scope, identity_links=links))

    real = person("telegram", "42")
    assert real not in {person("discord", "ann"), person("telegram", "ann"), person("discord", "telegram:42")}
    assert person("telegram", "42", "per-channel-peer") != person("telegram", "ann", "per-channel-peer")
    assert person("tele", "gram:42") != real
    assert person("telegram:", "42") != real


def test_a_linked_peer_may_have_colons_and_a_bare_link_counts_everywhere() -> None:
    links = {"ann": ["matrix:@ann:example.org", "ann42"]}
    assert route("bot", "matrix", "@ann:example.org", scope="per-peer", identity_links=links).peer == "ann"
    assert route("bot", "irc", "ann42", scope="per-peer", identity_links=links).peer == "ann"
    assert route("bot", "irc", "@ann:example.org", scope="per-peer", identity_links=links).peer == "@ann:example.org"


def test_a_message_without_a_channel_or_a_group_without_an_id_is_refused() -> None:
    wrong: list[tuple[tuple[str, str, str], ChatKind]] = [
        (("bot", "", "1"), "direct"),
        (("", "web", "1"), "direct"),
        (("bot", "web", ""), "group"),
    ]
    for arguments, kind in wrong:
        with pytest.raises(st.InvalidInputError):
            route(*arguments, kind=kind)


@pytest.mark.parametrize("links", [{"ann": "telegram:42"}, {"": ["telegram:42"]}])
def test_links_that_would_let_strangers_in_are_refused(links: dict[str, Any]) -> None:
    with pytest.raises(st.InvalidInputError, match="list of accounts"):
        route("bot", "discord", "4", scope="per-peer", identity_links=links)


@pytest.mark.parametrize("wrong", [{"scope": "per-person"}, {"kind": "room"}])
def test_a_scope_or_a_kind_of_chat_that_does_not_exist_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(st.InvalidInputError, match="per-peer"):
        route("bot", "web", "1", **wrong)


@pytest.mark.parametrize("part", ["agent", "channel", "peer"])
def test_a_key_with_an_empty_part_is_refused_wherever_a_key_is_taken(manager: SessionManager, part: str) -> None:
    key = st.SessionKey(**{"agent": "a", "channel": "c", "peer": "p", part: ""})
    verbs = (
        "get", "get_or_create", "get_messages", "get_system_prompt", "new", "reset", "archive", "unarchive", "suspend",
        "resume", "delete", "info", "compact", "uncompact", "token_usage",
    )  # fmt: skip
    for verb in verbs:
        with pytest.raises(st.InvalidInputError, match=part):
            getattr(manager, verb)(key)


# Beginnings and ends


class Broken:
    """A store that fails at the n-th write from now on."""

    def __init__(self, store: Store, fails_at: int) -> None:
        self._store = store
        self._left = fails_at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, command: Command) -> Result:
        self._left -= 1
        if self._left == 0:
            raise st.StoreUnavailableError("here", "the disk is away")
        return self._store.commit(command)


@pytest.mark.parametrize("fails_at", [1, 2, 3])
@pytest.mark.parametrize("given", ["Be kind.", ""])
def test_a_prompt_is_never_lost_between_two_writes(journal: st.Journal, fails_at: int, given: str) -> None:
    manager = SessionManager(journal, system_prompt=given)
    sound = journal.store
    for verb in (manager.get_or_create, manager.reset, manager.new):
        journal.store = Broken(sound, fails_at)
        with suppress(st.StoreUnavailableError):
            verb(KEY)
        journal.store = sound
        session = manager.get_or_create(KEY)
        if not given and verb == manager.get_or_create:
            session.set_system_prompt("Be kind.")
        assert session.system_prompt() == "Be kind."
    manager.stop()


def test_a_hook_that_begins_the_session_again_does_not_make_a_delete_endless(manager: SessionManager) -> None:
    manager.hooks.add(lambda end: manager.add_message(KEY, st.user("I am back")), phase="after", reasons={"delete"})
    manager.add_message(KEY, st.user("hello"))
    manager.new(KEY)
    assert manager.delete(KEY) == 2
    assert texts(manager) == ["I am back", "I am back"]


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_hook_that_writes_to_the_session_does_not_make_a_daily_reset_endless(
    journal: st.Journal, clock: ManualClock, phase: HookPhase
) -> None:
    heard = []

    def farewell(end: SessionEnd) -> None:
        heard.append(end.reason)
        sessions.add_message(KEY, st.user(f"{phase} the reset"))

    with SessionManager(journal, lifetimes=Lifetimes(daily_reset_hour=4)) as sessions:
        sessions.hooks.add(farewell, phase=phase, reasons={"reset"})
        sessions.add_message(KEY, st.user("yesterday"))
        clock.advance(DAY)
        sessions.add_message(KEY, st.user("today"))
        assert heard == ["reset"]
        assert texts(sessions) == (["today"] if phase == "before" else ["after the reset", "today"])


@pytest.mark.parametrize("reason", ["archive", "reset", "delete", "new"])
def test_a_hook_that_ends_the_session_again_is_called_once(manager: SessionManager, reason: EndReason) -> None:
    heard = []

    def eager(end: SessionEnd) -> None:
        heard.append(end.phase)
        getattr(manager, reason)(KEY)

    manager.add_message(KEY, st.user("hello"))
    manager.hooks.add(eager, reasons={reason})
    getattr(manager, reason)(KEY)
    assert heard == ["before"]


def test_awaited_hooks_and_the_tasks_that_they_start_do_not_make_an_end_endless_either(clock: ManualClock) -> None:
    heard = []

    async def run() -> list[str]:
        store = st.open_async("memory:", clock=clock)
        async with store as journal, AsyncSessionManager(journal, lifetimes=Lifetimes(daily_reset_hour=4)) as manager:

            async def farewell(end: SessionEnd) -> None:
                heard.append((end.phase, end.reason))
                await asyncio.create_task(manager.add_message(KEY, st.user("good night")))
                await manager.new(KEY)

            manager.hooks.add(farewell, reasons={"reset", "new"})
            await manager.add_message(KEY, st.user("yesterday"))
            clock.advance(DAY)
            await manager.add_message(KEY, st.user("today"))
            return [message.text for message in await manager.get_messages(KEY)]

    assert asyncio.run(run()) == ["today"]
    assert heard == [("before", "reset"), ("before", "new")]


@pytest.mark.parametrize("verb", ["archive", "reset"])
def test_a_hook_that_deletes_the_session_before_its_end_gives_a_clear_error(
    manager: SessionManager, verb: EndReason
) -> None:
    manager.add_message(KEY, st.user("hello"))
    manager.hooks.add(lambda end: manager.delete(KEY), reasons={verb})
    with pytest.raises(st.SessionNotFoundError):
        getattr(manager, verb)(KEY)


def test_a_hook_that_deletes_the_session_does_not_keep_the_next_one_from_beginning(manager: SessionManager) -> None:
    manager.add_message(KEY, st.user("hello"))
    manager.hooks.add(lambda end: manager.delete(KEY), reasons={"new"})
    assert manager.new(KEY).get_messages() == []
    assert len(manager.list()) == 1


def test_a_prompt_that_a_hook_sets_before_a_new_conversation_goes_on_into_it(manager: SessionManager) -> None:
    manager.add_message(KEY, st.user("hello"))
    manager.hooks.add(lambda end: manager.set_system_prompt(KEY, "Be brief."), reasons={"new"})
    assert manager.new(KEY).system_prompt() == "Be brief."


def test_a_failing_report_does_not_stop_the_others(journal: st.Journal, caplog: pytest.LogCaptureFixture) -> None:
    heard = []

    def no_use(fault: Fault) -> None:
        raise OSError("the report is broken")

    with SessionManager(journal, report=no_use) as manager:
        manager.hooks.add(lambda end: 1 / 0)
        manager.hooks.add(lambda end: heard.append(end.reason))
        manager.add_message(KEY, st.user("hello"))
        assert manager.archive(KEY).state == "archived"
    assert heard == ["archive"]
    assert {type(present(record.exc_info)[1]) for record in caplog.records} == {ZeroDivisionError, OSError}


def test_a_coroutine_function_is_refused_as_a_hook_of_a_sync_manager(manager: SessionManager) -> None:
    class Object:
        async def __call__(self, end: SessionEnd) -> None:
            return None

    async def hook(end: SessionEnd) -> None:
        return None

    for wrong in (hook, Object()):
        with pytest.raises(st.InvalidInputError, match="AsyncSessionManager"):
            manager.hooks.add(wrong)


def test_a_hook_that_gives_something_to_await_is_reported_where_nothing_is_awaited(journal: st.Journal) -> None:
    faults: list[Fault] = []

    async def later() -> None:
        return None

    with SessionManager(journal, report=faults.append) as manager:
        manager.hooks.add(lambda end: later())
        manager.add_message(KEY, st.user("hello"))
        manager.archive(KEY)
    assert [type(fault.error) for fault in faults] == [st.InvalidInputError]


def test_a_refresher_that_gives_something_to_await_is_an_error_and_not_done(journal: st.Journal) -> None:
    class Refresher:
        async def refresh(self, memory: ExtractedMemory) -> None:
            return None

    journal.create_thread("t")
    journal.append_many("t", [st.user("I prefer tabs."), st.assistant("ok"), st.user("thanks")])
    for _ in range(2):
        with pytest.raises(st.InvalidInputError, match="await"):
            refresh_memory(journal, "t", Refresher(), lambda request: "- User prefers tabs")


# Races


@pytest.mark.parametrize("days", [0.1, 8])
def test_a_message_that_comes_while_hooks_of_a_sweep_run_keeps_the_session_in_use(
    manager: SessionManager, clock: ManualClock, days: float
) -> None:
    heard = []
    manager.hooks.add(lambda end: manager.add_message(KEY, st.user("wait")), phase="before")
    manager.hooks.add(lambda end: heard.append(end.reason), phase="after")
    manager.add_message(KEY, st.user("hello"))
    clock.advance(days * DAY)
    sweep = manager.sweep()
    assert (sweep.idle, sweep.archived, heard) == (0, 0, [])
    assert manager.info(KEY).state == "active"
    assert texts(manager) == ["hello", "wait"]


def test_a_session_that_is_brought_back_while_hooks_of_a_sweep_run_is_not_deleted(
    manager: SessionManager, clock: ManualClock
) -> None:
    manager.hooks.add(lambda end: manager.unarchive(KEY), phase="before", reasons={"delete"})
    manager.add_message(KEY, st.user("hello"))
    manager.archive(KEY)
    clock.advance(30 * DAY)
    assert manager.sweep().deleted == 0
    assert texts(manager) == ["hello"]


T = TypeVar("T")


class Overtaken:
    """A store. Another process does something just after it has answered for the nth time."""

    def __init__(self, store: Store, number: int, deed: Callable[[], object]) -> None:
        self._store = store
        self.left = number
        self.deed = deed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, query: Query[T]) -> T:
        with self._overtaken():
            return self._store.read(query)

    def commit(self, command: Command) -> Result:
        with self._overtaken():
            return self._store.commit(command)

    @contextmanager
    def _overtaken(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.left -= 1
            if self.left == 0:
                self.deed()


@pytest.mark.parametrize("number", [1, 2])
def test_a_message_that_races_a_new_conversation_lands_in_the_new_one(journal: st.Journal, number: int) -> None:
    with SessionManager(journal) as manager:
        old = manager.add_message(KEY, st.user("old")).thread_id
        late = SessionManager(st.Journal(Overtaken(journal.store, number, lambda: manager.new(KEY))))
        entry = late.add_message(KEY, st.user("for the new one"))
        assert entry.thread_id != old
        assert texts(manager) == ["for the new one"]
        assert [present(entry.message).text for entry in journal.path(old)] == ["old"]


def test_many_messages_that_race_new_conversations_are_all_stored_once(tmp_path: Path) -> None:
    async def run() -> None:
        store = st.open_async(f"sqlite:///{tmp_path / 'j.db'}")
        async with store as journal, AsyncSessionManager(journal) as manager:

            async def speak(number: int) -> st.Entry:
                return await manager.add_message(KEY, st.user(f"message {number}"))

            said = [await speak(0)]
            for number in range(12):
                *entries, _ = await asyncio.gather(speak(2 * number), speak(2 * number + 1), manager.new(KEY))
                said += entries
            assert sum(info.messages for info in await manager.list(limit=100)) == len(said)

    asyncio.run(run())


@pytest.mark.parametrize("is_reset", [True, False])
def test_a_message_that_is_sent_again_on_the_next_day_is_the_same_message(
    journal: st.Journal, clock: ManualClock, is_reset: bool
) -> None:
    with SessionManager(journal, lifetimes=Lifetimes(daily_reset_hour=4)) as manager:
        first = manager.add_message(KEY, st.user("hello"), id="m1")
        clock.advance(DAY)
        if is_reset:
            manager.add_message(KEY, st.user("good morning"), id="m2")
        assert manager.add_message(KEY, st.user("hello"), id="m1") == first
        assert sum(info.messages for info in manager.list()) == (2 if is_reset else 1)
        with pytest.raises(st.DuplicateEntryError):
            manager.add_message(KEY, st.user("something else"), id="m1")


def test_a_message_that_is_sent_again_after_several_new_conversations_is_the_same_message(
    manager: SessionManager,
) -> None:
    first = manager.add_message(KEY, st.user("hello"), id="m1")
    for _ in range(5):
        manager.new(KEY)
    assert manager.add_message(KEY, st.user("hello"), id="m1") == first
    assert texts(manager) == []


@pytest.mark.parametrize("number", range(1, 13))
@pytest.mark.parametrize("has_begun", [True, False])
def test_a_message_that_comes_twice_at_once_around_a_new_conversation_is_stored_once(
    journal: st.Journal, number: int, has_begun: bool
) -> None:
    other = SessionManager(journal)

    def deliver_and_begin_anew() -> None:
        other.add_message(KEY, st.user("hello"), id="m1")
        other.new(KEY)

    if has_begun:
        other.add_message(KEY, st.user("before"))
    overtaken = Overtaken(journal.store, number, deliver_and_begin_anew)
    entry = SessionManager(st.Journal(overtaken)).add_message(KEY, st.user("hello"), id="m1")
    if overtaken.left > 0:
        deliver_and_begin_anew()
    threads = list(journal.list_threads(is_archived=None))
    holding = [thread.id for thread in threads if any(e.id == "m1" for e in journal.entries(thread.id))]
    assert holding == [entry.thread_id]


def test_two_who_remember_the_same_fact_at_once_store_it_once(journal: st.Journal) -> None:
    fact = ExtractedMemory(text="- User prefers tabs", thread_id="t", window_id="w", key=KEY)
    keeper = JournalMemory(journal)
    keeper.refresh(ExtractedMemory(text="- User likes tea", thread_id="t", window_id="w", key=KEY))
    # The first answer is the thread, the second one its entries.
    overtaken = Overtaken(journal.store, 2, lambda: keeper.refresh(fact))
    assert JournalMemory(st.Journal(overtaken)).refresh(fact) is None
    assert [of_kind(st.Memory, entry.payload).text for entry in journal.entries(keeper.thread_id)] == [
        "- User likes tea",
        "- User prefers tabs",
    ]


def test_a_message_that_races_the_stop_of_its_manager_is_stored_and_compacted_all_the_same(journal: st.Journal) -> None:
    manager = SessionManager(journal, summarize=lambda request: "notes", policy=SMALL)
    full = [payload for number in range(20) for payload in round_of(number)]
    manager.add_message(KEY, full[0])
    manager._background.close()
    for payload in full[1:]:
        manager.add_message(KEY, payload)
    manager.stop()
    assert manager.token_usage(KEY) < 1


def test_a_manager_that_is_started_twice_sweeps_once_and_stops(journal: st.Journal) -> None:
    manager = SessionManager(journal)
    manager.start(sweep_every_seconds=3_600)
    manager.start(sweep_every_seconds=3_600)
    assert [thread.name for thread in threading.enumerate()].count("session sweep") == 1
    manager.stop()
    assert "session sweep" not in [thread.name for thread in threading.enumerate()]


# Time


def test_sessions_and_messages_have_one_clock(journal: st.Journal, clock: ManualClock) -> None:
    with SessionManager(journal) as manager:
        entry = manager.add_message(KEY, st.user("hello"))
        info = manager.info(KEY)
        assert entry.created_ns == info.created_ns == info.last_interaction_ns == clock()
    with pytest.raises(TypeError):
        SessionManager(journal, clock=ManualClock())  # type: ignore[call-arg]


def nanoseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp()) * 10**9


def test_an_hour_that_comes_twice_resets_once(journal: st.Journal, clock: ManualClock) -> None:
    rules = Lifetimes(daily_reset_hour=1, zone=NEW_YORK)
    with SessionManager(journal, lifetimes=rules) as manager:
        clock.now_ns = nanoseconds("2024-11-03T01:10:00-04:00")
        manager.add_message(KEY, st.user("the first time"))
        clock.now_ns = nanoseconds("2024-11-03T01:10:00-05:00")
        manager.add_message(KEY, st.user("the second time"))
        assert texts(manager) == ["the first time", "the second time"]


def test_an_hour_that_never_comes_resets_all_the_same(journal: st.Journal, clock: ManualClock) -> None:
    rules = Lifetimes(daily_reset_hour=2, zone=NEW_YORK)
    with SessionManager(journal, lifetimes=rules) as manager:
        clock.now_ns = nanoseconds("2024-03-10T01:59:00-05:00")
        manager.add_message(KEY, st.user("before"))
        clock.now_ns = nanoseconds("2024-03-10T03:01:00-04:00")
        manager.add_message(KEY, st.user("after"))
        assert texts(manager) == ["after"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"daily_reset_hour": 24},
        {"daily_reset_hour": -1},
        {"idle_after_seconds": -1},
        {"delete_after_seconds": float("nan")},
    ],
)
def test_lifetimes_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(st.InvalidInputError):
        Lifetimes(**wrong)
