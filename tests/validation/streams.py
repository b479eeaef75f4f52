"""Random answers as the events in which providers stream them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from anthropic.types import RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from openai._models import construct_type_unchecked
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from validation.material import Draw

__all__ = ["events_of"]

Wire = dict[str, Any]


def events_of(dialect: str, answer: Any, draw: Draw) -> list[Any]:
    """Return the events of an answer: objects of the SDK, or their JSON."""
    body = json.loads(answer.model_dump_json(by_alias=True, exclude_none=True))
    split, kind = _STREAMS[dialect]
    events = list(split(body, draw))
    if draw.chance(0.5):
        return events
    if kind is GenerateContentResponse:
        return [GenerateContentResponse.model_validate(event) for event in events]
    return [construct_type_unchecked(value=event, type_=kind) for event in events]


def _pieces(text: str, draw: Draw) -> list[str]:
    size = draw.pick((1_000_000, 1_000, 7, 1)) if len(text) < 200 else 1_000
    return [text[start : start + size] for start in range(0, len(text), size)]


def _chat(body: Wire, draw: Draw) -> Iterator[Wire]:
    around: Wire = {key: body[key] for key in ("id", "created", "model") if key in body} | {
        "object": "chat.completion.chunk"
    }
    for choice in body.get("choices") or ():
        message = choice["message"]
        deltas: list[Wire] = [{"role": "assistant", "content": ""}]
        for name in ("reasoning_content", "content", "refusal"):
            deltas += [{name: piece} for piece in _pieces(message.get(name) or "", draw)]
        for index, call in enumerate(message.get("tool_calls") or ()):
            if call["type"] == "function":
                function = call["function"]
                begun = {"id": call["id"], "type": "function", "function": {"name": function["name"], "arguments": ""}}
                deltas.append({"tool_calls": [{"index": index, **begun}]})
                rest = [
                    {"index": index, "function": {"arguments": piece}} for piece in _pieces(function["arguments"], draw)
                ]
                deltas += [{"tool_calls": [piece]} for piece in rest]
        for delta in deltas:
            yield {**around, "choices": [{"index": choice["index"], "delta": delta, "finish_reason": None}]}
        end = {"index": choice["index"], "delta": {}, "finish_reason": choice.get("finish_reason") or "stop"}
        yield {**around, "choices": [end]}
    yield {**around, "choices": [], "usage": body.get("usage")}


def _responses(body: Wire, draw: Draw) -> Iterator[Wire]:
    numbers = iter(range(100_000))
    open_body = {**body, "output": [], "status": "in_progress"}
    yield {"type": "response.created", "sequence_number": next(numbers), "response": open_body}
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item.get("id", "")}
        yield {
            "type": "response.output_item.added",
            "sequence_number": next(numbers),
            "output_index": index,
            "item": item,
        }
        for part in item.get("content") or () if item["type"] == "message" else ():
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            for piece in _pieces(part.get("text") or part.get("refusal") or "", draw):
                event = {"type": f"response.{kind}.delta", "delta": piece, "content_index": 0, "logprobs": []}
                yield {**event, **place, "sequence_number": next(numbers)}
        for part in item.get("summary") or () if item["type"] == "reasoning" else ():
            event = {"type": "response.reasoning_summary_text.delta", "delta": part["text"], "summary_index": 0}
            yield {**event, **place, "sequence_number": next(numbers)}
        yield {
            "type": "response.output_item.done",
            "sequence_number": next(numbers),
            "output_index": index,
            "item": item,
        }
    end = f"response.{body.get('status') or 'completed'}"
    yield {"type": end, "sequence_number": next(numbers), "response": body}


def _anthropic(body: Wire, draw: Draw) -> Iterator[Wire]:
    yield {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}
    for index, block in enumerate(body["content"]):
        begun, deltas = _block_events(block, draw)
        yield {"type": "content_block_start", "index": index, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    usage = {"output_tokens": 3}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": body.get("stop_reason"), "stop_sequence": None},
        "usage": usage,
    }
    yield {"type": "message_stop"}


def _block_events(block: Wire, draw: Draw) -> tuple[Wire, list[Wire]]:
    match block["type"]:
        case "text":
            said = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"], draw)]
            cited = [{"type": "citations_delta", "citation": citation} for citation in block.get("citations") or ()]
            return {"type": "text", "text": "", "citations": None}, [*said, *cited]
        case "thinking":
            thought = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"], draw)]
            signed = [{"type": "signature_delta", "signature": block["signature"]}] if block.get("signature") else []
            return {"type": "thinking", "thinking": "", "signature": ""}, [*thought, *signed]
        case "tool_use" | "server_tool_use":
            pieces = _pieces(json.dumps(block["input"]), draw)
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        case _:
            return block, []


def _gemini(body: Wire, draw: Draw) -> Iterator[Wire]:
    around: Wire = {key: body[key] for key in ("modelVersion", "responseId") if key in body}
    candidates = body.get("candidates") or []
    parts = ((candidates[0].get("content") or {}).get("parts") or []) if candidates else []
    for part in parts:
        is_text = set(part) <= {"text", "thought"} and isinstance(part.get("text"), str)
        for piece in _pieces(part["text"], draw) if is_text else [None]:
            shown = part if piece is None else {**part, "text": piece}
            yield {**around, "candidates": [{"index": 0, "content": {"role": "model", "parts": [shown]}}]}
    ends = [{**candidate, "content": {"role": "model", "parts": []}} for candidate in candidates[:1]]
    yield {**{key: value for key, value in body.items() if key != "candidates"}, "candidates": ends}


_STREAMS: dict[str, tuple[Callable[[Wire, Draw], Iterator[Wire]], Any]] = {
    "openai-chat": (_chat, ChatCompletionChunk),
    "openai-responses": (_responses, ResponseStreamEvent),
    "anthropic": (_anthropic, RawMessageStreamEvent),
    "gemini": (_gemini, GenerateContentResponse),
}
