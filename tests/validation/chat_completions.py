"""What OpenAI's Chat Completions refuses. Each rule names its source.

API reference: platform.openai.com/docs/api-reference/chat/create. Error texts are quoted from public issue threads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

from validation.media import base64_problem, data_url_mime, data_url_problem, web_url_problem
from validation.typed import json_problems, type_problems

__all__ = ["IMAGE_TYPES", "arguments_problem", "problems"]

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Images guide; the API's own error lists them: yuji-hatakeyama/opencode-gpt-imagegen#82, CosmosShadow/gptpdf#6."""

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_SPEAKER = re.compile(r"[^\s<|\\/>]{1,64}")
_MAX_CALL_ID = 64


def problems(request: Mapping[str, Any]) -> list[str]:
    """Return everything that Chat Completions would refuse in a request."""
    found = json_problems(request)
    found += type_problems({"model": "any", **request}, CompletionCreateParamsNonStreaming)
    if found:
        return found
    messages = request["messages"]
    if not messages:
        return ["messages: empty"]  # the reference: at least one message
    for index, message in enumerate(messages):
        found += [f"messages[{index}]{problem}" for problem in _message_problems(message)]
    return found + list(_pairing_problems(messages))


def arguments_problem(arguments: str) -> str:
    """Return why call arguments are no JSON object.

    The reference calls ``arguments`` JSON. OpenAI itself takes any string; strict servers of the same protocols parse it
    and answer 400, in Chat Completions and in Responses (local-inference-lab/vllm#684, vercel/ai#19274).
    """
    try:
        value = json.loads(arguments, parse_constant=_no_number)
    except ValueError:
        return f"arguments are no JSON: {arguments[:40]!r}"
    if json_problems(value):
        return f"arguments are no JSON that can be sent again: {arguments[:40]!r}"
    return "" if isinstance(value, dict) else "arguments are no JSON object"


def _no_number(name: str) -> float:
    raise ValueError(f"JSON has no {name}")


def _message_problems(message: Mapping[str, Any]) -> Iterator[str]:
    yield from _name_problems(message)
    content = message.get("content")
    if isinstance(content, Sequence) and not isinstance(content, str):
        if not content:
            yield ".content: an empty array"  # openai-python#2061 and API: "[] is too short"
        for index, part in enumerate(content):
            yield from (f".content[{index}]: {problem}" for problem in _part_problems(part))
    if message["role"] == "assistant":
        yield from _assistant_problems(message)


def _name_problems(message: Mapping[str, Any]) -> Iterator[str]:
    """A ``name`` has 1 to 64 characters without blanks and ``<|\\/>``.

    API error "Invalid 'messages[1].name': string does not match pattern": jekalmin/extended_openai_conversation#251.
    """
    if "name" in message and not _SPEAKER.fullmatch(message["name"]):
        yield f".name: {message['name'][:70]!r}"


def _assistant_problems(message: Mapping[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls")
    if calls is not None and not calls:
        yield ".tool_calls: an empty array"  # API: "[] is too short - 'messages.1.tool_calls'", openai-python#2061
    if message.get("content") is None and not calls and not message.get("function_call") and not message.get("audio"):
        # the reference of assistant messages; API: "expected a string, got null" (llama_index#17555, docker-agent#63)
        yield ".content: required without tool_calls"
    parts = message.get("content")
    if isinstance(parts, Sequence) and not isinstance(parts, str):
        refusals = [part for part in parts if part["type"] == "refusal"]
        if refusals and len(parts) > 1:
            yield ".content: a refusal stands alone"  # the reference: "or exactly one of type refusal"
    for index, call in enumerate(calls or ()):
        yield from (f".tool_calls[{index}].{problem}" for problem in _call_problems(call))


def _call_problems(call: Mapping[str, Any]) -> Iterator[str]:
    """Ids have at most 64 characters (live: jin-bo/agentao#321); names match ``^[a-zA-Z0-9_-]{1,64}$`` (mcp-use#90)."""
    if not call["id"] or len(call["id"]) > _MAX_CALL_ID:
        yield f"id: {len(call['id'])} characters"
    tool = call[call["type"]]
    if not _TOOL_NAME.fullmatch(tool["name"]):
        yield f"name: {tool['name'][:70]!r}"
    if call["type"] == "function" and (problem := arguments_problem(tool["arguments"])):
        yield problem


def _part_problems(part: Mapping[str, Any]) -> Iterator[str]:
    match part["type"]:
        case "image_url":
            yield from _image_problems(part["image_url"]["url"])
        case "file":
            yield from _file_problems(part["file"])
        case "input_audio" if problem := base64_problem(part["input_audio"]["data"]):
            yield problem
        case _:
            return


def _image_problems(url: str) -> Iterator[str]:
    """An image is an http(s) address or a data URL of a supported type (images guide; langchainjs#9887)."""
    is_data = url.startswith("data:") or data_url_mime(url) is not None
    problem = data_url_problem(url, IMAGE_TYPES) if is_data else web_url_problem(url)
    if problem:
        yield problem


def _file_problems(file: Mapping[str, Any]) -> Iterator[str]:
    """A file is an uploaded one, or a PDF as a data URL with its name; Chat has no file by address.

    File inputs guide: "Chat Completions accepts only PDF files". API errors: "Missing required parameter: '….file.file_id'" (langchainjs#9512); "Expected a base64-encoded data URL
    with an application/pdf MIME type" for every other type, in May 2026 (trpc-agent-go#1816, pydantic-ai#4445).
    """
    if ("file_id" in file) == ("file_data" in file):
        yield "a file needs exactly one of file_id and file_data"
    if "file_data" in file:
        if not file.get("filename"):
            yield "file_data without filename"  # file inputs guide; openai-agents-python#1513
        if problem := data_url_problem(file["file_data"], frozenset({"application/pdf"})):
            yield problem
    elif not file.get("file_id"):
        yield "an empty file_id"


def _pairing_problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Results stand directly behind their calls, each call has one.

    API errors: "An assistant message with 'tool_calls' must be followed by tool messages responding to each
    'tool_call_id'"; "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'".
    """
    open_ids: list[str] = []
    answered: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            call_id = message["tool_call_id"]
            if call_id in open_ids:
                open_ids.remove(call_id)
                answered.add(call_id)
            else:
                yield f"messages[{index}]: {'second result' if call_id in answered else 'result without a call'}"
            continue
        if open_ids:
            yield f"messages[{index}]: calls without a result before it: {open_ids}"
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
        answered = set()
        if len(set(open_ids)) < len(open_ids):
            yield f"messages[{index}]: call ids are used twice: {open_ids}"
    if open_ids:
        yield f"end: calls without a result: {open_ids}"
