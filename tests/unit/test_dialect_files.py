"""Files, blocks and answers that a provider refuses in some form: each is written in a form that it takes."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

import sessiontree as st
from sessiontree.context.dialects import openai_chat
from sessiontree.model import FilePart, ImagePart, Message, OpaquePart, ReasoningPart, ToolResultPart
from sessiontree.model.builders import assistant, call, user

Wire = dict[str, Any]
DATA = base64.b64encode(b"name,age\nann,7\n").decode()
JUNK = base64.b64encode(bytes(range(256))).decode()


def request(name: str, *messages: Message) -> Wire:
    return st.DIALECTS[name].to_request(st.Context(messages=messages))


def content(name: str, part: Any) -> Any:
    """Return what a request holds of a part that the user sent."""
    body = request(name, user([part]).message)
    (sent,) = (body[name] for name in ("messages", "input", "contents") if body.get(name))
    return sent[0].get("content") or sent[0].get("parts")


@pytest.mark.parametrize("mime", ["text/csv", "application/json", "application/xml", "image/svg+xml"])
def test_a_file_that_chat_does_not_take_is_its_text_if_it_is_one(mime: str) -> None:
    shown = content("openai-chat", FilePart(data=DATA, mime=mime, name="a"))
    assert shown.startswith(f"[file a {mime}]")
    assert ("ann,7" in shown) == (not mime.startswith("image/"))


@pytest.mark.parametrize(
    ("name", "mimes"),
    [
        ("openai-chat", ["application/zip", "audio/wav", "text/plain", ""]),
        ("openai-responses", ["application/zip", "application/octet-stream", "audio/mpeg", "video/mp4", ""]),
        ("anthropic", ["application/zip", "text/plain", ""]),
        (
            "gemini",
            ["application/zip", "application/octet-stream", "application/json", "image/svg+xml", ""],
        ),
    ],
)
def test_a_file_of_a_type_that_the_provider_refuses_is_a_short_note(name: str, mimes: list[str]) -> None:
    for mime in mimes:
        shown = json.dumps(content(name, FilePart(data=JUNK, mime=mime, name="a")))
        assert "[file a" in shown
        assert JUNK[:20] not in shown


@pytest.mark.parametrize("broken", ["iVBORw0KGgo", "iVBOR", "iVBO====", "iV==BORw", "=", "not base64!"])
@pytest.mark.parametrize("name", st.DIALECTS)
def test_data_that_is_not_base64_is_a_short_note_and_a_loss(name: str, broken: str) -> None:
    for part in (
        ImagePart(data=broken, mime="image/png"),
        ImagePart(url=f"data:image/png;base64,{broken}"),
        FilePart(data=broken, mime="application/pdf", name="a"),
        FilePart(url=f"data:application/pdf;base64,{broken}"),
    ):
        shown = json.dumps(content(name, part))
        assert re.search(r'"(\[image image/png\]|\[file (a )?application/pdf\])"', shown)
        assert "base64" not in shown
        losses = st.Context(messages=(user([part]).message,)).losses(name)
        assert [loss.what for loss in losses] in (["image, a note in its place"], ["file, a note in its place"])


@pytest.mark.parametrize("field", ["thoughtSignature", "thought_signature"])
@pytest.mark.parametrize(("signature", "is_sent"), [("sig", False), ("a b=", False), ("c2ln", True), ("_-8=", True)])
def test_gemini_gets_no_signature_that_is_not_base64(field: str, signature: str, is_sent: bool) -> None:
    parts = [
        {"text": "hm", "thought": True, field: signature},
        {"text": "so", field: signature},
        {"executableCode": {"code": "1", "language": "PYTHON"}, field: signature},
        {"functionCall": {"name": "read", "args": {}}},
        {"functionCall": {"name": "read", "args": {}}, field: signature},
    ]
    answer = st.DIALECTS["gemini"].from_response({"candidates": [{"content": {"role": "model", "parts": parts}}]})
    sent = request("gemini", user("q").message, answer.message)["contents"][1]["parts"]
    assert [signature in part.values() for part in sent] == [is_sent, is_sent, is_sent, False, is_sent]


@pytest.mark.parametrize("url", ["https://", "https://a.b/c d.png", "https://a.b/c.png\n"])
@pytest.mark.parametrize("name", st.DIALECTS)
def test_an_address_that_is_none_is_a_note(name: str, url: str) -> None:
    assert "[image image/png" in json.dumps(content(name, ImagePart(url=url, mime="image/png")))


def test_a_file_that_is_an_image_is_sent_as_one() -> None:
    for part in (FilePart(data=DATA, mime="image/png"), FilePart(url=f"data:image/png;base64,{DATA}")):
        assert content("openai-chat", part)[0]["type"] == "image_url"
        assert content("openai-responses", part)[0]["type"] == "input_image"


def test_gemini_gets_files_by_https_or_from_a_bucket_and_with_their_type() -> None:
    def shown(part: FilePart | ImagePart) -> Wire:
        wire: Wire = content("gemini", part)[0]
        return wire

    typed = {"fileUri": "gs://b/report.pdf", "mimeType": "application/pdf"}
    assert shown(FilePart(url="gs://b/report.pdf")) == {"fileData": typed}
    assert shown(ImagePart(url="https://a.b/c.PNG?x=1"))["fileData"]["mimeType"] == "image/png"
    assert "text" in shown(FilePart(url="gs://b/o"))
    assert "text" in shown(FilePart(url="http://a.b/c.pdf", mime="application/pdf"))


@pytest.mark.parametrize("arguments", ['{"a": ', "null", "[]", "12", '"text"', "", '{"n": 1e400}', '{"a": "\\ud800"}'])
@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_arguments_are_always_the_text_of_an_object(name: str, arguments: str) -> None:
    body = json.dumps(request(name, user("q").message, assistant(calls=[call("c", "read", arguments)]).message))
    sent = json.loads(body)
    asked = sent["messages"][1]["tool_calls"][0]["function"] if "messages" in sent else sent["input"][1]
    assert isinstance(json.loads(asked["arguments"]), dict)


def test_reasoning_of_a_chat_server_is_sent_only_if_asked_for() -> None:
    told = {"role": "assistant", "content": "x", "reasoning_content": "hm", "reasoning_details": [{"data": "AA"}]}
    answer = st.DIALECTS["openai-chat"].from_response({"choices": [{"message": {**told, "reasoning": "hm"}}]})
    context = st.Context(messages=(user("q").message, answer.message))
    assert request("openai-chat", *context.messages)["messages"][1] == {"role": "assistant", "content": "x"}
    assert openai_chat.to_request(context, reasoning="send")["messages"][1] == {**told, "reasoning": "hm"}
    assert "reasoning of openai-chat" in [loss.what for loss in context.losses("openai-chat")]


def test_a_refusal_without_content_is_a_block() -> None:
    refused = {"role": "assistant", "content": None, "refusal": "no"}
    answer = st.DIALECTS["openai-chat"].from_response({"choices": [{"message": refused}]})
    sent = request("openai-chat", user("q").message, answer.message)["messages"][1]
    assert sent == {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}


def test_a_refusal_beside_other_blocks_is_a_text() -> None:
    refusal = OpaquePart(provider="openai-chat", block={"type": "refusal", "refusal": "no"})
    said = Message(role="assistant", parts=(refusal, st.TextPart(text="a")))
    sent = request("openai-chat", user("q").message, said)["messages"][1]["content"]
    assert sent == [{"type": "text", "text": "no"}, {"type": "text", "text": "a"}]


def test_an_answer_that_was_stored_twice_has_its_ids_once_in_responses() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    text = {"type": "output_text", "text": "a", "annotations": []}
    told = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    answer = st.DIALECTS["openai-responses"].from_response({"output": [search, thought, told]}).message
    sent = request("openai-responses", answer, user("q").message, answer)["input"]
    assert [item.get("id") for item in sent] == ["ws_1", "rs_1", "msg_1", None, None]
    assert sent[-1]["content"] == told["content"]


def test_a_field_that_a_request_must_have_comes_back_as_null() -> None:
    place = {
        "type": "char_location",
        "cited_text": "c",
        "document_index": 0,
        "start_char_index": 0,
        "end_char_index": 1,
    }
    told = {"role": "assistant", "content": [{"type": "text", "text": "a", "citations": [place]}]}
    answer = st.DIALECTS["anthropic"].from_response(told)
    sent = request("anthropic", user("q").message, answer.message, user("r").message)["messages"][1]["content"][0]
    assert sent["citations"] == [{**place, "document_title": None}]
    item = {"type": "code_interpreter_call", "id": "ci_1", "container_id": "c", "status": "completed"}
    answer = st.DIALECTS["openai-responses"].from_response({"output": [item]})
    assert request("openai-responses", answer.message)["input"] == [{**item, "code": None, "outputs": None}]


@pytest.mark.parametrize(
    ("name", "block"),
    [
        ("openai-chat", {"type": "input_audio", "input_audio": {"data": DATA, "format": "mp3"}}),
        ("anthropic", {"type": "container_upload", "file_id": "file_1"}),
    ],
)
def test_a_block_that_a_result_cannot_have_is_a_note(name: str, block: Wire) -> None:
    result = ToolResultPart(call_id="c", parts=(OpaquePart(provider=name, block=block),))
    asked = assistant(calls=[call("c", "read")]).message
    body = json.dumps(request(name, user("q").message, asked, Message(role="tool", parts=(result,))))
    assert f"[{block['type']}]" in body
    assert DATA not in body


def test_reasoning_with_an_id_of_another_kind_is_left_out_of_responses() -> None:
    for wrong in ("not valid", "msg_1", "rs_" + "x" * 80):
        thought = ReasoningPart(provider="openai-responses", id=wrong, text="hm")
        said = Message(role="assistant", parts=(thought, st.TextPart(text="a")))
        assert [item.get("type") for item in request("openai-responses", said)["input"]] == [None]


def test_an_output_of_a_client_tool_without_its_call_is_left_out_of_responses() -> None:
    operation = {"type": "create_file", "path": "a", "diff": "+1"}
    asked = {"type": "apply_patch_call", "call_id": "v1", "status": "completed", "operation": operation}
    told = {"type": "apply_patch_call_output", "call_id": "v1", "status": "completed", "output": "ok"}
    said = {"role": "user", "content": "r"}
    _, messages = st.DIALECTS["openai-responses"].from_request({"input": [asked, told, said]})
    assert request("openai-responses", *messages)["input"] == [asked, told, said]
    assert request("openai-responses", *messages[1:])["input"] == [said]


ANSWERS: dict[str, Wire] = {
    "openai-chat": {"choices": [{"message": {"role": "assistant", "content": "hello"}}]},
    "openai-responses": {"output": [{"type": "message", "role": "assistant", "content": "hello"}]},
    "anthropic": {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}}]},
}


@pytest.mark.parametrize("name", st.DIALECTS)
def test_the_json_text_of_an_answer_is_an_answer(name: str) -> None:
    text = json.dumps(ANSWERS[name])
    read = [st.DIALECTS[name].from_response(body) for body in (text, text.encode(), ANSWERS[name])]
    assert read[0] == read[1] == read[2]


@pytest.mark.parametrize("name", st.DIALECTS)
def test_what_is_no_answer_is_refused_with_what_to_pass(name: str) -> None:
    others = [answer for other, answer in ANSWERS.items() if other != name]
    wrong: list[Any] = [None, [], "", "hello", b"\xff", 3, {}, {"text": "hello"}, *others]
    for body in wrong:
        if name == "anthropic" and isinstance(body, dict) and "content" in body:
            continue
        with pytest.raises(st.InvalidInputError, match=r"takes a whole response"):
            st.DIALECTS[name].from_response(body)
