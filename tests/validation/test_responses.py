"""Each rule of the Responses validator: red on a bad request, green on a good one."""

from __future__ import annotations

from typing import Any

import pytest

from validation.material import PAYLOAD
from validation.minted import mint
from validation.responses import problems

Item = dict[str, Any]

USER: Item = {"role": "user", "content": "hello"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}


def call(call_id: str = "c1", name: str = "read", arguments: str = "{}", **fields: Any) -> Item:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **fields}


def output(call_id: str = "c1", content: Any = "out") -> Item:
    return {"type": "function_call_output", "call_id": call_id, "output": content}


def thought(item_id: str = "rs_1", **fields: Any) -> Item:
    return {"type": "reasoning", "id": item_id, "summary": [], **fields}


def said(item_id: str = "msg_1", text: str = "x") -> Item:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": content}


def user(**part: Any) -> Item:
    return {"role": "user", "content": [part]}


def file(mime: str = "application/pdf") -> str:
    return f"data:{mime};base64,{PAYLOAD}"


GOOD: dict[str, list[Item]] = {
    "a question": [USER],
    "an answer as text": [USER, {"role": "assistant", "content": "x"}, USER],
    "an answer without an id": [{"role": "assistant", "content": said()["content"]}],
    "a call and its output": [USER, call(id="fc_1"), output(), USER],
    "an output with a picture": [
        call(),
        output(content=[{"type": "input_image", "detail": "auto", "image_url": file("image/png")}]),
    ],
    "reasoning and what it led to": [thought(encrypted_content=mint("openai-responses", "rs_1")), said(), USER],
    "two thoughts and a call": [thought(), thought("rs_2"), call(), output()],
    "an item with its reasoning": [thought(), said("msg_1_after_rs_1")],
    "a server tool": [thought(), SEARCH, said()],
    "a picture and a file": [
        user(type="input_image", detail="low", image_url="https://example.com/a.png"),
        user(type="input_file", filename="a.pdf", file_data=file()),
        user(type="input_file", file_url="https://example.com/a.pdf"),
        user(type="input_file", file_id="file-1"),
    ],
    "a custom tool": [
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "grep", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "out"},
    ],
}
BAD: dict[str, tuple[list[Item], str]] = {
    "no item": ([], "empty"),
    "an unknown item": ([{"type": "invented"}], "no request type"),
    "a null that the type has not": ([thought(status=None), said()], "status: None"),
    "an unknown field": ([call(async_=None), output()], "async_: unknown"),
    "a missing field that may be null": (
        [{"type": "code_interpreter_call", "id": "ci_1", "code": "", "container_id": "c", "status": "completed"}],
        "outputs: missing",
    ),
    "input_text of the assistant": (
        [{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}],
        "input_text of the assistant",
    ),
    "an empty content": ([{"role": "user", "content": []}], "empty array"),
    "an id with another prefix": ([said("rs_1")], "does not begin with 'msg'"),
    "an id with blanks": ([thought("rs 1"), said()], "id 'rs 1'"),
    "an id that is too long": ([said("msg_" + "x" * 61)], "id 'msg_"),
    "an id that is used twice": ([said(), said()], "used 2 times"),
    "a call id that is too long": ([call("x" * 65), output("x" * 65)], "65 characters"),
    "a tool name with a blank": ([call(name="a b"), output()], "name 'a b'"),
    "arguments that are no JSON": ([call(arguments="{"), output()], "no JSON"),
    "a call without output": ([call(), USER], "without its output"),
    "an output without a call": ([output()], "without its call"),
    "two outputs": ([call(), output(), output()], "without its call"),
    "an output before its call": ([output(), call()], "without its call"),
    "two open calls with one id": ([call(), call(), output(), output()], "a second open"),
    "a patch without output": (
        [
            {
                "type": "apply_patch_call",
                "call_id": "c1",
                "status": "completed",
                "operation": {"type": "delete_file", "path": "a"},
            }
        ],
        "apply_patch_call 'c1' without",
    ),
    "reasoning at the end": ([USER, thought()], "without its following item"),
    "reasoning before the user": ([thought(), USER], "without its following item"),
    "reasoning before an output": ([call(), thought(), output()], "without its following item"),
    "an item without its reasoning": ([said("msg_1_after_rs_1")], "without its reasoning"),
    "reasoning of another provider": ([thought(encrypted_content=mint("anthropic", "rs_1")), said()], "of anthropic"),
    "reasoning under another id": (
        [thought(encrypted_content=mint("openai-responses", "rs_2")), said()],
        "another content",
    ),
    "a picture twice": (
        [user(type="input_image", detail="auto", image_url="https://example.com/a.png", file_id="f")],
        "exactly one of",
    ),
    "a picture of an odd type": ([user(type="input_image", detail="auto", image_url=file("image/bmp"))], "image/bmp"),
    "a picture in a bucket": ([user(type="input_image", detail="auto", image_url="gs://b/o")], "not an address"),
    "a file without a name": ([user(type="input_file", file_data=file())], "without filename"),
    "a file by address with a name": (
        [user(type="input_file", file_url="https://x.org/a", filename="a")],
        "filename with",
    ),
    "a file by id with a name": ([user(type="input_file", file_id="file-1", filename="a")], "filename with"),
    "a file by a local address": ([user(type="input_file", file_url="file:///a")], "not an address"),
    "a file without a source": ([user(type="input_file", filename="a")], "exactly one source"),
    "an archive": ([user(type="input_file", filename="a", file_data=file("application/zip"))], "application/zip"),
    "a bad picture in an output": (
        [call(), output(content=[{"type": "input_image", "detail": "auto", "image_url": "a.png"}])],
        "not an address",
    ),
}


@pytest.mark.parametrize("items", GOOD.values(), ids=GOOD)
def test_a_good_request_passes(items: list[Item]) -> None:
    assert problems({"instructions": "s", "input": items}) == []


@pytest.mark.parametrize(("items", "expected"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(items: list[Item], expected: str) -> None:
    assert expected in "\n".join(problems({"input": items}))
