"""Answers of four providers: the response at once, and the same response as the events of a stream.

The shapes are those that the providers document and that their SDKs parse: text, reasoning, and a tool call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Wire = dict[str, Any]
MODEL = "local-model"


@dataclass(frozen=True)
class Script:
    """What a model says: pieces of reasoning, pieces of text, and a call of a tool with pieces of its arguments."""

    text: Sequence[str] = ()
    reasoning: Sequence[str] = ()
    call: str = ""
    arguments: Sequence[str] = ()
    usage: tuple[int, int] = (90, 40)
    id: str = field(default="1")

    @property
    def whole_arguments(self) -> str:
        return "".join(self.arguments)


def openai_chat(script: Script) -> Wire:
    message: Wire = {"role": "assistant", "content": "".join(script.text) or None}
    if script.reasoning:
        message["reasoning_content"] = "".join(script.reasoning)
    if script.call:
        function = {"name": script.call, "arguments": script.whole_arguments}
        message["tool_calls"] = [{"id": f"call_{script.id}", "type": "function", "function": function}]
    finish = "tool_calls" if script.call else "stop"
    return {
        "id": f"chatcmpl-{script.id}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": MODEL,
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": _chat_usage(script),
    }


def openai_chat_events(script: Script) -> list[bytes]:
    deltas: list[Wire] = [{"role": "assistant", "content": None if script.call and not script.text else ""}]
    deltas += [{"reasoning_content": piece} for piece in script.reasoning]
    deltas += [{"content": piece} for piece in script.text]
    if script.call:
        opening = {"name": script.call, "arguments": ""}
        deltas.append(
            {"tool_calls": [{"index": 0, "id": f"call_{script.id}", "type": "function", "function": opening}]}
        )
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in script.arguments]
    choices: list[list[Wire]] = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
    choices.append([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if script.call else "stop"}])
    chunk = {"id": f"chatcmpl-{script.id}", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": MODEL}
    chunks: list[Wire] = [{**chunk, "choices": choice} for choice in choices]
    chunks.append({**chunk, "choices": [], "usage": _chat_usage(script)})
    return [*(b"data: " + json.dumps(item).encode() + b"\n\n" for item in chunks), b"data: [DONE]\n\n"]


def _chat_usage(script: Script) -> Wire:
    sent, received = script.usage
    return {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received}


def openai_responses(script: Script) -> Wire:
    output: list[Wire] = []
    if script.reasoning:
        summary = [{"type": "summary_text", "text": "".join(script.reasoning)}]
        output.append({"type": "reasoning", "id": f"rs_{script.id}", "summary": summary, "encrypted_content": "ZW5j"})
    if script.text:
        content = [{"type": "output_text", "text": "".join(script.text), "annotations": []}]
        said = {"id": f"msg_{script.id}", "role": "assistant", "status": "completed", "content": content}
        output.append({"type": "message", **said})
    if script.call:
        call = {"call_id": f"call_{script.id}", "name": script.call, "arguments": script.whole_arguments}
        output.append({"type": "function_call", "id": f"fc_{script.id}", "status": "completed", **call})
    return {**_response(script, "completed"), "output": output, "usage": _responses_usage(script)}


def openai_responses_events(script: Script) -> list[bytes]:
    whole = openai_responses(script)
    events: list[Wire] = [{"type": "response.created", "response": _response(script, "in_progress")}]
    for index, item in enumerate(whole["output"]):
        empty = {"summary": [], "content": [], "arguments": "", "status": "in_progress"}
        opening = {**item, **{key: value for key, value in empty.items() if key in item}}
        events.append({"type": "response.output_item.added", "output_index": index, "item": opening})
        place = {"item_id": item["id"], "output_index": index}
        match item["type"]:
            case "reasoning":
                kind, pieces = "response.reasoning_summary_text.delta", script.reasoning
                place["summary_index"] = 0
            case "message":
                part = {"type": "output_text", "text": "", "annotations": []}
                place["content_index"] = 0
                events.append({"type": "response.content_part.added", **place, "part": part})
                kind, pieces = "response.output_text.delta", script.text
                place["logprobs"] = []
            case _:
                kind, pieces = "response.function_call_arguments.delta", script.arguments
        events += [{"type": kind, **place, "delta": piece} for piece in pieces]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": whole})
    return [_named({**event, "sequence_number": number}) for number, event in enumerate(events)]


def _response(script: Script, status: str) -> Wire:
    return {
        "id": f"resp_{script.id}",
        "object": "response",
        "created_at": 1_700_000_000,
        "model": MODEL,
        "status": status,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _responses_usage(script: Script) -> Wire:
    sent, received = script.usage
    return {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": received,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sent + received,
    }


def anthropic(script: Script) -> Wire:
    content: list[Wire] = []
    if script.reasoning:
        content.append({"type": "thinking", "thinking": "".join(script.reasoning), "signature": "c2lnbmVk"})
    if script.text:
        content.append({"type": "text", "text": "".join(script.text)})
    if script.call:
        value = json.loads(script.whole_arguments)
        content.append({"type": "tool_use", "id": f"toolu_{script.id}", "name": script.call, "input": value})
    sent, received = script.usage
    return {
        "id": f"msg_{script.id}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": "tool_use" if script.call else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": sent, "output_tokens": received},
    }


def anthropic_events(script: Script) -> list[bytes]:
    whole = anthropic(script)
    sent, received = script.usage
    empty: Wire = {"content": [], "stop_reason": None, "usage": {"input_tokens": sent, "output_tokens": 1}}
    events: list[Wire] = [{"type": "message_start", "message": {**whole, **empty}}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        blank = {"thinking": "", "signature": "", "text": "", "input": {}}
        opening = {**block, **{key: value for key, value in blank.items() if key in block}}
        events.append({"type": "content_block_start", "index": index, "content_block": opening})
        match block["type"]:
            case "thinking":
                deltas = [{"type": "thinking_delta", "thinking": piece} for piece in script.reasoning]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            case "text":
                deltas = [{"type": "text_delta", "text": piece} for piece in script.text]
            case _:
                deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in script.arguments]
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": received}})
    events.append({"type": "message_stop"})
    return [_named(event) for event in events]


def gemini(script: Script) -> Wire:
    parts: list[Wire] = []
    if script.reasoning:
        parts.append({"text": "".join(script.reasoning), "thought": True})
    if script.text:
        parts.append({"text": "".join(script.text)})
    if script.call:
        function = {"id": f"call_{script.id}", "name": script.call, "args": json.loads(script.whole_arguments)}
        parts.append({"functionCall": function, "thoughtSignature": "c2lnbmVk"})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], **_gemini_around(script)}


def gemini_events(script: Script) -> list[bytes]:
    parts: list[Wire] = [{"text": piece, "thought": True} for piece in script.reasoning]
    parts += [{"text": piece} for piece in script.text]
    parts += [part for part in gemini(script)["candidates"][0]["content"]["parts"] if "functionCall" in part]
    chunks: list[Wire] = []
    for number, part in enumerate(parts):
        ended = {"finishReason": "STOP"} if number == len(parts) - 1 else {}
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0, **ended}
        chunks.append({"candidates": [candidate], **_gemini_around(script)})
    return [b"data: " + json.dumps(chunk).encode() + b"\r\n\r\n" for chunk in chunks]


def _gemini_around(script: Script) -> Wire:
    sent, received = script.usage
    counted = {"promptTokenCount": sent, "candidatesTokenCount": received, "totalTokenCount": sent + received}
    return {"usageMetadata": counted, "modelVersion": MODEL, "responseId": f"response-{script.id}"}


def _named(event: Wire) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


RESPONSES = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
}
EVENTS = {
    "openai-chat": openai_chat_events,
    "openai-responses": openai_responses_events,
    "anthropic": anthropic_events,
    "gemini": gemini_events,
}
