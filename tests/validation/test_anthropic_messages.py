"""Each rule of the Messages validator: red on a bad request, green on a good one."""

from __future__ import annotations

from typing import Any

import pytest

from validation.anthropic_messages import problems
from validation.material import PAYLOAD
from validation.minted import mint

Message = dict[str, Any]
Block = dict[str, Any]

TEXT: Block = {"type": "text", "text": "hello"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PAYLOAD}}
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PAYLOAD}}
SEARCH: Block = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}}
FOUND: Block = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
MARK = {"cache_control": {"type": "ephemeral"}}


def user(*blocks: Block) -> Message:
    return {"role": "user", "content": list(blocks or (TEXT,))}


def assistant(*blocks: Block) -> Message:
    return {"role": "assistant", "content": list(blocks or (TEXT,))}


def use(use_id: str = "t1", **fields: Any) -> Block:
    return {"type": "tool_use", "id": use_id, "name": "read", "input": {}, **fields}


def result(use_id: str = "t1", **fields: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": use_id, "content": "out", **fields}


def thinking(text: str = "hm", signature: str | None = None) -> Block:
    return {
        "type": "thinking",
        "thinking": text,
        "signature": mint("anthropic", text) if signature is None else signature,
    }


GOOD: dict[str, list[Message]] = {
    "a question": [user()],
    "a question as a string": [{"role": "user", "content": "hello"}],
    "two messages of the user": [user(), user()],
    "thinking, a call, its result": [user(), assistant(thinking(), TEXT, use()), user(result(), TEXT)],
    "parallel calls in any order": [user(), assistant(use("a"), use("b")), user(result("b"), result("a"))],
    "results in two messages": [user(), assistant(use("a"), use("b")), user(result("a")), user(result("b"))],
    "a server tool": [user(), assistant(SEARCH, FOUND, TEXT), user()],
    "a paused turn at the end": [user(), assistant(TEXT, SEARCH)],
    "a paused turn after a result": [user(), assistant(SEARCH, FOUND)],
    "a server tool that waits for results": [user(), assistant(SEARCH, use()), user(result())],
    "media": [user(PICTURE, PDF), assistant(), user()],
    "media in a result": [user(), assistant(use()), user(result(content=[PICTURE, TEXT]))],
    "an empty result": [user(), assistant(use()), user(result(content=""))],
    "an error": [user(), assistant(use()), user(result(is_error=True, content=[TEXT]))],
    "four marks": [user(*[{**TEXT, **MARK}] * 4)],
    "redacted thinking": [
        user(),
        assistant({"type": "redacted_thinking", "data": mint("anthropic", "")}, TEXT),
        user(),
    ],
    "a signature from elsewhere than the tests": [user(), assistant(thinking(signature="c2ln"), TEXT), user()],
}
BAD: dict[str, tuple[list[Message], str]] = {
    "no message": ([], "empty"),
    "an unknown block": ([user({"type": "invented"})], "no request type"),
    "an unknown field": ([user({**TEXT, "parsed": 1})], "unknown"),
    "a null that the type has not": ([user(), assistant(use(caller=None)), user(result())], "caller"),
    "input that is no object": ([user(), assistant(use(input="{}")), user(result())], "expected an object"),
    "a missing field that may be null": (
        [user(), assistant({**TEXT, "citations": [{"type": "web_search_result_location"}]}), user()],
        "title: missing",
    ),
    "the assistant first": ([assistant(), user()], "begins with assistant"),
    "the assistant last": ([user(), assistant()], "the last message is the assistant's"),
    "a system message": ([user(), {"role": "system", "content": "x"}, assistant(), user()], "a system message"),
    "an empty content": ([user(), {"role": "assistant", "content": []}, user()], "empty content"),
    "an empty text": ([user({"type": "text", "text": ""})], "a text without content"),
    "a blank text": ([user({"type": "text", "text": " \n"})], "a text without content"),
    "a blank string": ([{"role": "user", "content": ""}], "a text without content"),
    "an empty text in a result": (
        [user(), assistant(use()), user(result(content=[{"type": "text", "text": ""}]))],
        "a text without content",
    ),
    "a call id with a dot": ([user(), assistant(use("a.b")), user(result("a.b"))], "id 'a.b'"),
    "a tool name with a dot": ([user(), assistant(use(name="a.b")), user(result())], "name 'a.b'"),
    "a tool name that is too long": ([user(), assistant(use(name="a" * 129)), user(result())], "name 'aaa"),
    "a call id that is used twice": (
        [user(), assistant(use()), user(result()), assistant(use()), user(result())],
        "used twice",
    ),
    "a call without a result": ([user(), assistant(use()), user()], "calls without a result"),
    "a result too late": ([user(), assistant(use()), user(), assistant(), user(result())], "results without a call"),
    "a result without a call": ([user(result())], "results without a call"),
    "two results": ([user(), assistant(use()), user(result(), result())], "two results"),
    "a text before a result": ([user(), assistant(use()), user(TEXT, result())], "before the results"),
    "an error with a picture": (
        [user(), assistant(use()), user(result(is_error=True, content=[PICTURE]))],
        "an error result with ['image']",
    ),
    "thinking without a signature": ([user(), assistant(thinking(signature=""), TEXT), user()], "without a signature"),
    "thinking of another provider": (
        [user(), assistant(thinking(signature=mint("gemini", "hm")), TEXT), user()],
        "signature of gemini",
    ),
    "changed thinking": (
        [user(), assistant(thinking(signature=mint("anthropic", "other")), TEXT), user()],
        "signature of another content",
    ),
    "redacted thinking of another provider": (
        [user(), assistant({"type": "redacted_thinking", "data": mint("gemini", "")}, TEXT), user()],
        "signature of gemini",
    ),
    "thinking at the end of a message": ([user(), assistant(TEXT, thinking()), user()], "thinking is the last block"),
    "thinking of the user": ([user(thinking())], "thinking in a message of user"),
    "a picture of the assistant": ([user(), assistant(PICTURE), user()], "image in a message of assistant"),
    "a server tool without a result": ([user(), assistant(SEARCH, TEXT), user()], "server tools without a result"),
    "a server result without its use": ([user(), assistant(FOUND, TEXT), user()], "without its server_tool_use"),
    "the result of another server tool": (
        [user(), assistant({**SEARCH, "name": "web_fetch"}, FOUND, TEXT), user()],
        "without its server_tool_use",
    ),
    "a picture of an odd type": (
        [user({"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": PAYLOAD}})],
        "image/svg+xml",
    ),
    "a picture that is no base64": (
        [user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "data:x"}})],
        "not base64",
    ),
    "a picture in a bucket": (
        [user({"type": "image", "source": {"type": "url", "url": "gs://b/o"}})],
        "not an address",
    ),
    "a document without content": (
        [user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": ""}})],
        "a document without content",
    ),
    "five marks": ([user(*[{**TEXT, **MARK}] * 5)], "5 cache_control marks"),
    "a mark on thinking": ([user(), assistant({**thinking(), **MARK}, TEXT), user()], "cache_control: unknown"),
}


@pytest.mark.parametrize("messages", GOOD.values(), ids=GOOD)
def test_a_good_request_passes(messages: list[Message]) -> None:
    assert problems({"system": "s", "messages": messages}) == []


@pytest.mark.parametrize(("messages", "expected"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(messages: list[Message], expected: str) -> None:
    assert expected in "\n".join(problems({"messages": messages}))


def test_a_mark_on_the_system_prompt_counts() -> None:
    request = {"system": [{**TEXT, **MARK}], "messages": [user(*[{**TEXT, **MARK}] * 4)]}
    assert problems(request) == ["5 cache_control marks, at most 4"]


def test_a_blank_system_block_is_refused() -> None:
    assert problems({"system": [{"type": "text", "text": " "}], "messages": [user()]})
