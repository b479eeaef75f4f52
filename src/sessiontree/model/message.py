"""Messages and their parts: text, reasoning, images, files, tool calls and tool results.

A message keeps everything that its provider has to see again. Fields that only one provider knows are in ``extra``; a
block of an unknown type is kept whole in an ``OpaquePart``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from sessiontree.model._base import Record

__all__ = [
    "ArtifactRef",
    "FilePart",
    "ImagePart",
    "Message",
    "OpaquePart",
    "Part",
    "ReasoningPart",
    "ResultCut",
    "ResultView",
    "Role",
    "TextPart",
    "ToolCallPart",
    "ToolResultPart",
]


_LONGEST_WORD = 200
"""Longer texts without a blank are data."""

Role = Literal["system", "user", "assistant", "tool"]


class ArtifactRef(Record, frozen=True, kw_only=True):
    """A large payload that is stored outside the entry, under its content hash."""

    sha256: str = ""
    size: int = 0
    mime: str = ""
    kind: str = ""
    id: str = ""
    label: str = ""
    url: str = ""
    preview: str = ""


class ResultView(Record, frozen=True, kw_only=True):
    """How a tool result was truncated for the model, and where the full output is."""

    is_truncated: bool = False
    original_bytes: int = 0
    visible_bytes: int = 0
    original_lines: int = 0
    visible_lines: int = 0
    strategy: str = ""
    content_sha256: str = ""
    full_output: ArtifactRef | None = None


class ResultCut(Record, frozen=True, kw_only=True):
    """How much of a tool result the model sees: its first ``head`` and its last ``tail`` characters.

    ``full_output`` is the artifact that holds the whole text.
    """

    entry_id: str
    call_id: str
    head: int
    tail: int
    full_output: ArtifactRef


class _Part(Record, tag_field="type", frozen=True, kw_only=True):
    extra: dict[str, Any] = {}


class TextPart(_Part, tag="text", frozen=True, kw_only=True):
    """Plain text."""

    text: str


class ReasoningPart(_Part, tag="reasoning", frozen=True, kw_only=True):
    """A model's reasoning: readable text, a signature of it, or a provider's encrypted blob.

    ``provider`` is the dialect it was read from. Other dialects leave it out: providers reject foreign signatures.
    """

    provider: str = ""
    text: str = ""
    signature: str = ""
    encrypted: str = ""
    id: str = ""


class ImagePart(_Part, tag="image", frozen=True, kw_only=True):
    """An image by URL, by base64 ``data``, or by artifact."""

    url: str = ""
    data: str = ""
    mime: str = ""
    artifact: ArtifactRef | None = None


class FilePart(_Part, tag="file", frozen=True, kw_only=True):
    """A file by URL, by base64 ``data``, or by artifact."""

    url: str = ""
    data: str = ""
    mime: str = ""
    name: str = ""
    artifact: ArtifactRef | None = None


class ToolCallPart(_Part, tag="tool_call", frozen=True, kw_only=True):
    """A tool call of the model; ``arguments`` is the exact string that the model produced."""

    id: str
    name: str
    arguments: str = "{}"


class OpaquePart(_Part, tag="opaque", frozen=True, kw_only=True):
    """A provider's block of an unknown type, kept unchanged."""

    provider: str
    block: Any

    @property
    def words(self) -> list[str]:
        """The texts in the block, without its keys, numbers and encrypted data."""
        return list(_words_in(self.block))


ResultContent = TextPart | ImagePart | FilePart | OpaquePart


class ToolResultPart(_Part, tag="tool_result", frozen=True, kw_only=True):
    """The result of the tool call ``call_id``; ``view`` tells how it was truncated."""

    call_id: str
    name: str = ""
    parts: tuple[ResultContent, ...] = ()
    is_error: bool = False
    view: ResultView | None = None


Part = TextPart | ReasoningPart | ImagePart | FilePart | ToolCallPart | ToolResultPart | OpaquePart


class Message(Record, frozen=True, kw_only=True):
    """A message in a conversation; ``kind`` marks messages that sessiontree makes, such as a summary."""

    role: Role
    parts: tuple[Part, ...] = ()
    name: str = ""
    kind: str = ""
    extra: dict[str, Any] = {}

    @property
    def text(self) -> str:
        """The text parts as one string, without reasoning, tool calls and results."""
        return "".join([part.text for part in self.parts if isinstance(part, TextPart)])

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The tool calls of the message."""
        return tuple([part for part in self.parts if isinstance(part, ToolCallPart)])

    @property
    def tool_results(self) -> tuple[ToolResultPart, ...]:
        """The tool results of the message."""
        return tuple([part for part in self.parts if isinstance(part, ToolResultPart)])


def _words_in(block: Any) -> Iterator[str]:
    match block:
        case str():
            if len(block) <= _LONGEST_WORD or " " in block[:_LONGEST_WORD]:
                yield block
        case dict():
            for item in block.values():
                yield from _words_in(item)
        case list():
            for item in block:
                yield from _words_in(item)
