"""Exports for other tools: the way back gives the same tree, and branches become rows for training."""

from __future__ import annotations

from pathlib import Path

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
