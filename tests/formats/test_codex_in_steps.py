"""Rollouts of Codex that are imported while they are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sessiontree as st
from sessiontree.transfer.formats import import_sessions


def rollout(path: Path, *records: tuple[str, dict[str, Any]]) -> list[bytes]:
    lines = [
        json.dumps({"timestamp": f"2026-08-01T10:00:{number:02}Z", "type": kind, "payload": payload}).encode() + b"\n"
        for number, (kind, payload) in enumerate(records)
    ]
    path.write_bytes(b"".join(lines))
    return lines


def item(role: str, words: str) -> tuple[str, dict[str, Any]]:
    kind = "output_text" if role == "assistant" else "input_text"
    return "response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}


def test_a_rollout_that_is_imported_line_by_line_is_as_one_that_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-08-01T10-00-00-019f0000-0000-7000-8000-000000000001.jsonl"
    lines = rollout(
        path,
        ("session_meta", {"id": "019f0000-0000-7000-8000-000000000001", "cli_version": "0.140.0"}),
        item("user", "question"),
        ("event_msg", {"type": "user_message", "message": "question"}),
        ("response_item", {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}),
        item("assistant", "I look"),
        ("event_msg", {"type": "agent_message", "message": "I look"}),
        ("response_item", {"type": "function_call", "name": "read", "arguments": "{}", "call_id": "c1"}),
        ("response_item", {"type": "function_call", "name": "read", "arguments": "{}", "call_id": "c2"}),
        ("response_item", {"type": "function_call_output", "call_id": "c1", "output": "one"}),
        ("response_item", {"type": "function_call_output", "call_id": "c2", "output": "two"}),
        item("assistant", "done"),
        ("event_msg", {"type": "task_complete"}),
    )
    with st.open("memory:") as journal, st.open("memory:") as other:
        (thread,) = import_sessions(other, path).threads
        for end in range(1, len(lines) + 1):
            path.write_bytes(b"".join(lines[:end]))
            import_sessions(journal, path)
        assert journal.entries(thread) == other.entries(thread)
        assert journal.thread(thread).leaf == other.thread(thread).leaf


def test_an_event_that_is_imported_before_its_item_is_no_conflict(tmp_path: Path) -> None:
    path = tmp_path / "rollout-2026-08-01T10-00-00-019f0000-0000-7000-8000-000000000001.jsonl"
    lines = rollout(
        path,
        ("session_meta", {"id": "019f0000-0000-7000-8000-000000000001", "cli_version": "0.140.0"}),
        ("event_msg", {"type": "user_message", "message": "question"}),
        item("user", "question"),
        ("event_msg", {"type": "agent_message", "message": "answer"}),
        item("assistant", "answer"),
        ("event_msg", {"type": "task_complete"}),
        ("event_msg", {"type": "agent_message", "message": "only shown"}),
    )
    with st.open("memory:") as journal:
        for end in range(1, len(lines) + 1):
            path.write_bytes(b"".join(lines[:end]))
            report = import_sessions(journal, path)
            assert report.conflicts == ()
        (thread,) = report.threads
        assert [one.text for one in journal.context(thread).messages] == ["question", "answer", "only shown"]
