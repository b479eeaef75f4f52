"""Random answers of the Messages API: thinking, tools, server tools, pauses, refusals and cut turns."""

from __future__ import annotations

from typing import Any

from anthropic._models import construct_type_unchecked
from anthropic.types import Message, ParsedMessage

from validation.material import PAYLOAD, Draw
from validation.minted import mint

__all__ = ["anthropic_answer"]

Block = dict[str, Any]


def anthropic_answer(draw: Draw) -> Message:
    """Return an answer of a few blocks, and why it ended."""
    blocks: list[Block] = []
    if draw.chance(0.5):
        blocks += [_thinking(draw) for _ in draw.many(1, 2)]
    if draw.chance(0.25):
        blocks += _server_tool(draw)
    blocks += [_text(draw) for _ in draw.many(0, 2)]
    reason = draw.pick(("end_turn", "end_turn", "max_tokens", "stop_sequence", "refusal", "pause_turn"))
    if draw.chance(0.45):
        blocks += [_call(draw) for _ in draw.many(1, 3)]
        reason = "tool_use"
    if reason == "pause_turn":
        blocks += _server_tool(draw)[: draw.pick((1, 2))]
    elif reason == "max_tokens" and draw.chance(0.3):
        blocks += [draw.pick((_cut_thinking(draw), _call(draw)))]
    elif reason == "refusal" and draw.chance(0.5):
        blocks = []
    body = {
        "id": f"msg_{draw.serial()}",
        "type": "message",
        "role": "assistant",
        "model": draw.pick(("claude-opus-4-8", "claude-sonnet-4-5")),
        "content": blocks,
        "stop_reason": reason,
        "stop_sequence": "END" if reason == "stop_sequence" else None,
        "usage": {"input_tokens": 5, "output_tokens": 2, "cache_read_input_tokens": 1},
    }
    if draw.chance(0.2):
        for block in blocks:
            if block["type"] == "text":
                block["parsed_output"] = {"answer": 42}
        return construct_type_unchecked(value=body, type_=ParsedMessage[Any])
    return construct_type_unchecked(value=body, type_=Message)


def _thinking(draw: Draw) -> Block:
    if draw.chance(0.2):
        return {"type": "redacted_thinking", "data": mint("anthropic", "", str(draw.serial()))}
    text = draw.pick(("", "Let me think.", draw.text()))
    return {"type": "thinking", "thinking": text, "signature": mint("anthropic", text)}


def _cut_thinking(draw: Draw) -> Block:
    return {"type": "thinking", "thinking": draw.text(), "signature": ""}


def _text(draw: Draw) -> Block:
    web = {
        "type": "web_search_result_location",
        "cited_text": "c",
        "encrypted_index": "aW5kZXg=",
        "title": draw.pick((None, "t")),
        "url": "https://example.com",
    }
    page = {
        "type": "char_location",
        "cited_text": "c",
        "document_index": 0,
        "document_title": None,
        "start_char_index": 0,
        "end_char_index": 1,
        "file_id": None,
    }
    return {"type": "text", "text": draw.any_text(), "citations": draw.pick((None, None, [], [web], [page]))}


def _call(draw: Draw) -> Block:
    caller = draw.pick((None, None, {"type": "direct"}))
    call_id = f"toolu_{draw.serial():024d}"
    return {"type": "tool_use", "id": call_id, "name": draw.tool(), "input": draw.object(), "caller": caller}


def _server_tool(draw: Draw) -> list[Block]:
    """Return the use of a server tool and its result."""
    name, kind, content = draw.pick(_SERVER_TOOLS)
    use_id = f"srvtoolu_{draw.serial():024d}"
    use = {"type": "server_tool_use", "id": use_id, "name": name, "input": {"query": "q"}, "caller": None}
    return [use, {"type": kind, "tool_use_id": use_id, "content": content}]


_PAGE = {"type": "web_search_result", "title": "t", "url": "https://example.com", "encrypted_content": "ZW5j"}
_DOCUMENT = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}, "title": None}
_PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PAYLOAD}}
_RUN = {"stdout": "1", "stderr": "", "return_code": 0, "content": []}
_VIEW = {"type": "text_editor_code_execution_view_result", "content": "a", "file_type": "text"}
_SERVER_TOOLS: tuple[tuple[str, str, Any], ...] = (
    ("web_search", "web_search_tool_result", [{**_PAGE, "page_age": None}]),
    ("web_search", "web_search_tool_result", []),
    ("web_search", "web_search_tool_result", {"type": "web_search_tool_result_error", "error_code": "unavailable"}),
    ("web_fetch", "web_fetch_tool_result", {"type": "web_fetch_result", "url": "https://x.org", "content": _DOCUMENT}),
    ("web_fetch", "web_fetch_tool_result", {"type": "web_fetch_result", "url": "https://x.org", "content": _PDF}),
    ("code_execution", "code_execution_tool_result", {"type": "code_execution_result", **_RUN}),
    ("bash_code_execution", "bash_code_execution_tool_result", {"type": "bash_code_execution_result", **_RUN}),
    ("text_editor_code_execution", "text_editor_code_execution_tool_result", _VIEW),
    (
        "tool_search_tool_regex",
        "tool_search_tool_result",
        {
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "read"}],
        },
    ),
)
