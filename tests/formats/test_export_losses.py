"""Every export says what it leaves out, and a conversation with orphans goes on anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sessiontree as st
from sessiontree.cli import app
from sessiontree.model import (
    Compaction,
    ImagePart,
    Message,
    TextPart,
    ToolResultMessage,
    ToolResultPart,
    UserMessage,
)
from sessiontree.transfer.formats import WRITABLE, export_sessions, import_sessions
from sessiontree.transfer.native import TOOLS, continue_in

LEFT_OUT = (
    "1 message before the last compaction",
    "1 result without its call",
    "1 piece of reasoning",
    "1 subagent",
)


def talk(journal: st.Journal) -> None:
    journal.create_thread("t", title="talk")
    orphan = ToolResultPart(call_id="nobody", parts=(TextPart(text="lost"),))
    for payload in (
        st.user("early"),
        st.assistant("early answer"),
        Compaction(summary="they met"),
        st.user("question"),
        ToolResultMessage(message=Message(role="tool", parts=(orphan,))),
        st.assistant("answer", reasoning="hm"),
    ):
        journal.append("t", payload)
    journal.create_thread("child", parent_thread="t")


@pytest.mark.parametrize("name", ["claude-code", "codex", "gemini", "opencode", "goose", "openai-jsonl", "sharegpt"])
def test_an_export_names_what_it_leaves_out(name: str, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        talk(journal)
        report = export_sessions(journal, tmp_path / "out", format=name, threads=["t"])
        found = [note.problem for note in report.losses]
        assert [loss for loss in LEFT_OUT if f"{loss} left out" not in found] == []


@pytest.mark.parametrize("tool", TOOLS)
def test_a_conversation_with_orphans_goes_on_in_every_tool(tool: str, tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        talk(journal)
        session = continue_in(journal, "t", tool, environment={}, home=tmp_path)
        assert "1 result without its call" in session.losses
        with st.open("memory:") as other:
            (path,) = session.files
            (found,) = import_sessions(other, path, format=tool).threads
            assert other.context(found).messages[-1].text == "answer"


def test_rows_for_training_name_what_they_leave_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SESSIONTREE_STORE", str(tmp_path / "j.db"))
    with st.open(tmp_path / "j.db") as journal:
        talk(journal)
    for name in ("dpo", "sharegpt"):
        with pytest.raises(SystemExit) as end:
            app.run(["export", "t", "--to", name, "-o", str(tmp_path / name), "--json"])
        assert not end.value.code
        losses = json.loads(capsys.readouterr().out)["losses"]
        assert all(any(loss in found for found in losses) for loss in LEFT_OUT)
        assert any("no pairs" in found for found in losses) == (name == "dpo")


@pytest.mark.parametrize("name", ["md", "html"])
def test_texts_for_people_name_what_they_leave_out(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SESSIONTREE_STORE", str(tmp_path / "j.db"))
    with st.open(tmp_path / "j.db") as journal:
        talk(journal)
        first = journal.path("t")[0]
        picture = ImagePart(url="https://example.org/cat.png")
        journal.append("t", UserMessage(message=Message(role="user", parts=(picture,))))
        journal.append("t", st.assistant("another early answer"), parent=first.id)
        journal.move_leaf("t", journal.entries("t")[-2].id)
    with pytest.raises(SystemExit) as end:
        app.run(["export", "t", "-o", str(tmp_path / f"t.{name}"), "--json"])
    assert not end.value.code
    wanted = {
        "md": [
            "1 entry on other branches left out",
            "1 message before the last compaction left out",
            "1 piece of reasoning left out",
            "1 image left out",
            "1 subagent left out",
        ],
        "html": ["the content of 1 image left out", "1 subagent left out"],
    }
    assert json.loads(capsys.readouterr().out)["losses"] == wanted[name]


def test_every_format_names_the_subagents_that_it_leaves_out(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        talk(journal)
        for name in WRITABLE:
            alone = export_sessions(journal, tmp_path / name, format=name, threads=["t"])
            assert "1 subagent left out" in [note.problem for note in alone.losses]
        both = export_sessions(journal, tmp_path / "both", format="pi", threads=["t", "child"])
        assert both.losses == ()


@pytest.mark.parametrize("name", ["claude-code", "opencode"])
def test_an_export_of_nothing_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SESSIONTREE_STORE", str(tmp_path / "j.db"))
    with st.open(tmp_path / "j.db") as journal:
        journal.create_thread("t")
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as end:
            app.run(["export", "t", "--to", name, "-o", str(tmp_path / name), *more])
        assert end.value.code == 2
        assert "nothing to export" in "".join(capsys.readouterr())
