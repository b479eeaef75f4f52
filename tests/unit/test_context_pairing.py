"""Tool pairing in the view."""

from __future__ import annotations

from sessiontree.context import LATE_RESULT_KIND, MISSING_RESULT, MISSING_RESULT_KIND, pair
from sessiontree.context.pairing import call_keys
from sessiontree.model import Message, TextPart, ToolCallPart, ToolResultPart
from sessiontree.model.builders import assistant, call, tool_result, user


def asks(*ids: str) -> Message:
    return assistant(calls=[call(call_id, "read") for call_id in ids]).message


def answers(call_id: str, text: str = "ok", name: str = "") -> Message:
    return tool_result(call_id, text, name=name).message


def says(text: str) -> Message:
    return user(text).message


def shape(*messages: Message) -> list[str]:
    return [described(item.message) for item in pair(messages)]


def described(message: Message) -> str:
    if message.kind == MISSING_RESULT_KIND:
        return f"missing {message.tool_results[0].call_id}"
    if message.role == "tool":
        (result,) = message.tool_results
        return f"{result.call_id}={''.join(part.text for part in result.parts if isinstance(part, TextPart))}"
    if message.tool_calls:
        return "?" + ",".join(item.id for item in message.tool_calls)
    return message.text


def test_a_tidy_conversation_stays_as_it_is() -> None:
    messages = [says("hi"), asks("a", "b"), answers("a"), answers("b"), says("bye")]
    assert [item.message for item in pair(messages)] == messages
    assert [item.source for item in pair(messages)] == [0, 1, 2, 3, 4]


def test_results_of_a_batch_come_in_the_order_of_the_calls() -> None:
    assert shape(asks("a"), asks("b"), answers("b"), answers("a")) == ["?a", "?b", "a=ok", "b=ok"]


def test_a_call_without_a_result_gets_an_error_that_says_so() -> None:
    (_, made_up) = pair([asks("a")])
    (result,) = made_up.message.tool_results
    assert made_up.is_synthetic
    assert made_up.source == 0
    assert (result.call_id, result.name, result.is_error) == ("a", "read", True)
    assert result.parts == (TextPart(text=MISSING_RESULT),)


def test_a_result_without_a_call_is_left_out() -> None:
    assert shape(says("hi"), answers("nobody"), says("bye")) == ["hi", "bye"]


def test_a_displaced_result_is_moved_to_its_place() -> None:
    assert shape(asks("a"), says("hurry"), answers("a")) == ["?a", "a=ok", "hurry"]


def test_a_result_before_its_call_is_moved_behind_it() -> None:
    assert shape(answers("a"), says("hi"), asks("a")) == ["hi", "?a", "a=ok"]


def test_the_first_of_several_results_counts() -> None:
    assert shape(asks("a"), answers("a", "one"), answers("a", "two")) == ["?a", "a=one"]


def test_an_id_that_is_used_again_pairs_with_the_nearest_call_before() -> None:
    found = shape(asks("a"), answers("a", "one"), says("next"), asks("a"), answers("a", "two"))
    assert found == ["?a", "a=one", "next", "?a", "a=two"]


def test_a_late_result_answers_the_later_of_two_open_calls() -> None:
    assert shape(asks("a"), says("again"), asks("a"), answers("a")) == ["?a", "missing a", "again", "?a", "a=ok"]


def test_a_result_of_a_call_before_the_view_answers_no_later_call() -> None:
    messages = [answers("a", "old"), says("next"), asks("a")]
    assert [described(item.message) for item in pair(messages, call_keys([asks("a")]))] == ["next", "?a", "missing a"]


def test_an_answered_batch_is_closed_for_later_calls() -> None:
    assert shape(answers("a"), asks("a"), asks("b"), answers("b")) == ["?a", "a=ok", "?b", "b=ok"]


def test_calls_without_ids_pair_by_name_and_order() -> None:
    batch = assistant(calls=[call("", "x"), call("", "y"), call("", "x")]).message
    results = [answers("", "y1", "y"), answers("", "x1", "x"), answers("", "x2", "x")]
    assert shape(batch, *results) == ["?,,", "=x1", "=y1", "=x2"]


def test_a_result_without_an_id_answers_a_call_with_one_by_name() -> None:
    assert shape(asks("a"), answers("", "ok", "read")) == ["?a", "=ok"]


def test_results_inside_a_users_message_are_taken_out_of_it() -> None:
    result = ToolResultPart(call_id="a", parts=(TextPart(text="ok"),))
    mixed = Message(role="user", parts=(result, TextPart(text="and now?")))
    assert shape(asks("a"), mixed) == ["?a", "a=ok", "and now?"]


def test_a_tool_message_with_several_results_is_one_message_each() -> None:
    results = tuple(ToolResultPart(call_id=call_id) for call_id in ("b", "a"))
    assert shape(asks("a", "b"), Message(role="tool", parts=results)) == ["?a,b", "a=", "b="]


def test_calls_of_a_user_are_left_out() -> None:
    stray = Message(role="user", parts=(ToolCallPart(id="a", name="read"), TextPart(text="hi")))
    assert shape(stray) == ["hi"]


def test_a_missing_result_stays_where_it_was_when_the_model_goes_on() -> None:
    assert shape(asks("a")) == ["?a", "missing a"]
    assert shape(asks("a"), asks("b")) == ["?a", "missing a", "?b", "missing b"]
    assert shape(asks("a"), asks("b"), answers("b")) == ["?a", "missing a", "?b", "b=ok"]


def test_a_result_that_arrives_after_the_model_went_on_is_told_where_it_arrives() -> None:
    said = [asks("a"), assistant("never mind").message, answers("a"), answers("a")]
    *sent, late = pair(said)
    assert [described(item.message) for item in sent] == ["?a", "missing a", "never mind"]
    assert (late.message.role, late.message.kind, late.source) == ("user", LATE_RESULT_KIND, 2)
    assert late.message.text == "The result of the tool call read a arrived late:\nok"


def test_calls_of_several_messages_are_one_batch_when_a_result_shows_it() -> None:
    assert shape(asks("a"), asks("b"), asks("c"), answers("b")) == ["?a", "missing a", "?b", "?c", "b=ok", "missing c"]
