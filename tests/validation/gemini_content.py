"""What Gemini's generateContent refuses. Each rule names its source.

Reference: ai.google.dev/api/generate-content; error texts are quoted from issue threads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from google.genai import types
from pydantic import ValidationError

from validation.media import base64_problem, web_url_problem
from validation.minted import minted, signature_problem
from validation.typed import json_problems

__all__ = ["problems"]

_FIELDS = {"contents", "system_instruction", "systemInstruction"}
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_DATA = frozenset(
    [
        "text",
        "inlineData",
        "functionCall",
        "functionResponse",
        "fileData",
        "executableCode",
        "codeExecutionResult",
        "toolCall",
        "toolResponse",
    ]
)
_STAND_INS = frozenset({"skip_thought_signature_validator", "context_engineering_is_the_way_to_go"})
"""Thought signatures guide, FAQ: accepted in place of a signature that another model never made."""

_INLINE = re.compile(
    r"image/(png|jpeg|webp|heic|heif|gif|avif|bmp)|audio/[\w.+-]+|video/[\w.+-]+|application/pdf|text/[\w.+-]+"
)
_RESULT_INLINE = re.compile(r"image/(png|jpeg|webp)|application/pdf|text/plain")

Content = Mapping[str, Any]
Part = Mapping[str, Any]


def problems(request: Mapping[str, Any]) -> list[str]:
    """Return everything that generateContent would refuse in a request."""
    found = json_problems(request)
    found += [f"{key}: unknown" for key in request if key not in _FIELDS]
    contents = request.get("contents")
    if not contents:
        return [*found, "contents: empty"]  # API: "contents is not specified"
    system = request.get("system_instruction", request.get("systemInstruction"))
    if system is not None:
        found += _typed_problems(system, "system_instruction")
    for index, content in enumerate(contents):
        found += _typed_problems(content, f"contents[{index}]")
    if found:
        return found
    if system is not None:
        found += [f"system_instruction: {problem}" for problem in _system_problems(system)]
    for index, content in enumerate(contents):
        found += [f"contents[{index}]{problem}" for problem in _content_problems(content)]
    return [*found, *_order_problems(contents), *_pairing_problems(contents), *_signature_problems(contents)]


def _typed_problems(content: Any, path: str) -> list[str]:
    """Read a content strictly with the SDK's own type: unknown names and wrong types are refused (400 "Unknown name")."""
    try:
        types.Content.model_validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        return [f"{path}.{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors()]
    return []


def _system_problems(system: Content) -> Iterator[str]:
    """API: "system_instruction.parts[0].data: required oneof field 'data' must have one initialized field" (one-api#2243)."""
    if not system.get("parts"):
        yield "no parts"
    if any(not part.get("text") for part in system.get("parts") or ()):
        yield "a part without text"


def _content_problems(content: Content) -> Iterator[str]:
    """API: "Please use a valid role: user, model" (one-api#1385); "must include at least one parts field"."""
    if content.get("role") not in ("user", "model"):
        yield f".role: {content.get('role')!r}"
    if not content.get("parts"):
        yield ": no parts"
    for index, part in enumerate(content.get("parts") or ()):
        yield from (f".parts[{index}]: {problem}" for problem in _part_problems(part, content.get("role")))


def _part_problems(part: Part, role: str | None) -> Iterator[str]:
    """A part has exactly one kind of data, and text is not empty: a signature may come with an empty text.

    API: "required oneof field 'data' must have one initialized field" (CLIProxyAPI#1292, Portkey#462). Thought signatures
    guide: a signature may arrive in a part with an empty text, and goes back in it.
    """
    data = sorted(key for key in part if key in _DATA and part[key] is not None)
    if len(data) != 1:
        yield f"has {data or 'no data'}"
        return
    if data == ["text"] and not part["text"] and not part.get("thoughtSignature"):
        yield "an empty text"
    model_only = {"functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}
    if (data[0] in model_only and role != "model") or (data[0] == "functionResponse" and role != "user"):
        yield f"{data[0]} of {role}"
    if "thoughtSignature" in part and (problem := _one_signature_problem(part["thoughtSignature"])):
        yield problem
    match data[0]:
        case "functionCall" | "functionResponse":
            yield from _function_problems(part[data[0]], data[0])
        case "inlineData":
            yield from _inline_problems(part["inlineData"], _INLINE)
        case "fileData":
            yield from _file_problems(part["fileData"])
        case _:
            return


def _base64_problem(text: str) -> str:
    """Protobuf's JSON takes both alphabets of base64 (protobuf.dev, ProtoJSON, bytes)."""
    return base64_problem(text.replace("-", "+").replace("_", "/"))


def _one_signature_problem(signature: str) -> str:
    """API: "Corrupted thought signature" for a foreign one (earendil-works/pi#471)."""
    if signature in _STAND_INS:
        return ""
    return _base64_problem(signature) or signature_problem(signature, "gemini")


def _function_problems(function: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Names start with a letter or an underscore, then letters, digits, ``_.:-``, at most 128 (the SDK's FunctionDeclaration).

    API: "Invalid function name. Must start with a letter or an underscore" (kaitranntt/ccs#219). ``args`` and ``response``
    are objects; ``name`` and ``response`` are required in a response (the SDK's FunctionResponse).
    """
    if not _NAME.fullmatch(function.get("name") or ""):
        yield f"{kind}.name {str(function.get('name'))[:70]!r}"
    if kind == "functionResponse" and function.get("response") is None:
        yield "functionResponse without response"
    for index, part in enumerate(function.get("parts") or () if kind == "functionResponse" else ()):
        if part.get("inlineData") is None:
            yield f"functionResponse.parts[{index}]: only inlineData is supported"  # the SDK's FunctionResponsePart
        else:
            yield from _inline_problems(
                part["inlineData"], _RESULT_INLINE
            )  # function calling guide, multimodal responses


def _inline_problems(blob: Mapping[str, Any], allowed: re.Pattern[str]) -> Iterator[str]:
    """API: "Unsupported MIME type: image/svg+xml", "… application/csv" (adk-python#5693, #4028); image/jpg (cherry-studio#3088)."""
    mime = (blob.get("mimeType") or "").partition(";")[0].strip().lower()
    if not allowed.fullmatch(mime):
        yield f"media type {mime!r} is not supported"
    if problem := _base64_problem(blob.get("data") or ""):
        yield problem


def _file_problems(file: Mapping[str, Any]) -> Iterator[str]:
    """Addresses are https (the Files API, public or signed ones) or Cloud Storage; the media type is required.

    File input methods guide: https only, http is refused (vercel/ai#16757); the SDK's FileData: "Required" mimeType.
    """
    if problem := web_url_problem(file.get("fileUri") or "", ("https", "gs")):
        yield problem
    if not file.get("mimeType") and "generativelanguage.googleapis.com" not in (file.get("fileUri") or ""):
        yield "fileData without mimeType"


def _calls(content: Content) -> list[Mapping[str, Any]]:
    return [part["functionCall"] for part in content["parts"] or () if part.get("functionCall") is not None]


def _responses(content: Content) -> list[Mapping[str, Any]]:
    return [part["functionResponse"] for part in content["parts"] or () if part.get("functionResponse") is not None]


def _order_problems(contents: Sequence[Content]) -> Iterator[str]:
    """A call follows a user turn or results, and the user has the last word.

    API: "Please ensure that function call turn comes immediately after a user turn or after a function response turn"
    (gemini-cli#26486, OmniRoute#13573); "Please ensure that multiturn requests ends with a user role or a function
    response" (one-api#836, crewAI#6973). Two user turns in a row are accepted: Gemini 1.0 asked for strict alternation,
    the reference of today does not, and Google's own agent kit sends them so.
    """
    if contents[-1].get("role") != "user":
        yield "end: the last turn is the model's"
    for index, content in enumerate(contents):
        if _calls(content) and (index == 0 or contents[index - 1].get("role") != "user"):
            yield f"contents[{index}]: a function call without a user turn before it"


def _pairing_problems(contents: Sequence[Content]) -> Iterator[str]:
    """The turn after a call turn answers every call, by name and by id.

    API: "Please ensure that the number of function response parts is equal to the number of function call parts of the
    function call turn" (gemini-cli#16543); "… function response turn comes immediately after a function call turn"
    (lobehub#7298). The SDK's FunctionResponse: ``name`` matches the call's, ``id`` matches the call's ``id``.
    """
    for index, content in enumerate(contents):
        calls = _calls(content)
        answers = _responses(contents[index + 1]) if index + 1 < len(contents) else []
        if calls and len(calls) != len(answers):
            yield f"contents[{index}]: {len(calls)} calls, {len(answers)} responses"
        elif sorted(map(_key, calls)) != sorted(map(_key, answers)) and calls:
            yield f"contents[{index}]: calls {list(map(_key, calls))}, responses {list(map(_key, answers))}"
        if _responses(content) and (index == 0 or not _calls(contents[index - 1])):
            yield f"contents[{index}]: responses without calls"


def _key(function: Mapping[str, Any]) -> tuple[str, str]:
    return function.get("name") or "", function.get("id") or ""


def _signature_problems(contents: Sequence[Content]) -> Iterator[str]:
    """Gemini 3: in the current turn, the first call of every step has a signature.

    Thought signatures guide: the current turn begins at the last user content that is no function response; a missing
    signature in it is a 400 "Function call is missing a thought_signature" (vercel/ai#15550).
    """
    starts = [index for index, content in enumerate(contents) if content.get("role") == "user" and _is_speech(content)]
    for index, content in enumerate(contents[starts[-1] if starts else 0 :], starts[-1] if starts else 0):
        calls = [part for part in content["parts"] if part.get("functionCall") is not None]
        if calls and not calls[0].get("thoughtSignature"):
            yield f"contents[{index}]: the first call of the current turn has no thoughtSignature"
        origin = minted(calls[0].get("thoughtSignature") or "") if calls else None
        if origin and signature_problem(calls[0]["thoughtSignature"], "gemini", calls[0]["functionCall"]["name"]):
            yield f"contents[{index}]: the signature of another call"


def _is_speech(content: Content) -> bool:
    return any(part.get("functionResponse") is None for part in content["parts"] or ())
