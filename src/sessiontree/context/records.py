"""The records of a context."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from sessiontree.model import ArtifactRef, Entry, Message, Part, Role, TextPart
from sessiontree.model._base import Record

__all__ = ["Context", "Loss", "Projected", "Purpose", "Segment", "joined_text"]


Purpose = Literal["provider_request", "compaction", "test_ui"]
"""What a context is built for; ``test_ui`` adds previews and artifacts to its segments."""


class Projected(Record, frozen=True, kw_only=True):
    """A visible message and the entry that it comes from."""

    entry: Entry
    message: Message


class Segment(Record, frozen=True, kw_only=True):
    """The origin and the token estimate of one message of a context.

    ``entry_id`` is empty for a synthetic result: that of a call without one. ``artifact_refs`` and ``ui_preview`` are
    set for the purpose ``test_ui`` only.
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
    """What the model sees: system prompt, messages, token count, model and tools. Each message has a segment.

    ``tokens`` starts from what the provider reported last, if it did; ``estimate`` is our own count alone, as the thread
    has it. Both include the system prompt and the tool definitions that were given, and not the results that are made up
    for calls without one. ``request_tokens`` includes those too: it has to fit into the window.
    """

    system: str = ""
    messages: tuple[Message, ...] = ()
    segments: tuple[Segment, ...] = ()
    tokens: int = 0
    estimate: int = 0
    request_tokens: int = 0
    provider: str = ""
    model: str = ""
    active_tools: tuple[str, ...] = ()

    def losses(self, dialect: str) -> tuple[Loss, ...]:
        """Return what a request in a dialect does not hold of the messages: left out, or a note in its place.

        >>> from sessiontree.model import ReasoningPart
        >>> thought = Message(role="assistant", parts=(ReasoningPart(provider="anthropic", text="hm", signature="c2ln"),))
        >>> [loss.what for loss in Context(messages=(thought,)).losses("gemini")]
        ['reasoning of anthropic']
        """
        from sessiontree.context.dialects import DIALECTS  # noqa: PLC0415  slow to load, and it needs this module
        from sessiontree.context.losses import losses_of  # noqa: PLC0415

        return losses_of(self, DIALECTS[dialect])


class Loss(Record, frozen=True, kw_only=True):
    """What a request does not hold of one message of a context: ``message_index`` tells which."""

    message_index: int
    what: str


def joined_text(parts: Iterable[Part]) -> str:
    """Return the text parts as one string."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))
