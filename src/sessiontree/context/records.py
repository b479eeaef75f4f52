"""What a context is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sessiontree.model import ArtifactRef, Entry, Message, Part, Role, TextPart
from sessiontree.model._base import Record

__all__ = ["Context", "Projected", "Purpose", "Segment", "joined_text"]


Purpose = Literal["provider_request", "compaction", "test_ui"]


class Projected(Record, frozen=True, kw_only=True):
    """A message of the view and the entry that it comes from."""

    entry: Entry
    message: Message


class Segment(Record, frozen=True, kw_only=True):
    """Where one message of a context comes from and what it costs.

    ``entry_id`` is empty for a message that no entry holds: the answer made up for a call without a result.
    ``artifact_refs`` and ``ui_preview`` are filled for the purpose ``test_ui`` only.
    """

    entry_id: str
    parent_entry_id: str = ""
    entry_type: str
    message_index: int
    role: Role
    kind: str = ""
    tool_call_id: str = ""
    tool_name: str = ""
    token_estimate: int = 0
    compaction_id: str = ""
    compaction_generation: int = 0
    compaction_window_id: str = ""
    artifact_refs: tuple[ArtifactRef, ...] = ()
    ui_preview: str = ""


class Context(Record, frozen=True, kw_only=True):
    """What the model sees. ``segments`` has one item for each message."""

    system: str = ""
    messages: tuple[Message, ...] = ()
    segments: tuple[Segment, ...] = ()
    tokens: int = 0
    provider: str = ""
    model: str = ""
    active_tools: tuple[str, ...] = ()


def joined_text(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextPart))
