"""Compaction: what is cut, what is kept, what is summarised, and what it saves."""

import asyncio
import inspect
from collections.abc import Coroutine, Iterator
from pathlib import Path

import pytest

import sessiontree as st
from known import of_kind, present
from long_conversations import SMALL, FakeModel, round_of, talk, texts
from sessiontree.compaction import items_of
from sessiontree.compaction.cuts import cut_points
from sessiontree.compaction.plan import plan
from sessiontree.testing import ManualClock, seeded_random
from stores import ALL, open_journal, reopened


@pytest.fixture
def journal() -> Iterator[st.Journal]:
    with st.open("memory:", clock=ManualClock(), random=seeded_random(5)) as opened:
        opened.create_thread("t")
        yield opened


@pytest.mark.parametrize("store", ALL)
def test_a_result_tells_what_was_done_in_numbers(store: str, tmp_path: Path) -> None:
    clock = ManualClock()
    journal = open_journal(store, tmp_path, clock=clock)
    journal.create_thread("t")
    talk(journal, "t", 20)
    before = journal.context("t")

    def summarize(request: st.SummaryRequest) -> st.Summary:
        clock.advance(1.5)
        return st.Summary(text="notes", usage=st.Usage(input_tokens=100, output_tokens=7, cost=0.01))

    result = journal.compact("t", summarize, policy=SMALL, trigger="post_response", reason="threshold")
    calls = 2 if result.is_split_turn else 1
    after = journal.context("t")
    assert (result.status, result.generation, result.trigger, result.reason) == (
        "installed", 1, "post_response", "threshold",
    )  # fmt: skip
    assert (result.tokens_before, result.tokens_after) == (before.tokens, after.tokens)
    assert result.tokens_saved == before.tokens - after.tokens > 0
    assert result.kept_messages + result.removed_messages == len(before.messages)
    assert result.kept_messages == len(after.messages) - 1
    assert result.duration_seconds == 1.5 * calls
    usage, entry = present(result.usage), present(result.entry)
    assert usage.output_tokens == 7 * calls
    assert usage.cost == pytest.approx(0.01 * calls)
    assert result.window_id == entry.id
    journal = reopened(journal, store, tmp_path)
    payload = of_kind(st.Compaction, journal.path("t")[-1].payload)
    assert payload == entry.payload
    assert (payload.tokens_before, payload.tokens_after) == (result.tokens_before, result.tokens_after)
    journal.close()


def test_a_summary_longer_than_what_it_replaces_is_not_installed_unless_forced(journal: st.Journal) -> None:
    journal.append_many("t", [st.user("hi"), st.assistant("hello"), st.user("so"), st.assistant("well " * 400)])
    policy = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=100)
    result = journal.compact("t", FakeModel("notes " * 400), policy=policy)
    assert (result.status, result.entry) == ("not_worth_it", None)
    assert result.tokens_saved < 0
    assert not any(entry.type == "compaction" for entry in journal.path("t"))
    forced = journal.compact("t", FakeModel("notes " * 400), policy=policy, force=True)
    assert forced.is_installed
    assert forced.tokens_saved < 0


def test_a_turn_that_is_cut_in_two_gets_notes_of_its_own(journal: st.Journal) -> None:
    journal.append_many("t", round_of(0))
    journal.append("t", st.user("a long task"))
    for number in range(1, 25):
        journal.append_many("t", round_of(number)[1:4])
    asked = []

    def summarize(request: st.SummaryRequest) -> str:
        asked.append(request)
        return f"{request.kind} notes"

    result = journal.compact("t", summarize, policy=SMALL)
    assert result.is_split_turn
    assert [request.kind for request in asked] == ["history", "turn_prefix"]
    assert asked[1].messages[0].text == "a long task"
    assert "history notes" in result.summary
    assert "Turn Context (split turn)" in result.summary
    assert "turn_prefix notes" in result.summary
    assert "a long task" in texts(journal, "t")[0], "the task is quoted"


def test_a_split_turn_without_history_says_so(journal: st.Journal) -> None:
    journal.append("t", st.user("a long task"))
    for number in range(25):
        journal.append_many("t", round_of(number)[1:4])
    assert journal.compact("t", FakeModel("prefix notes"), policy=SMALL).summary.startswith("No prior history.")


def test_files_are_tracked_through_generations_and_a_changed_file_is_not_listed_as_read(journal: st.Journal) -> None:
    talk(journal, "t", 12)
    journal.append("t", st.assistant(calls=[st.call("x", "edit", '{"file_path": "src/in0.py"}')]))
    journal.append("t", st.tool_result("x", "ok"))
    journal.append("t", st.assistant(calls=[st.call("y", "write", '{"path": "never.py"}')]))
    journal.append("t", st.tool_result("y", "disk full", is_error=True))
    talk(journal, "t", 12, start=12)
    first = journal.compact("t", FakeModel("notes"), policy=SMALL)
    talk(journal, "t", 12, start=24)
    second = journal.compact("t", FakeModel("notes"), policy=SMALL)
    assert "src/in0.py" in second.files.modified
    assert "src/in0.py" not in second.files.read
    assert "never.py" not in second.files.modified
    assert set(first.files.modified) < set(second.files.modified)
    assert {"src/out0.py", "src/out24.py"} <= set(second.files.modified)
    assert second.summary.count("<modified-files>") == 1


def test_the_users_words_are_quoted_through_generations_while_they_fit(journal: st.Journal) -> None:
    policy = st.CompactionPolicy(window_tokens=16_000, keep_recent_tokens=400, keep_user_tokens=2_000)
    journal.append_many("t", [st.user("Never touch the database."), st.assistant("Understood.")])
    for generation in range(3):
        for number in range(4):
            journal.append_many("t", [st.user(f"wish {generation}.{number}"), st.assistant("a" * 9_000)])
        assert journal.compact("t", FakeModel("notes"), policy=policy).generation == generation + 1
        quoted = texts(journal, "t")[0]
        assert "Never touch the database." in quoted
        assert f"wish {generation}.0" in quoted


def test_the_first_words_of_the_summary_are_the_models_own(journal: st.Journal) -> None:
    talk(journal, "t")
    assert journal.compact("t", FakeModel("my notes"), policy=SMALL).summary.startswith("my notes")
    assert journal.context("t").messages[0].kind == "compaction_summary"


def test_truncate_calls_no_model_and_keeps_the_earlier_summary(journal: st.Journal) -> None:
    talk(journal, "t")
    journal.compact("t", FakeModel("precious notes"), policy=SMALL)
    talk(journal, "t", start=20)
    policy = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=600, strategy="truncate")
    summarize = FakeModel(AssertionError("nobody should ask"))
    result = journal.compact("t", summarize, policy=policy)
    assert (result.strategy, summarize.requests) == ("truncate", [])
    assert "precious notes" in result.summary
    assert "left out of the context without a summary" in result.summary


def test_notices_do_not_pile_up(journal: st.Journal) -> None:
    policy = st.CompactionPolicy(window_tokens=8_000, keep_recent_tokens=600, strategy="truncate")
    removed = 0
    for generation in range(4):
        talk(journal, "t", 10, start=generation * 10)
        result = journal.compact("t", policy=policy)
        removed += result.removed_messages
    assert result.summary.count("left out of the context") == 1
    assert f"[{removed} earlier messages" in result.summary


def test_uncompact_reverts_one_compaction_after_the_other(journal: st.Journal) -> None:
    contexts = []
    for generation in range(3):
        talk(journal, "t", 10, start=generation * 10)
        contexts.append(journal.context("t").messages)
        journal.compact("t", FakeModel(f"notes {generation}"), policy=SMALL)
    journal.uncompact("t")
    assert journal.context("t").messages == contexts[2]
    journal.uncompact("t")
    assert journal.context("t").messages[: len(contexts[1])] == contexts[1]
    journal.uncompact("t")
    assert journal.context("t").messages[: len(contexts[0])] == contexts[0]
    with pytest.raises(st.NothingToUncompactError):
        journal.uncompact("t")


def test_after_an_uncompact_the_next_compaction_starts_from_the_beginning(journal: st.Journal) -> None:
    talk(journal, "t")
    journal.compact("t", FakeModel("bad notes"), policy=SMALL)
    journal.uncompact("t")
    summarize = FakeModel("good notes")
    assert journal.compact("t", summarize, policy=SMALL).generation == 1
    assert summarize.requests[0].previous_summary == ""
    assert "bad notes" not in texts(journal, "t")[0]


def test_the_holder_of_a_turn_compacts_under_its_lease(journal: st.Journal) -> None:
    talk(journal, "t")
    with journal.turn("t", owner="worker") as turn:
        turn.append(st.user("one more"))
        result = journal.compact("t", FakeModel("notes"), policy=SMALL, lease=turn.lease)
        assert present(result.entry).turn_id == turn.id
        turn.append(st.assistant("done"))
    assert texts(journal, "t")[-1] == "done"


def test_a_holder_that_lost_its_turn_installs_nothing(journal: st.Journal) -> None:
    talk(journal, "t")
    lease = journal.acquire_lease("t", owner="worker")
    journal.release_lease(lease)
    with pytest.raises(st.FencedError):
        journal.compact("t", FakeModel("notes"), policy=SMALL, lease=lease)
    assert journal.thread("t").compaction_claim is None


def test_a_compaction_runs_beside_the_turn_of_another_owner(journal: st.Journal) -> None:
    talk(journal, "t")
    with journal.turn("t", owner="worker") as turn:
        assert journal.compact("t", FakeModel("notes"), policy=SMALL).is_installed
        turn.append(st.assistant("still here"))


def test_a_claim_does_not_make_an_update_of_metadata_stale(journal: st.Journal) -> None:
    talk(journal, "t")
    version = journal.thread("t").version

    def summarize(request: st.SummaryRequest) -> str:
        journal.update_thread("t", expect_version=version, title="meanwhile")
        return "notes"

    policy = st.CompactionPolicy(window_tokens=8_000, keep_recent_messages=5)
    assert journal.compact("t", summarize, policy=policy).is_installed
    assert journal.thread("t").title == "meanwhile"


def test_a_rewind_while_the_model_works_makes_the_summary_void(journal: st.Journal) -> None:
    talk(journal, "t")
    start = journal.path("t")[0].id

    def summarize(request: st.SummaryRequest) -> str:
        journal.rewind("t", start)
        return "notes of what is no longer there"

    with pytest.raises(st.StaleLeafError):
        journal.compact("t", summarize, policy=st.CompactionPolicy(window_tokens=8_000, keep_recent_messages=5))
    assert journal.thread("t").leaf == start


def test_a_summariser_that_is_interrupted_gives_its_claim_back(journal: st.Journal) -> None:
    talk(journal, "t")

    def summarize(request: st.SummaryRequest) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        journal.compact("t", summarize, policy=SMALL)
    assert journal.thread("t").compaction_claim is None


def test_a_coroutine_function_needs_an_async_journal(journal: st.Journal) -> None:
    talk(journal, "t")

    async def summarize(request: st.SummaryRequest) -> str:
        return "notes"

    made: list[Coroutine[None, None, str]] = []

    def remembered(request: st.SummaryRequest) -> Coroutine[None, None, str]:
        made.append(summarize(request))
        return made[-1]

    with pytest.raises(st.SummaryError, match="AsyncJournal"):
        journal.compact("t", remembered, policy=SMALL)
    made[0].close()


def test_under_an_async_journal_summarisers_of_both_kinds_work_and_a_cancelled_one_gives_its_claim_back() -> None:
    inside = asyncio.Event()

    async def slow(request: st.SummaryRequest) -> str:
        await asyncio.sleep(0)
        return "async notes"

    async def stuck(request: st.SummaryRequest) -> str:
        inside.set()
        await asyncio.sleep(3_600)
        return "too late"

    async def asked(context: st.Context) -> int:
        return 1

    async def run() -> None:
        async with st.open_async("memory:") as journal:
            await journal.create_thread("t")
            for number in range(20):
                await journal.append_many("t", round_of(number))
            task = asyncio.create_task(journal.compact("t", stuck, policy=SMALL))
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await journal.thread("t")).compaction_claim is None
            assert (await journal.compact("t", slow, policy=SMALL)).summary.startswith("async notes")
            await journal.uncompact("t")
            assert (await journal.compact("t", FakeModel("sync notes"), policy=SMALL)).summary.startswith("sync notes")
            answer: int = await journal.call_model("t", asked, policy=SMALL)
            assert answer == 1

    asyncio.run(run())


def test_leaving_a_branch_tells_on_the_other_one_what_happened_there(journal: st.Journal) -> None:
    first = journal.append_many("t", [st.user("fix it"), st.assistant("how?")])
    talk(journal, "t", 2)
    left = journal.thread("t").leaf
    summarize = FakeModel("tried two ways")
    result = journal.leave_branch("t", first[1].id, summarize)
    assert summarize.requests[0].kind == "branch"
    assert all(message.role != "tool" for message in summarize.requests[0].messages)
    summary = of_kind(st.BranchSummary, present(result.entry).payload)
    assert (summary.from_entry_id, result.entries_left) == (left, 10)
    assert texts(journal, "t")[-1].startswith("tried two ways")
    assert summary.files_modified == ("src/out0.py", "src/out1.py")
    journal.undo("t")
    assert journal.thread("t").leaf == left


def test_leaving_a_branch_without_words_only_moves_the_leaf(journal: st.Journal) -> None:
    first = journal.append_many("t", [st.user("fix it"), st.assistant("how?")])
    journal.append("t", st.TurnMarker(status="started"))
    result = journal.leave_branch("t", first[1].id, FakeModel(AssertionError("nothing to tell")))
    assert (result.leaf, result.entry) == (first[1].id, None)


def test_a_failing_summariser_leaves_the_branch_where_it_was(journal: st.Journal) -> None:
    first = journal.append_many("t", [st.user("fix it"), st.assistant("how?")])
    talk(journal, "t", 1)
    before = journal.thread("t").leaf
    with pytest.raises(st.SummaryError):
        journal.leave_branch("t", first[1].id, FakeModel(RuntimeError("down")))
    assert journal.thread("t").leaf == before


def test_a_plan_is_shown_without_changing_anything(journal: st.Journal) -> None:
    talk(journal, "t")
    planned = present(plan(journal.path("t"), SMALL))
    result = journal.compact("t", FakeModel("notes"), policy=SMALL)
    assert (planned.removed_messages, planned.kept_messages) == (result.removed_messages, result.kept_messages)
    installed = of_kind(st.Compaction, present(result.entry).payload)
    assert planned.first_kept_entry_id == installed.first_kept_entry_id


def test_an_open_call_is_never_cut_off_and_a_given_up_one_does_not_block_for_ever(journal: st.Journal) -> None:
    journal.append_many("t", [st.user("a"), st.assistant(calls=[st.call("lost", "ls")]), st.user("hello?")])
    assert cut_points(items_of(journal.path("t"))) == [0, 1]
    journal.append("t", st.assistant("sorry, I lost it"))
    assert cut_points(items_of(journal.path("t"))) == [0, 1, 2, 3, 4]


def test_ratio_policies_keep_a_number_of_messages(journal: st.Journal) -> None:
    for number in range(20):
        journal.append_many("t", [st.user(f"{number} " + "w " * 100), st.assistant("ok " * 100)])
    policy = st.ratio_policy(4_000)
    assert policy.threshold == 3_200
    assert present(journal.compact_if_needed("t", FakeModel("notes"), policy=policy)).kept_messages in {5, 6}


def test_compacting_an_empty_thread_does_nothing(journal: st.Journal) -> None:
    assert journal.compact("t").status == "nothing_to_compact"


def test_the_extractive_summary_keeps_goals_decisions_open_items_files_and_says_what_it_is(journal: st.Journal) -> None:
    journal.append_many(
        "t",
        [
            st.user("Port the parser to Rust, please. It lives in src/parser/lex.py."),
            st.assistant("We decided to use nom instead of pest. TODO: benchmark the tokenizer."),
        ],
    )
    talk(journal, "t")
    result = journal.compact("t", policy=SMALL)
    assert result.summary.startswith(
        st.extractive(st.SummaryRequest(kind="history", messages=(), max_tokens=99)).text[:20]
    )
    assert "Port the parser to Rust" in result.summary
    first = result.summary
    talk(journal, "t", start=20)
    second = journal.compact("t", policy=SMALL).summary
    assert "Port the parser to Rust" in second
    assert first.count("Extractive summary") == second.count("Extractive summary") == 1
    assert st.estimate_text(second) < SMALL.max_summary_tokens


def test_the_verbs_of_both_journals_agree() -> None:
    for verb in ("compact", "compact_if_needed", "uncompact", "leave_branch", "suggest_title"):
        assert inspect.signature(getattr(st.Journal, verb)) == inspect.signature(getattr(st.AsyncJournal, verb))
