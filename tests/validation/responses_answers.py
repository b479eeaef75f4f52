"""Random answers of the Responses API, with every kind of output item."""

from __future__ import annotations

from typing import Any

from openai._models import construct_type_unchecked
from openai.types.responses import ParsedResponse, Response

from validation.material import PAYLOAD, Draw
from validation.minted import mint
from validation.responses import AFTER

__all__ = ["responses_answer"]

Item = dict[str, Any]


def responses_answer(draw: Draw) -> Response:
    """Return an answer of a few output items: whole, incomplete, failed or empty."""
    output: list[Item] = []
    for _ in draw.many(0 if draw.chance(0.1) else 1, 3):
        thought = _reasoning(draw) if draw.chance(0.5) else None
        is_cut = draw.chance(0.05)
        if thought:
            output.append(thought)
        if not is_cut:
            output.append(_item(draw, f"{AFTER}{thought['id']}" if thought else ""))
    status = draw.pick(("completed", "completed", "completed", "incomplete", "failed"))
    body: dict[str, Any] = {
        "id": f"resp_{draw.serial()}",
        "object": "response",
        "created_at": 1.0,
        "model": draw.pick(("gpt-5", "gpt-5-codex")),
        "output": output,
        "status": status,
        "error": {"code": "server_error", "message": "failed"} if status == "failed" else None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 5,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 7,
        },
    }
    if draw.chance(0.2):
        return construct_type_unchecked(value=_with_parsed(body), type_=ParsedResponse[Any])
    return construct_type_unchecked(value=body, type_=Response)


def _with_parsed(body: dict[str, Any]) -> dict[str, Any]:
    for item in body["output"]:
        if item["type"] == "function_call":
            item["parsed_arguments"] = {"path": "a.txt"}
        for part in item["content"] if item["type"] == "message" else ():
            if part["type"] == "output_text":
                part["parsed"] = {"answer": 42}
    return body


def _reasoning(draw: Draw) -> Item:
    number = draw.serial()
    item: Item = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "status": draw.pick((None, "completed"))}
    if draw.chance(0.5):
        item["summary"] = [{"type": "summary_text", "text": draw.any_text()}]
    if draw.chance(0.6):
        item["encrypted_content"] = mint("openai-responses", item["id"])
    if draw.chance(0.2):
        item["content"] = [{"type": "reasoning_text", "text": "hm"}]
    return item


def _item(draw: Draw, after: str) -> Item:
    number = draw.serial()
    match draw.random.randrange(22):
        case 0:
            action = draw.pick(({"type": "search", "query": "q"}, {"type": "open_page", "url": "https://example.com"}))
            return {"type": "web_search_call", "id": f"ws_{number}{after}", "status": "completed", "action": action}
        case 1:
            results = draw.pick((None, [{"file_id": "file-1", "filename": "a.txt", "score": 0.5, "text": "t"}]))
            return _server("file_search_call", f"fs_{number}{after}", queries=["q"], results=results)
        case 2:
            outputs = draw.pick((None, [{"type": "logs", "logs": "1"}]))
            names = {"code": "print(1)", "container_id": "cntr_1"}
            return _server("code_interpreter_call", f"ci_{number}{after}", outputs=outputs, **names)
        case 3:
            result = draw.pick((None, PAYLOAD))
            return _server("image_generation_call", f"ig_{number}{after}", result=result, output_format="png")
        case 4:
            names = {"server_label": "s", "name": "tool", "arguments": draw.arguments()}
            return _server("mcp_call", f"mcp_{number}{after}", output=draw.pick((None, "out")), **names)
        case 5:
            tool = {"name": "tool", "input_schema": {"type": "object"}}
            return {"type": "mcp_list_tools", "id": f"mcpl_{number}{after}", "server_label": "s", "tools": [tool]}
        case 6:
            names = {"server_label": "s", "name": "tool", "arguments": "{}"}
            return {"type": "mcp_approval_request", "id": f"mcpr_{number}{after}", **names}
        case 7 | 8:
            return _client_call(draw, number, after)
        case 9 | 10 | 11 | 12 | 13 | 14:
            return _function_call(draw, number, after)
        case _:
            return _message(draw, number, after)


def _server(kind: str, item_id: str, **fields: Any) -> Item:
    return {"type": kind, "id": item_id, "status": "completed", **fields}


def _function_call(draw: Draw, number: int, after: str) -> Item:
    item = {
        "type": "function_call",
        "id": f"fc_{number}{after}",
        "call_id": draw.pick((f"call_{number}", f"call_{number:060d}")),
        "name": draw.tool(),
        "arguments": draw.arguments(),
        "status": draw.pick(("completed", "completed", "incomplete", None)),
    }
    if draw.chance(0.1):
        item["namespace"] = "ns"
    return item


def _client_call(draw: Draw, number: int, after: str) -> Item:
    """Return a call of a tool that the client runs and that is no function."""
    shell = {"type": "exec", "command": ["ls"], "env": {}}
    patch = {"type": "update_file", "path": "a.txt", "diff": "+1"}
    click = {"type": "click", "button": "left", "x": 1, "y": 2}
    return draw.pick(
        (
            {"type": "custom_tool_call", "id": f"ctc_{number}{after}", "name": "grep", "input": draw.text()},
            _server("local_shell_call", f"lsh_{number}{after}", action=shell),
            _server("shell_call", f"sh_{number}{after}", action={"commands": ["ls"]}),
            _server("apply_patch_call", f"apc_{number}{after}", operation=patch),
            _server("computer_call", f"cu_{number}{after}", action=click, pending_safety_checks=[]),
        )
    ) | {"call_id": f"call_{number}"}


def _message(draw: Draw, number: int, after: str) -> Item:
    url = {"type": "url_citation", "start_index": 0, "end_index": 1, "title": "t", "url": "https://example.com"}
    file = {"type": "file_citation", "file_id": "file-1", "filename": "a.txt", "index": 0}
    probability = {"token": "a", "bytes": [97], "logprob": -0.1, "top_logprobs": []}
    text = {
        "type": "output_text",
        "text": draw.any_text(),
        "annotations": draw.pick(([], [], [url], [file])),
        "logprobs": draw.pick((None, [], [probability])),
    }
    refusal = {"type": "refusal", "refusal": "I cannot help with that."}
    return {
        "type": "message",
        "id": f"msg_{number}{after}",
        "role": "assistant",
        "status": draw.pick(("completed", "completed", "incomplete", "in_progress")),
        "content": draw.pick(([text], [text], [text, text], [refusal], [])),
        "phase": draw.pick((None, "commentary", "final_answer")),
    }
