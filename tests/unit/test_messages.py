"""Short ways to write messages down."""

import pytest

import sessiontree as st
from sessiontree.model.builders import payload_of


def test_an_assistant_that_asks_for_a_tool_is_a_tool_call() -> None:
    asking = st.assistant("let me see", calls=[st.call("c", "read")])
    assert isinstance(asking, st.ToolCallMessage)
    assert isinstance(st.assistant("done"), st.AssistantMessage)
    assert isinstance(st.assistant([st.ToolCallPart(id="c", name="n")]), st.ToolCallMessage)


def test_reasoning_comes_first_and_is_not_text() -> None:
    message = st.assistant("answer", reasoning="because").message
    assert [type(part) for part in message.parts] == [st.ReasoningPart, st.TextPart]
    assert message.text == "answer"


def test_arguments_stay_the_exact_string_of_the_model() -> None:
    assert st.call("c", "n", '{"a" :1 ').arguments == '{"a" :1 '


@pytest.mark.parametrize(
    ("role", "kind"),
    [("user", st.UserMessage), ("assistant", st.AssistantMessage), ("tool", st.ToolResultMessage), ("system", st.SystemMessage)],
)  # fmt: skip
def test_the_entry_type_follows_from_the_role(role: st.Role, kind: type[st.MessagePayload]) -> None:
    assert isinstance(payload_of(st.Message(role=role)), kind)


def test_a_role_that_does_not_exist_is_refused() -> None:
    with pytest.raises(st.InvalidInputError, match="'developer'"):
        payload_of(st.Message(role="developer"))  # type: ignore[arg-type]


def test_an_empty_text_is_not_a_part() -> None:
    assert st.user("").message.parts == ()


def test_a_record_is_printed_without_what_is_empty() -> None:
    assert repr(st.user("hello").message) == "Message(role='user', parts=(TextPart(text='hello'),))"
