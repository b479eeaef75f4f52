"""Exports for other tools: the way back gives the same tree, and branches become rows for training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transcript_samples import Sample, samples

import sessiontree as st
from sessiontree.model import Entry
from sessiontree.transfer.formats import export_sessions, import_sessions
from sessiontree.transfer.formats._batches import is_same

TOOLS = ("claude-code", "codex", "gemini", "opencode", "goose", "pi")


def shape(journal: st.Journal, thread: str) -> list[tuple[int, bool, Entry]]:
    """The entries of a thread, each with the number of its parent and whether it is on the active path."""
    entries = journal.entries(thread)
    number = {entry.id: index for index, entry in enumerate(entries)}
    active = {entry.id for entry in journal.path(thread)}
    return [(number.get(entry.parent or "", -1), entry.id in active, entry) for entry in entries]


@pytest.mark.parametrize("sample", [one for one in samples() if one.format in TOOLS], ids=lambda one: one.name)
def test_the_way_back_to_the_same_tool_gives_the_same_tree(sample: Sample, tmp_path: Path) -> None:
    with st.open("memory:") as first, st.open("memory:") as second:
        threads = import_sessions(first, sample.path).threads
        threads = tuple(thread for thread in threads if first.entries(thread))
        export_sessions(first, tmp_path / "out", format=sample.format, threads=threads)
        report = import_sessions(second, tmp_path / "out", format=sample.format)
        assert len(report.threads) == len(threads)
        for before, after in zip(sorted(threads), sorted(report.threads), strict=True):
            one, other = shape(first, before), shape(second, after)
            assert [(parent, active) for parent, active, _ in one] == [(parent, active) for parent, active, _ in other]
            for (_, _, left), (_, _, right) in zip(one, other, strict=True):
                assert _same(left, right)


def _same(left: Entry, right: Entry) -> bool:
    """Whether two entries say the same; ids in compactions name other entries."""
    if isinstance(left.payload, st.Compaction) and isinstance(right.payload, st.Compaction):
        return left.payload.summary == right.payload.summary
    return left.type == right.type and (left.type == "event" or is_same(left.payload, right.payload))


def test_what_was_added_here_goes_along_as_the_model_sees_it(tmp_path: Path) -> None:
    sample = next(one for one in samples() if one.name == "codex/synthetic")
    with st.open("memory:") as journal, st.open("memory:") as other:
        (thread,) = import_sessions(journal, sample.path).threads
        journal.append(thread, st.user("and more"))
        report = export_sessions(journal, tmp_path / "out", format="codex", threads=[thread])
        assert {note.kind for note in report.notes} == {"loss"}
        (found,) = import_sessions(other, tmp_path / "out").threads
        said = [message.text for message in other.context(found).messages]
    assert said[-1] == "and more"


def test_branches_become_preference_pairs_and_come_back_as_branches(tmp_path: Path) -> None:
    with st.open("memory:") as journal, st.open("memory:") as other:
        journal.create_thread("t")
        asked = journal.append("t", st.user("a joke?"))
        journal.append("t", st.assistant("a bad one"))
        journal.append("t", st.assistant("a good one"), parent=asked.id)
        journal.append("t", st.user("thanks"))
        export_sessions(journal, tmp_path / "out", format="dpo")
        (found,) = import_sessions(other, tmp_path / "out").threads
        assert [message.text for message in other.context(found).messages] == ["a joke?", "a good one"]
        assert len(other.entries(found)) == 3


@pytest.mark.parametrize("name", ["openai-jsonl", "sharegpt"])
def test_every_branch_becomes_a_row(name: str, tmp_path: Path) -> None:
    with st.open("memory:") as journal, st.open("memory:") as other:
        journal.create_thread("t")
        asked = journal.append("t", st.user("look"))
        journal.append("t", st.assistant(calls=[st.call("call", "read", '{"path":"a"}')]))
        journal.append("t", st.tool_result("call", "content", name="read"))
        journal.append("t", st.assistant("done"))
        journal.append("t", st.assistant("no"), parent=asked.id)
        export_sessions(journal, tmp_path / "out", format=name)
        found = import_sessions(other, tmp_path / "out").threads
        said = sorted([message.text for message in other.context(thread).messages] for thread in found)
    assert said == [["look", "", "", "done"], ["look", "no"]]


def lines(path: Path, *wires: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(wire) + "\n" for wire in wires))
    return path


def test_a_message_that_gemini_wrote_twice_goes_back_in_its_last_form(tmp_path: Path) -> None:
    call = {"id": "c", "name": "read", "args": {"path": "a"}, "status": "success", "result": "content of a"}
    path = lines(
        tmp_path / "session.jsonl",
        {"sessionId": "s", "projectHash": "p", "startTime": "2026-08-01T10:00:00Z"},
        {"id": "1", "type": "user", "content": "question"},
        {"id": "2", "type": "gemini", "content": "let me look"},
        {"id": "2", "type": "gemini", "content": "let me look", "toolCalls": [call]},
        {"id": "3", "type": "gemini", "content": "a draft"},
        {"$rewindTo": "3"},
        {"id": "4", "type": "gemini", "content": "the answer"},
    )
    with st.open("memory:") as first, st.open("memory:") as second:
        import_sessions(first, path)
        export_sessions(first, tmp_path / "out", format="gemini")
        import_sessions(second, tmp_path / "out")
        assert shape(first, "s") == shape(second, "s")
        assert second.context("s").messages == first.context("s").messages


@pytest.mark.parametrize("goes_on", [False, True])
def test_the_subagents_of_a_session_go_along_to_claude_code(goes_on: bool, tmp_path: Path) -> None:
    sample = next(one for one in samples() if one.name == "claude-code/synthetic")
    with st.open("memory:") as journal, st.open("memory:") as other:
        threads = [journal.thread(name) for name in import_sessions(journal, sample.path).threads]
        (parent,) = [thread for thread in threads if not thread.parent_thread]
        agents = sorted((thread for thread in threads if thread.parent_thread), key=lambda one: one.id)
        if goes_on:
            for thread in threads:
                journal.append(thread.id, st.user("and more"))
        report = export_sessions(journal, tmp_path / "out", format="claude-code", threads=[parent.id])
        assert sorted(report.threads) == sorted(thread.id for thread in threads)
        assert not any("subagent" in note.problem for note in report.losses)
        found = [other.thread(name) for name in import_sessions(other, tmp_path / "out").threads]
        (above,) = [thread for thread in found if not thread.parent_thread]
        below = sorted((thread for thread in found if thread.parent_thread), key=lambda one: one.id)
        for agent, again in zip(agents, below, strict=True):
            assert (again.parent_thread, again.custom.get("call")) == (above.id, agent.custom.get("call"))
            assert [one.text for one in other.context(again.id).messages] == [
                one.text for one in journal.context(agent.id).messages
            ]


def test_a_session_with_a_name_that_leads_elsewhere_is_written_into_the_folder(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        for name, parent in (("..", "b"), ("b", ".."), ("../c", "..")):
            journal.create_thread(name, parent_thread=parent, origin={"format": "claude-code", "session": name})
            journal.append(name, st.user("hello"))
        report = export_sessions(journal, tmp_path / "in" / "out", format="claude-code")
        assert sorted(report.threads) == ["..", "../c", "b"]
        written = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert all(path.is_relative_to(tmp_path / "in" / "out") for path in written)


def test_a_fork_is_a_session_of_its_own_and_no_subagent(tmp_path: Path) -> None:
    with st.open("memory:") as journal:
        journal.create_thread("plan")
        journal.append("plan", st.user("Which way?"))
        journal.fork("plan", new_id="careful")
        report = export_sessions(journal, tmp_path / "out", format="claude-code")
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(written) == 2
    assert not [path for path in written if "subagents" in path.parts]
    assert not any("subagent" in note.problem for note in report.losses)
