"""What is carried to another tool: the messages that the model sees, in order, with calls and results paired."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from sessiontree.context import pair
from sessiontree.journal import Journal
from sessiontree.model import NANOSECONDS, Message, Record, TextPart, ToolResultPart
from sessiontree.model.tool_arguments import decode_arguments

__all__ = [
    "Conversation",
    "NativeSession",
    "Said",
    "arguments_of",
    "conversation_of",
    "json_line",
    "result_text",
    "texts_of",
]


_STEP_NS = NANOSECONDS // 1000
_NAMESPACE = uuid.UUID("5e551017-7ee0-5000-8000-000000000000")


class Said(Record, frozen=True, kw_only=True):
    """A message, its time, and the id of its record in the new session."""

    message: Message
    time_ns: int
    id: str

    @property
    def iso(self) -> str:
        """The time in ISO 8601 with milliseconds."""
        moment = datetime.fromtimestamp(self.time_ns / NANOSECONDS, UTC)
        return f"{moment:%Y-%m-%dT%H:%M:%S}.{self.time_ns // 1_000_000 % 1000:03}Z"


class Conversation(Record, frozen=True, kw_only=True):
    """One path of a thread, as a new session ``id`` of another tool will have it."""

    id: str
    title: str
    workspace: str
    model: str
    provider: str
    system: str
    said: tuple[Said, ...]

    @property
    def start(self) -> Said:
        """The first message, or an empty one at the same time."""
        return self.said[0] if self.said else Said(message=Message(role="user"), time_ns=0, id=self.id)

    @property
    def end_iso(self) -> str:
        """The time of the last message."""
        return self.said[-1].iso if self.said else self.start.iso


class NativeSession(Record, frozen=True, kw_only=True):
    """Files by their paths in the tool's folder, and the command that goes on with them in ``workspace``.

    ``losses`` are what the tool's format left out, once it was read back.
    """

    tool: str
    id: str
    files: dict[str, bytes]
    command: tuple[str, ...]
    workspace: str
    losses: tuple[str, ...] = ()


def conversation_of(
    journal: Journal, thread_id: str, *, session_id: str, now_ns: int, at: str | None = None
) -> Conversation:
    """The conversation of a thread up to its leaf, or up to the entry ``at``."""
    thread = journal.thread(thread_id)
    context = journal.context(thread_id, leaf=at or thread.leaf)
    messages = [item.message for item in pair(context.messages)]
    start_ns = now_ns - len(messages) * _STEP_NS
    said = tuple(
        Said(
            message=message,
            time_ns=start_ns + number * _STEP_NS,
            id=str(uuid.uuid5(_NAMESPACE, f"{session_id} {number}")),
        )
        for number, message in enumerate(messages)
    )
    return Conversation(
        id=session_id,
        title=thread.title,
        workspace=thread.workspace,
        model=context.model or thread.model,
        provider=context.provider or thread.vendor,
        system=context.system,
        said=said,
    )


def json_line(wire: dict[str, Any]) -> bytes:
    """A record as one line."""
    return msgspec.json.encode(wire) + b"\n"


def arguments_of(arguments: str) -> Any:
    """The arguments of a call as an object, which most tools want."""
    found = decode_arguments(arguments)
    return found if isinstance(found, dict) else {"input": arguments}


def result_text(result: ToolResultPart) -> str:
    """The texts of a result."""
    return "\n".join(part.text for part in result.parts if isinstance(part, TextPart))


def texts_of(message: Message) -> Iterator[str]:
    """The texts of a message that are not empty."""
    return (part.text for part in message.parts if isinstance(part, TextPart) and part.text)
