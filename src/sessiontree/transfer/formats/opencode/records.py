"""OpenCode's messages, which are lists of parts, in our terms: a step of the model, then the results of its calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from sessiontree.model import (
    Compaction,
    Custom,
    FilePart,
    ImagePart,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    RunFailure,
    TextPart,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    Usage,
    UserMessage,
)
from sessiontree.transfer.formats._blocks import arguments_text
from sessiontree.transfer.formats._messages import answer
from sessiontree.transfer.formats._records import amount
from sessiontree.transfer.formats._transcript import Recorder, kept, marked
from sessiontree.transfer.formats._wire import Json, as_text, count, first_text, mapping, objects, text

__all__ = ["Said", "said", "summary_of"]


_SILENT = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "compaction"})
_KNOWN = _SILENT | {"text", "reasoning", "file", "tool", "subtask", "retry"}


class Said(NamedTuple):
    """A payload, with the id of what it was made of."""

    id: str
    payload: Payload


def said(info: Json, parts: list[Json], recorder: Recorder) -> Iterator[Said]:
    """What a message says."""
    for part in parts:
        if text(part.get("type")) not in _KNOWN:
            recorder.unknown(f"part {text(part.get('type'))}", part)
    if info.get("role") == "user":
        content = tuple(found for part in parts if (found := _user_part(part)) is not None)
        is_host = bool(parts) and all(part.get("synthetic") is True for part in parts if part.get("type") == "text")
        message = Message(role="user", parts=content, kind="meta" if is_host and content else "")
        yield Said(text(info.get("id")), kept(UserMessage(message=message), {"info": info, "parts": parts}))
        if text(info.get("system")):
            yield Said(f"{text(info.get('id'))}.system", Custom(name="system", data=info["system"]))
    else:
        yield from _steps(info, parts, recorder)


def _user_part(part: Json) -> Part | None:
    match part.get("type"):
        case "text":
            return TextPart(text=text(part.get("text")))
        case "file":
            return _file(part)
        case "subtask":
            words = (text(part.get("description")), text(part.get("prompt")))
            return TextPart(text="\n".join(filter(None, words)))
        case kind:
            return None if text(kind) in _SILENT else OpaquePart(provider="opencode", block=part)


def _file(part: Json) -> Part:
    url, mime, name = text(part.get("url")), text(part.get("mime")), text(part.get("filename"))
    data = url.partition(";base64,")[2] if url.startswith("data:") else ""
    where: Json = {"data": data} if data else {"url": url}
    return ImagePart(mime=mime, **where) if mime.startswith("image/") else FilePart(mime=mime, name=name, **where)


def _steps(info: Json, parts: list[Json], recorder: Recorder) -> Iterator[Said]:
    """The model's steps. The raw message goes with the first one."""
    recorder.model = text(info.get("modelID")) or recorder.model
    recorder.provider = text(info.get("providerID")) or recorder.provider
    steps = list(_split(parts)) or [[]]
    raw: Any = {"info": info, "parts": parts}
    for number, step in enumerate(steps):
        name = text(info.get("id")) + (f".{number}" if number else "")
        yield from _step(name, step, info, raw, recorder, is_only=len(steps) == 1)
        raw = None
    error = mapping(info.get("error"))
    if error:
        words = text(mapping(error.get("data")).get("message")) or text(error.get("name")) or as_text(error)
        yield Said(f"{text(info.get('id'))}.error", RunFailure(error=words))


def _split(parts: list[Json]) -> Iterator[list[Json]]:
    """The parts of each step: a step ends with its mark, or where text follows calls."""
    step: list[Json] = []
    for part in parts:
        kind = part.get("type")
        if kind in ("text", "reasoning") and any(one.get("type") == "tool" for one in step):
            yield step
            step = []
        step.append(part)
        if kind == "step-finish":
            yield step
            step = []
    if any(text(part.get("type")) not in _SILENT for part in step) or (step and not parts):
        yield step


def _step(name: str, step: list[Json], info: Json, raw: Any, recorder: Recorder, *, is_only: bool) -> Iterator[Said]:
    tools = [part for part in step if part.get("type") == "tool"]
    content: list[Part] = []
    for part in step:
        match part.get("type"):
            case "text":
                content.append(TextPart(text=text(part.get("text"))))
            case "reasoning":
                content.append(ReasoningPart(provider="opencode", text=text(part.get("text"))))
            case "file":
                content.append(_file(part))
            case "tool":
                content.append(_call(part))
            case kind if text(kind) not in _SILENT:
                content.append(OpaquePart(provider="opencode", block=part))
    end = next((part for part in step if part.get("type") == "step-finish"), info if is_only else {})
    message = answer(
        content,
        provider=recorder.provider,
        model=recorder.model,
        stop_reason=text(end.get("reason") or end.get("finish")),
        usage=_usage(end),
    )
    name = marked(name, message)
    yield Said(name, kept(message, raw) if raw else message)
    results = tuple(
        _result(part) for part in tools if mapping(part.get("state")).get("status") not in ("pending", "running")
    )
    if results:
        found = ToolResultMessage(message=Message(role="tool", parts=results))
        yield Said(marked(name, found), found)


def _call(part: Json) -> ToolCallPart:
    state = mapping(part.get("state"))
    return ToolCallPart(
        id=text(part.get("callID")) or text(part.get("id")),
        name=text(part.get("tool")),
        arguments=arguments_text(state.get("input")),
    )


def _result(part: Json) -> ToolResultPart:
    state = mapping(part.get("state"))
    words = first_text(state, "output", "error") or as_text(state.get("output"))
    content: list[Any] = [TextPart(text=words), *(_file(file) for file in objects(state.get("attachments")))]
    return ToolResultPart(
        call_id=text(part.get("callID")) or text(part.get("id")),
        name=text(part.get("tool")),
        parts=tuple(content),
        is_error=state.get("status") == "error",
    )


def _usage(wire: Json) -> Usage | None:
    tokens, cache = mapping(wire.get("tokens")), mapping(mapping(wire.get("tokens")).get("cache"))
    counts: Json = {
        "input_tokens": count(tokens.get("input")),
        "output_tokens": count(tokens.get("output")),
        "reasoning_tokens": count(tokens.get("reasoning")),
        "cache_read_tokens": count(cache.get("read")),
        "cache_write_tokens": count(cache.get("write")),
    }
    cost = amount(wire.get("cost"))
    paid: Json = {"cost": cost, "currency": "USD"} if cost else {}
    found = {name: number for name, number in counts.items() if number} | paid
    return Usage(**found) if found else None


def summary_of(info: Json, parts: list[Json], kept_from: str, before: str) -> Compaction:
    """The compaction whose summary the message is."""
    words = "\n".join(text(part.get("text")) for part in parts if part.get("type") == "text")
    return Compaction(id=text(info.get("id")), summary=words, first_kept_entry_id=kept_from, tail_after_entry_id=before)
