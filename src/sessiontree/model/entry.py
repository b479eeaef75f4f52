"""Entries: the immutable records that a tree is made of, as one closed union of payloads."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from sessiontree.model._base import Record, moment
from sessiontree.model.message import Message

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
    """What a provider reported for one request."""

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
        """Tokens that the conversation occupied after this request."""
        if self.total_tokens:
            return self.total_tokens
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


class ContextUsage(Record, frozen=True, kw_only=True):
    """How full the window was when a compaction was decided."""

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
    """``metadata`` belongs to the caller; ``origin`` is what an importer could not express otherwise."""

    metadata: dict[str, Any] = {}
    origin: dict[str, Any] = {}


class ThreadInfo(_Payload, tag="thread_info", frozen=True, kw_only=True):
    text: str = ""


class TurnMarker(_Payload, tag="turn_marker", frozen=True, kw_only=True):
    status: TurnStatus
    reason: str = ""
    is_recoverable: bool = False


class SystemMessage(_Payload, tag="system_message", frozen=True, kw_only=True):
    """The system prompt from here on; the last one on a path counts."""

    message: Message


class UserMessage(_Payload, tag="user_message", frozen=True, kw_only=True):
    message: Message


class AssistantMessage(_Payload, tag="assistant_message", frozen=True, kw_only=True):
    message: Message
    provider: str = ""
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None


class ToolCallMessage(_Payload, tag="tool_call", frozen=True, kw_only=True):
    """An assistant message that asks for at least one tool."""

    message: Message
    provider: str = ""
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None


class ToolResultMessage(_Payload, tag="tool_result", frozen=True, kw_only=True):
    message: Message


class ModelChange(_Payload, tag="model_change", frozen=True, kw_only=True):
    provider: str = ""
    model: str = ""


class ActiveToolsChange(_Payload, tag="active_tools_change", frozen=True, kw_only=True):
    tools: tuple[str, ...] = ()


class Compaction(_Payload, tag="compaction", frozen=True, kw_only=True):
    """The context starts here: a summary of the head, the kept tail, the kept user inputs. Nothing is deleted.

    With ``reverts`` set it is the opposite: the compaction of that id does not count from here on. Where nothing was
    kept there is no first kept entry: what follows ``tail_after_entry_id`` stays, whenever it arrived.
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


class BranchSummary(_Payload, tag="branch_summary", frozen=True, kw_only=True):
    """What happened on a branch that the conversation came back from."""

    summary: str = ""
    from_entry_id: str = ""
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()


class RunFailure(_Payload, tag="run_failure", frozen=True, kw_only=True):
    error: str


class Custom(_Payload, tag="custom", frozen=True, kw_only=True):
    """Anything of the caller's: kept in order, never in a context."""

    name: str = ""
    data: Any = None
    message: Message | None = None


class Label(_Payload, tag="label", frozen=True, kw_only=True):
    """A name for an entry; an empty name takes it away. The newest one counts."""

    target: str
    label: str = ""


class UsageReport(_Payload, tag="usage", frozen=True, kw_only=True):
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
    """A workspace snapshot of ``root`` for the entry ``target``: ``manifest`` is the blob that lists the files.

    No ``root``: it was imported from a program that does not say where its files were, and fits every folder.
    ``moment`` says when it was taken: at any time, before or after a turn, or right before leaf move number
    ``before_move`` of the thread, which moved the files too. ``left_out`` counts what it saw and did not take.
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
    """Durable facts that were drawn out of the conversation."""

    text: str
    tags: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()


class UnknownPayload(Record, frozen=True, kw_only=True):
    """A type written by a newer version: kept byte for byte and passed through."""

    type: str
    body: bytes

    @property
    def metadata(self) -> dict[str, Any]:
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
)

Payload = KnownPayload | UnknownPayload


def entry_type(payload: Payload) -> str:
    """The wire name of a payload's type."""
    if isinstance(payload, UnknownPayload):
        return payload.type
    return str(payload.__struct_config__.tag)


class Entry(Record, frozen=True, kw_only=True):
    """One record of the tree. ``thread_id`` is the thread it was appended through."""

    id: str
    thread_id: str
    parent: str | None
    created_ns: int
    turn_id: str = ""
    payload: Payload

    @property
    def type(self) -> str:
        return entry_type(self.payload)

    @property
    def created_at(self) -> datetime:
        return moment(self.created_ns)

    @property
    def message(self) -> Message | None:
        """The message of the entry, if it has one."""
        match self.payload:
            case UserMessage() | AssistantMessage() | ToolCallMessage() | ToolResultMessage() | SystemMessage():
                return self.payload.message
            case Custom():
                return self.payload.message
            case _:
                return None
