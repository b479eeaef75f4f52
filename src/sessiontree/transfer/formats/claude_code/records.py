"""Claude Code's records in our terms. One response of the model may be split over several lines."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from sessiontree.model import (
    AssistantMessage,
    Event,
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
    UsageReport,
    UserMessage,
)
from sessiontree.transfer.formats._blocks import parts_of
from sessiontree.transfer.formats._records import amount
from sessiontree.transfer.formats._wire import Json, as_text, first_text, mapping, objects, text, usage

__all__ = [
    "ANSWERED_BY",
    "Response",
    "is_summary",
    "message_id",
    "said_by_agent",
    "summary_text",
    "usage_of",
    "user_payloads",
]


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


class Response:
    """A response of the model while its lines are read: each line adds blocks, or repeats them in a longer form."""

    def __init__(self) -> None:
        self._id = ""
        self._said: list[Part] = []

    def has_begun(self, wire: Json) -> bool:
        """Whether a line belongs to the response that was read before it."""
        return bool(self._id) and message_id(wire) == self._id

    def answer(self, wire: Json, spent: Usage | None) -> Payload:
        """What a line says that no earlier line of the same response said; ``spent`` is what it adds to the usage."""
        is_more = self.has_begun(wire)
        if not is_more:
            self._id, self._said = message_id(wire), []
        message = mapping(wire.get("message"))
        parts = tuple(part for found in parts_of(_content(message)) if (part := self._news(found)) is not None)
        model, stop = text(message.get("model")), text(message.get("stop_reason"))
        if is_more and not parts:
            return UsageReport(usage=spent, model=model) if spent else Event(name="assistant", data=wire)
        if wire.get("isApiErrorMessage") is True:
            return RunFailure(error="".join(part.text for part in parts if isinstance(part, TextPart)))
        said = Message(role="assistant", parts=parts)
        kind = ToolCallMessage if said.tool_calls else AssistantMessage
        return kind(message=said, provider=ANSWERED_BY, model=model, stop_reason=stop, usage=spent)

    def _news(self, part: Part) -> Part | None:
        """What a part adds: all of it, the rest of a text that has grown, or nothing."""
        if part in self._said:
            return None
        for index, known in enumerate(self._said):
            match known, part:
                case (TextPart(text=old), TextPart(text=new)) | (ReasoningPart(text=old), ReasoningPart(text=new)) if (
                    old and new.startswith(old)
                ):
                    self._said[index] = part
                    return replace(part, text=new[len(old) :])
        self._said.append(part)
        return part


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


def said_by_agent(wire: Json) -> list[Any]:
    """What a subagent said, called and got, where the session's own log tells it: the subagent's log may be gone."""
    data = mapping(wire.get("data"))
    # A record repeats all messages before its own; a text that led to a call stands nowhere else.
    before = reversed(objects(data.get("normalizedMessages"))[:-1])
    led = list(takewhile(_is_text, map(_content_of, before)))
    contents = (*reversed(led), _content_of(mapping(data.get("message"))))
    return [words for content in contents for words in _said(content)]


def _content_of(line: Json) -> Any:
    return mapping(line.get("message")).get("content")


def _is_text(content: Any) -> bool:
    blocks = objects(content)
    return bool(blocks) and all(block.get("type") in ("text", "thinking") for block in blocks)


def _said(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [content] if content else []
    found: list[Any] = []
    for block in objects(content):
        match block:
            case {"type": "text", "text": words} | {"type": "thinking", "thinking": words}:
                found.append(words)
            case {"type": "tool_use", "name": str(name), "input": given}:
                found.append({name: given})
            case {"type": "tool_result", "content": result}:
                found += _said(result)
    return found
