"""What each dialect makes of a context, and what it reads out of a response."""

from __future__ import annotations

from typing import Any

import pytest

from sessiontree.context import Context, pair
from sessiontree.context.dialects import CONTINUE, DIALECTS, OPENING, openai_chat
from sessiontree.errors import InvalidInputError
from sessiontree.model import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    ReasoningPart,
    TextPart,
    ToolCallMessage,
    ToolResultPart,
    Usage,
)
from sessiontree.model.builders import assistant, call, tool_result, user
from validation.validators import faults

Wire = dict[str, Any]


def request(name: str, *messages: Message, system: str = "") -> Wire:
    body = DIALECTS[name].to_request(Context(system=system, messages=messages))
    assert faults(name, body) == []
    return body


def says(text: str) -> Message:
    return user(text).message


def answers(text: str) -> Message:
    return assistant(text).message


def asks(*ids: str, arguments: str = "{}") -> Message:
    return assistant(calls=[call(call_id, "read", arguments) for call_id in ids]).message


def result(call_id: str, text: str = "ok") -> Message:
    return tool_result(call_id, text).message


@pytest.mark.parametrize("name", DIALECTS)
def test_an_empty_context_gives_a_request_with_an_opening(name: str) -> None:
    assert OPENING in str(request(name))


@pytest.mark.parametrize("name", DIALECTS)
def test_messages_without_content_are_left_out(name: str) -> None:
    empty = [says(""), answers(" "), Message(role="assistant"), Message(role="user", parts=(TextPart(text="\n"),))]
    assert request(name, *empty, says("hi")) == request(name, says("hi"))


@pytest.mark.parametrize("name", DIALECTS)
def test_a_context_that_was_never_paired_still_gives_a_valid_request(name: str) -> None:
    request(name, result("x"), asks("a"), says("hurry"), asks("b"), result("a"))


@pytest.mark.parametrize("name", DIALECTS)
def test_thoughts_and_blocks_of_another_provider_are_left_out(name: str) -> None:
    foreign = Message(
        role="assistant",
        parts=(
            ReasoningPart(provider="elsewhere", text="secret", signature="c2ln"),
            ReasoningPart(text="secret"),
            OpaquePart(provider="elsewhere", block={"type": "secret"}),
            TextPart(text="hello", extra={"elsewhere": {"secret": 1}}),
        ),
        extra={"elsewhere": {"secret": 1}},
    )
    assert "secret" not in str(request(name, says("hi"), foreign, says("bye")))


@pytest.mark.parametrize("name", DIALECTS)
def test_an_image_that_lives_elsewhere_is_named_in_words(name: str) -> None:
    assert "[image" in str(request(name, Message(role="user", parts=(ImagePart(mime="image/png"),))))


def test_the_system_prompt_stands_where_each_provider_wants_it() -> None:
    assert request("openai-chat", says("hi"), system="Be brief.")["messages"][0]["role"] == "system"
    assert request("openai-responses", says("hi"), system="Be brief.")["instructions"] == "Be brief."
    assert request("anthropic", says("hi"), system="Be brief.")["system"] == "Be brief."
    assert request("gemini", says("hi"), system="Be brief.")["system_instruction"] == {"parts": [{"text": "Be brief."}]}


def test_chat_puts_a_batch_of_several_entries_into_one_message() -> None:
    messages = request("openai-chat", asks("a"), asks("b"), result("b"), result("a"))["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool"]
    assert [item["id"] for item in messages[0]["tool_calls"]] == ["a", "b"]


def test_anthropic_merges_neighbours_of_one_role() -> None:
    said = [says("a"), says("b"), answers("c"), answers("d"), says("e")]
    assert [len(message["content"]) for message in request("anthropic", *said)["messages"]] == [2, 1, 1, 1, 1]
    body = DIALECTS["anthropic"].to_request(Context(messages=tuple(said)), placeholders="never")
    assert [len(message["content"]) for message in body["messages"]] == [2, 2, 1]


@pytest.mark.parametrize("name", DIALECTS)
def test_placeholders_are_an_option(name: str) -> None:
    body = DIALECTS[name].to_request(Context(messages=(answers("hello"), answers("again"))), placeholders="never")
    assert OPENING not in str(body)
    assert CONTINUE not in str(body)


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_a_provider_that_does_not_need_a_placeholder_gets_none(name: str) -> None:
    body = str(request(name, answers("hello"), answers("again")))
    assert OPENING not in body
    assert CONTINUE not in body


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_a_placeholder_that_was_sent_stays_when_the_model_goes_on(name: str) -> None:
    before = request(name, says("hi"), answers("one"))
    after = request(name, says("hi"), answers("one"), answers("two"))
    field = "messages" if name == "anthropic" else "contents"
    assert after[field][: len(before[field])] == before[field]


def test_anthropic_puts_results_before_what_the_user_says() -> None:
    blocks = request("anthropic", says("hi"), asks("a"), says("hurry"), result("a"))["messages"][2]["content"]
    assert [block["type"] for block in blocks] == ["tool_result", "text"]


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
def test_the_user_speaks_first_and_last(name: str) -> None:
    body = str(request(name, answers("hello")))
    assert body.index(OPENING) < body.index("hello") < body.index(CONTINUE)


def test_anthropic_writes_odd_ids_so_that_it_takes_them_and_each_one_once() -> None:
    said = [says("hi"), asks("a b"), result("a b"), asks("c"), result("c"), asks("c"), result("c")]
    messages = request("anthropic", *said)["messages"]
    ids = [
        block["id"] for message in messages for block in message["content"] if isinstance(block, dict) and "id" in block
    ]
    assert ids == ["x1_YSBi", "c", "x1_Yw"]


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ('{"a": [1]}', {"a": [1]}),
        ("", {}),
        ("oops", {"_raw": "oops"}),
        ("[1]", {"_raw": "[1]"}),
        ('{"a": NaN}', {"_raw": '{"a": NaN}'}),
        ('{"a": "\\ud800"}', {"_raw": '{"a": "\\ud800"}'}),
    ],
)
def test_arguments_are_an_object_where_a_provider_wants_one(arguments: str, value: Wire) -> None:
    said = [says("hi"), asks("a", arguments=arguments), result("a")]
    assert request("anthropic", *said)["messages"][1]["content"][0]["input"] == value
    assert request("gemini", *said)["contents"][1]["parts"][0]["functionCall"].get("args", {}) == value


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ('{"a":  1.50}', '{"a":  1.50}'),
        ("", "{}"),
        ('{"a":  1.50', '{"_raw":"{\\"a\\":  1.50"}'),
        ("[1]", '{"_raw":"[1]"}'),
    ],
)
def test_chat_sends_an_object_exactly_as_the_model_wrote_it_and_anything_else_inside_one(
    arguments: str, sent: str
) -> None:
    messages = request("openai-chat", asks("a", arguments=arguments), result("a"))["messages"]
    assert messages[0]["tool_calls"][0]["function"]["arguments"] == sent


def test_gemini_names_the_function_of_every_response() -> None:
    response = request("gemini", says("hi"), asks("a"), result("a"))["contents"][2]["parts"][0]["functionResponse"]
    assert response == {"id": "a", "name": "read", "response": {"output": "ok"}}


def test_errors_of_tools_are_errors_for_those_who_have_a_word_for_it() -> None:
    said = [says("hi"), asks("a"), tool_result("a", "boom", is_error=True).message]
    assert request("anthropic", *said)["messages"][2]["content"][0]["is_error"] is True
    assert request("gemini", *said)["contents"][2]["parts"][0]["functionResponse"]["response"] == {"error": "boom"}


def test_an_error_without_words_gets_some_for_anthropic() -> None:
    failed = Message(role="tool", parts=(ToolResultPart(call_id="a", is_error=True),))
    assert request("anthropic", says("hi"), asks("a"), failed)["messages"][2]["content"][0]["content"]


def test_a_thought_that_leads_nowhere_is_left_out() -> None:
    thought = ReasoningPart(provider="anthropic", text="hm", signature="c2ln")
    lone = Message(role="assistant", parts=(thought,))
    assert request("anthropic", says("hi"), lone, says("bye")) == request("anthropic", says("hi"), says("bye"))
    item = ReasoningPart(provider="openai-responses", id="rs_1", encrypted="AAAA")
    lone = Message(role="assistant", parts=(item,))
    assert request("openai-responses", says("hi"), lone, says("bye")) == request(
        "openai-responses", says("hi"), says("bye")
    )


def test_a_result_that_was_cut_after_it_was_read_is_sent_as_it_is_now() -> None:
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"lines": ["a"] * 9}}}]},
        ]
    }
    *rest, last = DIALECTS["gemini"].from_request(body)[1]
    (part,) = last.tool_results
    cut = ToolResultPart(call_id=part.call_id, name=part.name, parts=(TextPart(text="cut"),), extra=part.extra)
    sent = request("gemini", *rest, Message(role="tool", parts=(cut,)))["contents"][2]["parts"][0]
    assert sent["functionResponse"]["response"] == {"output": "cut"}


CHAT_RESPONSE: Wire = {
    "model": "gpt-5",
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "tool_calls": [{"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60},
        "completion_tokens_details": {"reasoning_tokens": 5},
    },
}
RESPONSES_RESPONSE: Wire = {
    "model": "gpt-5",
    "status": "completed",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c",
            "name": "read",
            "arguments": "{}",
            "status": "completed",
        },
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    },
}
ANTHROPIC_RESPONSE: Wire = {
    "model": "claude",
    "role": "assistant",
    "stop_reason": "tool_use",
    "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {}}],
    "usage": {
        "input_tokens": 40,
        "output_tokens": 20,
        "cache_read_input_tokens": 50,
        "cache_creation_input_tokens": 10,
    },
}
GEMINI_RESPONSE: Wire = {
    "modelVersion": "gemini-3",
    "candidates": [
        {
            "finishReason": "STOP",
            "content": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "read", "args": {}}}]},
        }
    ],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 60,
        "candidatesTokenCount": 15,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 120,
    },
}
RESPONSES = {
    "openai-chat": (CHAT_RESPONSE, "openai", "gpt-5", "tool_calls"),
    "openai-responses": (RESPONSES_RESPONSE, "openai", "gpt-5", "completed"),
    "anthropic": (ANTHROPIC_RESPONSE, "anthropic", "claude", "tool_use"),
    "gemini": (GEMINI_RESPONSE, "gemini", "gemini-3", "STOP"),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_a_response_becomes_a_payload_with_usage_and_stop_reason(name: str) -> None:
    body, provider, model, stop_reason = RESPONSES[name]
    answer = DIALECTS[name].from_response(body)
    assert isinstance(answer, ToolCallMessage)
    assert [item.id for item in answer.message.tool_calls] == ["c"]
    assert (answer.provider, answer.model, answer.stop_reason) == (provider, model, stop_reason)
    assert answer.usage is not None
    assert answer.usage.context_tokens == 120
    assert answer.usage.output_tokens == 20


@pytest.mark.parametrize("name", DIALECTS)
def test_a_response_can_be_sent_back_to_its_provider(name: str) -> None:
    answer = DIALECTS[name].from_response(RESPONSES[name][0])
    assert "read" in str(request(name, says("hi"), answer.message, result("c")))


def test_a_response_without_calls_is_an_answer() -> None:
    body = {"content": [{"type": "text", "text": "hi"}], "model": "claude", "stop_reason": "end_turn"}
    answer = DIALECTS["anthropic"].from_response(body)
    assert isinstance(answer, AssistantMessage)
    assert (answer.message.text, answer.usage) == ("hi", None)


def test_usage_of_gemini_counts_thoughts_as_output() -> None:
    usage = DIALECTS["gemini"].from_response(GEMINI_RESPONSE).usage
    assert usage == Usage(input_tokens=40, output_tokens=20, cache_read_tokens=60, reasoning_tokens=5, total_tokens=120)


def test_a_request_never_changes_the_context() -> None:
    messages = (asks("a b"), says("hi"), result("a b"))
    context = Context(messages=messages)
    for dialect in DIALECTS.values():
        dialect.to_request(context)
    assert context == Context(messages=messages)
    assert [item.message.role for item in pair(messages)] == ["assistant", "tool", "user"]


def with_media(*parts: ImagePart | FilePart, role: Any = "user") -> Message:
    return Message(role=role, parts=(TextPart(text="see"), *parts))


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize(
    "image",
    [
        ImagePart(url="data:image/svg+xml;base64," + "PHN2Zz4=" * 200),
        ImagePart(data="PHN2Zz4=" * 200, mime="image/svg+xml"),
        ImagePart(data="PHN2Zz4=" * 200),
        ImagePart(data="PHN2<not base64>", mime="image/png"),
    ],
    ids=["svg by url", "svg as data", "no type", "no base64"],
)
def test_an_image_that_no_provider_reads_is_a_short_note_without_its_data(name: str, image: ImagePart) -> None:
    body = str(request(name, with_media(image)))
    assert "[image" in body
    assert "PHN2" not in body


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_openai_gets_no_image_from_a_bucket(name: str) -> None:
    assert "[image gs://b/a.png]" in str(request(name, with_media(ImagePart(url="gs://b/a.png"))))


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_openai_gets_a_name_with_the_data_of_a_file(name: str) -> None:
    assert "'filename': 'file.pdf'" in str(request(name, with_media(FilePart(data="AAAA", mime="application/pdf"))))


def test_responses_gets_no_name_with_the_address_of_a_file() -> None:
    body = str(request("openai-responses", with_media(FilePart(url="https://a.b/c.pdf", name="c.pdf"))))
    assert "file_url" in body
    assert "filename" not in body


def test_an_error_result_has_texts_only_for_anthropic() -> None:
    image = ImagePart(data="iVBORw0KGgo=", mime="image/png")
    failed = Message(role="tool", parts=(ToolResultPart(call_id="a", parts=(image,), is_error=True),))
    sent = request("anthropic", says("hi"), asks("a"), failed)["messages"][2]["content"][0]
    assert sent["content"] == "[image image/png]"


def test_anthropic_gets_four_cache_marks_at_most_and_they_stay_where_they_are() -> None:
    block = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    _, messages = DIALECTS["anthropic"].from_request({"messages": [{"role": "user", "content": [block] * 6}]})
    content = request("anthropic", *messages)["messages"][0]["content"]
    assert ["cache_control" in item for item in content] == [True] * 4 + [False] * 2


def test_chat_gets_a_name_without_blanks() -> None:
    named = Message(role="user", name="John Doe", parts=(TextPart(text="hi"),))
    assert request("openai-chat", named)["messages"][0]["name"] == "John_Doe"


def test_gemini_gets_a_function_name_that_starts_with_a_letter_or_an_underscore() -> None:
    calling = assistant(calls=[call("a", "3d_render")]).message
    parts = request("gemini", says("hi"), calling, result("a"))["contents"]
    assert parts[1]["parts"][0]["functionCall"]["name"] == "_3d_render"
    assert parts[2]["parts"][0]["functionResponse"]["name"] == "_3d_render"


def test_gemini_gets_no_empty_text() -> None:
    empty = Message(role="assistant", parts=(ReasoningPart(provider="gemini"), TextPart(text="so")))
    assert request("gemini", says("hi"), empty, says("bye"))["contents"][1]["parts"] == [{"text": "so"}]


def test_gemini_answers_a_call_with_its_id() -> None:
    nameless = Message(role="tool", parts=(ToolResultPart(call_id="", name="read"),))
    response = request("gemini", says("hi"), asks("a"), nameless)["contents"][2]["parts"][0]["functionResponse"]
    assert response["id"] == "a"


def test_a_call_that_gemini_did_not_make_skips_the_check_of_its_signature() -> None:
    parts = request("gemini", says("hi"), asks("a", "b"), result("a"), result("b"))["contents"][1]["parts"]
    assert [part.get("thoughtSignature") for part in parts] == ["skip_thought_signature_validator", None]


def test_a_call_without_a_signature_skips_the_check_of_gemini_3() -> None:
    asked = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}
    said = [{"role": "user", "parts": [{"text": "hi"}]}, asked]
    messages = tuple(DIALECTS["gemini"].from_request({"contents": said})[1])
    for model in ("gemini-2.5-pro", "gemini-3-pro", ""):
        body = DIALECTS["gemini"].to_request(Context(messages=messages, model=model))
        assert body["contents"][1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


@pytest.mark.parametrize("name", DIALECTS)
def test_an_unknown_word_for_placeholders_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(InvalidInputError, match="placeholders must be one of 'required', 'never', not 'none'"):
        DIALECTS[name].to_request(Context(), placeholders="none")  # type: ignore[arg-type]


def test_an_unknown_word_for_reasoning_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match="reasoning must be one of 'omit', 'send', not 'yes'"):
        openai_chat.to_request(Context(), reasoning="yes")  # type: ignore[arg-type]
