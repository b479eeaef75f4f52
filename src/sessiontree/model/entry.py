"""Entries: the immutable records of a tree, with one payload type for each kind."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, overload

from sessiontree.model._base import Record, moment
from sessiontree.model.message import Message, ResultCut

__all__ = [
    "TERMINAL_STATUSES",
    "ActiveToolsChange",
    "AssistantMessage",
    "BranchSummary",
    "Checkpoint",
    "CheckpointMoment",
    "Compaction",
    "ContextUsage",
    "Custom",
    "Entry",
    "Event",
    "Label",
    "Memory",
    "MessagePayload",
    "ModelChange",
    "Payload",
    "Queued",
    "QueuedFor",
    "QueuedMessage",
    "RunFailure",
    "SystemMessage",
    "ThreadInfo",
    "ToolCallMessage",
    "ToolResultMessage",
    "TurnMarker",
    "TurnStatus",
    "UnknownPayload",
    "Usage",
    "UsageReport",
    "UserMessage",
    "entry_type",
]


TurnStatus = Literal["started", "save_point", "completed", "waiting", "failed", "aborted"]

CheckpointMoment = Literal["", "before_turn", "after_turn", "before_move"]

TERMINAL_STATUSES: frozenset[TurnStatus] = frozenset({"completed", "waiting", "failed", "aborted"})


class Usage(Record, frozen=True, kw_only=True):
    """The tokens and cost that a provider reported for one request."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    total_tokens: int = 0
    cost: float = 0.0
    currency: str = ""

    @property
    def context_tokens(self) -> int:
        """The tokens that the conversation took up after this request."""
        if self.total_tokens:
            return self.total_tokens
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


class ContextUsage(Record, frozen=True, kw_only=True):
    """The use of the context window when a compaction was planned."""

    prefix_tokens: int = 0
    message_tokens: int = 0
    input_tokens: int = 0
    context_window: int = 0
    threshold_tokens: int = 0
    ratio_limit_tokens: int = 0
    request_safe_limit_tokens: int = 0
    max_output_tokens: int = 0
    reserved_output: int = 0
    reserved_summary: int = 0
    output_headroom_tokens: int = 0
    auto_compact_ratio_pct: int = 0
    recent_tail_tokens: int = 0
    recent_user_tokens: int = 0
    source: str = ""
    method: str = ""
    confidence: str = ""
    is_compaction_needed: bool = False
    is_hard_limit_exceeded: bool = False


class _Payload(Record, tag_field="type", frozen=True, kw_only=True):
    """``metadata`` belongs to the caller; ``origin`` keeps what an importer could not express in other fields."""

    metadata: dict[str, Any] = {}
    origin: dict[str, Any] = {}


class ThreadInfo(_Payload, tag="thread_info", frozen=True, kw_only=True):
    """A remark about the thread; never in a context."""

    text: str = ""


class TurnMarker(_Payload, tag="turn_marker", frozen=True, kw_only=True):
    """The start, a save point, or the end of a turn."""

    status: TurnStatus
    reason: str = ""
    is_recoverable: bool = False


class SystemMessage(_Payload, tag="system_message", frozen=True, kw_only=True):
    """The system prompt from this entry on; the last one on a path is in force.

    ``replaced_tokens`` are those of the prompt that it replaces; they leave the count of the thread.
    """

    message: Message
    replaced_tokens: int = 0


class UserMessage(_Payload, tag="user_message", frozen=True, kw_only=True):
    """A message of the user."""

    message: Message


class AssistantMessage(_Payload, tag="assistant_message", frozen=True, kw_only=True):
    """A message of the model without tool calls.

    ``is_partial`` means that the answer was interrupted: it is what was shown of it, and in no context.
    """

    message: Message
    provider: str = ""
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    is_partial: bool = False


class ToolCallMessage(_Payload, tag="tool_call", frozen=True, kw_only=True):
    """A message of the model with at least one tool call."""

    message: Message
    provider: str = ""
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None


class ToolResultMessage(_Payload, tag="tool_result", frozen=True, kw_only=True):
    """The results of one or more tool calls."""

    message: Message


class ModelChange(_Payload, tag="model_change", frozen=True, kw_only=True):
    """The model that is used from this entry on."""

    provider: str = ""
    model: str = ""


class ActiveToolsChange(_Payload, tag="active_tools_change", frozen=True, kw_only=True):
    """The tools that are offered from this entry on."""

    tools: tuple[str, ...] = ()


class Compaction(_Payload, tag="compaction", frozen=True, kw_only=True):
    """Replaces the head of the context by a summary and quoted user messages. Nothing is deleted.

    With ``reverts`` set it does the opposite: the compaction of that id is ignored from this entry on. If nothing was
    kept, ``first_kept_entry_id`` is empty and everything after ``tail_after_entry_id`` stays in the context.
    ``dropped_tokens`` are what it takes from the count of the thread, estimated; negative if the context grows.
    ``cut_results`` are kept results that are too large to be shown whole. ``carried_entry_ids`` are entries before the kept
    ones that the context still depends on, such as the system prompt; None if that was not recorded.
    """

    id: str = ""
    summary: str = ""
    previous_id: str = ""
    through_entry_id: str = ""
    first_kept_entry_id: str = ""
    kept_user_entry_ids: tuple[str, ...] = ()
    schema_version: str = ""
    generation: int = 0
    window_id: str = ""
    trigger: str = ""
    reason: str = ""
    phase: str = ""
    strategy: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    dropped_tokens: int = 0
    usage_before: ContextUsage | None = None
    usage_after: ContextUsage | None = None
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    reverts: str = ""
    tail_after_entry_id: str = ""
    instructions: str = ""
    kept_messages: int = 0
    removed_messages: int = 0
    duration_ns: int = 0
    summary_usage: Usage | None = None
    cut_results: tuple[ResultCut, ...] = ()
    carried_entry_ids: tuple[str, ...] | None = None


class BranchSummary(_Payload, tag="branch_summary", frozen=True, kw_only=True):
    """A summary of a branch that the conversation has left."""

    summary: str = ""
    from_entry_id: str = ""
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()


class RunFailure(_Payload, tag="run_failure", frozen=True, kw_only=True):
    """The error that ended a run; never in a context."""

    error: str


class Custom(_Payload, tag="custom", frozen=True, kw_only=True):
    """Data of the caller, kept in order; never in a context."""

    name: str = ""
    data: Any = None
    message: Message | None = None


QueuedFor = Literal["next_step", "next_turn"]


class Queued(_Payload, tag="queued", frozen=True, kw_only=True):
    """A message in the inbox of a thread; never in a context. The turn that takes it appends a message of its own.

    ``settled`` is an earlier one up to which nothing waited any more when this one was queued, so that a reader of the inbox can
    begin there.
    """

    message: Message
    when: QueuedFor = "next_step"
    settled: str = ""


class QueuedMessage(Record, frozen=True, kw_only=True):
    """A message that waits in the inbox of a thread."""

    id: str
    thread_id: str
    message: Message
    when: QueuedFor
    created_ns: int


class Label(_Payload, tag="label", frozen=True, kw_only=True):
    """A name for an entry; the newest one is in force, and an empty one removes the name."""

    target: str
    label: str = ""


class UsageReport(_Payload, tag="usage", frozen=True, kw_only=True):
    """Usage that was reported outside a message."""

    usage: Usage
    provider: str = ""
    model: str = ""


class Event(_Payload, tag="event", frozen=True, kw_only=True):
    """An ordered side event, such as a UI or tunnel event; never in a context."""

    name: str = ""
    stream: str = ""
    event_id: str = ""
    data: Any = None


class Checkpoint(_Payload, tag="checkpoint", frozen=True, kw_only=True):
    """A snapshot of the folder ``root`` at the entry ``target``; the blob ``manifest`` lists the files.

    An empty ``root`` fits every folder: the checkpoint was imported from a program that does not record it.
    ``moment`` is when it was taken: at any time, before or after a turn, or right before leaf move number
    ``before_move`` of the thread, which also moved the files. ``left_out`` counts the files that were not included.
    """

    target: str = ""
    root: str = ""
    manifest: str = ""
    files: int = 0
    size: int = 0
    label: str = ""
    moment: CheckpointMoment = ""
    before_move: int = 0
    left_out: int = 0


class Memory(_Payload, tag="memory", frozen=True, kw_only=True):
    """Lasting facts that were extracted from the conversation."""

    text: str
    tags: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()


class UnknownPayload(Record, frozen=True, kw_only=True):
    """A payload of a type that only a newer version knows, kept byte for byte."""

    type: str
    body: bytes

    @property
    def metadata(self) -> dict[str, Any]:
        """Always empty: the body is not decoded."""
        return {}


MessagePayload = SystemMessage | UserMessage | AssistantMessage | ToolCallMessage | ToolResultMessage

KnownPayload = (
    ThreadInfo
    | TurnMarker
    | SystemMessage
    | UserMessage
    | AssistantMessage
    | ToolCallMessage
    | ToolResultMessage
    | ModelChange
    | ActiveToolsChange
    | Compaction
    | BranchSummary
    | RunFailure
    | Custom
    | Label
    | UsageReport
    | Event
    | Checkpoint
    | Memory
    | Queued
)

Payload = KnownPayload | UnknownPayload


def entry_type(payload: Payload) -> str:
    """Return the wire name of a payload's type."""
    if isinstance(payload, UnknownPayload):
        return payload.type
    return str(payload.__struct_config__.tag)


if TYPE_CHECKING:
    from typing_extensions import TypeVar  # typing has defaults of type variables from Python 3.13 on

    C_co = TypeVar("C_co", covariant=True, bound=Payload | Message, default=Payload)
else:
    from typing import TypeVar

    C_co = TypeVar("C_co", covariant=True)


class _MessageOfEntry:
    """The message of an entry: always there in what was made from a message, optional in other entries."""

    @overload
    def __get__(self, entry: None, owner: type) -> Self: ...
    @overload
    def __get__(self, entry: Entry[MessagePayload | Message], owner: type) -> Message: ...
    @overload
    def __get__(self, entry: Entry[Payload | Message], owner: type) -> Message | None: ...
    def __get__(self, entry: Entry[Payload | Message] | None, owner: type) -> Self | Message | None:
        return self if entry is None else getattr(entry.payload, "message", None)


class Entry(Record, Generic[C_co], frozen=True, kw_only=True):
    """One record of a tree. ``thread_id`` is the thread that it was appended to.

    ``message`` is the message of the payload, or ``None`` if it has none. The type parameter is the type of the content
    that the entry was made from: type checkers know by it that ``append(user("hello")).message`` is a message.
    """

    id: str
    thread_id: str
    parent: str | None
    created_ns: int
    turn_id: str = ""
    payload: Payload

    message = _MessageOfEntry()

    @property
    def type(self) -> str:
        """The wire name of the payload's type."""
        return entry_type(self.payload)

    @property
    def created_at(self) -> datetime:
        """The time of creation, in UTC."""
        return moment(self.created_ns)

    @property
    def raw(self) -> str:
        """The payload as canonical JSON: equal content has an equal text. It is computed, not stored a second time."""
        from sessiontree.model.codec import encode_payload  # noqa: PLC0415  codec imports the payloads from here

        return encode_payload(self.payload).decode()

    @property
    def raw_hash(self) -> str:
        """The SHA-256 of ``raw``."""
        from sessiontree.model.codec import content_hash  # noqa: PLC0415  codec imports the payloads from here

        return content_hash(self.payload)
