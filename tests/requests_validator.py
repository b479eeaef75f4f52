"""What providers accept, from their documentation, their SDKs' request types and their error messages.

It imports nothing from the dialects. ``faults`` returns one sentence for each rule that a request breaks.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typing_extensions
from anthropic.types import MessageParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import ValidationError

with warnings.catch_warnings():
    # The SDK has an escape sequence in a docstring that newer Pythons warn about.
    warnings.simplefilter("ignore")
    from google.genai.types import Content

Wire = dict[str, Any]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_GEMINI_IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
_THOUGHTS = ("thinking", "redacted_thinking")
_COMPATIBLE = {"reasoning_content", "reasoning_details"}
"""Fields of servers that speak the language of Chat; they are sent only where they came from."""


def faults(dialect: str, body: Wire) -> list[str]:
    """Return what is wrong with a request; empty if its provider accepts it."""
    check = {
        "openai-chat": _chat,
        "openai-responses": _responses,
        "anthropic": _anthropic,
        "gemini": _gemini,
    }[dialect]
    try:
        json.dumps(body, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        return [f"not JSON: {error}"]
    return [*check(body), *_notes(body)]


def _notes(value: Any) -> Iterator[str]:
    """A note about media is short, and no note holds data."""
    match value:
        case dict():
            for inner in value.values():
                yield from _notes(inner)
        case list():
            for inner in value:
                yield from _notes(inner)
        case str() if value.startswith(("[image", "[file")) and (len(value) > 900 or "base64," in value):
            yield "a note with data in it"


def _is_base64(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text))


# --- Chat -------------------------------------------------------------------------------------------------------------


def _chat(body: Wire) -> Iterator[str]:
    messages = body["messages"]
    if not messages:
        yield "no messages"
    for message in messages:
        yield from _typed({key: message[key] for key in message if key not in _COMPATIBLE}, ChatCompletionMessageParam)
        yield from _chat_message(message)
    yield from _chat_pairs(messages)


def _chat_message(message: Wire) -> Iterator[str]:
    role = message["role"]
    if "name" in message and role != "tool" and not _NAME.fullmatch(message["name"]):
        yield f"name {message['name']!r}"
    content = message.get("content")
    if role in ("user", "system", "developer") and not content:
        yield f"an empty {role} message"
    if role == "assistant":
        spoken = content or message.get("tool_calls") or message.get("refusal") or message.get("audio")
        if not spoken and not message.get("function_call"):
            yield "an empty answer"
        if "tool_calls" in message and not message["tool_calls"]:
            yield "tool_calls is empty"
        for call in message.get("tool_calls") or ():
            yield from _chat_call(call)
    for block in content if isinstance(content, list) else ():
        if role != "user" and block["type"] not in ("text", "refusal"):
            yield f"{block['type']} in a message of {role}"
        if block["type"] == "image_url":
            yield from _openai_image(block["image_url"]["url"])
        if block["type"] == "file":
            yield from _openai_file(block["file"])


def _chat_call(call: Wire) -> Iterator[str]:
    if not (_NAME.fullmatch(call["id"]) and len(call["id"]) <= 40):
        yield f"call id {call['id']!r}"
    if call["type"] == "function":
        if not _NAME.fullmatch(call["function"]["name"]):
            yield f"function name {call['function']['name']!r}"
        if not _is_object(call["function"]["arguments"]):
            yield f"arguments {call['function']['arguments'][:40]!r}"


def _chat_pairs(messages: list[Wire]) -> Iterator[str]:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                yield "a result without its call"
            continue
        if waiting:
            yield "calls without results"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) != len(waiting):
            yield "a call id twice in one message"
    if waiting:
        yield "calls without results"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _openai_image(url: str) -> Iterator[str]:
    is_data = any(url.startswith(f"data:{mime};base64,") for mime in _IMAGES)
    if is_data and not _is_base64(url.partition(",")[2]):
        yield "data that is not base64"
    if not is_data and not url.startswith(("http://", "https://")):
        yield f"image {url[:40]!r}"


def _openai_file(file: Wire) -> Iterator[str]:
    if file.get("file_url") and file.get("filename"):
        yield "file_url with a filename"
    if file.get("file_url") and not file["file_url"].startswith(("http://", "https://")):
        yield "a file that is not on the web"
    if file.get("file_data") and not file.get("filename"):
        yield "file_data without a filename"
    if file.get("file_data") and not re.match(r"data:[^;,]+/[^;,]+;base64,", file["file_data"]):
        yield "file_data without a type"
    if not _is_base64(file.get("file_data", "").partition(",")[2]):
        yield "data that is not base64"
    if not (file.get("file_data") or file.get("file_url") or file.get("file_id")):
        yield "a file without data"


# --- Responses --------------------------------------------------------------------------------------------------------


def _responses(body: Wire) -> Iterator[str]:
    items = body["input"]
    if not items:
        yield "no input"
    for item in items:
        yield from _typed(item, ResponseInputItemParam)
        yield from _response_item(item)
    yield from _response_pairs(items)
    for item, follower in zip(items, [*items[1:], None], strict=True):
        if item.get("type") == "reasoning" and not (follower and _is_output(follower)):
            yield "reasoning without the item that it led to"


def _response_item(item: Wire) -> Iterator[str]:
    kind = item.get("type", "message")
    if kind in ("function_call", "custom_tool_call"):
        if not _NAME.fullmatch(item["name"]):
            yield f"function name {item['name']!r}"
        if not _NAME.fullmatch(item["call_id"]):
            yield f"call id {item['call_id']!r}"
    content = item.get("output") if kind.endswith("_output") else item.get("content")
    if kind == "message" and not content:
        yield "an empty message"
    if item.get("role") != "assistant" and isinstance(content, list):
        for block in content:
            if block.get("type") == "input_image" and "file_id" not in block:
                yield from _openai_image(block["image_url"])
            if block.get("type") == "input_file":
                yield from _openai_file(block)


def _response_pairs(items: list[Wire]) -> Iterator[str]:
    kinds = {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
    open_calls: set[tuple[str, str]] = set()
    seen: set[str] = set()
    for item in items:
        kind = item.get("type", "message")
        if kind in kinds:
            if item["call_id"] in seen:
                yield "a call id twice"
            seen.add(item["call_id"])
            open_calls.add((kind, item["call_id"]))
        elif kind.removesuffix("_output") in kinds:
            call = (kind.removesuffix("_output"), item["call_id"])
            if call not in open_calls:
                yield "an output without its call"
            open_calls.discard(call)
        elif kind == "message" and item["role"] != "assistant" and open_calls:
            yield "calls without outputs"
    if open_calls:
        yield "calls without outputs"


def _is_output(item: Wire) -> bool:
    kind = item.get("type", "message")
    return item.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")


# --- Anthropic --------------------------------------------------------------------------------------------------------


def _anthropic(body: Wire) -> Iterator[str]:
    messages = body["messages"]
    for message in messages:
        yield from _typed(message, MessageParam)
    if "system" in body and not body["system"]:
        yield "an empty system prompt"
    roles = [message["role"] for message in messages]
    if not roles or roles[0] != "user":
        yield "the first message is not the user's"
    if any(first == second for first, second in itertools.pairwise(roles)):
        yield "roles do not alternate"
    blocks = [_blocks(message) for message in messages]
    if roles and roles[-1] == "assistant" and not _waits_for_server(blocks[-1]):
        yield "the last message is the assistant's"
    yield from _anthropic_pairs(messages, blocks)
    yield from _server_pairs(blocks)
    for message, content in zip(messages, blocks, strict=True):
        yield from _anthropic_message(message["role"], content)
    marks = json.dumps(body).count('"cache_control": {')
    if marks > 4:
        yield f"{marks} cache marks"


def _blocks(message: Wire) -> list[Wire]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _anthropic_message(role: str, content: list[Wire]) -> Iterator[str]:
    if not content:
        yield "an empty message"
        return
    if role == "assistant" and content[-1]["type"] in _THOUGHTS:
        yield "an answer that ends with thinking"
    is_answer_block = {"tool_use", "server_tool_use", *_THOUGHTS}
    for block in content:
        if role == "user" and block["type"] in is_answer_block:
            yield f"{block['type']} in a user message"
        if role == "assistant" and block["type"] in ("image", "document", "tool_result"):
            yield f"{block['type']} in an answer"
        yield from _anthropic_block(block)


def _anthropic_block(block: Wire) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"].strip():
            yield "a blank text"
        case "thinking" if not block["signature"]:
            yield "thinking without a signature"
        case "redacted_thinking" if not block["data"]:
            yield "redacted thinking without data"
        case "tool_use":
            if not _NAME.fullmatch(block["name"]):
                yield f"tool name {block['name']!r}"
            if not re.fullmatch(r"[a-zA-Z0-9_-]+", block["id"]):
                yield f"tool id {block['id']!r}"
        case "image" if block["source"]["type"] == "base64" and block["source"]["media_type"] not in _IMAGES:
            yield f"image of type {block['source']['media_type']}"
        case "image" | "document" if not _is_base64(block["source"].get("data", "")):
            yield "data that is not base64"
        case "image" | "document" if block["source"]["type"] == "url":
            if not block["source"]["url"].startswith(("http://", "https://")):
                yield "a source that is not on the web"
        case "document" if block["source"]["type"] == "base64" and block["source"]["media_type"] != "application/pdf":
            yield f"document of type {block['source']['media_type']}"
        case "tool_result":
            yield from _tool_result(block)


def _tool_result(block: Wire) -> Iterator[str]:
    content = block.get("content", "")
    inner = content if isinstance(content, list) else []
    if block.get("is_error"):
        if not content:
            yield "an error result without a text"
        if any(item["type"] != "text" for item in inner):
            yield "an error result with more than text"
    for item in inner:
        yield from _anthropic_block(item)


def _anthropic_pairs(messages: list[Wire], blocks: list[list[Wire]]) -> Iterator[str]:
    waiting: set[str] = set()
    seen: set[str] = set()
    for message, content in zip(messages, blocks, strict=True):
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if set(results) != waiting or len(results) != len(waiting):
            yield "the results are not those of the calls before"
        if any(block["type"] != "tool_result" for block in content[: len(results)]):
            yield "results are not first"
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        if seen & set(calls) or len(set(calls)) != len(calls):
            yield "a tool id twice"
        seen.update(calls)
        waiting = set(calls) if message["role"] == "assistant" else set()
    if waiting:
        yield "calls without results"


def _server_pairs(blocks: list[list[Wire]]) -> Iterator[str]:
    answered = {block.get("tool_use_id") for content in blocks for block in content}
    for content in blocks[:-1]:
        for block in content:
            if block["type"] == "server_tool_use" and block["id"] not in answered:
                yield "a server tool without its result"


def _waits_for_server(content: list[Wire]) -> bool:
    answered = {block.get("tool_use_id") for block in content}
    return any(block["type"] == "server_tool_use" and block["id"] not in answered for block in content)


# --- Gemini -----------------------------------------------------------------------------------------------------------


def _gemini(body: Wire) -> Iterator[str]:
    contents = body["contents"]
    for content in contents:
        try:
            Content.model_validate(content)
        except ValidationError as error:
            yield f"not a content: {error.errors()[0]['msg']}"
    roles = [content["role"] for content in contents]
    if not roles or roles[0] != "user":
        yield "the first content is not the user's"
    if roles and roles[-1] != "user":
        yield "the last content is not the user's"
    if any(first == second == "model" for first, second in itertools.pairwise(roles)):
        yield "two answers in a row"
    for content in contents:
        if not content["parts"]:
            yield "an empty content"
        for part in content["parts"]:
            yield from _gemini_part(part)
    yield from _gemini_pairs(contents)
    yield from _signatures(contents)


def _either(part: Wire, camel: str, snake: str) -> Any:
    return part.get(camel) or part.get(snake)


def _gemini_part(part: Wire) -> Iterator[str]:
    if "text" in part and not part["text"].strip() and not _either(part, "thoughtSignature", "thought_signature"):
        yield "an empty text"
    if any(value is None for value in part.values()):
        yield "a null"
    for name in ("functionCall", "functionResponse"):
        if name in part and not _GEMINI_NAME.fullmatch(part[name]["name"]):
            yield f"function name {part[name]['name']!r}"
    media = part.get("inlineData")
    if media and media["mimeType"].startswith("image/") and media["mimeType"] not in _GEMINI_IMAGES:
        yield f"image of type {media['mimeType']}"


def _gemini_pairs(contents: list[Wire]) -> Iterator[str]:
    asked: list[tuple[Any, str]] = []
    for content in contents:
        answers = [_either(part, "functionResponse", "function_response") for part in content["parts"]]
        answered = [(answer.get("id"), answer["name"]) for answer in answers if answer]
        if answered != asked:
            yield "the responses are not those of the calls before"
        calls = [_either(part, "functionCall", "function_call") for part in content["parts"]]
        asked = [(call.get("id"), call["name"]) for call in calls if call]
        if asked and content["role"] != "model":
            yield "a call of the user"
    if asked:
        yield "calls without responses"


def _signatures(contents: list[Wire]) -> Iterator[str]:
    """Gemini 3: in the current turn, the first call of each step has a signature."""
    starts = [index for index, content in enumerate(contents) if content["role"] == "user" and not _has_result(content)]
    for content in contents[starts[-1] if starts else 0 :]:
        calls = [part for part in content["parts"] if _either(part, "functionCall", "function_call")]
        if calls and not _either(calls[0], "thoughtSignature", "thought_signature"):
            yield "a call of the current turn without a signature"


def _has_result(content: Wire) -> bool:
    return any(_either(part, "functionResponse", "function_response") for part in content["parts"])


# --- SDK types --------------------------------------------------------------------------------------------------------


def _typed(value: Any, hint: Any, path: str = "") -> list[str]:
    """Return where a value is not what a request type says; an unknown field is a fault."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Annotated, typing_extensions.Required, typing_extensions.NotRequired):
        return _typed(value, args[0], path)
    if origin is Union or origin is types.UnionType:
        return _typed_union(value, args, path)
    if typing_extensions.is_typeddict(hint):
        return _typed_dict(value, hint, path)
    if origin is Literal:
        return [] if value in args else [f"{path} is {value!r}"]
    if isinstance(origin, type) and issubclass(origin, Iterable) and not issubclass(origin, dict):
        if not isinstance(value, list):
            return [f"{path} is no list"]
        return [fault for item in value for fault in _typed(item, args[0], f"{path}[]")]
    if hint in (None, type(None)):
        return [] if value is None else [f"{path} is not null"]
    return [] if _is_a(value, origin or hint) else [f"{path} is {value!r:.60}"]


def _is_a(value: Any, kind: Any) -> bool:
    if kind in (object, Any):
        return True
    if kind is float:
        return isinstance(value, int | float)
    return isinstance(value, kind if isinstance(kind, type) else object)


def _typed_union(value: Any, kinds: tuple[Any, ...], path: str) -> list[str]:
    found = [_typed(value, kind, path) for kind in kinds]
    return min(found, key=len) if all(found) else []


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], frozenset[str]]:
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    required = frozenset(name for name, hint in hints.items() if get_origin(hint) is typing_extensions.Required)
    return hints, required


def _typed_dict(value: Any, kind: Any, path: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{path} is no object"]
    hints, required = _fields(kind)
    wrong = [f"{path}.{name} is unknown" for name in value if name not in hints]
    wrong += [f"{path}.{name} is missing" for name in required if name not in value]
    return wrong + [
        fault for name in value if name in hints for fault in _typed(value[name], hints[name], f"{path}.{name}")
    ]
