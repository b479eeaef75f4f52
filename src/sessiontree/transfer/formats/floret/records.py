"""The records of floret's files, with their fields in the order in which Go writes them."""

from __future__ import annotations

import base64

import msgspec
from msgspec import field

from sessiontree.model import Thread, content_hash
from sessiontree.model.tokens import BLANKS
from sessiontree.transfer.formats import _go

__all__ = [
    "FloretArtifact",
    "FloretEntry",
    "FloretMessage",
    "FloretUsage",
    "ThreadMeta",
    "ToolResultView",
    "encode_entry",
    "folder_name",
    "meta_of",
    "raw_text",
]


class FloretArtifact(msgspec.Struct, omit_defaults=True):
    id: str = ""
    safe_label: str = ""
    url: str = ""
    kind: str = ""
    mime: str = ""
    size_bytes: int = 0
    sha256: str = ""


class ToolResultView(msgspec.Struct, omit_defaults=True):
    truncated: bool = False
    original_bytes: int = 0
    visible_bytes: int = 0
    original_lines: int = 0
    visible_lines: int = 0
    strategy: str = ""
    content_sha256: str = ""
    full_output: FloretArtifact | None = None


class FloretMessage(msgspec.Struct):
    role: str = field(name="Role", default="")
    content: str = field(name="Content", default="")
    reasoning: str = field(name="Reasoning", default="")
    tool_call_id: str = field(name="ToolCallID", default="")
    tool_name: str = field(name="ToolName", default="")
    tool_args: str = field(name="ToolArgs", default="")
    entry_id: str = field(name="EntryID", default="")
    parent_entry_id: str = field(name="ParentEntryID", default="")
    kind: str = field(name="Kind", default="")
    tool_result: ToolResultView | None = field(name="ToolResult", default=None)
    compaction_id: str = field(name="CompactionID", default="")
    compaction_generation: int = field(name="CompactionGeneration", default=0)
    compaction_window_id: str = field(name="CompactionWindowID", default="")


class FloretUsage(msgspec.Struct, omit_defaults=True):
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
    compaction_needed: bool = False
    hard_limit_exceeded: bool = False


class FloretEntry(msgspec.Struct, omit_defaults=True, kw_only=True):
    id: str
    thread_id: str
    parent_id: str = ""
    type: str
    turn_id: str = ""
    created_at: str
    message: FloretMessage
    raw: str = ""
    raw_hash: str = ""
    turn_status: str = ""
    provider: str = ""
    model: str = ""
    compaction_id: str = ""
    previous_compaction_id: str = ""
    compacted_through_entry_id: str = ""
    summary_schema_version: str = ""
    compaction_generation: int = 0
    compaction_window_id: str = ""
    first_kept_entry_id: str = ""
    kept_user_entry_ids: tuple[str, ...] = ()
    summary: str = ""
    compaction_trigger: str = ""
    compaction_reason: str = ""
    compaction_phase: str = ""
    tokens_before: int = 0
    tokens_after_estimate: int = 0
    context_usage_before: FloretUsage
    context_usage_after: FloretUsage
    error: str = ""
    metadata: dict[str, str] = {}


class _Raw(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The content of an entry that is hashed: everything but id, parent and time."""

    type: str
    turn_status: str = ""
    message: FloretMessage
    provider: str = ""
    model: str = ""
    compaction_id: str = ""
    previous_compaction_id: str = ""
    compacted_through_entry_id: str = ""
    summary_schema_version: str = ""
    compaction_generation: int = 0
    compaction_window_id: str = ""
    first_kept_entry_id: str = ""
    kept_user_entry_ids: tuple[str, ...] = ()
    summary: str = ""
    compaction_trigger: str = ""
    compaction_reason: str = ""
    compaction_phase: str = ""
    tokens_before: int = 0
    tokens_after_estimate: int = 0
    error: str = ""
    metadata: dict[str, str] = {}


class ThreadMeta(msgspec.Struct, omit_defaults=True, kw_only=True):
    id: str
    leaf_id: str = ""
    parent_thread_id: str = ""
    forked_from_thread_id: str = ""
    forked_from_entry_id: str = ""
    archived: bool = False
    title: str = ""
    title_status: str = ""
    title_source: str = ""
    title_updated_at: str
    title_error: str = ""
    created_at: str
    updated_at: str
    status: str = ""
    last_viewed_at: str


class TurnLease(msgspec.Struct, kw_only=True):
    thread_id: str = ""
    turn_id: str = ""
    owner_id: str = ""
    created_at: str = _go.ZERO


_PLAIN = ("type", "message")
_REST = tuple(name for name in _Raw.__struct_fields__ if name not in _PLAIN)


def raw_text(entry: FloretEntry) -> str:
    """The canonical content of an entry, as floret hashes it."""
    given = {name: value for name in _REST if (value := getattr(entry, name))}
    return _go.encode(_Raw(type=entry.type, message=entry.message, **given)).decode()


def encode_entry(entry: FloretEntry) -> bytes:
    """The line of an entry, with ``raw`` and ``raw_hash`` computed."""
    entry.raw = raw_text(entry)
    entry.raw_hash = content_hash(entry.raw)
    return _go.encode(entry)


def folder_name(thread_id: str) -> str:
    """The name that floret gives the folder of a thread.

    >>> folder_name("a/b")
    'id_YS9i'
    """
    trimmed = thread_id.strip(BLANKS)
    return "id_" + base64.urlsafe_b64encode(trimmed.encode()).decode().rstrip("=") if trimmed else "_"


def meta_of(thread: Thread) -> bytes:
    """The contents of thread.json for a thread."""
    origin = thread.origin
    meta = ThreadMeta(
        id=origin.get("id", thread.id),
        leaf_id=thread.leaf or "",
        parent_thread_id=thread.parent_thread,
        forked_from_thread_id=thread.forked_from_thread or origin.get("forked_from_thread", ""),
        forked_from_entry_id=thread.forked_from_entry or origin.get("forked_from_entry", ""),
        archived=thread.is_archived,
        title=thread.title,
        title_status=thread.title_status,
        title_source=thread.title_source,
        title_updated_at=_text(thread.title_updated_ns),
        title_error=thread.title_error,
        created_at=_text(thread.created_ns),
        updated_at=_text(thread.updated_ns),
        status=thread.status,
        last_viewed_at=_text(thread.last_viewed_ns),
    )
    return _go.indented(_go.encode(meta))


def _text(time_ns: int) -> str:
    return _go.text(time_ns) if time_ns else _go.ZERO
