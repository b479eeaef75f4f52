"""Convert floret's entries and messages to ours and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast, get_args

import msgspec
from msgspec.structs import replace

from sessiontree.context import FLORET_SCHEMA, SUMMARY_SCHEMA, Window
from sessiontree.model import (
    ActiveToolsChange,
    ArtifactRef,
    AssistantMessage,
    BranchSummary,
    Compaction,
    ContextUsage,
    Custom,
    Entry,
    Message,
    ModelChange,
    Part,
    Payload,
    ReasoningPart,
    ResultView,
    Role,
    RunFailure,
    TextPart,
    ThreadInfo,
    ToolCallMessage,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    TurnMarker,
    TurnStatus,
    UnknownPayload,
    UserMessage,
    convert,
    decode_payload,
    encode_payload,
)
from sessiontree.transfer.formats import _go
from sessiontree.transfer.formats._files import from_kept
from sessiontree.transfer.formats._records import ImportedRecord
from sessiontree.transfer.formats.floret import records

__all__ = ["OURS", "message_of", "payload_of", "raw_of", "wire_message", "wire_of"]


OURS = "sessiontree.payload"
"""Metadata key under which a payload is written whole, if floret's entry cannot hold all of it."""

_ROLES = frozenset(get_args(Role))
_STATUSES = frozenset(get_args(TurnStatus))
_MESSAGES = {
    "user_message": UserMessage,
    "assistant_message": AssistantMessage,
    "tool_call": ToolCallMessage,
    "tool_result": ToolResultMessage,
}
_COMPACTION = {
    "compaction_id": "id",
    "previous_compaction_id": "previous_id",
    "compacted_through_entry_id": "through_entry_id",
    "summary_schema_version": "schema_version",
    "compaction_generation": "generation",
    "compaction_window_id": "window_id",
    "first_kept_entry_id": "first_kept_entry_id",
    "kept_user_entry_ids": "kept_user_entry_ids",
    "summary": "summary",
    "compaction_trigger": "trigger",
    "compaction_reason": "reason",
    "compaction_phase": "phase",
    "tokens_before": "tokens_before",
    "tokens_after_estimate": "tokens_after",
}
_DIALECTS = {"anthropic": "anthropic", "openai": "openai-chat", "deepseek": "openai-chat", "google": "gemini"}
_NO_SCHEMA = "floret"
"""The schema of a summary of floret that names none."""
_USAGE = {
    name: {"compaction_needed": "is_compaction_needed", "hard_limit_exceeded": "is_hard_limit_exceeded"}.get(name, name)
    for name in records.FloretUsage.__struct_fields__
}
_ARTIFACT = {"safe_label": "label", "size_bytes": "size"} | {
    name: name for name in ("id", "url", "kind", "mime", "sha256")
}
_NO_USAGE = records.FloretUsage()
_NO_MESSAGE = records.FloretMessage()


def payload_of(entry: records.FloretEntry) -> Payload:
    """The payload for an entry of floret. What it cannot hold shows when the entry is written again for comparison."""
    metadata: dict[str, Any] = entry.metadata
    ours = _our_own(metadata)
    if ours is not None and not _is_copy(ours, entry):
        return ours
    return _native(entry, metadata)


def _native(entry: records.FloretEntry, metadata: dict[str, Any]) -> Payload:
    kind = _MESSAGES.get(entry.type)
    if kind is not None and entry.message.role in _ROLES:
        return _said(kind, entry, metadata)
    match entry.type:
        case "turn_marker" if entry.turn_status in _STATUSES:
            status: Any = entry.turn_status
            is_recoverable = metadata.get("recoverable") == "true"
            reason = metadata.get("reason", "")
            return TurnMarker(status=status, reason=reason, is_recoverable=is_recoverable, metadata=metadata)
        case "compaction":
            return _compaction(entry, metadata)
        case "model_change":
            return ModelChange(provider=entry.provider, model=entry.model, metadata=metadata)
        case "active_tools_change":
            tools = tuple(filter(None, metadata.get("tools", "").split(",")))
            return ActiveToolsChange(tools=tools, metadata=metadata)
        case "branch_summary":
            return BranchSummary(summary=entry.summary, metadata=metadata)
        case "run_failure":
            return RunFailure(error=entry.error, metadata=metadata)
        case "thread_info":
            return ThreadInfo(metadata=metadata)
        case _:
            return _custom(entry, metadata)


def _our_own(metadata: dict[str, Any]) -> Payload | None:
    """The payload that an export wrote into the metadata; ``None`` if there is none or it is damaged."""
    if OURS not in metadata:
        return None
    try:
        return decode_payload(metadata[OURS].encode())
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None


def _is_copy(ours: Payload, entry: records.FloretEntry) -> bool:
    """Whether floret has forked the thread since: it gives a copied compaction the ids of the copies, not our payload."""
    if not isinstance(ours, Compaction) or ours.reverts:
        return False
    return ours.through_entry_id != entry.compacted_through_entry_id


def _said(kind: Any, entry: records.FloretEntry, metadata: dict[str, Any]) -> Payload:
    message = message_of(entry.message, entry.provider)
    if kind in (AssistantMessage, ToolCallMessage):
        return cast(Payload, kind(message=message, provider=entry.provider, model=entry.model, metadata=metadata))
    return cast(Payload, kind(message=message, metadata=metadata))


def _custom(entry: records.FloretEntry, metadata: dict[str, Any]) -> Custom:
    """An entry of the host's own type, or a message without a role, which floret does not show to a model either."""
    if entry.message.role in _ROLES:
        return Custom(name=entry.type, message=message_of(entry.message), metadata=metadata)
    fields = {name: value for name, value in msgspec.to_builtins(entry.message).items() if value}
    return Custom(name=entry.type, data={"message": fields} if fields else None, metadata=metadata)


def _compaction(entry: records.FloretEntry, metadata: dict[str, Any]) -> Compaction:
    fields = {ours: getattr(entry, theirs) for theirs, ours in _COMPACTION.items()}
    fields["schema_version"] = fields["schema_version"] or _NO_SCHEMA
    return Compaction(
        **fields,
        usage_before=_usage(entry.context_usage_before),
        usage_after=_usage(entry.context_usage_after),
        metadata=metadata,
    )


def _usage(usage: records.FloretUsage) -> ContextUsage | None:
    if usage == _NO_USAGE:
        return None
    return ContextUsage(**{ours: getattr(usage, theirs) for theirs, ours in _USAGE.items()})


def message_of(message: records.FloretMessage, provider: str = "") -> Message:
    """Return a message; reasoning belongs to the dialect of the provider that the entry names."""
    role: Any = message.role
    return Message(role=role, parts=_parts(message, _DIALECTS.get(provider, "")), kind=message.kind)


def _parts(message: records.FloretMessage, dialect: str) -> tuple[Part, ...]:
    parts: list[Part] = []
    if message.reasoning:
        parts.append(ReasoningPart(provider=dialect, text=message.reasoning))
    if message.role == "tool":
        text = TextPart(text=message.content)
        view = _view(message.tool_result) if message.tool_result else None
        parts.append(ToolResultPart(call_id=message.tool_call_id, name=message.tool_name, parts=(text,), view=view))
        return tuple(parts)
    if message.content:
        parts.append(TextPart(text=message.content))
    if message.tool_call_id or message.tool_name or message.tool_args:
        parts.append(ToolCallPart(id=message.tool_call_id, name=message.tool_name, arguments=message.tool_args))
    return tuple(parts)


def _view(view: records.ToolResultView) -> ResultView:
    full = view.full_output
    return ResultView(
        is_truncated=view.truncated,
        original_bytes=view.original_bytes,
        visible_bytes=view.visible_bytes,
        original_lines=view.original_lines,
        visible_lines=view.visible_lines,
        strategy=view.strategy,
        content_sha256=view.content_sha256,
        full_output=_artifact(full) if full else None,
    )


def _artifact(artifact: records.FloretArtifact) -> ArtifactRef:
    return ArtifactRef(**{ours: getattr(artifact, theirs) for theirs, ours in _ARTIFACT.items()})


def wire_of(item: ImportedRecord, thread_id: str) -> records.FloretEntry:
    """floret's entry for one of ours."""
    payload = item.payload
    origin: Mapping[str, Any] = getattr(payload, "origin", {})
    entry = records.FloretEntry(
        id=origin.get("id", item.id),
        thread_id=thread_id,
        parent_id=origin.get("parent", item.parent or ""),
        type="custom",
        turn_id=item.turn_id,
        created_at=origin.get("time") or _go.text(item.created_ns),
        message=_NO_MESSAGE,
        context_usage_before=_NO_USAGE,
        context_usage_after=_NO_USAGE,
        metadata=_texts(payload.metadata),
    )
    _fill(entry, payload)
    if OURS not in entry.metadata and not _holds(entry, payload):
        entry.metadata = _texts({**entry.metadata, OURS: encode_payload(_without_origin(payload)).decode()})
    return entry


def set_window(entry: records.FloretEntry, window: Window) -> None:
    """Let an entry at the end of a window say, by floret's rules, what is visible after it.

    floret knows no compaction that reverts another one, and none without a first kept entry keeps nothing. So the
    entry repeats the compaction in force and names the first entry that it keeps, which may be the entry itself.
    """
    boundary = window.boundary
    in_force = boundary.payload if boundary and isinstance(boundary.payload, Compaction) else Compaction()
    for theirs, ours in _COMPACTION.items():
        setattr(entry, theirs, getattr(in_force, ours))
    kept = (*window.tail, *window.after)
    entry.first_kept_entry_id = kept[0].id if kept else entry.id


def _wire_schema(schema: str) -> str:
    return {SUMMARY_SCHEMA: FLORET_SCHEMA, _NO_SCHEMA: ""}.get(schema, schema)


def raw_of(entry: Entry) -> str:
    """The canonical content of an entry as floret writes it; ``content_hash`` of it is floret's RawHash.

    >>> from sessiontree.model.builders import user
    >>> raw_of(Entry(id="e", thread_id="t", parent=None, created_ns=0, payload=user("hi")))[:55]
    '{"type":"user_message","message":{"Role":"user","Conten'
    """
    kept = getattr(entry.payload, "origin", {}).get("line")
    if kept is not None:
        return records.raw_text(_go.as_type(from_kept(kept), records.FloretEntry))
    item = ImportedRecord(entry.payload, entry.id, entry.created_ns, entry.parent, entry.turn_id)
    return records.raw_text(wire_of(item, entry.thread_id))


def _holds(entry: records.FloretEntry, payload: Payload) -> bool:
    """Whether the payload can be read back from the entry as it was."""
    if isinstance(payload, UnknownPayload) or not all(isinstance(value, str) for value in payload.metadata.values()):
        return False
    back: Any = _native(entry, entry.metadata)
    if isinstance(back, Compaction) and isinstance(payload, Compaction):
        # An import counts them again.
        back = replace(back, dropped_tokens=payload.dropped_tokens)
    return bool(replace(back, metadata=payload.metadata, origin=payload.origin) == payload)


def _without_origin(payload: Payload) -> Payload:
    return payload if isinstance(payload, UnknownPayload) else replace(payload, origin={})


def _fill(entry: records.FloretEntry, payload: Payload) -> None:
    """Set the fields of the entry's type."""
    entry.type = str(payload.__struct_config__.tag or "custom")
    match payload:
        case AssistantMessage() | ToolCallMessage():
            entry.message = wire_message(payload.message)
            entry.provider, entry.model = payload.provider, payload.model
        case UserMessage() | ToolResultMessage():
            entry.message = wire_message(payload.message)
        case TurnMarker():
            entry.turn_status = payload.status
            _mark(entry, payload)
        case Compaction():
            for theirs, ours in _COMPACTION.items():
                setattr(entry, theirs, getattr(payload, ours))
            entry.summary_schema_version = _wire_schema(payload.schema_version)
            entry.context_usage_before = _wire_usage(payload.usage_before)
            entry.context_usage_after = _wire_usage(payload.usage_after)
        case ModelChange():
            entry.provider, entry.model = payload.provider, payload.model
        case ActiveToolsChange():
            if payload.tools and "tools" not in entry.metadata:
                entry.metadata = _texts({**entry.metadata, "tools": ",".join(payload.tools)})
        case BranchSummary():
            entry.summary = payload.summary
        case RunFailure():
            entry.error = payload.error
        case ThreadInfo() if not payload.text:
            pass
        case Custom(name=name, data=None | {"message": dict()}) if name == "custom" or name in _MESSAGES:
            entry.type = name
            if payload.message is not None:
                entry.message = wire_message(payload.message)
            elif payload.data is not None:
                entry.message = convert(payload.data["message"], records.FloretMessage)
        case _:
            entry.type = "custom"


def _mark(entry: records.FloretEntry, marker: TurnMarker) -> None:
    if marker.reason and "reason" not in entry.metadata:
        entry.metadata = _texts({**entry.metadata, "reason": marker.reason})
    if marker.is_recoverable and "recoverable" not in entry.metadata:
        entry.metadata = _texts({**entry.metadata, "recoverable": "true"})


def _texts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Metadata as text, with sorted keys as Go writes maps."""
    if not metadata:
        return {}
    pairs = sorted(metadata.items(), key=lambda pair: pair[0].encode())
    return {key: value if isinstance(value, str) else msgspec.json.encode(value).decode() for key, value in pairs}


def _wire_usage(usage: ContextUsage | None) -> records.FloretUsage:
    if usage is None:
        return _NO_USAGE
    return records.FloretUsage(**{theirs: getattr(usage, ours) for theirs, ours in _USAGE.items()})


def wire_message(message: Message) -> records.FloretMessage:
    found = records.FloretMessage(role=message.role, kind=message.kind)
    for part in message.parts:
        match part:
            case TextPart(text=text):
                found.content += text
            case ReasoningPart(text=text):
                found.reasoning += text
            case ToolCallPart():
                found.tool_call_id, found.tool_name, found.tool_args = part.id, part.name, part.arguments
            case ToolResultPart():
                _fill_result(found, part)
    return found


def _fill_result(found: records.FloretMessage, result: ToolResultPart) -> None:
    found.tool_call_id, found.tool_name = result.call_id, result.name
    found.content += "".join(part.text for part in result.parts if isinstance(part, TextPart))
    found.tool_result = _wire_view(result.view) if result.view else None


def _wire_view(view: ResultView) -> records.ToolResultView:
    full = view.full_output
    return records.ToolResultView(
        truncated=view.is_truncated,
        original_bytes=view.original_bytes,
        visible_bytes=view.visible_bytes,
        original_lines=view.original_lines,
        visible_lines=view.visible_lines,
        strategy=view.strategy,
        content_sha256=view.content_sha256,
        full_output=_wire_artifact(full) if full else None,
    )


def _wire_artifact(artifact: ArtifactRef) -> records.FloretArtifact:
    return records.FloretArtifact(**{theirs: getattr(artifact, ours) for theirs, ours in _ARTIFACT.items()})
