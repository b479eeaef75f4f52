"""What OpenAI's Responses API refuses. Each rule names its source.

API reference: platform.openai.com/docs/api-reference/responses/create; error texts are quoted from issue threads.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

from validation.chat_completions import IMAGE_TYPES, arguments_problem
from validation.media import data_url_mime, data_url_problem, web_url_problem
from validation.minted import signature_problem
from validation.typed import json_problems, type_problems

__all__ = ["problems"]

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PREFIXES = {
    "message": "msg",
    "function_call": "fc",
    "reasoning": "rs",
    "custom_tool_call": "ctc",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
}
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
_CALLS = {output: call for call, output in _OUTPUTS.items()}
_FOLLOWS_REASONING = frozenset(
    {*_OUTPUTS, *_PREFIXES, "mcp_call", "mcp_list_tools", "mcp_approval_request", "tool_search_call", "program"}
)
AFTER = "_after_"
"""Random histories write an item that was generated after reasoning as ``msg_1_after_rs_0``."""


def problems(request: Mapping[str, Any]) -> list[str]:
    """Return everything that the Responses API would refuse in a request."""
    found = json_problems(request) + type_problems(
        {"model": "any", **request, "input": []}, ResponseCreateParamsNonStreaming
    )
    items = request.get("input")
    if not isinstance(items, list):
        return [*found, "input: not an array"]
    if not items:
        return [*found, "input: empty"]  # API: one of input, prompt, previous_response_id must be given
    for index, item in enumerate(items):
        found += _typed_problems(item, f"input[{index}]")
    if found:
        return found
    for index, item in enumerate(items):
        found += [f"input[{index}]: {problem}" for problem in _item_problems(item)]
    return [*found, *_pairing_problems(items), *_reasoning_problems(items), *_duplicate_problems(items)]


def _typed_problems(item: Any, path: str) -> list[str]:
    """Compare an item with the SDK's types, with one difference: model texts need no id and status.

    The SDK's type asks for both; the API takes ``output_text`` without (codex and other clients send it so), and refuses
    ``input_text`` from the assistant: "Supported values are: 'output_text' and 'refusal'" (tinyhumansai/openhuman#3624).
    """
    from openai.types.responses.response_input_item_param import ResponseInputItemParam  # noqa: PLC0415  slow to load

    if isinstance(item, Mapping) and item.get("role") == "assistant" and isinstance(item.get("content"), list):
        item = {"id": "msg_0", "status": "completed", "type": "message", **item}
        bad = [part for part in item["content"] if isinstance(part, Mapping) and "input" in str(part.get("type"))]
        if bad:
            return [f"{path}: {bad[0]['type']} of the assistant"]
    return type_problems(item, ResponseInputItemParam, path)


def _kind(item: Mapping[str, Any]) -> str:
    return str(item.get("type") or "message")


def _item_problems(item: Mapping[str, Any]) -> Iterator[str]:
    yield from _id_problems(item)
    kind = _kind(item)
    if kind in ("function_call", "custom_tool_call") and not _TOOL_NAME.fullmatch(item["name"]):
        yield f"name {item['name'][:70]!r}"  # the tools' name pattern, checked in the input too
    if kind == "function_call" and (problem := arguments_problem(item["arguments"])):
        yield problem
    # API: "The encrypted content … could not be verified": another provider's, or moved to another item
    sealed = item.get("encrypted_content") if kind == "reasoning" else None
    if sealed and (problem := signature_problem(sealed, "openai-responses", item["id"])):
        yield problem
    content = item.get("output") if kind.endswith("_output") else item.get("content")
    if isinstance(content, list):
        if not content and kind == "message" and item["role"] != "assistant":
            yield "content: an empty array"  # the reference of input messages: "a list of one or many input items"
        for index, part in enumerate(content):
            yield from (f"content[{index}]: {problem}" for problem in _part_problems(part))


def _id_problems(item: Mapping[str, Any]) -> Iterator[str]:
    """Item ids: letters, digits, ``_`` and ``-``, at most 64, with the prefix of their type; call ids at most 64.

    API errors: "Expected an ID that begins with 'msg'" (inspect_ai#1545), "… 'fc'" (nodetool#4252), "contains letters,
    numbers, underscores, or dashes" (langchainjs#11044), "string too long … maximum length 64" (pi#1022, oh-my-pi#284).
    """
    item_id = item.get("id")
    if item_id is not None:
        if not _ID.fullmatch(item_id):
            yield f"id {item_id[:70]!r}"
        elif not item_id.startswith(_PREFIXES.get(_kind(item), "")):
            yield f"id {item_id!r} does not begin with {_PREFIXES[_kind(item)]!r}"
    call_id = item.get("call_id")
    if call_id is not None and not 1 <= len(call_id) <= 64:
        yield f"call_id of {len(call_id)} characters"


def _part_problems(part: Mapping[str, Any]) -> Iterator[str]:
    match part.get("type"):
        case "input_image":
            yield from _image_problems(part)
        case "input_file":
            yield from _file_problems(part)
        case _:
            return


def _image_problems(part: Mapping[str, Any]) -> Iterator[str]:
    """An image is one of a file id, an http(s) address and a data URL of a supported type (images guide)."""
    sources = [key for key in ("image_url", "file_id") if part.get(key)]
    if len(sources) != 1:
        yield f"an image needs exactly one of image_url and file_id, has {sources}"
    elif sources == ["image_url"]:
        url = part["image_url"]
        problem = data_url_problem(url, IMAGE_TYPES) if url.startswith("data:") else web_url_problem(url)
        if problem:
            yield problem


def _file_problems(part: Mapping[str, Any]) -> Iterator[str]:
    """A file is one of an id, an address and a data URL; the name belongs to the data alone.

    File inputs guide; openai-agents-python#1513: ``filename`` is required with ``file_data``, refused with ``file_url``.
    """
    sources = [key for key in ("file_data", "file_url", "file_id") if part.get(key)]
    if len(sources) != 1:
        yield f"a file needs exactly one source, has {sources}"
        return
    if sources == ["file_data"]:
        if not part.get("filename"):
            yield "file_data without filename"
        if problem := data_url_problem(part["file_data"]) or _file_type_problem(part["file_data"]):
            yield problem
    elif "filename" in part:
        yield f"filename with {sources[0]}"
    if sources == ["file_url"] and (problem := web_url_problem(part["file_url"])):
        yield problem


def _file_type_problem(url: str) -> str:
    """File inputs guide, accepted types: PDF, text and code, documents, slides, tables; no sound, film, picture, archive."""
    mime = data_url_mime(url) or ""
    kind = mime.partition("/")[0]
    is_other = kind in ("audio", "video", "image", "font") or mime in ("application/zip", "application/octet-stream")
    return f"media type {mime!r} is not supported" if is_other else ""


def _pairing_problems(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Every call of a client tool has one output behind it, and every output its call.

    API errors: "No tool output found for function call call_…"; "No tool call found for function call output with
    call_id …"; the same for custom tools, shells, computers and apply_patch.
    """
    waiting: Counter[tuple[str, str]] = Counter()
    for index, item in enumerate(items):
        kind = _kind(item)
        if kind in _OUTPUTS:
            waiting[kind, item["call_id"]] += 1
            if waiting[kind, item["call_id"]] > 1:
                yield f"input[{index}]: a second open {kind} with call_id {item['call_id']!r}"
        elif kind in _CALLS:
            key = (_CALLS[kind], item["id"] if kind == "local_shell_call_output" else item.get("call_id", ""))
            if waiting[key] < 1:
                yield f"input[{index}]: {kind} without its call"
            waiting[key] -= 1
    for (kind, call_id), count in waiting.items():
        if count > 0:
            yield f"end: {kind} {call_id!r} without its output"


def _reasoning_problems(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Reasoning is followed by what it led to, and an item by id keeps its reasoning.

    API errors: "Item 'rs_…' of type 'reasoning' was provided without its required following item" (vercel/ai#7099,
    openclaw#19582); "Item 'msg_…' was provided without its required 'reasoning' item" (continue#11994,
    openai-dotnet#1050).
    """
    for index, item in enumerate(items):
        if _kind(item) != "reasoning":
            continue
        rest = [later for later in items[index + 1 :] if _kind(later) != "reasoning"]
        is_model = bool(rest) and (rest[0].get("role", "assistant") == "assistant")
        if not is_model or _kind(rest[0]) not in _FOLLOWS_REASONING:
            yield f"input[{index}]: reasoning without its following item"
    for index, item in enumerate(items):
        own, mark, needed = str(item.get("id") or "").partition(AFTER)
        before = [earlier.get("id") for earlier in items[:index]]
        if mark and needed not in before:
            yield f"input[{index}]: {own!r} without its reasoning {needed!r}"


def _duplicate_problems(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """API error: "Duplicate item found with id msg_…" (pi#5151, continue#10200)."""
    ids = Counter(item["id"] for item in items if item.get("id") and not _kind(item).endswith("_output"))
    for item_id, count in ids.items():
        if count > 1:
            yield f"id {item_id!r} is used {count} times"
