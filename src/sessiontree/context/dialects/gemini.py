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
from sessiontree.context.dialects._fitting import fitted, named
from sessiontree.context.dialects._media import media_notes, media_source, media_text, standard_alphabet, type_of
from sessiontree.context.dialects._plain import a_text, an_object, counts, objects, plain_request, plain_response
from sessiontree.context.dialects._request_types import GEMINI
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
    check_option,
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
_NAMED_DATA = ("functionCall", "function_call", "functionResponse", "function_response")
_DATA = (
    *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
    *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
)
_OTHER_DATA = tuple(key for key in _DATA if key not in _NAMED_DATA)
_NAME_CHARACTERS = "a-zA-Z0-9_.:-"
_UPLOADED = "https://generativelanguage.googleapis.com/"
_UNKNOWN_TYPE = "unknown/unknown"
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
    check_option("placeholders", placeholders, Placeholders)
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
    request = plain_request(body, NAME)
    contents = enumerate(objects(request.get("contents"), "contents"))
    messages = [message for at, content in contents for message in _messages(content, f"contents[{at}]")]
    return _system(request), messages


def from_response(body: Any) -> Answer:
    """Return the first candidate of a response; a blocked prompt is an answer without content."""
    response = plain_response(body, NAME, _RESPONSE_FIELDS)
    candidate: Wire = next(iter(objects(response.get("candidates"), "candidates")), {})
    content = an_object(candidate.get("content"), "candidates[0].content")
    wires = objects(content.get("parts"), "candidates[0].content.parts")
    parts = tuple(_read_part(_standard(named(part, GEMINI))) for part in wires)
    feedback = an_object(response.get("promptFeedback") or response.get("prompt_feedback"), "promptFeedback")
    return answer_of(
        message=Message(role="assistant", parts=parts),
        provider=NAME,
        model=a_text(response.get("modelVersion") or response.get("model_version"), "modelVersion"),
        stop_reason=_first(candidate, "finishReason", "finish_reason")
        or _first(feedback, "blockReason", "block_reason"),
        usage=_usage(response.get("usageMetadata") or response.get("usage_metadata")),
        around={**without(response, *_NOT_KEPT), **without(candidate, "content", "finishReason", "finish_reason")},
    )


def blocks_of(part: Part, role: Role) -> list[str | Wire]:
    """Return what a request holds of one part of a message."""
    if role == "tool" and not _is_separate(part):
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


def _system(request: Wire) -> str:
    system = request.get("system_instruction") or request.get("systemInstruction")
    if not isinstance(system, dict):
        return a_text(system, "system_instruction")
    texts = (part.get("text") for part in objects(system.get("parts"), "system_instruction.parts"))
    return "\n\n".join(a_text(text, "system_instruction.parts.text") for text in texts if text)


def _first(wire: Wire, *names: str) -> str:
    return next((str(wire[name]) for name in names if wire.get(name)), "")


def _standard(part: Wire) -> Wire:
    """The SDK writes data in the URL alphabet of base64, which other providers reject."""
    media = part.get("inlineData")
    if not isinstance(media, dict) or not isinstance(media.get("data"), str):
        return part
    return {**part, "inlineData": {**media, "data": standard_alphabet(media["data"])}}


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
    return {"role": role, "parts": parts}


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
            return [{**media, **_fields(rest)}] if media else [{"text": media_text(part)}]
        case OpaquePart(provider=provider, block=block) if provider == NAME:
            return [] if any(key in block for key in _NAMED_DATA) else _told(block)
        case _:
            return []


def _told(wire: Wire) -> list[Wire]:
    """Return a part as a request holds it, unless it has no data, or an empty text that carries no signature."""
    held = _fields(wire)
    is_signed = held.get("thoughtSignature")
    is_empty = isinstance(held.get("text"), str) and is_blank(held["text"]) and not is_signed
    return [held] if sum(key in held for key in _DATA) == 1 and not is_empty else []


def _fields(wire: Wire) -> Wire:
    return next(iter(fitted(wire, GEMINI)), {})


def _media(part: ImagePart | FilePart) -> Wire | None:
    source = media_source(part)
    more: Wire = part.extra.get(NAME, {}).get("$media", {})
    if source.get("data") and _INLINE_TYPES.fullmatch(source["mime"]):
        blob = {"mimeType": source["mime"], "data": source["data"], **more}
        return {"inlineData": _fields({"inlineData": blob})["inlineData"]}
    if part.url.startswith(_UPLOADED) or (_FILE_URI.fullmatch(part.url) and type_of(part)):
        file = {"fileUri": part.url, "mimeType": type_of(part) or _UNKNOWN_TYPE, **more}
        held: Wire = _fields({"fileData": file})["fileData"]
        return {"fileData": {key: value for key, value in held.items() if value != _UNKNOWN_TYPE}}
    return None


def _function_call(call: ToolCallPart) -> Wire:
    rest = without(own_fields(call.extra, NAME), *_OTHER_DATA)
    identity = {"id": call.id} if call.id else {}
    args = {} if is_blank(call.arguments) else {"args": object_of(call.arguments)}
    return _fields({"functionCall": {"name": _name(call), **identity, **args, **rest.pop("functionCall", {})}, **rest})


def _name(call: ToolCallPart) -> str:
    """Return the name of a function, which starts with a letter or an underscore."""
    name = tool_name(call.name, _NAME_CHARACTERS)
    return name if re.match("[a-zA-Z_]", name) else f"_{name}"[:64]


def _function_response(result: ToolResultPart, call: ToolCallPart) -> Wire:
    rest = without(own_fields(result.extra, NAME), *_OTHER_DATA)
    identity = {"id": call.id} if call.id else {}
    media = [wire for part in result.parts if _is_separate(part) for wire in _plain_parts(part)]
    parts = {"parts": media} if media else {}
    response = {
        "name": _name(call),
        **identity,
        "response": _response(result),
        **parts,
        **rest.pop("functionResponse", {}),
    }
    return _fields({"functionResponse": response, **rest})


def _is_separate(part: Part) -> bool:
    """Return whether a part of a result was a separate part of a function response, and can be one again."""
    if not isinstance(part, ImagePart | FilePart) or NAME not in part.extra:
        return False
    source = media_source(part)
    return bool(source.get("data")) and _RESULT_TYPES.fullmatch(source["mime"]) is not None


def _response(result: ToolResultPart) -> Wire:
    """Return the object that the tool returned if it still agrees with the parts, else their text."""
    text = "".join(_result_text(part) for part in result.parts if not _is_separate(part))
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


def _messages(content: Wire, place: str) -> list[Message]:
    """Return one message; a content with function responses becomes two, the results first."""
    extra = leftover(NAME, without(content, "role", "parts"))
    wires = enumerate(objects(content.get("parts"), f"{place}.parts"))
    parts = [_read_part(part, f"{place}.parts[{at}]") for at, part in wires]
    if content.get("role") == "model":
        return [Message(role="assistant", parts=tuple(parts), extra=extra)]
    results = tuple(part for part in parts if isinstance(part, ToolResultPart))
    others = tuple(part for part in parts if not isinstance(part, ToolResultPart))
    read = [Message(role="tool", parts=results, extra=extra)] if results else []
    return [*read, Message(role="user", parts=others, extra=extra)] if others or not results else read


def _read_part(wire: Wire, place: str = "candidates[0].content.parts") -> Part:
    is_snake = any(key in _CAMEL for key in wire)
    camel = _renamed(wire, _CAMEL)
    part = _known_part(camel, place)
    if part is not None and is_snake:
        part = msgspec.structs.replace(part, extra=block_extra(NAME, {**part.extra.get(NAME, {}), "$snake": True}))
    if isinstance(part, ToolCallPart | ToolResultPart):
        return part
    if isinstance(part, TextPart | ReasoningPart | ImagePart | FilePart) and not _is_written(part):
        return part
    if part is not None and _plain_parts(part) == _told(camel):
        return part
    return OpaquePart(provider=NAME, block=wire)


def _is_written(part: Part) -> bool:
    """Return whether a request holds a part as such: not left out, and no note in its place."""
    notes = [{"text": media_text(part)}] if isinstance(part, ImagePart | FilePart) else []
    return _plain_parts(part) not in ([], notes)


def _known_part(wire: Wire, place: str) -> Part | None:
    match wire:
        case {"functionCall": {"name": str(name)}}:
            return _read_call(name, wire["functionCall"], without(wire, "functionCall"), place)
        case {"functionResponse": {"name": str(name)}}:
            return _read_response(name, wire["functionResponse"], without(wire, "functionResponse"), place)
        case {"text": str(text), "thought": True}:
            signature = a_text(wire.get("thoughtSignature"), f"{place}.thoughtSignature")
            extra = leftover(NAME, without(wire, "text", "thought", "thoughtSignature"))
            return ReasoningPart(provider=NAME, text=text, signature=signature, extra=extra)
        case {"text": str(text)}:
            return TextPart(text=text, extra=leftover(NAME, without(wire, "text")))
        case {"inlineData": {"mimeType": str(mime), "data": str(data)}}:
            return _media_kind(mime)(mime=mime, data=data, extra=_media_extra(wire, "inlineData"))
        case {"fileData": {"fileUri": str(url)}}:
            mime = a_text(wire["fileData"].get("mimeType"), f"{place}.fileData.mimeType")
            return _media_kind(mime)(mime=mime, url=url, extra=_media_extra(wire, "fileData"))
        case _:
            return None


def _media_kind(mime: str) -> type[ImagePart | FilePart]:
    return ImagePart if mime.lower().startswith("image/") else FilePart


def _media_extra(wire: Wire, key: str) -> Wire:
    more = without(wire[key], "mimeType", "data", "fileUri")
    return leftover(NAME, {**without(wire, key), **({"$media": more} if more else {})})


def _read_call(name: str, call: Wire, rest: Wire, place: str) -> ToolCallPart:
    args = call.get("args")
    more = without(call, "name", "id", "args")
    return ToolCallPart(
        id=a_text(call.get("id"), f"{place}.functionCall.id"),
        name=name,
        arguments=arguments_of(args) if isinstance(args, dict) else "",
        extra=block_extra(NAME, {**rest, "functionCall": more} if more else rest),
    )


def _read_response(name: str, answer: Wire, rest: Wire, place: str) -> ToolResultPart:
    response = an_object(answer.get("response"), f"{place}.functionResponse.response")
    more = without(answer, "name", "id", "response", "parts")
    media = tuple(map(_read_media, objects(answer.get("parts"), f"{place}.functionResponse.parts")))
    return ToolResultPart(
        call_id=a_text(answer.get("id"), f"{place}.functionResponse.id"),
        name=name,
        parts=(TextPart(text=_response_text(response)), *media),
        is_error="error" in response,
        extra=block_extra(NAME, {**rest, "$response": response, **({"functionResponse": more} if more else {})}),
    )


def _read_media(wire: Wire) -> ResultContent:
    """Return a media part of a function response; the dialect's name in ``extra`` marks that it was a separate part."""
    match _known_part(_renamed(wire, _CAMEL), "functionResponse.parts"):
        case ImagePart() | FilePart() as part:
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


def _usage(wire: Any) -> Usage | None:
    if not wire:
        return None
    found = {_CAMEL_COUNTS.get(key, key): value for key, value in counts(wire, "usageMetadata").items()}
    cached = found.get("cachedContentTokenCount", 0)
    thoughts = found.get("thoughtsTokenCount", 0)
    return Usage(
        input_tokens=found.get("promptTokenCount", 0) - cached,
        output_tokens=found.get("candidatesTokenCount", 0) + thoughts,
        cache_read_tokens=cached,
        reasoning_tokens=thoughts,
        total_tokens=found.get("totalTokenCount", 0),
    )
