"""What a dialect can do."""

from __future__ import annotations

from collections.abc import Callable

from sessiontree.context import Context
from sessiontree.dialects.wire import Wire
from sessiontree.model import AssistantMessage, Message, ToolCallMessage
from sessiontree.model.record import Record

__all__ = ["Answer", "Dialect"]

Answer = AssistantMessage | ToolCallMessage


class Dialect(Record, frozen=True, kw_only=True):
    """A provider's way to write a conversation down, in both directions.

    ``to_request`` gives the fields of a request that carry the conversation; ``from_request`` takes them apart into the
    system text and the messages; ``from_response`` reads the model's answer.
    """

    name: str
    to_request: Callable[[Context], Wire]
    from_request: Callable[[Wire], tuple[str, list[Message]]]
    from_response: Callable[[Wire], Answer]
