"""Answers and requests of unknown or broken shape: they are kept, and a request holds what its type knows."""

from __future__ import annotations

from typing import Any

import pytest

import sessiontree as st
from sessiontree.model import FilePart, ImagePart, Message, OpaquePart, TextPart
from validation.mutations import mutant_problems
from validation.validators import faults

Wire = dict[str, Any]
PNG = "iVBORw0KGgo="
CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

ODD_ANSWERS: dict[str, tuple[str, Wire]] = {
    "an item of an unknown type": ("openai-responses", {"output": [{"type": "hologram_call", "id": "h_1"}]}),
    "an empty item": ("openai-responses", {"output": [{}]}),
    "a message without content": (
        "openai-responses",
        {"output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": None}]},
    ),
    "a search without an action": (
        "openai-responses",
        {"output": [{"type": "web_search_call", "id": "ws_1", "status": "completed"}]},
    ),
    "a block of an unknown type": ("anthropic", {"content": [{"type": "hologram", "data": "x"}]}),
    "a call without an id": ("anthropic", {"content": [{"type": "tool_use", "id": None, "name": "read", "input": {}}]}),
    "a call without a name": ("anthropic", {"content": [{"type": "tool_use", "id": "t", "name": None, "input": {}}]}),
    "a function without a name": (
        "gemini",
        {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": None, "args": {}}}]}}]},
    ),
    "a part of an unknown kind": (
        "gemini",
        {"candidates": [{"content": {"role": "model", "parts": [{"hologram": {"x": 1}}]}}]},
    ),
    "a block of an unknown type in Chat": (
        "openai-chat",
        {"choices": [{"message": {"role": "assistant", "content": [{"type": "hologram"}]}}]},
    ),
}


def sent(name: str, *messages: Message) -> Wire:
    body = st.DIALECTS[name].to_request(st.Context(messages=messages))
    assert faults(name, body) == []
    return body


@pytest.mark.parametrize("case", ODD_ANSWERS)
def test_an_answer_of_an_odd_shape_is_kept_and_lost_in_requests(case: str) -> None:
    name, body = ODD_ANSWERS[case]
    stored = st.DIALECTS[name].from_response(body).message
    assert [type(part) for part in stored.parts] == [OpaquePart]
    messages = (st.user("hi").message, stored, st.user("go on").message)
    for dialect in st.DIALECTS:
        sent(dialect, *messages)
        losses = st.Context(messages=messages).losses(dialect)
        is_message = case == "a message without content" and dialect == name
        assert is_message or [loss.message_index for loss in losses] == [1]


@pytest.mark.parametrize(
    ("name", "body", "place"),
    [
        ("anthropic", {"content": [None]}, r"content\[0\]"),
        ("anthropic", {"content": 5}, "content"),
        ("anthropic", {"content": [], "model": {}}, "model"),
        ("gemini", {"candidates": [None]}, r"candidates\[0\]"),
        ("gemini", {"candidates": [{"content": "x"}]}, r"candidates\[0\]\.content"),
        ("openai-chat", {"choices": [{"message": {"content": {}}}]}, r"choices\[0\]\.message\.content"),
        ("openai-chat", {"choices": [{"message": {"tool_calls": ["x"]}}]}, r"message\.tool_calls\[0\]"),
        ("openai-responses", {"output": ["x"]}, r"output\[0\]"),
    ],
)
def test_an_answer_that_cannot_be_read_is_refused_with_the_place(name: str, body: Wire, place: str) -> None:
    with pytest.raises(st.InvalidInputError, match=place):
        st.DIALECTS[name].from_response(body)


@pytest.mark.parametrize("name", st.DIALECTS)
def test_what_is_no_request_is_refused(name: str) -> None:
    wrong: list[Any] = [
        None,
        [],
        "x",
        {"messages": 5, "input": 5, "contents": 5},
        {"messages": [0], "input": [0], "contents": [0]},
    ]
    for body in wrong:
        with pytest.raises(st.InvalidInputError):
            st.DIALECTS[name].from_request(body)


@pytest.mark.parametrize("seed", range(8))
def test_broken_answers_and_requests_are_refused_or_can_be_sent(seed: int) -> None:
    assert list(mutant_problems(seed, 25)) == []


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(8, 208))
def test_thousands_of_broken_answers_and_requests_are_refused_or_can_be_sent(seed: int) -> None:
    assert list(mutant_problems(seed, 400)) == []


def test_what_a_user_says_while_a_turn_is_paused_comes_after_its_result() -> None:
    paused = st.DIALECTS["anthropic"].from_response({"content": [CALL], "stop_reason": "pause_turn"}).message
    goes_on = st.DIALECTS["anthropic"].from_response({"content": [FOUND, {"type": "text", "text": "so"}]}).message
    before = sent("anthropic", st.user("hi").message, paused)
    after = sent("anthropic", st.user("hi").message, paused, st.user("hurry").message, goes_on)
    assert before["messages"][1]["content"] == [CALL]
    assert [block["type"] for block in after["messages"][1]["content"]] == [CALL["type"], FOUND["type"], "text"]
    assert after["messages"][2:] == [{"role": "user", "content": [{"type": "text", "text": "hurry"}]}]


def test_a_server_tool_whose_result_came_too_late_is_left_out_with_it() -> None:
    paused = st.DIALECTS["anthropic"].from_response({"content": [CALL]}).message
    late = st.DIALECTS["anthropic"].from_response({"content": [FOUND, {"type": "text", "text": "so"}]}).message
    between = [st.user("no").message, st.assistant("fine").message, st.user("and?").message]
    assert "srvtoolu_1" not in str(
        sent("anthropic", st.user("hi").message, paused, *between, late, st.user("ok").message)
    )


def test_broken_media_of_a_function_response_are_a_note_and_a_loss() -> None:
    call = {"functionCall": {"id": "c", "name": "shot", "args": {}}}
    media = [{"inlineData": {"mimeType": "image/png", "data": data}} for data in ("not base64!", PNG)]
    response = {"id": "c", "name": "shot", "response": {"output": "done"}, "parts": media}
    contents = [{"role": "model", "parts": [call]}, {"role": "user", "parts": [{"functionResponse": response}]}]
    _, messages = st.DIALECTS["gemini"].from_request({"contents": contents})
    body = sent("gemini", st.user("hi").message, *messages)
    written = body["contents"][-1]["parts"][0]["functionResponse"]
    assert written["parts"] == media[1:]
    assert written["response"] == {"output": "done[image image/png]"}
    losses = st.Context(messages=tuple(messages)).losses("gemini")
    assert [loss.what for loss in losses] == ["image, a note in its place"]


@pytest.mark.parametrize("mime", ["IMAGE/PNG", "Image/Png; charset=binary", "image/JPG"])
@pytest.mark.parametrize("name", st.DIALECTS)
def test_a_media_type_counts_in_any_spelling(name: str, mime: str) -> None:
    for part in (
        ImagePart(data=PNG, mime=mime),
        FilePart(data=PNG, mime=mime),
        ImagePart(url=f"DATA:{mime};base64,{PNG}"),
    ):
        if name == "anthropic" and isinstance(part, FilePart):
            continue
        body = sent(name, st.user([part]).message)
        assert PNG in str(body)
        assert mime not in str(body)


@pytest.mark.parametrize(
    "part",
    [
        {"text": "hm", "thought": True, "thoughtSignature": "not base64!"},
        {"text": "so", "thoughtSignature": "not base64!"},
        {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "not base64!"},
    ],
)
def test_a_signature_that_gemini_cannot_decode_is_a_loss(part: Wire) -> None:
    answer = {"candidates": [{"content": {"role": "model", "parts": [part]}}]}
    message = st.DIALECTS["gemini"].from_response(answer).message
    assert [loss.what for loss in st.Context(messages=(message,)).losses("gemini")] == [
        "a signature that is not base64"
    ]
    signed = st.DIALECTS["gemini"].from_response(
        {"candidates": [{"content": {"role": "model", "parts": [{**part, "thoughtSignature": "c2ln"}]}}]}
    )
    assert st.Context(messages=(signed.message,)).losses("gemini") == ()


def test_a_new_field_of_an_answer_is_kept_and_left_out_of_requests() -> None:
    block = {"type": "text", "text": "so", "new_field": 1}
    message = st.DIALECTS["anthropic"].from_response({"content": [block]}).message
    assert message.parts == (TextPart(text="so", extra={"anthropic": {"new_field": 1}}),)
    assert "new_field" not in str(sent("anthropic", st.user("hi").message, message, st.user("ok").message))
