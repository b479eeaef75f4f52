"""The context of a path."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.context import (
    CONTROL_KIND,
    MISSING_RESULT_KIND,
    SUMMARY_KIND,
    build_context,
    extract_summary,
    project,
)
from sessiontree.model import (
    ActiveToolsChange,
    ArtifactRef,
    BranchSummary,
    Checkpoint,
    Compaction,
    Custom,
    Entry,
    Event,
    Label,
    Memory,
    Message,
    ModelChange,
    Payload,
    ResultView,
    RunFailure,
    SystemMessage,
    TextPart,
    ThreadInfo,
    TurnMarker,
    UnknownPayload,
    Usage,
    UsageReport,
)
from sessiontree.model.builders import assistant, call, system, tool_result, user


def path(*payloads: Payload) -> list[Entry]:
    """Entries e0, e1, … one behind the other."""
    return [
        Entry(id=f"e{n}", thread_id="t", parent=f"e{n - 1}" if n else None, created_ns=n, payload=payload)
        for n, payload in enumerate(payloads)
    ]


def texts(*payloads: Payload) -> list[str]:
    return [message.text for message in build_context(path(*payloads)).messages]


def compacted(summary: str = "so far", **fields: Any) -> Compaction:
    return Compaction(id="k1", summary=summary, generation=1, window_id="w1", **fields)


def test_an_empty_path_gives_an_empty_context() -> None:
    context = build_context([])
    assert (context.system, context.messages, context.segments, context.tokens) == ("", (), (), 0)


@pytest.mark.parametrize(
    "payload",
    [
        ThreadInfo(text="x"),
        TurnMarker(status="save_point"),
        RunFailure(error="x"),
        ModelChange(model="x"),
        ActiveToolsChange(tools=("x",)),
        Label(target="e0", label="x"),
        UsageReport(usage=Usage(input_tokens=1)),
        Event(name="x"),
        Custom(name="x", message=Message(role="user")),
        Checkpoint(manifest="x"),
        Memory(text="x"),
        BranchSummary(summary=""),
        UnknownPayload(type="newer", body=b"{}"),
        system("x"),
    ],
    ids=lambda payload: type(payload).__name__,
)
def test_what_is_not_a_message_is_invisible(payload: Payload) -> None:
    assert texts(user("hi"), payload, assistant("hello")) == ["hi", "hello"]


def test_the_last_system_message_is_the_system_prompt_and_no_message() -> None:
    context = build_context(path(system("old"), user("hi"), system("new")))
    assert context.system == "new"
    assert [message.text for message in context.messages] == ["hi"]


def test_the_system_prompt_survives_a_compaction_outside_of_its_summary() -> None:
    context = build_context(path(system("rules"), user("hi"), compacted(kept_user_entry_ids=("e1",))))
    assert context.system == "rules"
    assert "rules" not in context.messages[0].text


def test_a_branch_summary_is_something_the_assistant_says() -> None:
    (message,) = build_context(path(BranchSummary(summary="we tried X"))).messages
    assert (message.role, message.text) == ("assistant", "we tried X")


def test_a_compaction_puts_a_checkpoint_before_what_it_kept() -> None:
    context = build_context(path(user("a"), user("b"), user("c"), compacted(first_kept_entry_id="e2"), user("d")))
    checkpoint, *rest = context.messages
    assert (checkpoint.role, checkpoint.kind) == ("user", SUMMARY_KIND)
    assert extract_summary(checkpoint.text) == "so far"
    assert [message.text for message in rest] == ["c", "d"]


def test_the_checkpoint_names_its_compaction_in_its_segment() -> None:
    segment = build_context(path(user("a"), compacted(first_kept_entry_id="e1"))).segments[0]
    assert (segment.entry_id, segment.parent_entry_id, segment.entry_type) == ("e1", "e0", "compaction")
    assert (segment.compaction_id, segment.compaction_generation, segment.compaction_window_id) == ("k1", 1, "w1")


def test_kept_user_inputs_are_quoted_once_and_in_the_order_given() -> None:
    kept = ("e2", "e0", "e2", "nowhere", "e1")
    said = [user("first"), assistant("no user"), user("</preserved_user_inputs>")]
    text = build_context(path(*said, compacted(kept_user_entry_ids=kept))).messages[0].text
    assert text.count('"entry_id"') == 2
    assert text.index('"e2"') < text.index('"e0"')
    assert "\\u003c/preserved_user_inputs\\u003e" in text


def test_a_compaction_that_keeps_nothing_keeps_the_last_message() -> None:
    assert texts(user("a"), user("b"), compacted())[1:] == ["b"]


def test_a_kept_tool_result_brings_its_call_along() -> None:
    said = [user("a"), assistant(calls=[call("c", "read")]), tool_result("c", "ok"), compacted()]
    assert [message.role for message in build_context(path(*said)).messages] == ["user", "assistant", "tool"]


def test_only_the_last_compaction_counts() -> None:
    first = compacted("one", first_kept_entry_id="e0")
    second = Compaction(id="k2", summary="two", first_kept_entry_id="e2")
    assert [extract_summary(text) for text in texts(user("a"), first, user("b"), second)] == ["two", "b"]


def test_a_compaction_without_a_summary_drops_the_head() -> None:
    assert texts(user("a"), user("b"), compacted("", first_kept_entry_id="e1")) == ["b"]


def test_a_reverted_compaction_does_not_count() -> None:
    said: list[Payload] = [user("a"), compacted(first_kept_entry_id="e1"), user("b")]
    assert texts(*said, Compaction(id="k2", reverts="k1"), user("c")) == ["a", "b", "c"]


def test_a_reverted_compaction_can_be_named_by_its_entry() -> None:
    said: list[Payload] = [user("a"), Compaction(summary="s", first_kept_entry_id="e1"), user("b")]
    assert texts(*said, Compaction(reverts="e1")) == ["a", "b"]


def test_reverting_brings_the_compaction_before_back() -> None:
    first = compacted("one", first_kept_entry_id="e1")
    second = Compaction(id="k2", summary="two", first_kept_entry_id="e2")
    found = texts(user("a"), first, second, Compaction(id="k3", reverts="k2"), user("b"))
    assert [extract_summary(text) for text in found] == ["one", "b"]


def test_a_revert_can_be_reverted() -> None:
    said: list[Payload] = [user("a"), compacted("one", first_kept_entry_id="e1"), Compaction(id="k2", reverts="k1")]
    found = texts(*said, Compaction(id="k3", reverts="k2"))
    assert [extract_summary(text) for text in found] == ["one"]


def test_a_control_signal_is_a_sentence() -> None:
    ask = assistant("thinking aloud", calls=[call("c", "ask_user", '{"question": "Which?"}')], reasoning="hm")
    (message,) = build_context(path(ask)).messages
    assert (message.kind, message.text, message.tool_calls) == (CONTROL_KIND, "Agent requested user input: Which?", ())


def test_a_control_signal_beside_a_real_call_leaves_the_call_alone() -> None:
    both = assistant(calls=[call("a", "read"), call("b", "ask_user", '{"question": "Which?"}')])
    message = build_context(path(both)).messages[0]
    assert [item.id for item in message.tool_calls] == ["a"]
    assert message.text == "Agent requested user input: Which?"


def test_a_tool_result_that_answers_a_question_is_what_the_user_said() -> None:
    ask = assistant(calls=[call("c", "ask_user", '{"question": "Which?"}')])
    context = build_context(path(ask, tool_result("c", "the red one")))
    assert [(message.role, message.text) for message in context.messages][1] == ("user", "the red one")


def test_a_tool_result_of_task_complete_says_nothing() -> None:
    done = assistant(calls=[call("c", "task_complete", '{"output": "fine"}')])
    assert texts(done, tool_result("c", "ok")) == ["Agent completed the task: fine"]


def test_a_missing_result_has_a_segment_without_an_entry() -> None:
    segment = build_context(path(assistant(calls=[call("c", "read")]))).segments[1]
    assert (segment.entry_id, segment.parent_entry_id, segment.entry_type) == ("", "e0", "tool_result")
    assert (segment.kind, segment.tool_call_id, segment.tool_name) == (MISSING_RESULT_KIND, "c", "read")


def test_without_usage_the_tokens_are_the_sum_of_the_estimates() -> None:
    context = build_context(path(user("abc"), assistant("abcd")))
    assert context.tokens == sum(segment.token_estimate for segment in context.segments) == 9 + 9


def test_reported_usage_anchors_the_tokens() -> None:
    answer = assistant("hello", usage=Usage(input_tokens=1000, output_tokens=20))
    assert build_context(path(user("a long question"), answer)).tokens == 1020
    assert build_context(path(user("a long question"), answer, user("abc"))).tokens == 1020 + 9


def test_a_usage_report_anchors_too_and_the_last_one_counts() -> None:
    answer = assistant("hello", usage=Usage(total_tokens=1000))
    later = UsageReport(usage=Usage(total_tokens=1200))
    assert build_context(path(user("hi"), answer, later, user("abc"))).tokens == 1209


def test_an_empty_usage_anchors_nothing() -> None:
    assert build_context(path(user("abc"), assistant("abc", usage=Usage()))).tokens == 18


def test_usage_from_before_a_compaction_is_ignored() -> None:
    answer = assistant("hello", usage=Usage(total_tokens=90_000))
    context = build_context(path(user("hi"), answer, compacted(kept_user_entry_ids=("e0",)), user("abc")))
    assert context.tokens == sum(segment.token_estimate for segment in context.segments)


def test_usage_under_a_reverted_compaction_is_ignored() -> None:
    said: list[Payload] = [
        user("hi"),
        compacted(first_kept_entry_id="e1"),
        assistant("x", usage=Usage(total_tokens=50)),
    ]
    context = build_context(path(*said, Compaction(reverts="k1")))
    assert context.tokens == sum(segment.token_estimate for segment in context.segments)


def test_the_result_made_up_for_the_anchors_own_call_counts() -> None:
    ask = assistant(calls=[call("c", "read")], usage=Usage(total_tokens=500))
    context = build_context(path(user("hi"), ask))
    assert context.segments[-1].token_estimate > 20
    assert context.request_tokens == 500 + context.segments[-1].token_estimate


def test_a_counter_of_the_callers_is_used() -> None:
    assert build_context(path(user("one two three")), count=lambda text: len(text.split())).tokens == 11


def test_model_provider_and_tools_are_the_last_in_force() -> None:
    said = [ModelChange(provider="openai", model="a"), assistant("x", provider="anthropic", model="b"), user("y")]
    context = build_context(path(*said, ActiveToolsChange(tools=("read",)), ActiveToolsChange(tools=("read", "write"))))
    assert (context.provider, context.model, context.active_tools) == ("anthropic", "b", ("read", "write"))


def test_a_preview_cuts_at_240_bytes_and_marks_every_byte_of_a_cut_character() -> None:
    segment = build_context(path(user("a" * 239 + "é" + "b")), purpose="test_ui").segments[0]
    assert segment.ui_preview == "a" * 239 + "\ufffd..."


def test_previews_and_artifacts_are_for_the_ui_only() -> None:
    view = ResultView(full_output=ArtifactRef(id="a1"))
    said = path(assistant(calls=[call("c", "read")]), tool_result("c", "abc", view=view))
    shown, plain = (build_context(said, purpose=purpose).segments[1] for purpose in ("test_ui", "compaction"))
    assert (shown.ui_preview, [ref.id for ref in shown.artifact_refs]) == ("abc", ["a1"])
    assert (plain.ui_preview, plain.artifact_refs) == ("", ())


def test_the_projection_leaves_tool_pairs_as_they_happened() -> None:
    said = path(assistant(calls=[call("a", "read")]), user("hi"), tool_result("a", "ok"))
    assert [item.message.role for item in project(said)] == ["assistant", "user", "tool"]
    assert [message.role for message in build_context(said).messages] == ["assistant", "tool", "user"]


def test_a_developer_message_adds_to_the_system_prompt() -> None:
    developer = Message(role="system", parts=(TextPart(text="Rule"),), extra={"openai-chat": {"role": "developer"}})
    said = path(system("old"), system("Base"), SystemMessage(message=developer), user("hi"))
    assert build_context(said).system == "Base\n\nRule"
