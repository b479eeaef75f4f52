"""Random answers of generateContent: thoughts, calls, code, pictures, blocked and empty ones."""

from __future__ import annotations

import base64
from typing import Any

from google.genai.types import GenerateContentResponse

from validation.material import PAYLOAD, Draw
from validation.minted import mint

__all__ = ["gemini_answer"]

Part = dict[str, Any]


def gemini_answer(draw: Draw) -> GenerateContentResponse:
    """Return an answer with one candidate, or without: a blocked prompt."""
    body: dict[str, Any] = {
        "modelVersion": draw.pick(("gemini-3-pro", "gemini-2.5-flash")),
        "responseId": f"r{draw.serial()}",
        "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7},
    }
    if draw.chance(0.05):
        body |= {"promptFeedback": {"blockReason": "SAFETY"}} | draw.pick(({}, {"candidates": []}))
    else:
        body["candidates"] = [_candidate(draw)]
    return GenerateContentResponse.model_validate(body)


def _candidate(draw: Draw) -> dict[str, Any]:
    if draw.chance(0.08):
        reason = draw.pick(("SAFETY", "RECITATION", "MAX_TOKENS", "MALFORMED_FUNCTION_CALL", "NO_IMAGE"))
        content = draw.pick((None, {"role": "model"}, {"role": "model", "parts": []}, {}))
        return {"index": 0, "finishReason": reason} | ({"content": content} if content is not None else {})
    candidate = {"index": 0, "finishReason": draw.pick(("STOP", "STOP", "MAX_TOKENS"))}
    candidate["content"] = {"role": "model", "parts": _parts(draw)}
    if draw.chance(0.1):
        candidate["groundingMetadata"] = {"webSearchQueries": ["q"]}
        candidate["citationMetadata"] = {"citations": [{"startIndex": 0, "endIndex": 1, "uri": "https://example.com"}]}
    return candidate


def _parts(draw: Draw) -> list[Part]:
    parts: list[Part] = [{"text": draw.any_text(), "thought": True} for _ in draw.many(0, 1)]
    parts += [_signed(draw, {"text": draw.any_text()}, "") for _ in draw.many(0, 2)]
    if draw.chance(0.1):
        parts += [
            {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
        ]
    if draw.chance(0.08):
        parts.append({"inlineData": {"mimeType": draw.pick(("image/png", "image/jpeg")), "data": PAYLOAD}})
    if draw.chance(0.05):
        parts += [
            {"toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"q": "x"}}},
            {"toolResponse": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"r": 1}}},
        ]
    if draw.chance(0.5) or not parts:
        parts += _calls(draw)
    return parts


def _calls(draw: Draw) -> list[Part]:
    """Return parallel calls; Gemini 3 signs the first one, others none; ids are new."""
    has_ids = draw.chance(0.5)
    parts: list[Part] = []
    for _ in draw.many(1, 3):
        call: dict[str, Any] = {"name": draw.tool()}
        if draw.chance(0.9):
            call["args"] = draw.object()
        if has_ids:
            call["id"] = f"fc{draw.serial()}"
        parts.append({"functionCall": call})
    parts[0] = _signed(draw, parts[0], parts[0]["functionCall"]["name"])
    return parts


def _signed(draw: Draw, part: Part, content: str) -> Part:
    if draw.chance(0.5):
        return part
    signature = base64.b64decode(mint("gemini", content, str(draw.serial())))
    return part | {"thoughtSignature": base64.urlsafe_b64encode(signature).decode()}
