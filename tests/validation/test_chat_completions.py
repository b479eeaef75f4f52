"""Each rule of the Chat Completions validator: red on a bad request, green on a good one."""

from __future__ import annotations

from typing import Any

import pytest

from validation.chat_completions import problems
from validation.material import PAYLOAD

Message = dict[str, Any]

USER: Message = {"role": "user", "content": "hello"}
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PAYLOAD}", "detail": "low"}}
PDF = {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAYLOAD}"}}


def call(call_id: str = "c1", name: str = "read", arguments: str = "{}") -> Message:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asked(*calls: Message) -> Message:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(call_id: str = "c1") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": "out"}


def user(part: Message) -> Message:
    return {"role": "user", "content": [part]}


def file(**fields: str) -> Message:
    return user({"type": "file", "file": fields})


GOOD: dict[str, list[Message]] = {
    "a question": [USER],
    "a system text and a name": [{"role": "system", "content": "s"}, {**USER, "name": "anna"}],
    "parallel calls, results in any order": [USER, asked(call("a"), call("b")), result("b"), result("a"), USER],
    "a custom tool": [asked({"id": "c1", "type": "custom", "custom": {"name": "grep", "input": "x"}}), result()],
    "pictures and files": [user(PICTURE), user(PDF), file(file_id="file-1")],
    "a picture by address": [user({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}})],
    "a refusal": [USER, {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}],
    "an empty answer": [USER, {"role": "assistant", "content": ""}],
    "a sound": [user({"type": "input_audio", "input_audio": {"data": PAYLOAD, "format": "wav"}})],
}
BAD: dict[str, tuple[list[Message], str]] = {
    "no message": ([], "empty"),
    "an unknown role": ([{"role": "critic", "content": "x"}], "no request type"),
    "an unknown field": ([{**USER, "parsed": 1}], "unknown"),
    "a missing field": ([{"role": "tool", "content": "x"}], "tool_call_id: missing"),
    "null where the type has none": ([{"role": "assistant", "content": "x", "tool_calls": None}], "expected an array"),
    "a number as text": ([{"role": "user", "content": 1}], "expected str"),
    "a lone surrogate": ([{"role": "user", "content": "\ud800"}], "not a JSON body"),
    "an infinite number": ([{"role": "user", "content": float("inf")}], "not a JSON body"),
    "an empty list of calls": ([{"role": "assistant", "content": "x", "tool_calls": []}], "empty array"),
    "an empty list of parts": ([{"role": "user", "content": []}], "empty array"),
    "an answer without content": ([{"role": "assistant", "content": None, "refusal": "no"}], "required without"),
    "a refusal beside a text": (
        [{"role": "assistant", "content": [{"type": "text", "text": "x"}, {"type": "refusal", "refusal": "no"}]}],
        "stands alone",
    ),
    "a name with a blank": ([{**USER, "name": "John Doe"}], ".name"),
    "a name that is too long": ([{**USER, "name": "n" * 65}], ".name"),
    "a call without an id": ([asked(call("")), result("")], "0 characters"),
    "a call id that is too long": ([asked(call("x" * 65)), result("x" * 65)], "65 characters"),
    "a tool name with a dot": ([asked(call(name="a.b")), result()], "name: 'a.b'"),
    "a tool name that is too long": ([asked(call(name="a" * 65)), result()], "name: 'aaa"),
    "arguments that are no JSON": ([asked(call(arguments="{")), result()], "no JSON"),
    "arguments that are no object": ([asked(call(arguments="[]")), result()], "no JSON object"),
    "a call without a result": ([asked(call()), USER], "calls without a result"),
    "a call without a result at the end": ([asked(call())], "end: calls without"),
    "a result without a call": ([USER, result()], "result without a call"),
    "two results for one call": ([asked(call()), result(), result()], "second result"),
    "one id for two calls": ([asked(call(), call()), result(), result()], "used twice"),
    "a picture of an odd type": (
        [user({"type": "image_url", "image_url": {"url": f"data:image/svg+xml;base64,{PAYLOAD}"}})],
        "image/svg+xml",
    ),
    "a picture that is no base64": (
        [user({"type": "image_url", "image_url": {"url": "data:image/png;base64,???"}})],
        "not base64",
    ),
    "a picture in a bucket": ([user({"type": "image_url", "image_url": {"url": "gs://b/o"}})], "not an address"),
    "a file without a name": ([file(file_data=f"data:application/pdf;base64,{PAYLOAD}")], "without filename"),
    "a file that is no PDF": ([file(filename="a", file_data=f"data:text/plain;base64,{PAYLOAD}")], "text/plain"),
    "a file as plain base64": ([file(filename="a", file_data=PAYLOAD)], "not a base64 data URL"),
    "a file without content": ([file(filename="a.pdf")], "exactly one"),
    "a file by an empty id": ([file(file_id="")], "empty file_id"),
    "a sound without content": (
        [user({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}})],
        "empty base64",
    ),
    "a picture in a result": ([asked(call()), {**result(), "content": [PICTURE]}], "none of"),
}


@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD)
def test_a_good_request_passes(messages: list[Message]) -> None:
    assert problems({"messages": messages}) == []


@pytest.mark.parametrize(("messages", "expected"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(messages: list[Message], expected: str) -> None:
    assert expected in "\n".join(problems({"messages": messages}))


def test_an_unknown_field_of_the_request_is_refused() -> None:
    assert problems({"messages": [USER], "system": "x"}) == [".system: unknown to CompletionCreateParamsNonStreaming"]
