"""What stands beside the words of a message is found by search, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sessiontree.model import Event
from sessiontree.transfer.formats import import_sessions

TIME = "2026-08-01T10:00:00Z"


def _openwebui() -> tuple[str, Any]:
    answer: dict[str, Any] = {"id": "m", "role": "assistant", "content": "", "error": {"content": "needle one"}}
    answer |= {"sources": [{"document": ["needle two"]}]}
    return "chats.json", [{"id": "c", "user_id": "u", "chat": {"title": "t", "models": [], "messages": [answer]}}]


def _copilot() -> tuple[str, Any]:
    attached = [{"type": "file", "path": "needle-one.py"}, {"type": "selection", "text": "def needle_two(): ..."}]
    return "events.jsonl", [
        {"type": "user.message", "id": "1", "timestamp": TIME, "data": {"content": "look", "attachments": attached}},
        {"type": "hook.end", "id": "2", "timestamp": TIME, "data": {"output": "needle two"}},
    ]


def _chatgpt() -> tuple[str, Any]:
    facts = {"attachments": [{"id": "file-x", "name": "needle one.pdf", "mime_type": "application/pdf"}]}
    content = {"content_type": "brand_new", "payload": {"inner": "needle two"}}
    message = {"author": {"role": "user"}, "content": content, "metadata": facts}
    node: dict[str, Any] = {"id": "n", "parent": None, "children": [], "message": message}
    return "conversations.json", [{"id": "c", "current_node": "n", "mapping": {"n": node}}]


def _claude_code() -> tuple[str, Any]:
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "needle one"}}
    blocks = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "needle two"}]}}
    message = {"role": "user", "content": [plain, blocks]}
    return "s.jsonl", [{"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": message}]


def _openhands() -> tuple[str, Any]:
    frame = {"source": "agent", "timestamp": TIME}
    return "events.jsonl", [
        {"id": "1", "kind": "BrandNewEvent", **frame, "note": "needle one"},
        {"id": "2", "kind": "HookExecutionEvent", **frame, "result": {"stderr": "needle two"}},
    ]


@pytest.mark.parametrize("tool", [_openwebui, _copilot, _chatgpt, _claude_code, _openhands])
def test_side_fields_are_found(tool: Any, tmp_path: Path) -> None:
    name, value = tool()
    path = tmp_path / "session" / name
    path.parent.mkdir()
    is_log = path.suffix == ".jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in value) if is_log else json.dumps(value))
    with st.open("memory:") as journal:
        assert import_sessions(journal, path).damage == ()
        for words in ("needle one", "needle two"):
            assert journal.search(words), words


def test_a_record_that_is_read_better_than_before_is_no_conflict(tmp_path: Path) -> None:
    name, value = _copilot()
    path = tmp_path / name
    path.write_text("".join(json.dumps(one) + "\n" for one in value))
    with st.open("memory:") as journal, st.open("memory:") as before:
        import_sessions(journal, path)
        (thread,) = journal.iter_threads()
        before.create_thread(thread.id, origin={"format": "copilot"})
        for entry, raw in zip(journal.path(thread.id), value, strict=True):
            before.append(thread.id, Event(name="old", data=raw), id=entry.id)
        assert import_sessions(before, path).conflicts == ()
        path.write_text(path.read_text().replace("look", "another text"))
        assert len(import_sessions(before, path).conflicts) == 1
