"""`show --full`, the HTML export and search have every word of an import."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sessiontree.cli import app
from sessiontree.model import Custom, Message, OpaquePart, TextPart, ToolResultMessage, ToolResultPart, UserMessage
from sessiontree.model.builders import call
from sessiontree.render.html import PageContent, render_html
from sessiontree.transfer.formats import import_sessions


def block(words: str) -> OpaquePart:
    return OpaquePart(provider="other", block={"type": "new", "said": words})


def result(name: str, *parts: Any) -> ToolResultMessage:
    return ToolResultMessage(message=Message(role="tool", parts=(ToolResultPart(call_id=name, parts=parts),)))


WORDS = (
    "in-a-prompt",
    "at-the-end-of-a-block",
    "in-a-result",
    "after-450000",
    "at-the-end-of-an-orphan",
    "in-a-remark",
)


def talk(journal: st.Journal) -> None:
    journal.create_thread("t")
    long = " ".join(["words"] * 100)
    for payload in (
        UserMessage(message=Message(role="user", parts=(block("first"), block("in-a-prompt")))),
        st.assistant("hello"),
        UserMessage(message=Message(role="user", parts=(TextPart(text="see"), block(f"{long} at-the-end-of-a-block")))),
        st.assistant(calls=[call("c", "bash")]),
        result("c", block("in-a-result"), TextPart(text="line\n" * 90_000 + "after-450000")),
        result("nobody", TextPart(text=f"{long} at-the-end-of-an-orphan")),
        Custom(name="note", message=Message(role="user", parts=(block("in-a-remark"),))),
    ):
        journal.append("t", payload)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_show_full_has_every_word(
    is_terminal: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SESSIONTREE_STORE", str(tmp_path / "j.db"))
    with st.open(tmp_path / "j.db") as journal:
        talk(journal)
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    with pytest.raises(SystemExit):
        app.run(["show", "t", "--full", "--all", "--last", "1000", "--no-pager"])
    shown = capsys.readouterr().out
    assert [words for words in WORDS if words not in shown] == []


def test_the_html_export_has_every_word() -> None:
    with st.open("memory:") as journal:
        talk(journal)
        page = render_html(PageContent(thread=journal.thread("t"), entries=tuple(journal.entries("t")), labels={}))
    assert [words for words in WORDS if words not in page] == []


def test_words_of_a_codex_compaction_that_stand_nowhere_else_are_found_by_search(tmp_path: Path) -> None:
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}
        for words in ("question", "only here", "the summary")
    ]
    lines = [
        {"type": "session_meta", "payload": {"id": "s", "timestamp": "2026-08-01T10:00:00Z", "cwd": "/w"}},
        {"type": "response_item", "payload": history[0]},
        {"type": "compacted", "payload": {"message": "", "replacement_history": history}},
    ]
    path = tmp_path / "rollout-2026-08-01T10-00-00-s.jsonl"
    path.write_text("".join(json.dumps({"timestamp": "2026-08-01T10:00:00Z", **line}) + "\n" for line in lines))
    with st.open("memory:") as journal:
        (thread,) = import_sessions(journal, path).threads
        assert journal.search("only here")
        assert import_sessions(journal, path).entries_added == 0
        (compaction,) = [entry.payload for entry in journal.path(thread) if isinstance(entry.payload, st.Compaction)]
        assert compaction.summary == "the summary"
