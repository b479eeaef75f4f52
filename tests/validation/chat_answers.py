"""Random answers of Chat Completions, and of the many servers that speak its protocol."""

from __future__ import annotations

from typing import Any

from openai._models import construct_type_unchecked
from openai.types.chat import ChatCompletion, ParsedChatCompletion

from validation.material import PAYLOAD, Draw

__all__ = ["chat_answer"]


def chat_answer(draw: Draw) -> ChatCompletion:
    """Return an answer: text, calls, both, a refusal, or one that was cut, filtered or left empty."""
    message = {"role": "assistant", "content": None, "refusal": None, **_content(draw), **_extras(draw)}
    reason = "tool_calls" if message.get("tool_calls") else draw.pick(("stop", "length", "content_filter"))
    choice = {"index": 0, "finish_reason": reason, "logprobs": None, "message": message}
    body: dict[str, Any] = {
        "id": f"chatcmpl-{draw.serial()}",
        "object": "chat.completion",
        "created": 1,
        "model": draw.pick(("gpt-5", "deepseek-r1", "qwen3")),
        "choices": [] if draw.chance(0.03) else [choice],
        "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
    }
    if draw.chance(0.2):
        return construct_type_unchecked(value=_with_parsed(body), type_=ParsedChatCompletion[Any])
    return construct_type_unchecked(value=body, type_=ChatCompletion)


def _content(draw: Draw) -> dict[str, Any]:
    match draw.random.randrange(10):
        case 0:
            return {"content": None}
        case 1:
            return {"content": draw.any_text(), "tool_calls": draw.pick((None, []))}
        case 2:
            return {"content": None, "refusal": "I cannot help with that."}
        case 3 | 4 | 5:
            return {"content": draw.any_text()}
        case 6:
            return {"content": draw.text(), "tool_calls": [_call(draw) for _ in draw.many(1, 3)]}
        case _:
            return {"content": draw.pick((None, "")), "tool_calls": [_call(draw) for _ in draw.many(1, 3)]}


def _call(draw: Draw) -> dict[str, Any]:
    if draw.chance(0.1):
        return {"id": draw.call_id(), "type": "custom", "custom": {"name": draw.any_tool(), "input": draw.text()}}
    function = {"name": draw.any_tool(), "arguments": draw.arguments()}
    return {"id": draw.call_id(), "type": "function", "function": function}


def _extras(draw: Draw) -> dict[str, Any]:
    """Return what the request type does not have, or has in another form."""
    extras: dict[str, Any] = {}
    if draw.chance(0.2):
        citation = {"start_index": 0, "end_index": 2, "title": "t", "url": "https://example.com"}
        extras["annotations"] = draw.pick(([], None, [{"type": "url_citation", "url_citation": citation}]))
    if draw.chance(0.15):
        extras["reasoning_content"] = draw.any_text()
    if draw.chance(0.1):
        extras["reasoning"] = draw.text()
        extras["reasoning_details"] = [{"type": "reasoning.text", "text": "hm", "signature": None, "index": 0}]
    if draw.chance(0.05):
        extras["audio"] = {"id": "audio_1", "data": PAYLOAD, "expires_at": 9, "transcript": "spoken"}
    if draw.chance(0.05):
        extras["function_call"] = None
    return extras


def _with_parsed(body: dict[str, Any]) -> dict[str, Any]:
    for choice in body["choices"]:
        choice["message"]["parsed"] = {"answer": 42}
        for call in choice["message"].get("tool_calls") or ():
            if call["type"] == "function":
                call["function"]["parsed_arguments"] = {"path": "a.txt"}
    return body
