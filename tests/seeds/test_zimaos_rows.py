"""The session manager of ZimaOS-Blue: its types and verbs, called by their names here."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import get_args

import pytest

import sessiontree as st
from known import present
from opened import open_store
from seed_rows import covers
from sessiontree.compaction import CompactionPolicy, CompactionResult, needs_compaction, plan
from sessiontree.compaction.memory import ExtractedMemory, crosses_soft_threshold, fingerprint, normalize_memory
from sessiontree.journal.memory import MemoryRefresher, refresh_memory
from sessiontree.journal.operations import compaction_options, summaries
from sessiontree.model.thread import SessionKey
from sessiontree.sessions import (
    EndReason,
    Hook,
    Hooks,
    Lifetimes,
    Session,
    SessionFilter,
    SessionManager,
    SessionState,
    SessionStats,
    format_key,
    parse_key,
)
from sessiontree.stores.embedded import EmbeddedStore
from sessiontree.stores.memory import MemoryBackend
from sessiontree.stores.protocol import Store
from sessiontree.stores.sqlite import SqliteBackend
from sessiontree.testing.clock import ManualClock

KEY = SessionKey(agent="main", channel="telegram", peer="42")
OTHER = SessionKey(agent="main", channel="web", peer="7", thread="side")
POLICY = CompactionPolicy(keep_recent_messages=2, keep_user_tokens=0)


def stores(*verbs: str) -> tuple[str, ...]:
    """The rows of methods of the store interface and both of its implementations."""
    kinds = ("SessionStore", "InMemorySessionStore", "SQLiteSessionStore")
    return tuple(f"{kind}.{verb}" for kind in kinds for verb in verbs)


@pytest.fixture
def manager(journal: st.Journal) -> SessionManager:
    return SessionManager(journal, summarize=lambda _request: "S", policy=POLICY)


def talk(manager: SessionManager, count: int, key: SessionKey = KEY) -> None:
    for number in range(count):
        manager.add_message(key, st.user(f"{number} " + "word " * 50), id=f"e{number}")


@covers("DefaultContextTokenBudget")
def test_the_default_window_is_the_seeds() -> None:
    assert CompactionPolicy().window_tokens == 200_000


REASONS = {f"EndReason{word.title()}": word for word in ("archive", "delete", "new", "reset", "timeout")}


@covers(*REASONS, "EndReason", "SessionHook", "SessionHook.OnSessionEnd", "SessionManager.RegisterHook")
def test_every_reason_to_end_a_session_reaches_the_hooks(journal: st.Journal, clock: ManualClock) -> None:
    assert set(get_args(EndReason)) == set(REASONS.values())
    lifetimes = Lifetimes(idle_after_seconds=60)
    manager = SessionManager(journal, lifetimes=lifetimes)
    seen: list[str] = []
    hook: Hook = lambda end: seen.append(end.reason)  # noqa: E731
    manager.hooks.add(hook)
    manager.hooks.add(lambda _end: 1 / 0, phase="after")
    for verb in (manager.reset, manager.new, manager.archive, manager.delete):
        manager.get_or_create(KEY)
        manager.add_message(KEY, st.user("hi"))
        verb(KEY)
    manager.get_or_create(OTHER)
    clock.advance(61)
    manager.sweep()
    assert set(seen) == set(REASONS.values())


STATES = {f"SessionState{word.title()}": word for word in ("active", "idle", "compacting", "suspended", "archived")}


@covers(*STATES, "SessionState", "SessionState.String", "Session.GetState", "Session.IsActive", "Session")
def test_a_session_has_the_seeds_states(journal: st.Journal, clock: ManualClock) -> None:
    assert set(get_args(SessionState)) == set(STATES.values())
    seen: list[str] = []

    def summarize(_request: object) -> str:
        seen.append(sessions.info(KEY).state)
        return "S"

    sessions = SessionManager(journal, summarize=summarize, policy=POLICY, lifetimes=Lifetimes(idle_after_seconds=60))
    session = sessions.get_or_create(KEY)
    assert isinstance(session, Session)
    assert session.info().is_active
    talk(sessions, 6)
    sessions.compact(KEY, force=True)
    clock.advance(61)
    sessions.sweep()
    seen.append(session.info().state)
    assert not session.info().is_active
    seen += [sessions.resume(KEY).state, sessions.suspend(KEY).state, sessions.resume(KEY).state]
    seen.append(sessions.archive(KEY).state)
    assert seen == ["compacting", "idle", "active", "suspended", "active", "archived"]


@covers("NewHookManager", "HookManager", "HookManager.Register")
def test_hooks_are_called_in_order_for_their_reasons() -> None:
    hooks = Hooks()

    def first(_end: object) -> None: ...
    def second(_end: object) -> None: ...

    hooks.add(first, reasons={"reset"})
    hooks.add(second)
    assert hooks.matching("before", "reset") == [first, second]
    assert hooks.matching("before", "delete") == [second]
    assert hooks.matching("after", "reset") == []


@covers(
    "NewInMemorySessionStore", "InMemorySessionStore", "NewSQLiteSessionStore", "SQLiteSessionStore", "SessionStore"
)
def test_a_store_is_opened_by_its_address(tmp_path: Path) -> None:
    for url, backend in (("memory:", MemoryBackend), (f"sqlite:///{tmp_path}/s.db", SqliteBackend)):
        with st.open(url) as journal:
            store: Store = journal.store
            assert isinstance(store, EmbeddedStore)
            assert isinstance(store.backend, backend)
            SessionManager(journal).get_or_create(KEY)
    with st.open(f"sqlite:///{tmp_path}/s.db") as journal:
        assert SessionManager(journal).get(KEY) is not None


@covers("NewSession", "NewSessionManager", "SessionManager", "SessionManager.GetOrCreate", "SessionManager.Get")
@covers("SessionManager.AddMessage", "Session.AddMessage", "Session.GetMessages", "SessionManager.GetMessages")
def test_messages_are_added_and_read_by_key(manager: SessionManager) -> None:
    assert manager.get(KEY) is None
    session = manager.get_or_create(KEY)
    assert manager.get_or_create(KEY).thread_id == session.thread_id
    found = manager.get(KEY)
    assert found is not None
    assert (found.key, found.thread_id) == (KEY, session.thread_id)
    first = session.add_message(st.user("hi"), id="a")
    assert manager.add_message(KEY, st.user("hi"), id="a") == first
    manager.add_message(KEY, st.assistant("ho"))
    assert [message.text for message in manager.get_messages(KEY)] == ["hi", "ho"]
    assert session.get_messages() == manager.get_messages(KEY)


@covers("ParseSessionID", "SessionID", "SessionID.String")
def test_a_key_and_its_text_belong_together() -> None:
    assert (format_key(KEY), format_key(OTHER)) == ("main:telegram:42", "main:web:7:side")
    odd = SessionKey(agent="a", channel="b", peer="@ann:host", thread="t")
    assert [parse_key(format_key(key)) for key in (KEY, OTHER, odd)] == [KEY, OTHER, odd]
    for wrong in ("", "a:b", "a:b:c:d:e"):
        with pytest.raises(st.InvalidInputError):
            parse_key(wrong)


@covers(*stores("Save", "Load", "List", "Delete"))
def test_threads_are_saved_loaded_listed_and_deleted(journal: st.Journal) -> None:
    journal.create_thread("t", key=KEY, title="T", tags=("x",))
    journal.create_thread("u", key=OTHER)
    journal.append("t", st.user("word " * 5000), id="big")
    loaded = journal.thread("t")
    assert (loaded.key, loaded.title, loaded.messages, loaded.leaf) == (KEY, "T", 1, "big")
    assert [thread.id for thread in journal.list_threads(agent="main", channel="telegram", tags=("x",))] == ["t"]
    assert len(journal.list_threads(limit=1)) == 1
    journal.delete_thread("t")
    for verb in (journal.thread, journal.delete_thread):
        with pytest.raises(st.ThreadNotFoundError):
            verb("t")


@covers(*stores("Archive"), "SessionManager.Archive", "SessionManager.Delete", "SessionManager.NewSession")
def test_a_session_is_archived_begun_anew_and_deleted(manager: SessionManager) -> None:
    talk(manager, 2)
    first = manager.info(KEY).thread_id
    assert manager.archive(KEY).state == "archived"
    assert manager.unarchive(KEY).state == "active"
    second = manager.new(KEY)
    assert second.thread_id != first
    assert (manager.get_messages(KEY), len(manager.journal.path(first))) == ([], 2)
    assert manager.delete(KEY) == 2
    assert manager.get(KEY) is None


@covers(*stores("Close"), "SessionManager.Stop", "SessionManager.Recover")
@pytest.mark.parametrize("kind", ["memory", "sqlite", "jsonl", "postgres"])
def test_a_manager_stops_and_a_journal_closes(kind: str, tmp_path: Path) -> None:
    clock = ManualClock()
    journal = open_store(kind, tmp_path, clock=clock)
    manager = SessionManager(journal)
    manager.start()
    assert "session sweep" in {thread.name for thread in threading.enumerate()}
    manager.stop()
    manager.stop()
    assert "session sweep" not in {thread.name for thread in threading.enumerate()}
    thread = manager.get_or_create(KEY).thread_id
    assert manager.recover().released == ()
    options = compaction_options.CompactionOptions(summarize=lambda _: "", claim_seconds=1)
    journal.run(summaries.claim(journal.runtime, thread, "crashed", options))
    clock.advance(2)
    assert manager.recover().released == (thread,)
    assert journal.thread(thread).compaction_claim is None
    journal.close()
    with pytest.raises(st.StoreError):
        manager.get_or_create(OTHER)


class Notes:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def refresh(self, memory: ExtractedMemory) -> None:
        self.texts.append(memory.text)


@covers("MemoryRefresher", "MemoryRefresher.RefreshMemory", "NewCompactorMemoryIntegration")
@covers("CompactorMemoryIntegration", "CompactorMemoryIntegration.CompactWithMemoryRefresh")
@covers("CompactorMemoryIntegration.RefreshMemoryBeforeCompaction", "SessionManager.Compact")
def test_memories_are_refreshed_before_a_compaction(journal: st.Journal) -> None:
    notes = Notes()
    refresher: MemoryRefresher = notes
    extract = lambda _request: "- The user prefers Celsius"  # noqa: E731
    manager = SessionManager(
        journal, summarize=lambda _request: "S", policy=POLICY, refresher=refresher, extract=extract
    )
    talk(manager, 6)
    result = manager.compact(KEY, force=True)
    assert isinstance(result, CompactionResult)
    assert [("Celsius" in text) for text in notes.texts] == [True]
    talk(manager, 3, OTHER)
    assert "Celsius" in refresh_memory(journal, manager.info(OTHER).thread_id, notes, extract).text


@covers("CompactorMemoryIntegration.ShouldRefreshMemory", "CompactorMemoryIntegration.ShouldRefreshMemoryOnTransition")
@covers("CompactorMemoryIntegration.ShouldCompactOnTransition")
def test_thresholds_are_crossed_upwards_only() -> None:
    policy = CompactionPolicy(window_tokens=1_000, reserve_tokens=0)
    soft, hard = policy.soft_threshold, policy.threshold
    assert crosses_soft_threshold(soft - 1, soft, policy)
    assert not crosses_soft_threshold(soft, soft + 1, policy)
    assert not crosses_soft_threshold(soft, soft - 1, policy)
    assert (needs_compaction(hard, policy), needs_compaction(hard - 1, policy)) == (True, False)


@covers("NormalizeExtractedMemoryForStorage", "NormalizeMemoryFingerprint")
def test_memories_are_cleaned_and_known_again() -> None:
    text = normalize_memory("* The user prefers  tea.\n- the user prefers tea\n\n1. Works on ZimaOS")
    assert text.lower().count("tea") == 1
    assert "ZimaOS" in text
    assert normalize_memory("  ") == ""
    assert fingerprint("- The User prefers tea.") == fingerprint("the user  prefers TEA")
    assert fingerprint("tea") != fingerprint("coffee")


@covers("NewSessionCompactor", "SessionCompactor", "SessionCompactor.CompactWithCustomPrompt", "CompactionResult")
def test_a_compaction_is_planned_and_follows_instructions(manager: SessionManager) -> None:
    talk(manager, 6)
    journal, thread_id = manager.journal, manager.info(KEY).thread_id
    planned = present(plan(journal.path(thread_id), POLICY))
    asked: list[str] = []

    def summarize(request: st.SummaryRequest) -> str:
        asked.append(request.instructions)
        return "S"

    result = journal.compact(thread_id, summarize, policy=POLICY, instructions="Name the files.", force=True)
    assert asked == ["Name the files."]
    assert (result.removed_messages, result.kept_messages) == (planned.removed_messages, planned.kept_messages)


@covers("Session.Clear", "SessionManager.Reset", "Session.SetSystemPrompt")
def test_a_reset_keeps_the_system_prompt_and_deletes_nothing(manager: SessionManager) -> None:
    session = manager.get_or_create(KEY)
    session.set_system_prompt("Be brief.")
    for verb in (session.reset, lambda: manager.reset(KEY)):
        talk(manager, 2)
        verb()
        assert (session.get_messages(), session.system_prompt()) == ([], "Be brief.")
    assert len(manager.journal.entries(session.thread_id)) >= 3


@covers("Session.SetTitle", "Session.GetTitle", "Session.AddTag", "Session.RemoveTag", "Session.GetTags")
@covers("Session.SetCustomData", "Session.GetCustomData", "Session.Info")
def test_a_session_has_a_title_tags_and_custom_data(manager: SessionManager) -> None:
    session = manager.get_or_create(KEY)
    session.set_title("Plan")
    session.add_tag("x")
    session.add_tag("x")
    session.add_tag("y")
    session.remove_tag("y")
    session.remove_tag("unknown")
    session.set_custom("n", {"deep": [1, None]})
    info = session.info()
    assert (info.title, info.tags, info.custom["n"]) == ("Plan", ("x",), {"deep": [1, None]})
    assert (info.id, info.key, info.messages) == ("main:telegram:42", KEY, 0)


@covers("SessionManager.List", "SessionFilter", "SessionManager.Stats", "SessionManagerStats")
def test_sessions_are_listed_and_counted(manager: SessionManager, clock: ManualClock) -> None:
    talk(manager, 2)
    clock.advance(5)
    manager.get_or_create(OTHER)
    manager.archive(OTHER)
    wanted: SessionFilter = {"agent": "main", "state": "active"}
    assert [info.key for info in manager.list(**wanted)] == [KEY]
    assert [info.key for info in manager.list()] == [OTHER, KEY]
    first = manager.list(limit=1)
    assert [info.key for info in manager.list(limit=1, cursor=first.cursor)] == [KEY]
    counted = manager.stats()
    assert isinstance(counted, SessionStats)
    assert (counted.total, counted.active, counted.archived, counted.messages) == (2, 1, 1, 2)
