"""Gemini ``generateContent``, with the field names of its REST API.

>>> from sessiontree.model.builders import user
>>> to_request(Context(messages=(user("hello").message,)))
{'contents': [{'role': 'user', 'parts': [{'text': 'hello'}]}]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from sessiontree.context import Context
from sessiontree.context.dialects._media import is_base64, media_notes, media_source, media_text, type_of
from sessiontree.context.dialects._plain import cleaned, plain, plain_response
from sessiontree.context.dialects._request_fields import GEMINI
from sessiontree.context.dialects._shared import (
    CONTINUE,
    OPENING,
    Answer,
    CallIds,
    Dialect,
    Placeholders,
    Wire,
    answer_of,
    arguments_of,
    block_extra,
    conversation,
    in_turn,
    is_blank,
    leftover,
    merged,
    object_of,
    own_fields,
    tool_name,
    without,
)
from sessiontree.context.dialects.gemini_stream import GeminiAnswer
from sessiontree.model import (
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from sessiontree.model.message import ResultContent

__all__ = ["DIALECT", "from_request", "from_response", "to_request"]


NAME = "gemini"
_ID_LIMIT = 64
_NAME_CHARACTERS = "a-zA-Z0-9_.:-"
_UPLOADED = "https://generativelanguage.googleapis.com/"
_NO_SIGNATURE = "skip_thought_signature_validator"
_FILE_URI = re.compile(r"(?:https|gs)://\S+")
_INLINE_TYPES = re.compile(
    r"image/(?:png|jpeg|webp|heic|heif)|audio/[\w.+-]+|video/[\w.+-]+|application/pdf|text/[\w.+-]+"
)
_RESULT_TYPES = re.compile(r"image/(?:png|jpeg|webp)|application/pdf|text/plain")
_NOT_KEPT = (
    *("candidates", "modelVersion", "model_version", "usageMetadata", "usage_metadata", "parsed"),
    *("sdkHttpResponse", "sdk_http_response"),
    *("automaticFunctionCallingHistory", "automatic_function_calling_history"),
)
_RESPONSE_FIELDS = ("candidates", "promptFeedback", "prompt_feedback", "usageMetadata", "usage_metadata")
_SNAKE = {
    "functionCall": "function_call",
    "functionResponse": "function_response",
    "inlineData": "inline_data",
    "fileData": "file_data",
    "mimeType": "mime_type",
    "fileUri": "file_uri",
    "displayName": "display_name",
    "thoughtSignature": "thought_signature",
}
_CAMEL_COUNTS = {
    "prompt_token_count": "promptTokenCount",
    "candidates_token_count": "candidatesTokenCount",
    "cached_content_token_count": "cachedContentTokenCount",
    "thoughts_token_count": "thoughtsTokenCount",
    "total_token_count": "totalTokenCount",
}
_CAMEL = {snake: camel for camel, snake in _SNAKE.items()}


def to_request(context: Context, *, placeholders: Placeholders = "required") -> Wire:
    """Return ``system_instruction`` and ``contents``: the user first and last, the results of a batch in one content."""
    ids = CallIds(_ID_LIMIT)
    messages = _with_joined_results(conversation(context))
    written = [_content(message, ids) for message in messages]
    contents = _in_turn([content for content in written if content["parts"]], placeholders)
    if placeholders == "required" and (not contents or contents[0]["role"] == "model"):
        contents.insert(0, _said(OPENING))
    if placeholders == "required" and contents[-1]["role"] == "model":
        contents.append(_said(CONTINUE))
    system = {} if is_blank(context.system) else {"system_instruction": {"parts": [{"text": context.system}]}}
    return {**system, "contents": contents}


def from_request(body: Any) -> tuple[str, list[Message]]:
    """Return the system prompt and the messages of a request."""
    request: Wire = plain(body)
    system = request.get("system_instruction") or request.get("systemInstruction") or ""
    if isinstance(system, dict):
        system = "\n\n".join(part["text"] for part in system.get("parts", ()) if part.get("text"))
    return system, [message for content in request.get("contents", ()) for message in _messages(content)]


def from_response(body: Any) -> Answer:
    """Return the first candidate of a response; a blocked prompt is an answer without content."""
    response = plain_response(body, NAME, _RESPONSE_FIELDS)
    candidate: Wire = next(iter(response.get("candidates") or ()), {})
    content = candidate.get("content") or {}
    parts = tuple(_read_part(_standard(cleaned(part, GEMINI))) for part in content.get("parts") or ())
    feedback = response.get("promptFeedback") or response.get("prompt_feedback") or {}
    return answer_of(
        message=Message(role="assistant", parts=parts),
        provider=NAME,
        model=response.get("modelVersion") or response.get("model_version") or "",
        stop_reason=_first(candidate, "finishReason", "finish_reason")
        or _first(feedback, "blockReason", "block_reason"),
        usage=_usage(response.get("usageMetadata") or response.get("usage_metadata")),
        around={**without(response, *_NOT_KEPT), **without(candidate, "content", "finishReason", "finish_reason")},
    )


def blocks_of(part: Part, role: Role) -> list[str | Wire]:
    """Return what a request holds of one part of a message."""
    if role == "tool" and NAME not in part.extra:
        return [*_plain_parts(*media_notes([part]))]
    return [_function_call(part)] if isinstance(part, ToolCallPart) else [*_plain_parts(part)]


DIALECT = Dialect(
    name=NAME,
    to_request=to_request,
    from_request=from_request,
    from_response=from_response,
    answer_builder=GeminiAnswer,
    blocks_of=blocks_of,
    has_error_results=True,
)


def _first(wire: Wire, *names: str) -> str:
    return next((str(wire[name]) for name in names if wire.get(name)), "")


def _standard(part: Wire) -> Wire:
    """The SDK writes data in the URL alphabet of base64, which other providers reject."""
    media = part.get("inlineData")
    if not isinstance(media, dict) or not isinstance(media.get("data"), str):
        return part
    return {**part, "inlineData": {**media, "data": _standard_alphabet(media["data"])}}


def _standard_alphabet(data: str) -> str:
    return data.replace("-", "+").replace("_", "/")


def _said(text: str) -> Wire:
    return {"role": "user", "parts": [{"text": text}]}


def _in_turn(contents: Iterable[Wire], placeholders: Placeholders) -> list[Wire]:
    def joins(first: Wire, _second: Wire) -> bool:
        is_thought = all(part.get("thought") for part in first["parts"])
        return first["role"] == "model" and (placeholders == "never" or is_thought)

    return in_turn(contents, "parts", joins, between=_said(CONTINUE))


def _with_joined_results(messages: Iterable[Message]) -> list[Message]:
    joined: list[Message] = []
    for message in messages:
        if joined and message.role == "tool" and joined[-1].role == "tool":
            joined[-1] = merged(joined[-1], message)
        else:
            joined.append(message)
    return joined


def _content(message: Message, ids: CallIds) -> Wire:
    role = "model" if message.role == "assistant" else "user"
    parts = [wire for part in message.parts for wire in _wire_parts(part, ids)]
    if message.tool_calls and role == "model":
        parts = _signed(parts)
    return {"role": role, "parts": parts, **own_fields(message.extra, NAME)}


def _signed(parts: list[Wire]) -> list[Wire]:
    """Return the parts with a signature on the first call: its own, or the one that skips the check.

    Gemini rejects calls without one from version 3 on, whoever made them; earlier versions ignore it.
    """
    index = next(index for index, part in enumerate(parts) if "functionCall" in part or "function_call" in part)
    if parts[index].get("thoughtSignature") or parts[index].get("thought_signature"):
        return parts
    return [*parts[:index], {**parts[index], "thoughtSignature": _NO_SIGNATURE}, *parts[index + 1 :]]


def _wire_parts(part: Part, ids: CallIds) -> Iterable[Wire]:
    match part:
        case ToolCallPart():
            ids.add(part)
            return [_cased(_function_call(part), part)]
        case ToolResultPart():
            return [_cased(_function_response(part, ids.pop().call), part)]
        case _:
            return [_cased(wire, part) for wire in _plain_parts(part)]


def _plain_parts(part: Part) -> list[Wire]:
    rest = own_fields(part.extra, NAME)
    match part:
        case TextPart(text=text):
            return _told({"text": text, **rest})
        case ReasoningPart(provider=provider, text=text, signature=signature) if provider == NAME:
            signed = {"thoughtSignature": signature} if signature else {}
            return _told({"text": text, "thought": True, **signed, **rest})
        case ImagePart() | FilePart():
            media = _media(part)
            return [_decodable({**media, **rest}) if media else {"text": media_text(part)}]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return _told(block)
        case _:
            return []


def _told(wire: Wire) -> list[Wire]:
    """Return a part, unless it is empty, or an empty text that carries no signature."""
    wire = _decodable(wire)
    is_signed = wire.get("thoughtSignature") or wire.get("thought_signature")
    is_empty = isinstance(wire.get("text"), str) and is_blank(wire["text"]) and not is_signed
    return [] if is_empty or not wire else [wire]


def _decodable(wire: Wire) -> Wire:
    """Return a part without a signature that is not base64, which Gemini refuses together with the request."""
    broken = [
        key
        for key in ("thoughtSignature", "thought_signature")
        if isinstance(wire.get(key), str) and not is_base64(_standard_alphabet(wire[key]))
    ]
    return without(wire, *broken)


def _media(part: ImagePart | FilePart) -> Wire | None:
    source = media_source(part)
    if source.get("data") and _INLINE_TYPES.fullmatch(source["mime"]):
        return {"inlineData": {"mimeType": source["mime"], "data": source["data"]}}
    if part.url.startswith(_UPLOADED):
        return {"fileData": {"fileUri": part.url, **({"mimeType": part.mime} if part.mime else {})}}
    if _FILE_URI.fullmatch(part.url) and type_of(part):
        return {"fileData": {"fileUri": part.url, "mimeType": type_of(part)}}
    return None


def _function_call(call: ToolCallPart) -> Wire:
    rest = own_fields(call.extra, NAME)
    identity = {"id": call.id} if call.id else {}
    args = {} if is_blank(call.arguments) else {"args": object_of(call.arguments)}
    return _decodable(
        {"functionCall": {"name": _name(call), **identity, **args, **rest.pop("functionCall", {})}, **rest}
    )


def _name(call: ToolCallPart) -> str:
    """Return the name of a function, which starts with a letter or an underscore."""
    name = tool_name(call.name, _NAME_CHARACTERS)
    return name if re.match("[a-zA-Z_]", name) else f"_{name}"[:64]


def _function_response(result: ToolResultPart, call: ToolCallPart) -> Wire:
    rest = own_fields(result.extra, NAME)
    identity = {"id": call.id} if call.id else {}
    media = [wire for part in result.parts if NAME in part.extra for wire in _plain_parts(part)]
    parts = {"parts": media} if media else {}
    response = {
        "name": _name(call),
        **identity,
        "response": _response(result),
        **parts,
        **rest.pop("functionResponse", {}),
    }
    return {"functionResponse": response, **rest}


def _response(result: ToolResultPart) -> Wire:
    """Return the object that the tool returned if it still agrees with the parts, else their text."""
    text = "".join(_result_text(part) for part in result.parts if NAME not in part.extra)
    given = result.extra.get(NAME, {}).get("$response")
    if isinstance(given, dict) and _response_text(given) == text:
        return given
    return {"error" if result.is_error else "output": text}


def _result_text(part: ResultContent) -> str:
    match part:
        case TextPart(text=text):
            return text
        case ImagePart() | FilePart():
            return media_text(part)
        case OpaquePart():
            return ""


def _response_text(response: Wire) -> str:
    match response:
        case {"output": str(text), **rest} | {"error": str(text), **rest} if not rest:
            return text
        case _:
            return json.dumps(response, ensure_ascii=False)


def _messages(content: Wire) -> list[Message]:
    """Return one message; a content with function responses becomes two, the results first."""
    rest = without(content, "role", "parts")
    parts = [_read_part(part) for part in content.get("parts") or ()]
    if content.get("role") == "model":
        return [Message(role="assistant", parts=tuple(parts), extra=leftover(NAME, rest))]
    if content.get("role") != "user":
        rest["role"] = content.get("role")
    extra = leftover(NAME, rest)
    results = tuple(part for part in parts if isinstance(part, ToolResultPart))
    others = tuple(part for part in parts if not isinstance(part, ToolResultPart))
    read = [Message(role="tool", parts=results, extra=extra)] if results else []
    return [*read, Message(role="user", parts=others, extra=extra)] if others or not results else read


def _read_part(wire: Wire) -> Part:
    is_snake = any(key in _CAMEL for key in wire)
    part = _known_part(_renamed(wire, _CAMEL))
    if part is not None and is_snake:
        part = msgspec.structs.replace(part, extra=block_extra(NAME, {**part.extra.get(NAME, {}), "$snake": True}))
    if isinstance(part, ToolCallPart | ToolResultPart):
        return part
    if isinstance(part, TextPart | ReasoningPart | ImagePart | FilePart) and not _is_written(part):
        return part
    if part is not None and [_cased(written, part) for written in _plain_parts(part)] == [wire]:
        return part
    return OpaquePart(provider=NAME, block=wire)


def _is_written(part: Part) -> bool:
    """Return whether a request holds a part as such: not left out, and no note in its place."""
    notes = [{"text": media_text(part)}] if isinstance(part, ImagePart | FilePart) else []
    return _plain_parts(part) not in ([], notes)


def _known_part(wire: Wire) -> Part | None:
    match wire:
        case {"functionCall": {"name": str(name)}}:
            return _read_call(name, wire["functionCall"], without(wire, "functionCall"))
        case {"functionResponse": {"name": str(name)}}:
            return _read_response(name, wire["functionResponse"], without(wire, "functionResponse"))
        case {"text": str(text), "thought": True}:
            signature = wire.get("thoughtSignature", "")
            extra = leftover(NAME, without(wire, "text", "thought", "thoughtSignature"))
            return ReasoningPart(provider=NAME, text=text, signature=signature, extra=extra)
        case {"text": str(text)}:
            return TextPart(text=text, extra=leftover(NAME, without(wire, "text")))
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}}:
            return _media_kind(mime)(mime=mime, data=data, extra=leftover(NAME, without(wire, "inlineData")))
        case {"fileData": {"fileUri": str(url)}}:
            mime = wire["fileData"].get("mimeType", "")
            return _media_kind(mime)(mime=mime, url=url, extra=leftover(NAME, without(wire, "fileData")))
        case _:
            return None


def _media_kind(mime: str) -> type[ImagePart | FilePart]:
    return ImagePart if mime.startswith("image/") else FilePart


def _read_call(name: str, call: Wire, rest: Wire) -> ToolCallPart:
    args = call.get("args")
    more = without(call, "name", "id", "args")
    return ToolCallPart(
        id=call.get("id") or "",
        name=name,
        arguments=arguments_of(args) if isinstance(args, dict) else "",
        extra=block_extra(NAME, {**rest, "functionCall": more} if more else rest),
    )


def _read_response(name: str, answer: Wire, rest: Wire) -> ToolResultPart:
    response = answer.get("response") or {}
    more = without(answer, "name", "id", "response", "parts")
    media = tuple(_read_media(part) for part in answer.get("parts") or ())
    return ToolResultPart(
        call_id=answer.get("id") or "",
        name=name,
        parts=(TextPart(text=_response_text(response)), *media),
        is_error="error" in response,
        extra=block_extra(NAME, {**rest, "$response": response, **({"functionResponse": more} if more else {})}),
    )


def _read_media(wire: Wire) -> ResultContent:
    """Return a media part of a function response; the dialect's name in ``extra`` marks that it was a separate part."""
    match _known_part(wire):
        case ImagePart() | FilePart() as part if _plain_parts(part) == [wire]:
            return msgspec.structs.replace(part, extra=block_extra(NAME, part.extra.get(NAME, {})))
        case _:
            return OpaquePart(provider=NAME, block=wire, extra=block_extra(NAME, {}))


def _cased(wire: Wire, part: Part) -> Wire:
    return _renamed(wire, _SNAKE) if part.extra.get(NAME, {}).get("$snake") else wire


def _renamed(wire: Wire, names: dict[str, str]) -> Wire:
    return {names.get(key, key): _renamed_value(key, value, names) for key, value in wire.items()}


def _renamed_value(key: str, value: Any, names: dict[str, str]) -> Any:
    is_media = key in ("inlineData", "inline_data", "fileData", "file_data")
    return _renamed(value, names) if is_media and isinstance(value, dict) else value


def _usage(wire: Wire | None) -> Usage | None:
    if not wire:
        return None
    counts = {_CAMEL_COUNTS.get(key, key): value or 0 for key, value in wire.items()}
    cached = counts.get("cachedContentTokenCount", 0)
    thoughts = counts.get("thoughtsTokenCount", 0)
    return Usage(
        input_tokens=counts.get("promptTokenCount", 0) - cached,
        output_tokens=counts.get("candidatesTokenCount", 0) + thoughts,
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
        total_tokens=counts.get("totalTokenCount", 0),
    )
