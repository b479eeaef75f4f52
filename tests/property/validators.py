"""What providers demand of a request: the rules of order that their SDK types cannot say, and the types themselves."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputParam
from pydantic import TypeAdapter

with warnings.catch_warnings():
    # The SDK has an escape sequence in a docstring that newer Pythons warn about.
    warnings.simplefilter("ignore")
    from google.genai.types import Content

Wire = dict[str, Any]

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_CHAT = TypeAdapter(list[ChatCompletionMessageParam])
_RESPONSES = TypeAdapter(ResponseInputParam)
_ANTHROPIC = TypeAdapter(list[MessageParam])


def check(dialect: str, body: Wire) -> None:
    json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    {
        "openai-chat": check_chat,
        "openai-responses": check_responses,
        "anthropic": check_anthropic,
        "gemini": check_gemini,
    }[dialect](body)


def check_chat(body: Wire) -> None:
    messages = body["messages"]
    _CHAT.dump_json(_CHAT.validate_python(messages), warnings="none")
    assert any(message["role"] != "system" for message in messages)
    open_ids: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == open_ids.pop(0), "a result stands directly behind its batch"
            continue
        assert not open_ids, "unanswered calls"
        calls = message.get("tool_calls", [])
        open_ids = [call["id"] for call in calls]
        assert len(set(open_ids)) == len(open_ids)
        assert all(_ID.fullmatch(call_id) and len(call_id) <= 40 for call_id in open_ids)
        assert all(is_name(call["function"]["name"]) for call in calls)
        assert calls or not is_empty(message["content"]), "an empty message"
    assert not open_ids, "unanswered calls"


def check_responses(body: Wire) -> None:
    items = body["input"]
    _RESPONSES.dump_json(_RESPONSES.validate_python(items), warnings="none")
    assert items
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call_output":
            assert item["call_id"] == open_ids.pop(0), "an output stands directly behind its batch"
        elif kind == "function_call":
            assert item["call_id"] not in seen
            assert _ID.fullmatch(item["call_id"])
            assert len(item["call_id"]) <= 64
            assert is_name(item["name"])
            seen.add(item["call_id"])
            open_ids.append(item["call_id"])
        elif kind == "reasoning":
            follower = items[index + 1]
            assert follower.get("role") != "user"
            assert follower.get("type") != "function_call_output"
        elif kind == "message":
            assert not is_empty(item["content"])
            assert item["role"] == "assistant" or not open_ids, "unanswered calls"
    assert not open_ids, "unanswered calls"


def check_anthropic(body: Wire) -> None:
    messages = body["messages"]
    _ANTHROPIC.dump_json(_ANTHROPIC.validate_python(messages), warnings="none")
    assert "system" not in body or body["system"].strip()
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2) + ["user"]
    open_ids: list[str] = []
    seen: set[str] = set()
    for message in messages:
        blocks = blocks_of(message["content"])
        assert blocks
        assert not any(block["type"] == "text" and not block["text"].strip() for block in blocks)
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert results == open_ids, "the next message answers every call and nothing else"
        assert all(block["type"] == "tool_result" for block in blocks[: len(results)]), "results come first"
        assert not any(block.get("is_error") and is_empty(block.get("content", "")) for block in blocks)
        calls = [block for block in blocks if block["type"] == "tool_use"]
        assert not calls or message["role"] == "assistant"
        assert blocks[-1]["type"] not in ("thinking", "redacted_thinking")
        open_ids = [call["id"] for call in calls]
        assert all(isinstance(call["input"], dict) and is_name(call["name"]) for call in calls)
        assert all(_ID.fullmatch(call_id) for call_id in open_ids)
        assert len(seen | set(open_ids)) == len(seen) + len(open_ids), "ids are used once"
        seen.update(open_ids)
    assert not open_ids


def check_gemini(body: Wire) -> None:
    contents = body["contents"]
    for content in contents:
        Content.model_validate(content)
    assert contents[0]["role"] == "user"
    assert contents[-1]["role"] == "user"
    asked: list[str] = []
    for before, content in zip([None, *contents], contents, strict=False):
        assert content["parts"]
        assert not (before and before["role"] == content["role"] == "model")
        assert not any("text" in part and not part["text"].strip() and len(part) == 1 for part in content["parts"])
        answers = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        assert answers == asked, "the next content answers every call and nothing else"
        asked = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        assert all(asked)
        assert not asked or content["role"] == "model"
    assert not asked


def blocks_of(content: Any) -> list[Wire]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def is_empty(content: Any) -> bool:
    return not content.strip() if isinstance(content, str) else not content


def is_name(name: str) -> bool:
    return bool(_ID.fullmatch(name)) and len(name) <= 64
