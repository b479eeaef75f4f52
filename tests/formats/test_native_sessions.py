"""Conversations go on in other tools: written as new sessions, by the tool's own rules, read back and compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from transcript_samples import Sample, samples

import sessiontree as st
from sessiontree.errors import DamagedDataError, InvalidInputError
from sessiontree.transfer.formats import import_sessions
from sessiontree.transfer.native import TOOLS, continue_in, native_session
from sessiontree.transfer.native import place as native_place
from sessiontree.transfer.native.conversation import NativeSession

PNG = "iVBORw0KGgo="


def conversation(journal: st.Journal) -> str:
    """A conversation with tools, an image, a failure, parallel calls, a branch and a compaction."""
    journal.create_thread("t", title="Fix it", workspace="/home/me/my.shop", model="gpt-5", vendor="openai")
    journal.append("t", st.user("an old question"))
    old = journal.append("t", st.assistant("an old answer"))
    journal.append("t", st.Compaction(summary="They greeted.", tail_after_entry_id=old.id))
    journal.append("t", st.user([st.TextPart(text="look at this"), st.ImagePart(data=PNG, mime="image/png")]))
    calls = [st.call("c1", "read", '{"path": "a.py"}'), st.call("c2", "bash", '{"command": "false"}')]
    asked = journal.append("t", st.assistant("I look.", calls=calls, reasoning="hm"))
    journal.append("t", st.tool_result("c1", "print(1)", name="read"))
    journal.append("t", st.tool_result("c2", "exit code 1", name="bash", is_error=True))
    journal.append("t", st.assistant("on another branch"), parent=asked.id)
    journal.rewind("t", journal.entries("t")[-2].id)
    journal.append("t", st.assistant("Ünïcode, and a \u2028 separator."))
    journal.append("t", st.user("thanks"))
    return "t"


@pytest.mark.parametrize("tool", TOOLS)
def test_a_conversation_goes_on_in_another_tool(tool: str, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        thread = conversation(journal)
        session = continue_in(journal, thread, tool, environment={}, home=tmp_path)
        (path,) = session.files
        assert Path(path).read_bytes() == session.files[path]
        assert Path(path).stat().st_mode & 0o777 == 0o600
        assert session.id in " ".join(session.command)
        assert not list(tmp_path.rglob("*.part"))
    with st.open("memory:") as journal:
        report = import_sessions(journal, path, format=tool)
        assert (report.not_understood, report.damage) == (0, ())
        (found,) = report.threads
        said = " ".join(message.text for message in journal.context(found).messages)
        assert "They greeted." in said
        assert "an old answer" not in said
        assert "another branch" not in said
        assert journal.thread(found).workspace == ("/home/me/my.shop")


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("sample", [one for one in samples() if "synthetic" in one.name], ids=lambda one: one.name)
def test_every_sample_goes_on_in_every_tool(sample: Sample, tool: str, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        for thread in import_sessions(journal, sample.path).threads:
            if journal.context(thread).messages:
                continue_in(journal, thread, tool, environment={}, home=tmp_path)


def test_a_session_of_claude_code_obeys_its_rules(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        session = native_session(journal, conversation(journal), "claude-code")
    ((name, body),) = session.files.items()
    assert name == f"projects/-home-me-my-shop/{session.id}.jsonl"
    lines = [json.loads(line) for line in body.splitlines()]
    *chain, title = lines
    assert title == {"type": "custom-title", "customTitle": "Fix it", "sessionId": session.id}
    assert [line["parentUuid"] for line in chain] == [None, *(line["uuid"] for line in chain[:-1])]
    assert [line["timestamp"] for line in chain] == sorted(line["timestamp"] for line in chain)
    assert all(line["isSidechain"] is False and line["userType"] == "external" for line in chain)
    blocks = [
        block for line in chain if isinstance(line["message"]["content"], list) for block in line["message"]["content"]
    ]
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    assert calls == [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    assert not [block for block in blocks if block["type"] == "thinking"]


def test_a_rollout_of_codex_obeys_its_rules() -> None:
    with st.open("memory:") as journal:
        session = native_session(journal, conversation(journal), "codex")
    ((name, body),) = session.files.items()
    lines = [json.loads(line) for line in body.splitlines()]
    assert lines[0]["type"] == "session_meta"
    assert lines[0]["payload"]["id"] == session.id
    assert session.id in name
    items = [line["payload"] for line in lines if line["type"] == "response_item"]
    assert all(isinstance(item["arguments"], str) for item in items if item["type"] == "function_call")
    calls = [item["call_id"] for item in items if item["type"] == "function_call"]
    assert calls == [item["call_id"] for item in items if item["type"] == "function_call_output"]
    events = [line["payload"]["type"] for line in lines if line["type"] == "event_msg"]
    assert events.count("task_started") == events.count("task_complete")


def test_an_existing_file_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with st.open("memory:") as journal:
        thread = conversation(journal)
        session = continue_in(journal, thread, "codex", environment={}, home=tmp_path)
        monkeypatch.setattr(native_place, "native_session", lambda *_, **__: _again(session, tmp_path))
        with pytest.raises(InvalidInputError, match="already exists"):
            continue_in(journal, thread, "codex", environment={}, home=tmp_path)
    assert [path.read_bytes() for path in tmp_path.rglob("*.jsonl")] == list(session.files.values())


def _again(session: NativeSession, home: Path) -> NativeSession:
    files = {str(Path(name).relative_to(home / ".codex")): b"other" for name in session.files}
    return replace(session, files=files)


def test_what_does_not_come_back_as_it_was_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with st.open("memory:") as journal:
        thread = conversation(journal)
        broken = native_session(journal, thread, "codex")
        cut = {name: body[: len(body) // 2] for name, body in broken.files.items()}
        from msgspec.structs import replace  # noqa: PLC0415

        monkeypatch.setattr(native_place, "native_session", lambda *_, **__: replace(broken, files=cut))
        with pytest.raises(DamagedDataError):
            continue_in(journal, thread, "codex", environment={}, home=tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
