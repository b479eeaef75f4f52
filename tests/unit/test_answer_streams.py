"""Streamed answers of four providers, by their SDKs from a local server: stored like answers that came at once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from typing import Any

import anthropic
import openai
import pytest

import provider_answers
import provider_clients
import sessiontree as st
from model_server import ModelServer, Reply, StreamReply, model_server
from provider_answers import EVENTS, RESPONSES, Script

DIALECTS = sorted(EVENTS)
SCRIPTS = {
    "text": Script(text=["Hel", "lo, ", "wörld"]),
    "reasoning": Script(text=["So: ", "42"], reasoning=["Let me ", "think."]),
    "tools": Script(text=["Looking. "], call="read", arguments=['{"pa', 'th": "a', '.txt"}']),
    "everything": Script(text=["One ", "moment."], reasoning=["Hm, ", "a tool."], call="read", arguments=["{}"]),
    "call": Script(call="read", arguments=['{"path": ', '"a.txt"}']),
}


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
def chat() -> Iterator[st.ThreadHandle]:
    with st.open("memory:") as journal:
        chat = journal.open_thread("t", create=True)
        chat.append(st.user("hello"))
        yield chat


def request_of(chat: st.ThreadHandle, dialect: str) -> dict[str, object]:
    return st.DIALECTS[dialect].to_request(chat.context())


def without_nulls(value: Any) -> Any:
    """A request without the fields that only an SDK's object has, as null."""
    match value:
        case dict():
            return {key: without_nulls(inner) for key, inner in value.items() if inner is not None or key == "content"}
        case list():
            return [without_nulls(inner) for inner in value]
        case _:
            return value


def assert_same(streamed: st.Payload, at_once: st.AssistantMessage | st.ToolCallMessage) -> None:
    """Equal in everything but what an SDK's object has besides: fields without a value."""
    assert type(streamed) is type(at_once)
    assert isinstance(streamed, st.AssistantMessage | st.ToolCallMessage)
    for name in ("provider", "model", "stop_reason", "usage"):
        assert getattr(streamed, name) == getattr(at_once, name), name
    assert streamed.message.parts == at_once.message.parts
    assert streamed.usage is not None


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_streamed_answer_is_stored_like_one_that_came_at_once(
    server: ModelServer, chat: st.ThreadHandle, dialect: str, script: Script
) -> None:
    request = request_of(chat, dialect)
    server.replies += [StreamReply(EVENTS[dialect](script)), Reply(body=RESPONSES[dialect](script))]
    with chat.turn(owner="w") as turn:
        answer = turn.stream(dialect, provider_clients.stream(dialect, server.url, request))
        assert list(answer) == list(script.text)
        assert answer.entry == chat.path()[-1]
        assert answer.message.text == answer.text == "".join(script.text)
        assert answer.reasoning == "".join(script.reasoning)
    at_once = st.DIALECTS[dialect].from_response(provider_clients.whole(dialect, server.url, request))
    assert_same(answer.entry.payload, at_once)
    twin = chat.fork(before=answer.entry.id)
    twin.append(at_once)
    assert without_nulls(request_of(twin, dialect)) == without_nulls(request_of(chat, dialect))
    assert [entry.type for entry in chat.path()] == [
        "user_message",
        "turn_marker",
        "tool_call" if script.call else "assistant_message",
        "turn_marker",
    ]


def test_the_stream_helpers_of_the_sdks_work_too(server: ModelServer, chat: st.ThreadHandle) -> None:
    script = SCRIPTS["everything"]
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client,
        anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as claude,
    ):
        for dialect, helper in (
            ("openai-chat", lambda **request: client.chat.completions.stream(model="m", **request)),
            ("openai-responses", lambda **request: client.responses.stream(model="m", **request)),
            ("anthropic", lambda **request: claude.messages.stream(model="m", max_tokens=9, **request)),
        ):
            server.replies.append(StreamReply(EVENTS[dialect](script)))
            fresh = chat.fork()
            with fresh.turn(owner="w") as turn, helper(**request_of(chat, dialect)) as events:
                answer = turn.stream(dialect, events)
                assert "".join(answer) == "".join(script.text), dialect
            at_once = st.DIALECTS[dialect].from_response(RESPONSES[dialect](script))
            assert [(call.id, call.arguments) for call in answer.message.tool_calls] == [
                (call.id, call.arguments) for call in at_once.message.tool_calls
            ]
            payload = answer.entry.payload
            assert isinstance(payload, st.AssistantMessage | st.ToolCallMessage)
            assert (payload.model, payload.usage) == (at_once.model, at_once.usage)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_that_the_network_cuts_is_partial_and_in_no_request(
    server: ModelServer, chat: st.ThreadHandle, dialect: str
) -> None:
    script = Script(text=["one ", "two ", "three"], reasoning=["hm"])
    events = EVENTS[dialect](script)
    server.replies.append(StreamReply(events, pause_after=_after_text(events, b"two "), is_cut=True))
    shown = []
    # Each SDK has an error of its own, and the turn is what is interrupted.
    with pytest.raises(Exception) as cut, chat.turn(owner="w") as turn:  # noqa: PT012
        for text in turn.stream(dialect, provider_clients.stream(dialect, server.url, request_of(chat, dialect))):
            shown.append(text)
    assert shown == ["one ", "two "]
    partial = next(entry for entry in chat.path() if entry.type == "assistant_message")
    assert isinstance(partial.payload, st.AssistantMessage)
    assert partial.payload.is_partial
    assert partial.message is not None
    assert partial.message.text == "one two "
    assert partial.payload.model == provider_answers.MODEL
    assert [message.text for message in chat.context().messages] == ["hello"], cut
    assert [message.text for message in chat.context(include_partial=True).messages] == ["hello", "one two "]
    assert chat.thread().tokens == chat.context().estimate


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stream_that_ends_without_its_end_is_an_error(dialect: str, chat: st.ThreadHandle) -> None:
    events = [_decoded(event) for event in EVENTS[dialect](Script(text=["one ", "two"]))]
    cut = [event for event in events if event is not None][:-3]
    with pytest.raises(st.AnswerInterruptedError, match="try again"), chat.turn(owner="w") as turn:
        list(turn.stream(dialect, cut[:3] if dialect == "gemini" else cut))
    if dialect != "gemini":
        assert chat.path()[-3].type in {"assistant_message", "run_failure"}


ERRORS = {
    "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "openai-responses": {"type": "error", "message": "Overloaded", "code": "x", "param": None, "sequence_number": 9},
    "openai-chat": {"error": {"message": "Overloaded", "code": 502}},
    "gemini": {"error": {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"}},
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_in_the_stream_keeps_what_was_shown(dialect: str, chat: st.ThreadHandle) -> None:
    events = [_decoded(event) for event in EVENTS[dialect](Script(text=["one ", "two ", "three"]))]
    before = events[: _after_text(EVENTS[dialect](Script(text=["one ", "two ", "three"])), b"two ")]
    with pytest.raises(st.AnswerInterruptedError, match="Overloaded"), chat.turn(owner="w") as turn:
        list(turn.stream(dialect, [*before, ERRORS[dialect]]))
    partial = next(entry for entry in chat.path() if entry.type == "assistant_message")
    assert partial.message is not None
    assert partial.message.text == "one two "


def _after_text(events: list[bytes], text: bytes) -> int:
    """How many events there are up to the one with a text."""
    return next(number for number, event in enumerate(events, 1) if b'"' + text + b'"' in event)


def _decoded(event: bytes) -> dict[str, object] | None:
    data = event.split(b"data: ", 1)[1].strip()
    decoded: dict[str, object] | None = None if data == b"[DONE]" else json.loads(data)
    return decoded


def places_in(value: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places_in(item, (*place, key))


def with_value(value: Any, place: tuple[str | int, ...], new: object) -> Any:
    if not place:
        return new
    changed = copy(value)
    changed[place[0]] = with_value(value[place[0]], place[1:], new)
    return changed


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_odd_value_anywhere_in_an_event_raises_our_errors_only(dialect: str, chat: st.ThreadHandle) -> None:
    sent = b"".join(EVENTS[dialect](SCRIPTS["everything"]))
    events = [json.loads(line[6:]) for line in sent.splitlines() if line.startswith(b"data: {")]
    assert len(events) > 3
    for place in places_in(events):
        for odd in (None, 3, "x", [None]):
            with suppress(st.SessionTreeError), chat.turn() as turn:
                list(turn.stream(dialect, with_value(events, place, odd) if place else [odd]))
