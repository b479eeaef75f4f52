"""Tool calls of every agent that is imported, in a few words that a reader understands."""

import json
from typing import Any

import pytest

from sessiontree.model import TextPart, ToolCallPart, ToolResultPart
from sessiontree.render.changes import changes_of
from sessiontree.render.gists import gist_of
from sessiontree.render.outcomes import telling_lines

FOLDER = "/home/ann/shop"


def gist(name: str, arguments: Any, said: str | None = None, *, is_error: bool = False) -> tuple[str, str, str]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    found = gist_of(ToolCallPart(id="c", name=name, arguments=text), result(said, is_error=is_error), FOLDER)
    return found.name, found.object, ("✗ " if found.is_failed else "") + found.outcome


def result(said: str | None, *, is_error: bool = False) -> ToolResultPart | None:
    return None if said is None else ToolResultPart(call_id="c", parts=(TextPart(text=said),), is_error=is_error)


THREE = "one\ntwo\nthree\n"
PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x = 1\n+x = 2\n+y = 3\n*** End Patch"
BLOCKS = "<<<<<<< SEARCH\n:start_line:3\n-------\nold\n=======\nnew\nmore\n>>>>>>> REPLACE"

CALLS: list[tuple[str, str, Any, str | None, tuple[str, str, str]]] = [
    ("Claude Code", "Read", {"file_path": f"{FOLDER}/src/a.py", "offset": 10, "limit": 71}, THREE, ("read", "src/a.py:10-80", "3 lines")),
    ("Claude Code", "Edit", {"file_path": f"{FOLDER}/a.py", "old_string": "x\ny", "new_string": "x\nz\nw"}, "ok", ("edit", "a.py", "+2 −1")),
    ("Claude Code", "MultiEdit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}] * 2}, "ok", ("edit", "a", "+2 −2")),
    ("Claude Code", "Write", {"file_path": "a", "content": "1\n2\n"}, "File created successfully", ("write", "a", "+2 new file")),
    ("Claude Code", "Bash", {"command": f"cd {FOLDER} && pytest -q"}, "..\n48 passed in 2.10s", ("bash", "pytest -q", "48 passed in 2.10s")),
    ("Claude Code", "Bash", {"command": "make"}, "cc a.c\nmake: *** Error 1", ("bash", "make", "make: *** Error 1")),
    ("Claude Code", "Grep", {"pattern": "lru_cache", "path": f"{FOLDER}/src"}, "a.py:1:x\nb.py:2:y", ("grep", "lru_cache in src", "2 hits")),
    ("Claude Code", "Glob", {"pattern": "**/*.py"}, "No files found", ("find", "**/*.py", "0 hits")),
    ("Claude Code", "WebSearch", {"query": "flask session"}, "Found 10 results", ("web", "“flask session”", "10 results")),
    ("Claude Code", "WebFetch", {"url": "https://docs.python.org/3/?x=1"}, THREE, ("web", "docs.python.org/3", "3 lines")),
    ("Claude Code", "Task", {"description": "check the docs", "prompt": "long"}, THREE, ("agent", "check the docs", "3 lines")),
    ("Claude Code", "TodoWrite", {"todos": [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]}, "ok", ("plan", "1 of 2 done: b", "")),
    ("Codex", "shell", {"command": ["bash", "-lc", "pytest -q"]}, '{"output":"1 failed\\n","metadata":{"exit_code":1,"duration_seconds":0.4}}', ("bash", "pytest -q", "✗ 1 failed")),
    ("Codex", "exec_command", {"cmd": "rg --files"}, "Exit code: 0\nWall time: 0.2 seconds\nOutput:\na.py", ("bash", "rg --files", "a.py")),
    ("Codex", "apply_patch", PATCH, "Success", ("edit", "src/a.py", "+2 −1")),
    ("Codex", "shell", {"command": ["apply_patch", PATCH]}, "Success", ("edit", "src/a.py", "+2 −1")),
    ("Codex", "update_plan", {"plan": [{"step": "read", "status": "in_progress"}]}, "ok", ("plan", "0 of 1 done: read", "")),
    ("Gemini CLI", "read_file", {"absolute_path": f"{FOLDER}/a.py"}, THREE, ("read", "a.py", "3 lines")),
    ("Gemini CLI", "read_file", {"absolute_path": f"{FOLDER}\\src\\a.py"}, THREE, ("read", "src\\a.py", "3 lines")),
    ("Gemini CLI", "replace", {"file_path": "a", "old_string": "x", "new_string": "y"}, "ok", ("edit", "a", "+1 −1")),
    ("Gemini CLI", "run_shell_command", {"command": "ls"}, "", ("bash", "ls", "no output")),
    ("Gemini CLI", "search_file_content", {"pattern": "x"}, "Found 3 matches", ("grep", "x", "3 hits")),
    ("OpenCode", "edit", {"filePath": f"{FOLDER}/a", "oldString": "x", "newString": "y"}, "", ("edit", "a", "+1 −1")),
    ("OpenCode", "webfetch", {"url": "http://x.org/a/b"}, "one", ("web", "x.org/a/b", "1 line")),
    ("goose", "developer__shell", {"command": "ls"}, "a", ("bash", "ls", "a")),
    ("goose", "developer__text_editor", {"command": "view", "path": f"{FOLDER}/a"}, THREE, ("read", "a", "3 lines")),
    ("goose", "developer__text_editor", {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"}, "", ("edit", "a", "+1 −1")),
    ("crush", "view", {"file_path": "a", "offset": 5}, THREE, ("read", "a:5-", "3 lines")),
    ("crush", "multiedit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": ""}]}, "", ("edit", "a", "−1")),
    ("Cline", "execute_command", {"command": "npm test", "requires_approval": False}, THREE, ("bash", "npm test", "3 lines")),
    ("Cline", "replace_in_file", {"path": "a", "diff": BLOCKS}, "", ("edit", "a", "+2 −1")),
    ("Roo", "apply_diff", {"path": "a", "diff": BLOCKS}, "", ("edit", "a", "+2 −1")),
    ("Kilo", "search_files", {"path": "src", "regex": "x"}, "a\nb", ("grep", "x in src", "2 hits")),
    ("Cline", "ask_followup_question", {"question": "Which one?"}, "the first", ("ask", "Which one?", "1 line")),
    ("OpenHands", "str_replace_editor", {"command": "create", "path": "a", "file_text": "1\n"}, "New file created", ("write", "a", "+1 new file")),
    ("OpenHands", "execute_bash", {"command": "pwd"}, "/x\n[The command completed with exit code 2.]", ("bash", "pwd", "✗ /x")),
    ("Copilot CLI", "str_replace_editor", {"command": "view", "path": "a", "view_range": [1, 9]}, THREE, ("read", "a:1-9", "3 lines")),
    ("pi", "edit", {"path": "a", "oldText": "x", "newText": "y"}, "ok", ("edit", "a", "+1 −1")),
    ("pi", "bash", {"command": "false"}, "boom", ("bash", "false", "boom")),
    ("picoclaw", "list_dir", {"path": "src"}, "a\nb\nc", ("find", "src", "3 hits")),
    ("ggcode", "run_command", {"command": "go test ./..."}, "ok", ("bash", "go test ./...", "ok")),
    ("an MCP server", "mcp__tracker__close_ticket", {"id": 7, "reason": "done"}, THREE, ("close_ticket", "reason=done", "3 lines")),
    ("anything", "frobnicate", "not JSON", "x" * 1200, ("frobnicate", "not JSON", "1.2 kB")),
    ("anything", "frobnicate", {}, None, ("frobnicate", "", "")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "arguments", "said", "expected"),
    [case[1:] for case in CALLS],
    ids=[f"{agent}: {name}" for agent, name, *_ in CALLS],
)
def test_a_call_is_told_in_a_few_words(
    name: str, arguments: Any, said: str | None, expected: tuple[str, str, str]
) -> None:
    assert gist(name, arguments, said) == expected


def test_a_failure_is_told_by_its_last_line_and_the_lines_that_name_the_error() -> None:
    said = "collected 1 item\n>  user = users[name]\nE  KeyError: 'ann'\nsrc/login.py:7: KeyError\n1 failed in 0.41s"
    assert gist("bash", {"command": "pytest"}, said, is_error=True)[2] == "✗ 1 failed in 0.41s"
    failed = result(said, is_error=True)
    assert failed is not None
    assert telling_lines(failed) == ([">  user = users[name]", "E  KeyError: 'ann'", "src/login.py:7: KeyError"], 2)


@pytest.mark.parametrize(
    "arguments", ["[]", "7", "null", '"text"', '{"path": 7}', '{"edits": [1, null]}', '{"todos": 3}', "{"]
)
@pytest.mark.parametrize(
    "name",
    ["Edit", "Write", "Bash", "Grep", "WebFetch", "TodoWrite", "Task", "apply_patch", "Read", "ask_user", "", "__"],
)
def test_arguments_of_any_shape_are_told_without_an_error(name: str, arguments: str) -> None:
    assert gist(name, arguments, "ok")


def test_a_patch_of_several_files_is_one_change_for_each_of_them() -> None:
    diff = "--- a/one.py\n+++ b/one.py\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/two.py\n@@ -0,0 +1 @@\n+z\n"
    assert [(one.path, one.added, one.removed) for one in changes_of("edit", {"patch": diff})] == [
        ("one.py", 1, 1),
        ("two.py", 1, 0),
    ]


def test_hostile_arguments_cannot_reach_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x1b[31mrm\u202e"
    name, about, outcome = gist(evil, {"command": evil, "path": evil}, evil + "\n" + evil, is_error=True)
    assert (name + about + outcome).isprintable()
