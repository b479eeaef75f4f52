"""Tasks of Roo Code and Cline from before models had tool calls of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sessiontree.transfer.formats import import_sessions
from sessiontree.transfer.formats._xml_calls import XmlCalls


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": [text("<task>\nmend it\n</task>"), text("<environment_details>\nopen: a.py")]},
    {
        "role": "assistant",
        "content": [text("<thinking>where?</thinking>\n\n<read_file>\n<path>src/a.py</path>\n</read_file>")],
    },
    {
        "role": "user",
        "content": [
            text("[read_file for 'src/a.py'] Result:"),
            text("1 | x = 1"),
            text("<environment_details>\nlater"),
        ],
    },
    {
        "role": "assistant",
        "content": "I write it.\n<write_to_file>\n<path>src/a.py</path>\n<content>\na </content> b\n</content>\n"
        "<line_count>1</line_count>\n</write_to_file>\nThat is all.",
    },
    {"role": "user", "content": [text("[write_to_file for 'src/a.py'] Result:\n\nThe content was saved.")]},
    {"role": "assistant", "content": [text("<attempt_completion>\n<result>\nDone.\n</result>\n</attempt_completion>")]},
]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "1785578400000"
    folder.mkdir(parents=True)
    (folder / "api_conversation_history.json").write_text(json.dumps(HISTORY))
    return folder


def test_calls_in_xml_become_calls_with_their_results(task: Path) -> None:
    with st.open("memory:") as journal:
        report = import_sessions(journal, task)
        messages = [entry.message for entry in journal.path(report.threads[0]) if entry.message]
        calls = [(call.name, json.loads(call.arguments)) for message in messages for call in message.tool_calls]
        assert calls == [
            ("read_file", {"path": "src/a.py"}),
            ("write_to_file", {"path": "src/a.py", "content": "a </content> b", "line_count": "1"}),
            ("attempt_completion", {"result": "Done."}),
        ]
        results = [part for message in messages for part in message.parts if isinstance(part, st.ToolResultPart)]
        assert [(one.name, one.call_id) for one in results] == [("read_file", "call-1"), ("write_to_file", "call-2")]
        assert [part.text for part in results[0].parts if isinstance(part, st.TextPart)][-1] == "1 | x = 1"
        said = [message.text for message in messages]
        assert "<environment_details>\nlater" in said
        for words in ("where", "That", "saved", "Done", "later", "mend"):
            assert journal.search(words).hits, words
        assert journal.search("file:src/a.py").hits


@pytest.mark.parametrize(
    "words",
    [
        "Use `<read_file>` for it.",
        "<read_file>\n<path>never closed",
        "```\n<unknown_tool>\n</unknown_tool>\n```",
        "<read_file>" * 5,
        "",
    ],
)
def test_what_is_no_whole_call_stays_text(words: str) -> None:
    assert XmlCalls().answer(words) == [st.TextPart(text=words)]


def test_parameters_that_cannot_be_read_are_kept() -> None:
    (call,) = XmlCalls().answer("<list_files>\n<path>a</path>\nfree words <b>\n</list_files>")
    assert isinstance(call, st.ToolCallPart)
    assert json.loads(call.arguments) == {"path": "a", "input": "free words <b>"}


def test_very_many_tags_take_no_longer_than_their_length() -> None:
    words = "\n<read_file>" * 100_000 + "\n<list_files>" * 100_000
    assert XmlCalls().answer(words) == [st.TextPart(text=words)]
