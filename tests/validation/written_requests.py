"""Requests that programs wrote for one provider, with what only requests have: documents, files, cache marks."""

from __future__ import annotations

from typing import Any

from validation.material import PAYLOAD, Draw

__all__ = ["written_request"]

Body = dict[str, Any]


def written_request(draw: Draw) -> tuple[str, Body]:
    """Return the name of a dialect and a request in it."""
    write = draw.pick(
        (("openai-chat", _chat), ("openai-responses", _responses), ("anthropic", _anthropic), ("gemini", _gemini))
    )
    return write[0], write[1](draw)


def _chat(draw: Draw) -> Body:
    number = draw.serial()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PAYLOAD}", "detail": "low"}}
    pdf = {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAYLOAD}"}}
    sound = {"type": "input_audio", "input_audio": {"data": PAYLOAD, "format": "wav"}}
    upload = {"type": "file", "file": {"file_id": "file-1"}}
    call = {"id": f"call_w{number}", "type": "function", "function": {"name": "read_file", "arguments": "{}"}}
    return {
        "messages": [
            {"role": draw.pick(("system", "developer")), "content": draw.text()},
            {
                "role": "user",
                "content": [{"type": "text", "text": draw.text()}, draw.pick((picture, pdf, sound, upload))],
            },
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_w{number}", "content": [{"type": "text", "text": "out"}]},
            {"role": "developer", "content": draw.text()},
            {
                "role": "assistant",
                "content": [draw.pick(({"type": "text", "text": "ok"}, {"type": "refusal", "refusal": "no"}))],
            },
            {"role": "user", "name": "anna", "content": draw.text()},
        ]
    }


def _responses(draw: Draw) -> Body:
    number = draw.serial()
    picture = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PAYLOAD}"}
    stored = {"type": "input_image", "detail": "high", "file_id": "file-1"}
    pdf = {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAYLOAD}"}
    address = {"type": "input_file", "file_url": "https://example.com/a.pdf"}
    call = {"type": "function_call", "call_id": f"call_w{number}", "name": "read_file", "arguments": "{}"}
    output = draw.pick(("out", [{"type": "input_text", "text": "out"}, picture], [pdf]))
    return {
        "instructions": draw.text(),
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_text", "text": draw.text()}, draw.pick((picture, stored, pdf, address))],
            },
            call,
            {"type": "function_call_output", "call_id": f"call_w{number}", "output": output},
            *_client_tool(draw, f"call_v{number}"),
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": draw.text()}]},
            {"role": "assistant", "content": draw.text()},
            {"role": "system", "content": draw.text()},
            {"role": "user", "content": draw.text()},
        ],
    }


def _client_tool(draw: Draw, call_id: str) -> list[Body]:
    """Return a call of a tool that is no function, and its output; now and then without one of the two."""
    picture = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PAYLOAD}"}
    printed = {"stdout": "1", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    patch = {"type": "create_file", "path": "a", "diff": "+1"}
    click = {"type": "click", "button": "left", "x": 1, "y": 2}
    tools: tuple[tuple[str, Body, Body], ...] = (
        ("custom_tool", {"name": "grep", "input": "x"}, {"output": "out"}),
        ("shell", {"action": {"commands": ["ls"]}}, {"output": [printed]}),
        ("apply_patch", {"status": "completed", "operation": patch}, {"status": "completed", "output": "ok"}),
        (
            "computer",
            {"id": f"cu_{call_id}", "status": "completed", "action": click, "pending_safety_checks": []},
            {"output": picture},
        ),
    )
    kind, call, output = draw.pick(tools)
    pair: list[Body] = [
        {"type": f"{kind}_call", "call_id": call_id, **call},
        {"type": f"{kind}_call_output", "call_id": call_id, **output},
    ]
    return draw.pick((pair, pair, pair, pair[:1]))


def _anthropic(draw: Draw) -> Body:
    number = draw.serial()
    mark = {"cache_control": {"type": "ephemeral"}}
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PAYLOAD}}
    stored = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    pdf = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": PAYLOAD},
        "title": "a",
        "citations": {"enabled": True},
    }
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "plain"}}
    nested = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "x"}, picture]}}
    found = {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]}
    use = {"type": "tool_use", "id": f"toolu_w{number}", "name": "read_file", "input": {}}
    result = {"type": "tool_result", "tool_use_id": f"toolu_w{number}", "content": [draw.pick((picture, pdf, found))]}
    media: Body = draw.pick((picture, stored, pdf, plain, nested, found))
    return {
        "system": draw.pick((draw.text(), [{"type": "text", "text": draw.text(), **mark}])),
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": draw.text(), **mark}, media | mark]},
            {"role": "assistant", "content": [{"type": "text", "text": draw.text()}, use | mark]},
            {"role": "user", "content": [result | mark, {"type": "text", "text": draw.text()}]},
            {"role": "assistant", "content": draw.text()},
            {"role": "user", "content": draw.text()},
        ],
    }


def _gemini(draw: Draw) -> Body:
    picture = {"inlineData": {"mimeType": "image/png", "data": PAYLOAD}}
    stored = {
        "fileData": {
            "mimeType": "application/pdf",
            "fileUri": "https://generativelanguage.googleapis.com/v1beta/files/a",
        }
    }
    sound = {"inlineData": {"mimeType": "audio/mp3", "data": PAYLOAD}}
    response: Body = {"name": "read_file", "response": {"output": "out"}}
    if draw.chance(0.5):
        response["parts"] = [picture]
    return {
        "system_instruction": {"parts": [{"text": draw.text()}]},
        "contents": [
            {"role": "user", "parts": [{"text": draw.text()}, draw.pick((picture, stored, sound))]},
            {"role": "model", "parts": [{"functionCall": {"name": "read_file", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": response}]},
            {"role": "model", "parts": [{"text": draw.text()}]},
            {"role": "user", "parts": [{"text": draw.text()}]},
        ],
    }
