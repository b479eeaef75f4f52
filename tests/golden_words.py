"""Our values in the words of floret's program."""

from __future__ import annotations

from typing import Any

from golden_sets import Json
from sessiontree.model import ArtifactRef
from sessiontree.model.tokens import BLANKS

__all__ = ["floret_tokens", "go_segment"]


def floret_tokens(text: str) -> int:
    """Count as floret does: a third of the ASCII characters, plus one for each other character."""
    text = text.strip(BLANKS)
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 3) + len(text) - ascii_count


def go_artifact(artifact: ArtifactRef) -> Json:
    return without_empty(
        id=artifact.id,
        safe_label=artifact.label,
        url=artifact.url,
        kind=artifact.kind,
        mime=artifact.mime,
        size_bytes=artifact.size,
        sha256=artifact.sha256,
    )


def go_segment(segment: Any) -> Json:
    optional = without_empty(
        entry_id=segment.entry_id,
        entry_type=segment.entry_type,
        tool_call_id=segment.tool_call_id,
        tool_name=segment.tool_name,
        artifact_refs=[go_artifact(artifact) for artifact in segment.artifact_refs],
        ui_preview=segment.ui_preview,
    )
    return {
        "message_index": segment.message_index,
        "role": segment.role,
        "token_estimate": segment.token_estimate,
        **optional,
    }


def without_empty(**fields: Any) -> Json:
    return {key: value for key, value in fields.items() if value}
