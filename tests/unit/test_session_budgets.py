"""Budgets tell the truth, on every store; and what a session manager shows and lets its users change."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import sessiontree as st
from opened import open_store
from sessiontree.compaction.memory import MemoryRefreshConfig
from sessiontree.sessions import SessionManager
from sessiontree.stores.commands import Command
from sessiontree.stores.memory import MemoryBackend
from sessiontree.stores.protocol import Outcome


def told(text: str) -> st.Summarizer:
    return lambda _request: text


KEY = st.SessionKey(agent="bot", channel="web", peer="ann")


@pytest.fixture(params=("memory", "sqlite", "jsonl", "postgres"))
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with open_store(request.param, tmp_path) as opened:
        yield opened


def talk(manager: SessionManager, messages: int, words: int = 40) -> None:
    for number in range(messages):
        said = st.user if number % 2 == 0 else st.assistant
        manager.add_message(KEY, said(f"{number} " + "word " * words))


def test_a_prompt_larger_than_the_window_shows(journal: st.Journal) -> None:
    manager = SessionManager(journal, policy=st.ratio_policy(1_000), auto_compact="off")
    manager.get_or_create(KEY)
    manager.set_system_prompt(KEY, "some words " * 2_000)
    manager.add_message(KEY, st.user("hi"))
    info = manager.info(KEY)
    assert manager.token_usage(KEY) == info.token_usage == info.tokens / 1_000 > 3.0
    manager.set_system_prompt(KEY, "short")
    assert manager.info(KEY).tokens == journal.context(info.thread_id).tokens < 50


def test_prompts_that_are_appended_directly_count_once(journal: st.Journal) -> None:
    def has_every_token() -> bool:
        return journal.thread("t").tokens == journal.context("t").estimate

    prompts = [st.system(letter * 90 * size) for size, letter in enumerate("abcdef", 1)]
    journal.create_thread("t", contents=[prompts[0], st.user("hello"), prompts[1]])
    assert has_every_token()
    first = journal.append("t", prompts[2], id="p")
    journal.append_many("t", [st.user("again"), prompts[3], prompts[4]])
    assert has_every_token()
    assert journal.append("t", prompts[2], id="p") == first
    journal.append("t", prompts[5], parent=first.id)
    assert has_every_token()
    journal.append_many("t", [st.user(str(number)) for number in range(100)])
    journal.append("t", st.Message(role="system", parts=(), extra={"openai": {"role": "developer"}}))
    with journal.turn("t", owner="w") as turn:
        turn.append(st.system("short"))
    assert has_every_token()
    with pytest.raises(st.StaleLeafError):
        journal.append("t", prompts[0], expect_leaf=first.id)


def test_every_count_is_the_same_before_and_after_a_compaction(journal: st.Journal) -> None:
    manager = SessionManager(
        journal, policy=st.ratio_policy(1_000), summarize=told("notes"), system_prompt="Be kind.", auto_compact="off"
    )
    manager.get_or_create(KEY)
    talk(manager, 12)
    before = manager.info(KEY)
    assert before.tokens == manager.stats().tokens == journal.context(before.thread_id).tokens
    result = manager.compact(KEY)
    after = manager.info(KEY)
    assert (result.tokens_before, result.tokens_after) == (before.tokens, after.tokens)
    assert after.tokens == manager.stats().tokens == journal.thread(after.thread_id).tokens
    assert after.tokens == journal.context(after.thread_id).tokens < before.tokens
    assert (after.summary, after.compactions, after.messages) == (result.summary, 1, 12)
    assert after.compacted_ns is not None
    manager.uncompact(KEY)
    assert (manager.info(KEY).tokens, manager.info(KEY).summary) == (before.tokens, "")


def test_a_summary_that_keeps_nothing_costs_the_same_with_the_next_message(journal: st.Journal) -> None:
    journal.create_thread("t", contents=[st.user("one"), st.assistant("two")])
    journal.replace_context("t", "They counted.", 0)
    (alone,) = journal.context("t").messages
    journal.append("t", st.user("three"))
    assert journal.context("t").messages[0] == alone
    assert journal.thread("t").tokens == journal.context("t").estimate


def test_usage_that_a_provider_reported_is_the_usage_of_the_session(journal: st.Journal) -> None:
    manager = SessionManager(journal, policy=st.ratio_policy(1_000), auto_compact="off")
    manager.add_message(KEY, st.user("hello"))
    message = st.Message(role="assistant", parts=(st.TextPart(text="hi"),))
    manager.add_message(KEY, st.AssistantMessage(message=message, usage=st.Usage(input_tokens=600, output_tokens=10)))
    info = manager.info(KEY)
    assert manager.token_usage(KEY) == info.token_usage == 0.61
    assert info.tokens == manager.stats().tokens == journal.context(info.thread_id).estimate < 100


@pytest.mark.parametrize("context_tokens", [5, 400, 5_000])
@pytest.mark.parametrize("is_apart", [True, False])
def test_every_manager_sees_the_same_usage_after_a_report(
    journal: st.Journal, context_tokens: int, is_apart: bool
) -> None:
    manager = SessionManager(journal, auto_compact="off")
    usage = st.Usage(input_tokens=context_tokens)

    def shown() -> tuple[float, float]:
        return manager.token_usage(KEY), SessionManager(journal).token_usage(KEY)

    manager.add_message(KEY, st.user("word " * 500))
    manager.add_message(KEY, st.assistant("short" * 20, usage=None if is_apart else usage))
    if is_apart:
        manager.add_message(KEY, st.UsageReport(usage=usage))
    for said in ("word " * 50, "", "more " * 300):
        mine, fresh = shown()
        assert mine == fresh
        manager.add_message(KEY, st.user(said))
    mine, fresh = shown()
    assert mine == fresh


def test_a_compaction_that_is_added_as_a_message_shows_at_once(journal: st.Journal) -> None:
    manager = SessionManager(journal, auto_compact="off")
    talk(manager, 6)
    manager.add_message(KEY, st.Compaction(summary="so far", generation=1))
    assert manager.get_summary(KEY) == "so far"


def test_a_message_that_cannot_be_counted_alone_still_fills_the_window(journal: st.Journal) -> None:
    policy = st.ratio_policy(2_000, preserve_recent=1)
    manager = SessionManager(journal, policy=policy, summarize=told("short"), auto_compact="inline")
    manager.add_message(KEY, st.user("word " * 500))
    manager.add_message(KEY, st.assistant("yes"))
    manager.add_message(KEY, st.UsageReport(usage=st.Usage(input_tokens=1_990)))
    assert manager.info(KEY).compactions == 1


def test_other_tools_change_the_usage_at_once(journal: st.Journal) -> None:
    tools = [{"name": "ls", "description": "List a folder. " * 100, "input_schema": {"type": "object"}}]
    manager = SessionManager(journal, auto_compact="off")
    manager.add_message(KEY, st.user("hello"))
    assert manager.token_usage(KEY) == SessionManager(journal).token_usage(KEY)
    manager.configure(tools=tools)
    assert manager.token_usage(KEY) == SessionManager(journal, tools=tools).token_usage(KEY) > 0.001


@pytest.mark.parametrize("verb", ["replace", "compact", "uncompact", "set_summary", "truncate"])
def test_a_context_that_changes_while_a_call_is_open_counts_right_afterwards(journal: st.Journal, verb: str) -> None:
    manager, store = SessionManager(journal, auto_compact="off"), st.SimpleStore(journal)
    talk(manager, 6, words=200)
    thread = manager.info(KEY).thread_id
    policy = st.CompactionPolicy(keep_recent_tokens=100)
    if verb == "uncompact":
        journal.compact(thread, told("short"), policy=policy)
    manager.add_message(KEY, st.assistant("", calls=[st.call("c1", "ls", "{}")]))
    match verb:
        case "replace":
            journal.replace_context(thread, "short", 2)
        case "compact":
            journal.compact(thread, told("short"), policy=policy)
        case "uncompact":
            manager.uncompact(KEY)
        case "set_summary":
            manager.set_summary(KEY, "short")
        case "truncate":
            store.truncate_history(thread, 2)
    manager.add_message(KEY, st.tool_result("c1", "a.txt"))
    assert manager.info(KEY).tokens == manager.stats().tokens == journal.context(thread).estimate


def test_compactions_that_are_put_together_by_hand_count(journal: st.Journal) -> None:
    def has_every_token(thread: str) -> bool:
        return journal.thread(thread).tokens == journal.context(thread).estimate

    said = [st.user("word " * 90), st.assistant("yes " * 90)]
    summary = st.Compaction(summary="so far", generation=1)
    journal.create_thread("t", contents=[st.system("Be kind."), *said, summary, st.user("and now?")])
    assert has_every_token("t")
    stored = journal.append("t", summary, id="c")
    assert has_every_token("t")
    journal.append_many("t", [*said, st.Compaction(summary="later", first_kept_entry_id="c"), st.user("go on")])
    assert has_every_token("t")
    assert journal.append("t", summary, id="c") == stored
    fork = journal.fork("t", at=stored.id).id
    journal.append(fork, st.Compaction(summary="elsewhere"), parent=journal.path("t")[1].id)
    assert has_every_token(fork)


def test_undone_truncations_and_replaced_histories_count(journal: st.Journal) -> None:
    store = st.SimpleStore(journal)

    def has_every_token() -> bool:
        return journal.thread("k").tokens == journal.context("k").estimate

    for number in range(6):
        store.add_message("k", "user", "word " * 20 * number)
    store.set_summary("k", "so far")
    assert has_every_token()
    store.truncate_history("k", 2)
    assert has_every_token()
    store.add_message("k", "user", "more words")
    store.undo("k")
    assert has_every_token()
    store.set_history("k", [st.Message(role="user", parts=(st.TextPart(text="a new start"),))])
    assert has_every_token()
    store.undo("k")
    store.undo("k")
    assert has_every_token()


def test_preserved_messages_are_kept_or_it_says_why_not(journal: st.Journal) -> None:
    manager = SessionManager(journal, policy=st.ratio_policy(2_000), summarize=told("notes"), auto_compact="off")
    talk(manager, 20)
    result = manager.compact(KEY)
    assert (result.kept_messages, result.note) == (5, "")
    talk(manager, 6, words=1_000)
    crowded = manager.compact(KEY)
    assert crowded.kept_messages < 5
    assert "of the 5 recent messages are kept" in crowded.note


def test_a_session_can_have_a_window_of_its_own(journal: st.Journal) -> None:
    manager = SessionManager(journal, policy=st.ratio_policy(100_000), auto_compact="off")
    talk(manager, 4)
    small = manager.set_max_tokens(KEY, 500)
    assert (small.max_tokens, manager.info(KEY).token_usage) == (500, small.tokens / 500)
    assert manager.new(KEY).info().max_tokens == 500
    assert manager.set_max_tokens(KEY, None).max_tokens == 100_000
    with pytest.raises(st.InvalidInputError, match="positive"):
        manager.set_max_tokens(KEY, 0)


def test_a_summary_can_be_set_and_read(journal: st.Journal) -> None:
    manager = SessionManager(journal)
    talk(manager, 3)
    assert manager.get_summary(KEY) == ""
    seen = [message.text for message in manager.get_messages(KEY)]
    last = manager.info(KEY).last_interaction_ns
    first = manager.set_summary(KEY, "They met.")
    second = manager.set_summary(KEY, "They met twice.")
    assert (first.compactions, second.compactions, manager.get_summary(KEY)) == (1, 2, "They met twice.")
    assert [message.text for message in manager.get_messages(KEY)][1:] == seen
    assert second.tokens == journal.context(second.thread_id).tokens
    assert second.last_interaction_ns == last
    manager.uncompact(KEY)
    assert manager.get_summary(KEY) == "They met."


def test_what_the_manager_appends_is_no_interaction(journal: st.Journal) -> None:
    manager = SessionManager(journal, policy=st.ratio_policy(1_000), summarize=told("notes"), auto_compact="off")
    talk(manager, 12)
    last = manager.info(KEY).last_interaction_ns
    assert manager.compact(KEY).is_installed
    assert manager.info(KEY).last_interaction_ns == last
    manager.uncompact(KEY)
    manager.set_system_prompt(KEY, "Be kind.")
    assert manager.info(KEY).last_interaction_ns == last
    manager.add_message(KEY, st.user("hello"))
    assert manager.info(KEY).last_interaction_ns > last


def test_a_message_that_arrives_during_a_compaction_is_the_last_interaction(journal: st.Journal) -> None:
    def interrupted(_request: st.SummaryRequest) -> str:
        manager.set_custom(KEY, "mood", "good")
        arrived.append(manager.add_message(KEY, st.user("one more thing")))
        return "notes"

    arrived: list[st.Entry] = []
    manager = SessionManager(journal, policy=st.ratio_policy(1_000), summarize=interrupted, auto_compact="off")
    talk(manager, 12)
    result = manager.compact(KEY)
    info = manager.info(KEY)
    assert result.entry is not None
    assert result.entry.parent == arrived[-1].id
    assert (info.last_interaction_ns, info.custom) == (arrived[-1].created_ns, {"mood": "good"})


def test_a_compaction_and_the_time_of_the_last_interaction_are_one_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = MemoryBackend.write

    def recorded(backend: MemoryBackend, commands: Sequence[Command]) -> list[Outcome]:
        written.extend(type(command).__name__ for command in commands)
        return write(backend, commands)

    monkeypatch.setattr(MemoryBackend, "write", recorded)
    with st.open("memory:") as journal:
        manager = SessionManager(journal, policy=st.ratio_policy(1_000), summarize=told("notes"), auto_compact="off")
        talk(manager, 12)
        written.clear()
        assert manager.compact(KEY).is_installed
    assert set(written[:-1]) == {"ClaimCompaction"}
    assert written[-1] == "InstallCompaction"


def test_states_can_be_set_and_hooks_called_by_hand(journal: st.Journal) -> None:
    manager = SessionManager(journal)
    called: list[str] = []
    manager.hooks.add(lambda end: called.append(f"{end.phase} {end.reason}"))
    manager.get_or_create(KEY)
    for state in ("idle", "active", "suspended", "active", "archived"):
        assert manager.set_state(KEY, state).state == state
    with pytest.raises(st.InvalidInputError, match="not to 'compacting'"):
        manager.set_state(KEY, "compacting")
    called.clear()
    assert manager.trigger_hooks(KEY, "timeout") == 1
    assert called == ["before timeout"]


def test_options_can_be_changed_at_run_time(journal: st.Journal) -> None:
    manager = SessionManager(journal, policy=st.ratio_policy(1_000), summarize=told("first"), auto_compact="off")
    talk(manager, 12)
    manager.configure(summarize=told("second"))
    assert "second" in manager.compact(KEY).summary
    manager.configure(policy=st.ratio_policy(5_000), refresher=None, memory_refresh=MemoryRefreshConfig())
    assert manager.info(KEY).max_tokens == 5_000
    with pytest.raises(st.InvalidInputError, match="unknown options"):
        manager.configure(nonsense=1)  # type: ignore[call-arg]


def test_lists_take_an_offset(journal: st.Journal) -> None:
    manager = SessionManager(journal)
    for number in range(7):
        journal.create_thread(f"other{number}")
        manager.add_message(st.SessionKey(agent="bot", channel="web", peer=f"p{number}"), st.user("hi"))
    everyone = [info.id for info in manager.list(limit=100)]
    assert [info.id for info in manager.list(limit=3, offset=2)] == everyone[2:5]
    assert [info.id for info in manager.list(offset=6)] == everyone[6:]
    assert [info.id for info in manager.list(offset=9)] == []
    with pytest.raises(st.InvalidInputError, match="offset"):
        manager.list(offset=-1)


def test_racing_changes_lose_nothing(journal: st.Journal) -> None:
    """Prompts, summaries, tags, states and messages from four threads: each change is there, and the count is exact."""
    manager = SessionManager(journal, auto_compact="off")
    manager.get_or_create(KEY)
    rounds = 50

    def run(worker: int) -> None:
        for number in range(rounds):
            match worker:
                case 0:
                    manager.add_message(KEY, st.user(f"m{number}"))
                case 1:
                    manager.add_tag(KEY, f"t{number}")
                case 2:
                    manager.set_summary(KEY, f"s{number}")
                case _:
                    manager.set_system_prompt(KEY, f"prompt {number} " * (number + 1))

    workers = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    info = manager.info(KEY)
    assert (info.messages, len(info.tags), info.compactions) == (rounds, rounds, rounds)
    assert (info.summary, manager.get_system_prompt(KEY)) == (f"s{rounds - 1}", f"prompt {rounds - 1} " * rounds)
    assert info.tokens == journal.context(info.thread_id).tokens
