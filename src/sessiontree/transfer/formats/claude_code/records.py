"""Claude Code's records in our terms. One response of the model may be split over several lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sessiontree.model import (
    AssistantMessage,
    Message,
    OpaquePart,
    Part,
    Payload,
    ReasoningPart,
    RunFailure,
    TextPart,
    ToolCallMessage,
    ToolResultMessage,
    ToolResultPart,
    Usage,
    UserMessage,
)
from sessiontree.transfer.formats._blocks import parts_of
from sessiontree.transfer.formats._records import amount
from sessiontree.transfer.formats._wire import Json, as_text, first_text, mapping, objects, text, usage

__all__ = ["ANSWERED_BY", "answer_of", "is_summary", "message_id", "summary_text", "usage_of", "user_payloads"]


ANSWERED_BY = "anthropic"
_SUMMARY_START = "This session is being continued from a previous conversation"
_COUNTS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


def message_id(wire: Json) -> str:
    """The id of the model's response; empty if the line is none."""
    return text(mapping(wire.get("message")).get("id"))


def answer_of(wires: Sequence[Json], spent: Usage | None) -> Payload:
    """The model's message of all lines of one response."""
    last = mapping(wires[-1].get("message"))
    parts: list[Part] = []
    for wire in wires:
        for part in parts_of(_content(mapping(wire.get("message")))):
            _add(parts, part)
    if any(wire.get("isApiErrorMessage") is True for wire in wires):
        return RunFailure(error="".join(part.text for part in parts if isinstance(part, TextPart)))
    message = Message(role="assistant", parts=tuple(parts))
    kind = ToolCallMessage if message.tool_calls else AssistantMessage
    model, stop = text(last.get("model")), text(last.get("stop_reason"))
    return kind(message=message, provider=ANSWERED_BY, model=model, stop_reason=stop, usage=spent)


def _content(message: Json) -> Any:
    """The content of a message; Qwen Code, which uses the same envelope, writes Gemini's parts."""
    if "content" in message or not isinstance(message.get("parts"), list):
        return message.get("content")
    return [_block(part) for part in objects(message["parts"])]


def _block(part: Json) -> Json:
    call, answer = mapping(part.get("functionCall")), mapping(part.get("functionResponse"))
    if call:
        return {"type": "tool_use", "id": text(call.get("id")), "name": call.get("name"), "input": call.get("args")}
    if answer:
        response = mapping(answer.get("response"))
        said = first_text(response, "output", "error") or as_text(response)
        is_error = "error" in response
        return {"type": "tool_result", "tool_use_id": text(answer.get("id")), "content": said, "is_error": is_error}
    if part.get("thought") is True:
        return {"type": "thinking", "thinking": text(part.get("text"))}
    return {"type": "text", "text": text(part.get("text"))} if "text" in part else part


def _add(parts: list[Part], part: Part) -> None:
    """Add a part unless it is there; a longer form of a text, as a growing snapshot has it, replaces the shorter."""
    if part in parts:
        return
    for index, known in enumerate(parts):
        match known, part:
            case (TextPart(text=old), TextPart(text=new)) | (ReasoningPart(text=old), ReasoningPart(text=new)) if (
                old and new.startswith(old)
            ):
                parts[index] = part
                return
    parts.append(part)


def usage_of(wire: Json) -> Usage | None:
    """The tokens of a response, and the cost that older versions wrote."""
    return usage(mapping(wire.get("message")).get("usage"), _COUNTS, amount(wire.get("costUSD")))


def user_payloads(wire: Json) -> list[Payload]:
    """What a user line says: tool results, then what the user or the host said beside them."""
    message = wire.get("message")
    content = _content(message) if isinstance(message, dict) else message
    if content is None:
        content = wire.get("toolUseResult")
    parts = parts_of(content)
    results = tuple(part for part in parts if isinstance(part, ToolResultPart))
    others = tuple(part for part in parts if not isinstance(part, ToolResultPart))
    found: list[Payload] = []
    if results:
        found.append(ToolResultMessage(message=Message(role="tool", parts=results)))
    if others or not results:
        kind = "meta" if wire.get("isMeta") is True else ""
        found.append(UserMessage(message=Message(role="user", parts=others, kind=kind)))
    return found


def is_summary(wire: Json) -> bool:
    """Whether a user line holds the summary of a compaction."""
    if wire.get("isCompactSummary") is True:
        return True
    content = mapping(wire.get("message")).get("content")
    return isinstance(content, str) and content.startswith(_SUMMARY_START)


def summary_text(wire: Json) -> str:
    """The words of a summary."""
    parts = parts_of(_content(mapping(wire.get("message"))))
    return "\n".join(_words(part) for part in parts if isinstance(part, TextPart | OpaquePart))


def _words(part: TextPart | OpaquePart) -> str:
    return part.text if isinstance(part, TextPart) else ""
