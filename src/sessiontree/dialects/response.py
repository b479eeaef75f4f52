"""A model's answer as the payload of an entry."""

from __future__ import annotations

from sessiontree.dialects.base import Answer
from sessiontree.model import AssistantMessage, Message, ToolCallMessage, Usage

__all__ = ["answer_of"]


def answer_of(*, message: Message, provider: str, model: str, stop_reason: str, usage: Usage | None) -> Answer:
    """The payload for an answer: with calls it is a request for tools."""
    kind = ToolCallMessage if message.tool_calls else AssistantMessage
    return kind(message=message, provider=provider, model=model, stop_reason=stop_reason, usage=usage)
