"""Answers of the SDKs go in as they are, in any dump, and come back as the request types accept them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from openai.types.chat import ChatCompletion
from openai.types.chat.parsed_chat_completion import ParsedChatCompletion
from openai.types.responses import Response
from openai.types.responses.parsed_response import ParsedResponse

from sessiontree.context import Context
from sessiontree.context.dialects import DIALECTS, UnknownDialectError
from sessiontree.errors import InvalidInputError
from sessiontree.model import AssistantMessage, Message, ReasoningPart
from sessiontree.model.builders import tool_result, user
from sessiontree.model.codec import decode_payload, encode_payload
from validation.validators import faults

with warnings.catch_warnings():
    # The SDK has an escape sequence in a docstring that newer Pythons warn about.
    warnings.simplefilter("ignore")
    from google.genai.types import GenerateContentResponse

Wire = dict[str, Any]
Dump = Callable[[Any], Any]

CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
CHAT: Wire = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-5",
    "system_fingerprint": "fp",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "role": "assistant",
                "content": None,
                "refusal": None,
                "annotations": [],
                "audio": None,
                "tool_calls": [CALL],
            },
        }
    ],
}
CHAT_TEXT: Wire = {
    **CHAT,
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": '{"a": 1}', "tool_calls": [], "annotations": []},
        }
    ],
}
RESPONSES: Wire = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1,
    "model": "gpt-5",
    "status": "completed",
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "instructions": "Be brief.",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"},
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": '{"path": "a"}'},
    ],
}
ANTHROPIC: Wire = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Let me look.", "citations": None},
        {"type": "tool_use", "id": "call_1", "name": "read", "input": {"path": "a"}},
    ],
}
GEMINI: Wire = {
    "modelVersion": "gemini-3-pro",
    "responseId": "r1",
    "candidates": [
        {
            "finishReason": "STOP",
            "content": {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"text": ""},
                    {"inlineData": {"mimeType": "image/png", "data": "+/+/"}},
                    {
                        "functionCall": {"id": "call_1", "name": "read", "args": {"file_path": None}},
                        "thoughtSignature": "c2ln",
                    },
                ],
            },
        }
    ],
}

OBJECTS = {
    "chat": ("openai-chat", ChatCompletion.model_validate(CHAT)),
    "chat parsed": ("openai-chat", ParsedChatCompletion.model_validate(CHAT)),
    "chat text": ("openai-chat", ParsedChatCompletion.model_validate(CHAT_TEXT)),
    "responses": ("openai-responses", Response.model_validate(RESPONSES)),
    "responses parsed": ("openai-responses", ParsedResponse.model_validate(RESPONSES)),
    "anthropic": ("anthropic", AnthropicMessage.model_validate(ANTHROPIC)),
    "gemini": ("gemini", GenerateContentResponse.model_validate(GEMINI)),
}
DUMPS: dict[str, Dump] = {
    "object": lambda answer: answer,
    "model_dump": lambda answer: answer.model_dump(),
    "by alias": lambda answer: answer.model_dump(by_alias=True),
    "json mode": lambda answer: answer.model_dump(mode="json"),
    "json text": lambda answer: json.loads(answer.model_dump_json()),
    "without nulls": lambda answer: answer.model_dump(exclude_none=True),
    "without unset": lambda answer: answer.model_dump(exclude_unset=True),
}


def sent(name: str, message: Message) -> Wire:
    ending = [tool_result(call.id, "ok").message for call in message.tool_calls] or [user("bye").message]
    body = DIALECTS[name].to_request(Context(messages=(user("hi").message, message, *ending)))
    assert faults(name, body) == []
    return body


def without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
        case list():
            return [without_nulls(inner) for inner in value]
        case _:
            return value


@pytest.mark.parametrize("dump", DUMPS.values(), ids=DUMPS)
@pytest.mark.parametrize(("name", "answer"), OBJECTS.values(), ids=OBJECTS)
def test_an_answer_of_the_sdk_goes_in_as_it_is_and_comes_back_clean(name: str, answer: Any, dump: Dump) -> None:
    stored = DIALECTS[name].from_response(dump(answer))
    assert decode_payload(encode_payload(stored)) == stored
    body = json.dumps(sent(name, stored.message))
    assert body.count("null") == body.count('"content": null') + body.count('"file_path": null')
    for word in ("async_", "parsed", '"logprobs": null', '"tool_calls": []', '"namespace"'):
        assert word not in body
    if name != "openai-responses":
        assert "annotations" not in body


@pytest.mark.parametrize(("name", "answer"), OBJECTS.values(), ids=OBJECTS)
def test_every_dump_of_an_answer_gives_the_same_request(name: str, answer: Any) -> None:
    bodies = [without_nulls(sent(name, DIALECTS[name].from_response(dump(answer)).message)) for dump in DUMPS.values()]
    assert all(body == bodies[0] for body in bodies)


def test_what_a_request_leaves_out_is_kept_in_the_log() -> None:
    stored = DIALECTS["openai-chat"].from_response(CHAT)
    assert stored.message.extra["openai-chat"]["annotations"] == []
    assert stored.origin["response"]["id"] == "chatcmpl-1"
    assert "instructions" not in DIALECTS["openai-responses"].from_response(RESPONSES).origin["response"]


def test_a_field_that_the_sdk_spells_differently_gets_its_name_in_the_request() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}", "async_": True}
    stored = DIALECTS["openai-responses"].from_response({"output": [item]})
    assert sent("openai-responses", stored.message)["input"][1]["async"] is True


def test_data_of_gemini_is_in_the_alphabet_that_every_provider_reads() -> None:
    answer = GenerateContentResponse.model_validate(GEMINI)
    for dump in DUMPS.values():
        stored = DIALECTS["gemini"].from_response(dump(answer))
        assert "+/+/" in str(stored.message.parts)


EMPTY: dict[str, tuple[str, Wire, str]] = {
    "no choices": ("openai-chat", {"choices": [], "model": "m"}, ""),
    "null choices": ("openai-chat", {"choices": None}, ""),
    "no output": ("openai-responses", {"output": [], "status": "failed"}, "failed"),
    "filtered": (
        "openai-responses",
        {"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
        "content_filter",
    ),
    "no content": ("anthropic", {"content": [], "stop_reason": "refusal"}, "refusal"),
    "blocked prompt": ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}, "SAFETY"),
    "blocked prompt in Python's words": ("gemini", {"prompt_feedback": {"block_reason": "SAFETY"}}, "SAFETY"),
    "blocked answer": ("gemini", {"candidates": [{"finishReason": "RECITATION"}]}, "RECITATION"),
}


@pytest.mark.parametrize(("name", "body", "reason"), EMPTY.values(), ids=EMPTY)
def test_an_answer_without_content_is_stored_and_left_out_of_requests(name: str, body: Wire, reason: str) -> None:
    stored = DIALECTS[name].from_response(body)
    assert isinstance(stored, AssistantMessage)
    assert (stored.message.parts, stored.stop_reason) == ((), reason)
    without = DIALECTS[name].to_request(Context(messages=(user("hi").message, user("bye").message)))
    assert sent(name, stored.message) == without


def test_interrupted_thinking_is_kept_and_never_sent() -> None:
    cut = {"content": [{"type": "thinking", "thinking": "hm", "signature": ""}, {"type": "text", "text": "so"}]}
    stored = DIALECTS["anthropic"].from_response(cut)
    assert isinstance(stored.message.parts[0], ReasoningPart)
    assert "thinking" not in str(sent("anthropic", stored.message))


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def test_a_paused_turn_is_sent_back_as_it_is_and_goes_on_in_the_same_message() -> None:
    paused = DIALECTS["anthropic"].from_response({"content": [SEARCH], "stop_reason": "pause_turn"}).message
    body = DIALECTS["anthropic"].to_request(Context(messages=(user("hi").message, paused)))
    assert body["messages"][-1] == {"role": "assistant", "content": [SEARCH]}
    more = DIALECTS["anthropic"].from_response({"content": [FOUND], "stop_reason": "end_turn"}).message
    body = DIALECTS["anthropic"].to_request(Context(messages=(user("hi").message, paused, more, user("bye").message)))
    assert body["messages"][1] == {"role": "assistant", "content": [SEARCH, FOUND]}


def test_a_paused_turn_that_never_went_on_is_left_out() -> None:
    paused = DIALECTS["anthropic"].from_response({"content": [SEARCH], "stop_reason": "pause_turn"}).message
    assert "server_tool_use" not in str(sent("anthropic", paused))


def test_an_unanswered_call_of_a_provider_tool_is_left_out() -> None:
    patch = {"type": "apply_patch_call", "id": "a", "call_id": "c", "status": "completed", "operation": {}}
    stored = DIALECTS["openai-responses"].from_response({"output": [patch]})
    assert "apply_patch_call" not in str(sent("openai-responses", stored.message))


def test_a_call_whose_input_is_a_text_is_a_call() -> None:
    body = {"content": [{"type": "tool_use", "id": "c", "name": "read", "input": '{"path": "a"}'}]}
    stored = DIALECTS["anthropic"].from_response(body)
    assert sent("anthropic", stored.message)["messages"][1]["content"][0]["input"] == {"path": "a"}


def test_an_unknown_dialect_lists_the_known_ones() -> None:
    with pytest.raises(UnknownDialectError, match="use one of openai-chat, openai-responses, anthropic, gemini"):
        DIALECTS["claude"]
    assert issubclass(UnknownDialectError, InvalidInputError)
    assert DIALECTS.get("claude") is None


def test_a_result_of_a_server_tool_whose_call_is_gone_is_left_out() -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    found = DIALECTS["anthropic"].from_response({"content": [result, {"type": "text", "text": "found"}]})
    only = DIALECTS["anthropic"].from_response({"content": [result]})
    for answers in ([found.message], [only.message], [only.message, found.message]):
        sent = DIALECTS["anthropic"].to_request(Context(messages=(user("q").message, *answers)))
        assert "srvtoolu_1" not in str(sent)


@pytest.mark.parametrize(("given", "written"), [(None, "{}"), ({"a": 1}, '{"a":1}'), ('{"a": 1}', '{"a": 1}')])
def test_a_chat_call_with_nulls_or_an_object_as_arguments_is_a_call(given: Any, written: str) -> None:
    asked = {"id": None, "type": "function", "function": {"name": None, "arguments": given}}
    answer = DIALECTS["openai-chat"].from_response({"choices": [{"message": {"tool_calls": [asked]}}]})
    for dialect in DIALECTS.values():
        dialect.to_request(Context(messages=(user("q").message, answer.message)))
    sent = DIALECTS["openai-chat"].to_request(Context(messages=(user("q").message, answer.message)))
    assert sent["messages"][1]["tool_calls"][0]["function"] == {"name": "_", "arguments": written}


@pytest.mark.parametrize("part", [{}, {"text": None}])
def test_an_empty_part_of_gemini_is_left_out(part: dict[str, Any]) -> None:
    parts = [part, {"text": "hi"}]
    answer = DIALECTS["gemini"].from_response({"candidates": [{"content": {"role": "model", "parts": parts}}]})
    sent = DIALECTS["gemini"].to_request(Context(messages=(user("q").message, answer.message)))
    assert sent["contents"][1]["parts"] == [{"text": "hi"}]


def test_a_text_block_without_text_is_left_out() -> None:
    answer = DIALECTS["anthropic"].from_response({"content": [{"type": "text", "text": None}]})
    sent = DIALECTS["anthropic"].to_request(Context(messages=(user("q").message, answer.message)))
    assert [message["role"] for message in sent["messages"]] == ["user"]
