"""What Anthropic's Messages API refuses: fields, texts, media, thinking, cache marks. Each rule names its source.

Reference: platform.claude.com/docs/en/api/messages, and the pages named at the rules. The order of turns and the pairing
of tools are in ``anthropic_turns``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from validation.anthropic_turns import turn_problems
from validation.media import base64_problem, web_url_problem
from validation.minted import signature_problem
from validation.typed import json_problems, type_problems

__all__ = ["problems"]

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_MAX_CACHE_MARKS = 4


def problems(request: Mapping[str, Any]) -> list[str]:
    """Return everything that the Messages API would refuse in a request."""
    found = json_problems(request)
    found += type_problems({"model": "any", "max_tokens": 1, **request}, MessageCreateParamsNonStreaming)
    if found:
        return found
    for path, block in _all_blocks(request):
        found += [f"{path}: {problem}" for problem in _block_problems(block)]
    marks = [path for path, block in _all_blocks(request) if block.get("cache_control")]
    if len(marks) > _MAX_CACHE_MARKS:
        found.append(f"{len(marks)} cache_control marks, at most 4")  # prompt caching guide: up to 4 breakpoints
    return [*found, *turn_problems(request["messages"])]


def _all_blocks(request: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    system = request.get("system")
    if isinstance(system, list):
        yield from ((f"system[{index}]", block) for index, block in enumerate(system))
    for at, message in enumerate(request["messages"]):
        if isinstance(message["content"], str):
            yield f"messages[{at}]", {"type": "text", "text": message["content"]}
            continue
        for index, block in enumerate(message["content"]):
            yield f"messages[{at}].content[{index}]", block
            inner = block.get("content")
            if block["type"] == "tool_result" and isinstance(inner, list):
                for place, part in enumerate(inner):
                    yield f"messages[{at}].content[{index}].content[{place}]", part


def _block_problems(block: Mapping[str, Any]) -> Iterator[str]:
    match block["type"]:
        case "text" if not block["text"].strip():
            # API: "text content blocks must be non-empty" and "… contain non-whitespace text" (claude-code#23440)
            yield "a text without content"
        case "tool_use" | "server_tool_use":
            yield from _call_problems(block)
        case "tool_result":
            yield from _result_problems(block)
        case "thinking" | "redacted_thinking":
            yield from _thinking_problems(block)
        case "image" | "document":
            yield from _source_problems(block["source"])
        case _:
            return


def _call_problems(block: Mapping[str, Any]) -> Iterator[str]:
    """Ids match ``^[a-zA-Z0-9_-]+$`` (bifrost#5097); names match the tools' pattern ``^[a-zA-Z0-9_-]{1,128}$``.

    Tool use guide; "tool_use.name: String should have at most 200 characters" (claude-code#2673), 128 in tools
    (claude-code#96152).
    """
    if not _TOOL_ID.fullmatch(block["id"]):
        yield f"id {block['id'][:70]!r}"
    if not _TOOL_NAME.fullmatch(block["name"]):
        yield f"name {block['name'][:70]!r}"


def _result_problems(block: Mapping[str, Any]) -> Iterator[str]:
    """API: "all content must be type `text` if `is_error` is true" (vellum-assistant#18387)."""
    if not _TOOL_ID.fullmatch(block["tool_use_id"]):
        yield f"tool_use_id {block['tool_use_id'][:70]!r}"
    content = block.get("content")
    if block.get("is_error") and isinstance(content, list):
        others = sorted({part["type"] for part in content} - {"text"})
        if others:
            yield f"an error result with {others}"


def _thinking_problems(block: Mapping[str, Any]) -> Iterator[str]:
    """Thinking goes back with its own signature, unchanged.

    Thinking guide, "Preserving thinking blocks"; API: "Invalid `signature` in `thinking` block" for an empty or foreign
    one (pydantic-ai#7597).
    """
    if block["type"] == "redacted_thinking":
        if not block["data"]:
            yield "redacted thinking without data"
        elif problem := signature_problem(block["data"], "anthropic"):
            yield problem
    elif not block["signature"]:
        yield "thinking without a signature"
    elif problem := signature_problem(block["signature"], "anthropic", block["thinking"]):
        yield problem


def _source_problems(source: Mapping[str, Any]) -> Iterator[str]:
    """Vision and PDF guides: base64 without a prefix, or an address; media types are in the SDK's types."""
    match source["type"]:
        case "base64" if problem := base64_problem(source["data"]):
            yield problem
        case "url" if problem := web_url_problem(source["url"]):
            yield problem
        case "text" if not source["data"].strip():
            yield "a document without content"  # the same check as for text blocks
        case "file" if not source["file_id"]:
            yield "an empty file_id"
        case _:
            return
