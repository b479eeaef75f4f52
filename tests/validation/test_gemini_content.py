"""Each rule of the generateContent validator: red on a bad request, green on a good one."""

from __future__ import annotations

from typing import Any

import pytest

from validation.gemini_content import problems
from validation.material import PAYLOAD
from validation.minted import mint

Content = dict[str, Any]
Part = dict[str, Any]

TEXT: Part = {"text": "hello"}
SIGNED = {"thoughtSignature": mint("gemini", "read")}
STAND_IN = {"thoughtSignature": "skip_thought_signature_validator"}


def user(*parts: Part) -> Content:
    return {"role": "user", "parts": list(parts or (TEXT,))}


def model(*parts: Part) -> Content:
    return {"role": "model", "parts": list(parts or (TEXT,))}


def call(name: str = "read", **fields: Any) -> Part:
    return {"functionCall": {"name": name, "args": {}, **fields}}


def result(name: str = "read", **fields: Any) -> Part:
    return {"functionResponse": {"name": name, "response": {"output": "out"}, **fields}}


def inline(mime: str, data: str = PAYLOAD) -> Part:
    return {"inlineData": {"mimeType": mime, "data": data}}


GOOD: dict[str, list[Content]] = {
    "a question": [user()],
    "an answer": [user(), model(), user()],
    "two turns of the user": [user(), user()],
    "a signed call": [user(), model(call() | SIGNED), user(result())],
    "a stand-in for a signature": [user(), model(call() | STAND_IN), user(result())],
    "parallel calls, the first signed": [
        user(),
        model(call(id="a") | SIGNED, call(id="b")),
        user(result(id="b"), result(id="a")),
    ],
    "an unsigned call of an earlier turn": [user(), model(call()), user(result()), user()],
    "an empty text with a signature": [user(), model({"text": "", "thoughtSignature": mint("gemini", "")}), user()],
    "media": [user(inline("image/png"), inline("application/pdf"), inline("text/csv"), inline("audio/mp3"))],
    "a file": [user({"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a.pdf"}})],
    "an uploaded file": [user({"fileData": {"fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a"}})],
    "code": [
        user(),
        model(
            {"executableCode": {"language": "PYTHON", "code": "1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        ),
        user(),
    ],
    "a picture in a result": [
        user(),
        model(call() | SIGNED),
        user(result(parts=[{"inlineData": {"mimeType": "image/png", "data": PAYLOAD}}])),
    ],
}
BAD: dict[str, tuple[list[Content], str]] = {
    "no content": ([], "empty"),
    "an unknown field": ([user({**TEXT, "cache": 1})], "Extra inputs"),
    "a number as text": ([user({"text": 1})], "valid string"),
    "a role that is unknown": ([{"role": "tool", "parts": [TEXT]}], ".role: 'tool'"),
    "no parts": ([{"role": "user", "parts": []}], "no parts"),
    "a part without data": ([user({"thought": True})], "no data"),
    "two kinds of data": ([user(TEXT | inline("image/png"))], "has ['inlineData', 'text']"),
    "an empty text": ([user({"text": ""})], "an empty text"),
    "the model last": ([user(), model()], "the last turn is the model's"),
    "a call first": ([model(call() | SIGNED), user(result())], "without a user turn before it"),
    "a call after the model": ([user(), model(), model(call() | SIGNED), user(result())], "without a user turn"),
    "a call of the user": ([user(call())], "functionCall of user"),
    "a result of the model": ([user(), model(result()), user()], "functionResponse of model"),
    "a call without a result": ([user(), model(call() | SIGNED), user()], "1 calls, 0 responses"),
    "a result too few": ([user(), model(call() | SIGNED, call()), user(result())], "2 calls, 1 responses"),
    "a result without a call": ([user(), model(), user(result())], "responses without calls"),
    "a result of another tool": ([user(), model(call() | SIGNED), user(result("other"))], "responses [('other'"),
    "a result without the id": ([user(), model(call(id="a") | SIGNED), user(result())], "responses [('read', '')]"),
    "a name with a digit first": ([user(), model(call("7zip") | STAND_IN), user(result("7zip"))], "name '7zip'"),
    "a name that is too long": ([user(), model(call("a" * 129) | STAND_IN), user(result("a" * 129))], "name 'aaa"),
    "arguments that are no object": ([user(), model(call(args=[]) | SIGNED), user(result())], "args"),
    "a result without a response": ([user(), model(call() | SIGNED), user(result(response=None))], "without response"),
    "a call of the current turn without a signature": ([user(), model(call()), user(result())], "no thoughtSignature"),
    "a second step without a signature": (
        [user(), model(call() | SIGNED), user(result()), model(call()), user(result())],
        "contents[3]: the first call",
    ),
    "a signature of another provider": (
        [user(), model({"thoughtSignature": mint("anthropic", "read")} | call()), user(result())],
        "signature of anthropic",
    ),
    "a signature of another call": (
        [user(), model({"thoughtSignature": mint("gemini", "other")} | call()), user(result())],
        "the signature of another call",
    ),
    "a picture of an odd type": ([user(inline("image/svg+xml"))], "image/svg+xml"),
    "a picture as image/jpg": ([user(inline("image/jpg"))], "image/jpg"),
    "a file of an odd type": ([user(inline("application/json"))], "application/json"),
    "media without content": ([user(inline("image/png", ""))], "empty base64"),
    "a file over http": ([user({"fileData": {"mimeType": "a/b", "fileUri": "http://x.org/a"}})], "not an address"),
    "a file without a type": ([user({"fileData": {"fileUri": "gs://b/o"}})], "without mimeType"),
    "a sound in a result": (
        [
            user(),
            model(call() | SIGNED),
            user(result(parts=[{"inlineData": {"mimeType": "audio/mp3", "data": PAYLOAD}}])),
        ],
        "audio/mp3",
    ),
}


@pytest.mark.parametrize("contents", GOOD.values(), ids=GOOD)
def test_a_good_request_passes(contents: list[Content]) -> None:
    assert problems({"system_instruction": {"parts": [TEXT]}, "contents": contents}) == []


@pytest.mark.parametrize(("contents", "expected"), BAD.values(), ids=BAD)
def test_a_bad_request_is_refused(contents: list[Content], expected: str) -> None:
    assert expected in "\n".join(problems({"contents": contents}))


@pytest.mark.parametrize("parts", [[], [{"text": ""}]])
def test_an_empty_system_instruction_is_refused(parts: list[Part]) -> None:
    assert problems({"system_instruction": {"parts": parts}, "contents": [user()]})


def test_an_unknown_field_of_the_request_is_refused() -> None:
    assert problems({"contents": [user()], "system": "x"}) == ["system: unknown"]
