"""The projection compared with every golden file that the seed program wrote for it."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sessiontree.context import Projected, build_context, extract_checkpoint_summary, project, segments_of
from sessiontree.model import (
    ArtifactRef,
    AssistantMessage,
    BranchSummary,
    Compaction,
    Custom,
    Entry,
    Message,
    Part,
    Payload,
    ReasoningPart,
    ResultView,
    TextPart,
    ToolCallMessage,
    ToolCallPart,
    ToolResultMessage,
    ToolResultPart,
    UserMessage,
)
from sessiontree.tokens import estimate_text

Json = dict[str, Any]

_MESSAGES = {
    "user_message": UserMessage,
    "assistant_message": AssistantMessage,
    "tool_call": ToolCallMessage,
    "tool_result": ToolResultMessage,
}


@pytest.fixture
def golden(seed_fixtures: Path) -> Path:
    return seed_fixtures / "000"


def test_golden_messages_and_segments_of_every_thread(golden: Path) -> None:
    compared = 0
    for prefix, entries in threads(golden):
        path = path_of(entries, read(golden, f"{prefix}.path.json"))
        expected = read(golden, f"{prefix}.projection.json")
        compare(path, expected["messages"] or [], expected["segments"])
        compared += 1
    assert compared


def test_golden_messages_and_segments_of_every_other_branch(golden: Path) -> None:
    compared = 0
    for prefix, entries in threads(golden):
        if (golden / "expected" / f"{prefix}.other_tips.json").exists():
            for tip in read(golden, f"{prefix}.other_tips.json").values():
                projection = tip["projection"]
                segments = {"provider_request": projection.get("segments")}
                compare(path_of(entries, tip["path"]), projection["messages"] or [], segments)
                compared += 1
    assert compared


def test_golden_checkpoints_give_their_summary_back(golden: Path) -> None:
    extracted = 0
    for row in read(golden, "index.json"):
        messages = read(golden, f"{row['file_prefix']}.projection.json")["messages"]
        entries = dict(threads(golden))[row["file_prefix"]]
        view = project(path_of(entries, read(golden, f"{row['file_prefix']}.path.json")))
        for checkpoint in row["checkpoint_summary"] or []:
            index = checkpoint["message_index"]
            assert messages[index]["Kind"] == "compaction_summary"
            assert shortened(extract_checkpoint_summary(view[index].message.text)) == checkpoint["extracted_summary"]
            extracted += 1
    assert extracted


def test_golden_token_estimates_of_texts(golden: Path) -> None:
    rows = read(golden, "tokens_and_hashes.json")
    assert rows
    assert [estimate_text(row["s"]) for row in rows] == [row["tokens"] for row in rows]


def test_golden_threads_have_paired_tool_calls_in_their_context(golden: Path) -> None:
    for prefix, entries in threads(golden):
        context = build_context(path_of(entries, read(golden, f"{prefix}.path.json")))
        calls = [call.id for message in context.messages for call in message.tool_calls]
        results = [result.call_id for message in context.messages for result in message.tool_results]
        assert calls == results
        assert len(context.segments) == len(context.messages)


def compare(path: list[Entry], messages: list[Json], segments: dict[str, list[Json] | None]) -> None:
    view = project(path)
    assert [shortened(go_message(item)) for item in view] == messages
    for purpose, expected in segments.items():
        found = [go_segment(segment) for segment in segments_of(view, purpose)]  # type: ignore[arg-type]
        assert [shortened(segment) for segment in found] == (expected or []), purpose


def threads(golden: Path) -> Iterator[tuple[str, dict[str, Entry]]]:
    for row in read(golden, "index.json"):
        yield row["file_prefix"], journal(golden, row["thread_id"])


def read(golden: Path, name: str) -> Any:
    return json.loads((golden / "expected" / name).read_text(encoding="utf-8"))


def journal(golden: Path, thread_id: str) -> dict[str, Entry]:
    """The entries of a thread as the seed program stored them, by id."""
    name = base64.urlsafe_b64encode(thread_id.strip().encode()).decode().rstrip("=")
    file = golden / "store" / f"id_{name}" / "entries.jsonl"
    lines = file.read_text(encoding="utf-8").split("\n") if file.exists() else []
    entries = [entry_of(json.loads(line)) for line in lines if line]
    return {entry.id: entry for entry in entries}


def path_of(entries: dict[str, Entry], ids: list[str] | None) -> list[Entry]:
    return [entries[entry_id] for entry_id in ids or []]


def entry_of(line: Json) -> Entry:
    return Entry(
        id=line["id"],
        thread_id=line["thread_id"],
        parent=line.get("parent_id"),
        created_ns=0,
        payload=payload_of(line),
    )


def payload_of(line: Json) -> Payload:
    kind = line["type"]
    if kind in _MESSAGES and line["message"]["Role"]:
        return _MESSAGES[kind](message=message_of(line["message"]))
    if kind == "compaction":
        return Compaction(
            id=line.get("compaction_id", ""),
            summary=line.get("summary", ""),
            first_kept_entry_id=line.get("first_kept_entry_id", ""),
            kept_user_entry_ids=tuple(line.get("kept_user_entry_ids", ())),
            generation=line.get("compaction_generation", 0),
            window_id=line.get("compaction_window_id", ""),
        )
    if kind == "branch_summary":
        return BranchSummary(summary=line.get("summary", ""))
    return Custom(name=kind)


def message_of(wire: Json) -> Message:
    return Message(role=wire["Role"], parts=tuple(parts_of(wire)))


def parts_of(wire: Json) -> Iterator[Part]:
    if wire["Reasoning"]:
        yield ReasoningPart(text=wire["Reasoning"])
    if wire["Role"] == "tool":
        yield ToolResultPart(
            call_id=wire["ToolCallID"],
            name=wire["ToolName"],
            parts=(TextPart(text=wire["Content"]),),
            view=view_of(wire["ToolResult"]),
        )
        return
    if wire["Content"]:
        yield TextPart(text=wire["Content"])
    if wire["ToolCallID"] or wire["ToolName"] or wire["ToolArgs"]:
        yield ToolCallPart(id=wire["ToolCallID"], name=wire["ToolName"], arguments=wire["ToolArgs"])


def view_of(wire: Json | None) -> ResultView | None:
    if wire is None:
        return None
    full = wire.get("full_output")
    return ResultView(
        is_truncated=wire.get("truncated", False),
        original_bytes=wire.get("original_bytes", 0),
        visible_bytes=wire.get("visible_bytes", 0),
        original_lines=wire.get("original_lines", 0),
        visible_lines=wire.get("visible_lines", 0),
        strategy=wire.get("strategy", ""),
        content_sha256=wire.get("content_sha256", ""),
        full_output=full and artifact_of(full),
    )


def artifact_of(wire: Json) -> ArtifactRef:
    return ArtifactRef(
        id=wire.get("id", ""),
        label=wire.get("safe_label", ""),
        url=wire.get("url", ""),
        kind=wire.get("kind", ""),
        mime=wire.get("mime", ""),
        size=wire.get("size_bytes", 0),
        sha256=wire.get("sha256", ""),
    )


def go_message(item: Projected) -> Json:
    """A projected message in the words of the seed program."""
    message, entry = item.message, item.entry
    compaction = entry.payload if isinstance(entry.payload, Compaction) else Compaction()
    call = next(iter(message.tool_calls), None)
    result = next(iter(message.tool_results), None)
    return {
        "Role": message.role,
        "Content": Message(role="tool", parts=result.parts).text if result else message.text,
        "Reasoning": "".join(part.text for part in message.parts if isinstance(part, ReasoningPart)),
        "ToolCallID": call.id if call else result.call_id if result else "",
        "ToolName": call.name if call else result.name if result else "",
        "ToolArgs": call.arguments if call else "",
        "EntryID": entry.id,
        "ParentEntryID": entry.parent or "",
        "Kind": message.kind,
        "ToolResult": go_view(result.view) if result else None,
        "CompactionID": compaction.id,
        "CompactionGeneration": compaction.generation,
        "CompactionWindowID": compaction.window_id,
    }


def go_view(view: ResultView | None) -> Json | None:
    if view is None:
        return None
    return without_empty(
        truncated=view.is_truncated,
        original_bytes=view.original_bytes,
        visible_bytes=view.visible_bytes,
        original_lines=view.original_lines,
        visible_lines=view.visible_lines,
        strategy=view.strategy,
        content_sha256=view.content_sha256,
        full_output=view.full_output and go_artifact(view.full_output),
    )


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


def shortened(value: Any) -> Any:
    """Long strings as the golden files write them: by their hash."""
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if isinstance(value, str) and len(value.encode()) > 1500:
        body = value.encode()
        return {"$long": {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body), "chars": len(value)}}
    return value
