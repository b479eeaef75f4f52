"""Tell Claude Code's files from others, and its lines from one another."""

from __future__ import annotations

from sessiontree.transfer.formats._transcript import Head
from sessiontree.transfer.formats._wire import Json, mapping, text

__all__ = ["CHAIN_TYPES", "ENVELOPE", "REMARK_TYPES", "SIDE_TYPES", "recognises"]


SIDE_TYPES = frozenset(
    [
        "summary",
        "custom-title",
        "ai-title",
        "last-prompt",
        "tag",
        "agent-name",
        "agent-color",
        "agent-setting",
        "mode",
        "permission-mode",
        "queue-operation",
        "file-history-snapshot",
        "file-history-delta",
        "content-replacement",
        "pr-link",
        "worktree-state",
        "frame-link",
        "started",
        "result",
        "relocated",
        "bridge-session",
        "atis-latch",
        "attribution-snapshot",
        "marble-origami-commit",
        "marble-origami-snapshot",
        "speculation-accept",
    ]
)
"""Lines that are no links of the chain."""

REMARK_TYPES = frozenset({"content-replacement", "started", "result", "speculation-accept", "pr-link"})
"""Those with words that stand nowhere else."""

ENVELOPE = frozenset(
    {
        "type",
        "uuid",
        "parentUuid",
        "logicalParentUuid",
        "sessionId",
        "timestamp",
        "cwd",
        "gitBranch",
        "version",
        "userType",
    }
    | {"isSidechain", "isMeta", "entrypoint", "slug", "level", "subtype", "requestId"}
)
"""What every line says about itself."""

CHAIN_TYPES = frozenset({"user", "assistant", "system", "attachment", "progress"})


def recognises(head: Head) -> bool:
    """Whether a file begins with lines of Claude Code."""
    if head.path.suffix == ".json":
        return head.is_json and head.has("loglines") and head.has("message")
    return any(_is_ours(record) for record in head.records)


def _is_ours(record: Json) -> bool:
    kind = text(record.get("type"))
    if kind in SIDE_TYPES and kind not in ("started", "result", "mode", "summary"):
        return "sessionId" in record or "messageId" in record
    if kind == "summary":
        return "leafUuid" in record
    is_said = kind in ("user", "assistant") and isinstance(record.get("message"), dict)
    named = {"parentUuid", "sessionId", "uuid", "isSidechain", "cwd"} & record.keys()
    if is_said:
        return bool(named) or set(record) <= {"type", "timestamp", "message", "cwd"}
    if kind in ("system", "attachment", "progress"):
        return "uuid" in record and "parentUuid" in record
    return not kind and "sessionId" in record and "usage" in mapping(record.get("message"))
