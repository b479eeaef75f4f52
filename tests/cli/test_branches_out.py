"""Branches and trees as exports, and what a command about a whole thread does with the address of an entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import sessiontree as st
from cli_shell import Shell


@pytest.fixture
def branched(tmp_path: Path) -> Shell:
    """Two answers to one question, the second one active, and a fork of the first."""
    shell = Shell(tmp_path)
    with st.open(shell.folder / "j.db") as journal:
        journal.create_thread("talk", title="Jokes")
        asked = journal.append("talk", st.user("a joke?"), id="asked")
        journal.append("talk", st.assistant("knock knock"), id="first")
        journal.append("talk", st.assistant("a horse walks in"), parent=asked.id, id="second")
        journal.fork("talk", at="first", new_id="again")
        journal.append("again", st.user("who is there?"), id="more")
    return shell


def test_an_address_exports_the_branch_that_ends_there(branched: Shell) -> None:
    assert "knock knock" in branched("export", "talk:first", "--to", "md")
    assert "horse" not in branched("export", "talk:first", "--to", "html")
    (row,) = branched("export", "talk:first", "--to", "openai-jsonl").splitlines()
    assert [message["content"] for message in json.loads(row)["messages"]] == ["a joke?", "knock knock"]
    branched("export", "talk:first", "--to", "pi", "-o", "out")
    (file,) = (branched.folder / "out").rglob("*.jsonl")
    assert "knock knock" in file.read_text()
    assert "horse" not in file.read_text()


def test_a_tree_is_exported_with_its_forks(branched: Shell) -> None:
    lines = branched("export", "talk", "--to", "jsonl", "--scope", "tree")
    assert "who is there?" in lines
    branched("export", "talk", "--to", "claude-code", "--scope", "tree", "-o", "out")
    assert len(list((branched.folder / "out").rglob("*.jsonl"))) == 2
    assert "one thread" in branched.run("export", "talk", "--to", "md", "--scope", "tree", code=2).stderr
    assert "horse" not in branched("export", "talk:first", "--to", "jsonl")
    assert "one branch" in branched.run("export", "talk:first", "--to", "json", "--scope", "tree", code=2).stderr


def test_a_conversation_goes_on_from_any_branch_and_says_what_stays_here(branched: Shell) -> None:
    with st.open(branched.folder / "j.db") as journal:
        journal.append("talk", st.system("be brief"), parent="first", id="prompt")
    branched.environment["HOME"] = str(branched.folder)
    done = branched.run("continue", "talk:prompt", "--in", "codex")
    assert "does not get the system prompt" in done.stderr
    (file,) = (branched.folder / ".codex").rglob("*.jsonl")
    assert "knock knock" in file.read_text()
    assert "horse" not in file.read_text()


def test_a_command_about_a_thread_refuses_the_address_of_an_entry(branched: Shell) -> None:
    refused = branched.run("rm", "talk:first", "--yes", code=2).stderr
    assert "is an entry, but this command is about a whole thread" in refused
    assert "talk" in branched("ls")
