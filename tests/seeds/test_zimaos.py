"""ZimaOS-Blue: budgets, summaries, states and what can be changed at run time, called by their names here."""

from __future__ import annotations

import pytest

import sessiontree as st
from seed_rows import covers
from sessiontree.compaction import (
    DEFAULT_CONTEXT_TOKENS,
    LEGACY_CONTEXT_TOKENS,
    CompactionResult,
    needs_compaction,
    normalize_token_budget,
)
from sessiontree.compaction.memory import MemoryRefreshConfig
from sessiontree.sessions import SessionInfo, SessionManager

KEY = st.SessionKey(agent="main", channel="telegram", peer="42")


def managed(journal: st.Journal, window_tokens: int = 1_000) -> SessionManager:
    policy = st.ratio_policy(window_tokens)
    manager = SessionManager(journal, policy=policy, summarize=lambda _request: "notes", auto_compact="off")
    manager.get_or_create(KEY)
    return manager


def talk(manager: SessionManager, count: int) -> None:
    for number in range(count):
        manager.add_message(KEY, st.user(f"{number} " + "word " * 40))


@covers("DefaultContextTokenBudget", "LegacyDefaultContextTokenBudget", "NormalizeTokenBudget")
def test_budgets_are_normalized_by_the_seeds_rules() -> None:
    assert (DEFAULT_CONTEXT_TOKENS, LEGACY_CONTEXT_TOKENS) == (200_000, 8_000)
    assert [normalize_token_budget(tokens) for tokens in (-1, 0, 8_000, 32_000)] == [200_000, 200_000, 200_000, 32_000]


@covers("DefaultMemoryRefreshConfig", "MemoryRefreshConfig")
def test_the_memory_config_has_the_seeds_defaults() -> None:
    config = MemoryRefreshConfig()
    assert (config.is_enabled, config.soft_threshold_ratio, config.max_extract_tokens) == (True, 0.6, 500)
    assert "NO_MEMORY_NEEDED" in config.system_prompt


@covers("SessionManager.SetCompactorMemoryIntegration")
def test_a_refresher_can_be_attached_and_switched_off_again(journal: st.Journal) -> None:
    stored: list[str] = []

    class Refresher:
        def refresh(self, memory: object) -> None:
            stored.append(str(memory))

    manager = managed(journal)
    talk(manager, 6)
    manager.configure(refresher=Refresher(), extract=lambda _request: "- User prefers tabs", memory_refresh=None)
    manager.compact(KEY)
    assert len(stored) == 1
    manager.configure(refresher=None)
    talk(manager, 6)
    manager.compact(KEY)
    assert len(stored) == 1


@covers("HookManager.TriggerSessionEnd")
def test_hooks_are_called_in_order_and_a_failing_one_stops_none(journal: st.Journal) -> None:
    manager = SessionManager(journal, report=lambda _fault: None)
    manager.get_or_create(KEY)
    called: list[str] = []

    def failing(_end: object) -> None:
        called.append("failing")
        raise ValueError

    manager.hooks.add(failing)
    manager.hooks.add(lambda end: called.append(end.reason))
    assert manager.trigger_hooks(KEY, "new") == 2
    assert called == ["failing", "new"]


@covers("Session.GetSummary", "Session.SetSummary")
def test_a_summary_counts_as_a_compaction_and_leaves_the_messages(journal: st.Journal) -> None:
    session = managed(journal).get_or_create(KEY)
    session.add_message(st.user("hello"))
    info = session.set_summary("They met.")
    assert (session.get_summary(), info.compactions, info.messages) == ("They met.", 1, 1)
    assert info.compacted_ns is not None


@covers("Session.MaxTokens", "Session.TokenCount", "Session.TokenUsageRatio", "SessionInfo", "SessionMetadata")
def test_info_shows_what_the_seed_shows(journal: st.Journal) -> None:
    manager = managed(journal)
    session = manager.get_or_create(KEY)
    session.set_system_prompt("some words " * 2_000)
    session.set_title("Chat")
    session.add_tag("a")
    session.set_custom("lang", "es")
    session.add_message(st.user("hello"))
    info: SessionInfo = session.info()
    assert (info.id, info.key, info.state, info.title) == ("main:telegram:42", KEY, "active", "Chat")
    assert (info.tags, info.custom, info.messages, info.compactions) == (("a",), {"lang": "es"}, 1, 0)
    assert (info.summary, info.max_tokens, info.compacted_ns) == ("", 1_000, None)
    assert info.token_usage == session.token_usage() == info.tokens / 1_000 > 3
    assert info.created_ns <= info.last_interaction_ns <= info.updated_ns
    assert session.set_max_tokens(6_000).max_tokens == 6_000


@covers("Session.SetState")
def test_states_are_set_and_checked(journal: st.Journal) -> None:
    manager = managed(journal)
    assert [manager.set_state(KEY, "idle").state, manager.set_state(KEY, "suspended").state] == ["idle", "suspended"]
    with pytest.raises(st.InvalidTransitionError):
        manager.set_state(KEY, "idle")


@covers("SessionCompactor.ShouldCompact", "CompactorMemoryIntegration.ShouldCompact", "SessionCompactor.Compact")
def test_a_compaction_is_due_at_the_threshold_and_preserves_five(journal: st.Journal) -> None:
    manager = managed(journal, 2_000)
    policy = st.ratio_policy(2_000)
    manager.set_system_prompt(KEY, "word " * 300)
    assert not needs_compaction(manager.info(KEY).tokens, policy)
    talk(manager, 25)
    assert needs_compaction(manager.info(KEY).tokens, policy)
    result: CompactionResult = journal.compact(manager.info(KEY).thread_id, lambda _request: "notes", policy=policy)
    assert (result.kept_messages, result.removed_messages) == (5, 20)
    assert manager.get_system_prompt(KEY) == "word " * 300
    assert manager.info(KEY).tokens == result.tokens_after < result.tokens_before
