"""Records that the samples lack, as the tools write them or may write them some day: every word is found by search."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sessiontree.transfer.formats import import_sessions

TIME = "2026-01-01T10:00:00.000Z"
SESSION = "0c0ffee0-0000-4000-8000-000000000000"


def said(words: str, kind: str = "input_text") -> dict[str, str]:
    return {"type": kind, "text": words}


def codex() -> list[dict[str, Any]]:
    search = {"type": "search", "query": "zqquery", "queries": ["zqqueries"]}
    items = [
        {"type": "message", "role": "developer", "content": [said("zqdeveloper")]},
        {"type": "message", "role": "user", "content": [said("zquser")]},
        {"type": "reasoning", "summary": [said("zqsummary", "summary_text")], "content": [said("zqthought")]},
        {"type": "function_call", "name": "zqtool", "arguments": '{"a":"zqargument"}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": [said("zqoutput")]},
        {"type": "custom_tool_call", "name": "apply_patch", "input": "zqpatch", "call_id": "c2"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": {"content": "zqpatched", "success": True}},
        {"type": "local_shell_call", "call_id": "c3", "action": {"type": "exec", "command": ["ls", "zqshell"]}},
        {"type": "web_search_call", "status": "completed", "action": search},
        {"type": "image_generation_call", "status": "completed", "revised_prompt": "zqpicture", "result": "aGk="},
        {"type": "tool_search_call", "call_id": "c4", "arguments": {"query": "zqwanted"}},
        {"type": "tool_search_output", "call_id": "c4", "tools": [{"name": "zqfound"}]},
        {"type": "agent_message", "author": "a", "recipient": "b", "content": [said("zqcolleague")]},
        {"type": "of_tomorrow", "text": "zqtomorrow"},
    ]
    events = [
        {"type": "item_completed", "item": {"type": "Plan", "id": "p", "text": "zqplan"}},
        {"type": "item_completed", "item": {"type": "HookPrompt", "fragments": [{"text": "zqhook"}]}},
        {"type": "item_completed", "item": {"type": "AgentMessage", "content": [said("zqscreen", "Text")]}},
        {"type": "item_completed", "item": {"type": "UserMessage", "content": [said("zqtyped", "text")]}},
        {"type": "exited_review_mode", "review_output": {"findings": [{"title": "zqfinding"}]}},
        {"type": "thread_goal_updated", "goal": {"objective": "zqgoal"}},
        {"type": "agent_reasoning", "text": "zqreasoning"},
        {"type": "error", "message": "zqfailure"},
        {"type": "of_tomorrow", "text": "zqevent"},
    ]
    head = {"id": SESSION, "cwd": "/home/ann/shop", "base_instructions": {"text": "zqinstructions"}}
    rows = [
        ("session_meta", head),
        *(("response_item", item) for item in items),
        *(("event_msg", event) for event in events),
        ("inter_agent_communication", {"author": "a", "recipient": "b", "content": "zqbetween"}),
        ("of_tomorrow", {"text": "zqrecord"}),
        ("compacted", {"message": "zqcompacted"}),
    ]
    return [{"timestamp": TIME, "type": kind, "payload": payload} for kind, payload in rows]


def claude_code() -> list[dict[str, Any]]:
    def message(role: str, *content: Any) -> dict[str, Any]:
        return {"type": role, "message": {"role": role, "content": list(content)}}

    chain: list[dict[str, Any]] = [
        message("user", said("zquser", "text")),
        message(
            "assistant",
            {"type": "thinking", "thinking": "zqthought", "signature": "s"},
            {"type": "tool_use", "id": "t1", "name": "zqtool", "input": {"a": "zqargument"}},
            {"type": "server_tool_use", "id": "t2", "name": "web_search", "input": {"query": "zqserver"}},
            {"type": "web_search_tool_result", "tool_use_id": "t2", "content": [{"title": "zqtitle"}]},
            {"type": "of_tomorrow", "text": "zqblock"},
        ),
        message("user", {"type": "tool_result", "tool_use_id": "t1", "content": [said("zqresult", "text")]}),
        {"type": "system", "subtype": "local_command", "content": "zqcommand"},
        {"type": "system", "subtype": "api_error", "error": {"message": "zqfailure"}},
        {"type": "system", "subtype": "stop_hook_summary", "hookErrors": ["zqhook"]},
        {"type": "attachment", "attachment": {"type": "queued_command", "prompt": "zqqueued"}},
        {"type": "attachment", "attachment": {"type": "file", "content": {"file": {"content": "zqattached"}}}},
        {"type": "of_tomorrow", "message": {"role": "user", "content": "zqchain"}},
    ]
    sides: list[dict[str, Any]] = [
        {"type": "queue-operation", "operation": "enqueue", "content": "zqoperation"},
        {"type": "content-replacement", "replacements": [{"replacement": "zqreplaced"}]},
        {"type": "result", "key": "k", "result": "zqworkflow"},
        {"type": "speculation-accept", "text": "zqspeculation"},
        {"type": "side-of-tomorrow", "text": "zqside"},
    ]
    names = [None, *(f"u{number}" for number in range(len(chain)))]
    linked = [{"uuid": f"u{at}", "parentUuid": names[at], "timestamp": TIME, **one} for at, one in enumerate(chain)]
    return [{"sessionId": SESSION, "cwd": "/home/ann/shop", **one} for one in (*linked, *sides)]


def gemini() -> list[dict[str, Any]]:
    response = [{"functionResponse": {"id": "c", "name": "x", "response": {"output": "zqoutput"}}}]
    call = {"id": "c", "name": "zqtool", "args": {"a": "zqargument"}, "status": "success", "result": response}
    thought = {"subject": "zqsubject", "description": "zqthought"}
    messages: list[dict[str, Any]] = [
        {"type": "user", "content": [{"text": "zquser"}], "displayContent": [{"text": "zqshown"}]},
        {"type": "gemini", "content": "zqanswer", "thoughts": [thought], "toolCalls": [call]},
        {"type": "info", "content": "zqinfo"},
        {"type": "warning", "content": "zqwarning"},
        {"type": "error", "content": "zqfailure"},
        {"type": "of_tomorrow", "content": "zqtomorrow"},
    ]
    numbered = [{"id": str(number), "timestamp": TIME, **one} for number, one in enumerate(messages)]
    head = {"sessionId": SESSION, "projectHash": "h", "startTime": TIME, "lastUpdated": TIME, "kind": "main"}
    return [head, *numbered, {"$rewindTo": "3"}, {"id": "9", "type": "user", "content": "zqafter"}, {"$new": "zqnew"}]


@pytest.mark.parametrize(
    ("format_name", "file", "records", "unknown"),
    [
        ("codex", f"sessions/2026/01/01/rollout-2026-01-01T10-00-00-{SESSION}.jsonl", codex(), 2),
        ("claude-code", f"-home-ann-shop/{SESSION}.jsonl", claude_code(), 2),
        ("gemini", "tmp/h/chats/session-2026-01-01T10-00-0c0ffee0.jsonl", gemini(), 2),
    ],
)
def test_every_word_is_found(
    format_name: str, file: str, records: list[dict[str, Any]], unknown: int, tmp_path: Path
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with st.open("memory:") as journal:
        report = import_sessions(journal, tmp_path)
        assert (report.format, len(report.threads), report.damage) == (format_name, 1, ())
        words = set(re.findall(r"zq[a-z]+", path.read_text()))
        assert {word for word in words if not journal.search(word).hits} == set()
        assert report.not_understood == unknown
