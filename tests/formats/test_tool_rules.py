"""What is particular to each tool: reverts, compactions, child sessions, versions, and logs of two kinds."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import sessiontree as st
from sessiontree.model import Compaction
from sessiontree.transfer.formats import import_sessions


def imported(path: Path) -> st.Journal:
    journal = st.open("memory:")
    report = import_sessions(journal, path)
    assert (report.not_understood, report.damage) == (0, ())
    return journal


def seen(journal: st.Journal, thread: str) -> list[str]:
    return [message.text for message in journal.context(thread).messages if message.text]


def database(path: Path, script: str, **rows: list[tuple[Any, ...]]) -> Path:
    connection = sqlite3.connect(path)
    connection.executescript(script)
    for table, values in rows.items():
        for row in values:
            connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    connection.commit()
    connection.close()
    return path


OPENCODE = """
create table session(id, project_id, parent_id, directory, title, revert, time_created, time_updated);
create table message(id, session_id, time_created, data);
create table part(id, message_id, session_id, data);
"""


def test_opencode_reverts_compactions_and_children(tmp_path: Path) -> None:
    said: list[tuple[str, str, list[dict[str, Any]], dict[str, Any]]] = [
        ("m1", "user", [{"type": "text", "text": "old question"}], {}),
        ("m2", "assistant", [{"type": "text", "text": "old answer"}], {"parentID": "m1"}),
        ("m3", "user", [{"type": "compaction", "auto": True, "tail_start_id": "m2"}], {}),
        ("m4", "assistant", [{"type": "text", "text": "the summary"}], {"summary": True}),
        ("m5", "user", [{"type": "text", "text": "go on"}], {}),
        ("m6", "assistant", [{"type": "tool", "callID": "c1", "tool": "task", "state": {"status": "completed", "input": {}, "output": "done", "metadata": {"sessionId": "ses_child"}}}], {}),
        ("m7", "user", [{"type": "text", "text": "taken back"}], {}),
    ]  # fmt: skip
    messages = [
        (name, "ses_a", number, json.dumps({"role": role, **more})) for number, (name, role, _, more) in enumerate(said)
    ]
    parts = [
        (f"p{name}{index}", name, "ses_a", json.dumps(part))
        for name, _, found, _ in said
        for index, part in enumerate(found)
    ]
    sessions = [
        ("ses_a", "p", None, "/w", "Title", '{"messageID": "m7"}', 1_785_578_400_000, 1_785_578_400_001),
        ("ses_child", "p", "ses_a", "/w", "New session - x", None, 1_785_578_400_000, 1_785_578_400_001),
    ]
    path = database(tmp_path / "opencode.db", OPENCODE, session=sessions, message=messages, part=parts)
    journal = imported(path)
    words = seen(journal, "ses_a")
    assert "the summary" in words[0]
    assert words[1:] == ["old answer", "go on"]
    assert "taken back" in [entry.message.text for entry in journal.entries("ses_a") if entry.message]
    child = journal.thread("ses_child")
    assert (child.parent_thread, child.custom["call"], child.title) == ("ses_a", "c1", "")


def test_goose_hides_what_it_has_summed_up(tmp_path: Path) -> None:
    script = """
    create table sessions(id, name, description, working_dir, created_at, updated_at);
    create table messages(id integer primary key, session_id, role, content_json, created_timestamp, metadata_json);
    """
    hidden = {"userVisible": True, "agentVisible": False}
    agent = {"userVisible": False, "agentVisible": True}
    both: dict[str, bool] = {}
    said = [
        ("user", "old", hidden),
        ("assistant", "answer", hidden),
        ("user", "a summary", agent),
        ("user", "new", both),
    ]
    rows = [
        (number, "1", role, json.dumps([{"type": "text", "text": words}]), 1_785_578_400 + number, json.dumps(flags))
        for number, (role, words, flags) in enumerate(said, 1)
    ]
    times = ("2026-08-01 10:00:00", "2026-08-01 10:00:09")
    path = database(tmp_path / "sessions.db", script, sessions=[("1", "", "Demo", "/w", *times)], messages=rows)
    journal = imported(path)
    words = seen(journal, "goose-1")
    assert "a summary" in words[0]
    assert words[1:] == ["new"]
    assert journal.thread("goose-1").title == "Demo"


def test_openhands_forgets_what_it_condensed_and_branches_by_parent(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    message = {"kind": "MessageEvent", "source": "user"}
    rows: list[dict[str, Any]] = [
        {"id": "a", **message, "llm_message": {"role": "user", "content": [{"type": "text", "text": "first"}]}},
        {
            "id": "b",
            **message,
            "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "forgotten"}]},
        },
        {
            "id": "c",
            "kind": "Condensation",
            "source": "environment",
            "forgotten_event_ids": ["b"],
            "summary": "in short",
        },
        {"id": "d", **message, "llm_message": {"role": "user", "content": [{"type": "text", "text": "left"}]}},
        {
            "id": "e",
            **message,
            "parent_id": "c",
            "llm_message": {"role": "user", "content": [{"type": "text", "text": "right"}]},
        },
    ]
    for number, row in enumerate(rows):
        (events / f"event-{number:05}-{row['id']}.json").write_text(
            json.dumps({"timestamp": "2026-08-01T10:00:00", **row})
        )
    (tmp_path / "base_state.json").write_text(
        json.dumps({"id": "conv", "agent": {"llm": {"model": "m"}}, "leaf_event_id": "e"})
    )
    journal = imported(tmp_path)
    words = seen(journal, "conv")
    assert "in short" in words[0]
    assert "first" in words[0]
    assert words[1:] == ["right"]


def test_the_first_version_of_openhands_pairs_by_cause(tmp_path: Path) -> None:
    rows = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "go"}},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "look"}, "tool_call_metadata": {"tool_call_id": "same"}},
        {"id": 2, "source": "agent", "observation": "run", "content": "a.py", "cause": 1},
        {"id": 5, "source": "agent", "action": "run", "args": {"command": "cat a.py"}, "tool_call_metadata": {"tool_call_id": "same"}},
        {"id": 6, "source": "agent", "observation": "run", "content": "print(1)", "cause": 5},
    ]  # fmt: skip
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps([{"timestamp": "2026-08-01T10:00:00", **row} for row in rows]))
    journal = imported(path)
    messages = [entry.message for entry in journal.path("trajectory") if entry.message]
    calls = [call.id for message in messages for call in message.tool_calls]
    assert len(set(calls)) == 2
    assert calls == [result.call_id for message in messages for result in message.tool_results]


def test_lm_studio_goes_on_from_the_version_that_was_chosen(tmp_path: Path) -> None:
    def one(words: str, role: str = "user") -> dict[str, Any]:
        return {"type": "singleStep", "role": role, "content": [{"type": "text", "text": words}]}

    messages = [
        {"versions": [one("first"), one("second")], "currentlySelected": 0},
        {"versions": [one("answer", "assistant")], "currentlySelected": 0},
    ]
    path = tmp_path / "1.conversation.json"
    path.write_text(
        json.dumps({"name": "x", "createdAt": 1_785_578_400_000, "systemPrompt": "Be brief", "messages": messages})
    )
    journal = imported(path)
    assert seen(journal, "lmstudio-1") == ["first", "answer"]
    assert journal.context("lmstudio-1").system == "Be brief"


def test_cline_keeps_what_only_its_screen_log_has(tmp_path: Path) -> None:
    task = tmp_path / "tasks" / "17"
    task.mkdir(parents=True)
    history = [
        {"role": "user", "content": "do it", "ts": 1_785_578_400_000},
        {"role": "assistant", "content": "done", "ts": 1_785_578_400_900},
    ]
    log = [
        {"ts": 1_785_578_400_100, "type": "say", "say": "text", "text": "done"},
        {"ts": 1_785_578_400_200, "type": "say", "say": "command_output", "text": "only on the screen"},
        {
            "ts": 1_785_578_400_300,
            "type": "say",
            "say": "api_req_started",
            "text": '{"tokensIn": 5, "tokensOut": 2, "cost": 0.5}',
        },
        {"ts": 1_785_578_400_400, "type": "say", "say": "text", "text": "half", "partial": True},
    ]
    (task / "api_conversation_history.json").write_text(json.dumps(history))
    (task / "ui_messages.json").write_text(json.dumps(log))
    journal = imported(tmp_path)
    assert seen(journal, "17") == ["do it", "done"]
    assert [hit.entry.type for hit in journal.search('"only on the screen"').hits] == ["custom"]
    assert [entry.type for entry in journal.path("17")].count("usage") == 1


def test_open_webui_keeps_reasoning_and_calls_that_it_shows_as_markup(tmp_path: Path) -> None:
    details = (
        '<details type="reasoning" done="true" duration="2">\n<summary>Thought</summary>\n&gt; hm\n</details>\n'
        '<details type="tool_calls" done="true" id="c1" name="clock" arguments="{&quot;zone&quot;: &quot;UTC&quot;}" '
        'result="&quot;ten&quot;">\n<summary>Ran</summary>\n</details>\nIt is ten.'
    )
    messages = {
        "a": {
            "id": "a",
            "parentId": None,
            "childrenIds": ["b"],
            "role": "user",
            "content": "time?",
            "timestamp": 1_785_578_400,
        },
        "b": {"id": "b", "parentId": "a", "childrenIds": [], "role": "assistant", "content": details, "model": "m"},
    }
    path = tmp_path / "chat.json"
    path.write_text(json.dumps({"id": "chat", "title": "T", "history": {"currentId": "b", "messages": messages}}))
    journal = imported(path)
    found = [entry.message for entry in journal.path("chat") if entry.message]
    assert [call.name for message in found for call in message.tool_calls] == ["clock"]
    assert [result.call_id for message in found for result in message.tool_results] == ["c1"]
    assert seen(journal, "chat") == ["time?", "It is ten."]


def test_codex_rolls_back_as_a_branch_and_keeps_the_prompts_of_a_compaction(tmp_path: Path) -> None:
    def item(role: str, words: str) -> dict[str, Any]:
        return {"type": "message", "role": role, "content": [{"type": "output_text", "text": words}]}

    lines: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
        {"type": "response_item", "payload": item("user", "one")},
        {"type": "response_item", "payload": item("assistant", "two")},
        {"type": "response_item", "payload": item("user", "wrong")},
        {"type": "response_item", "payload": item("assistant", "lost")},
        {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
        {"type": "compacted", "payload": {"message": "so far", "replacement_history": [item("user", "one")]}},
        {"type": "response_item", "payload": item("user", "right")},
    ]
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps({"timestamp": "2026-08-01T10:00:00Z", **line}) + "\n" for line in lines))
    journal = imported(path)
    compaction = next(entry.payload for entry in journal.path("s") if isinstance(entry.payload, Compaction))
    assert len(compaction.kept_user_entry_ids) == 1
    words = seen(journal, "s")
    assert "so far" in words[0]
    assert words[1:] == ["right"]
    assert "lost" in [entry.message.text for entry in journal.entries("s") if entry.message]


def test_the_first_rollouts_of_codex_had_no_envelope(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [
        {"id": "old", "timestamp": "2025-06-01T10:00:00Z", "instructions": "Be kind", "git": {"branch": "main"}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c"},
        {"type": "function_call_output", "call_id": "c", "output": '{"output":"ok","metadata":{"exit_code":1}}'},
    ]
    path = tmp_path / "rollout-2025.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    journal = imported(path)
    assert journal.context("old").system == "Be kind"
    result = journal.path("old")[-1].message
    assert result is not None
    assert result.tool_results[0].is_error
    assert journal.thread("old").custom["git_branch"] == "main"
