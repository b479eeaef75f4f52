"""Rollouts of Codex: forks share what they copied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from sessiontree.transfer.formats import import_sessions

NAMES = [f"019f0000-0000-7000-8000-00000000000{number}" for number in range(4)]


def item(role: str, said: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    payload = {"type": "message", "role": role, "content": [{"type": kind, "text": said}]}
    return {"type": "response_item", "payload": payload}


def turn(number: int | str) -> list[dict[str, Any]]:
    call = {"type": "function_call", "name": "shell", "arguments": '{"cmd":"ls"}', "call_id": f"call-{number}"}
    output = {"type": "function_call_output", "call_id": f"call-{number}", "output": f"files {number}"}
    return [
        {"type": "event_msg", "payload": {"type": "task_started"}},
        item("user", f"question {number}"),
        {"type": "event_msg", "payload": {"type": "user_message", "message": f"question {number}"}},
        {"type": "response_item", "payload": call},
        {"type": "response_item", "payload": output},
        item("assistant", f"answer {number}"),
        {"type": "event_msg", "payload": {"type": "task_complete"}},
    ]


def write(home: Path, number: int, records: list[dict[str, Any]], **meta: str) -> Path:
    """Write a rollout; its times are its own, also those of records that it copied."""
    folder = home / "sessions" / "2026" / "01" / f"{number + 1:02}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-01-{number + 1:02}T10-00-00-{NAMES[number]}.jsonl"
    head = {"type": "session_meta", "payload": {"id": NAMES[number], "cwd": "/home/ann/shop", **meta}}
    lines = [{"timestamp": f"2026-01-{number + 1:02}T10:00:00.000Z", **one} for one in (head, *records)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def said(journal: st.Journal, thread_id: str) -> list[str]:
    return [entry.message.text for entry in journal.path(thread_id) if entry.message and entry.message.text]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    first, second, third = turn(1), turn(2), turn(3)
    write(tmp_path, 0, [*first, *second])
    write(tmp_path, 1, [*first, *third], forked_from_id=NAMES[0])
    write(tmp_path, 2, [*first, *third, *turn("deep")], forked_from_id=NAMES[1])
    return tmp_path


def test_a_fork_shares_what_it_copied(home: Path) -> None:
    with st.open("memory:") as journal:
        report = import_sessions(journal, home)
        assert not report.damage
        assert not report.repairs
        one, fork, deep = (journal.thread(name) for name in NAMES[:3])
        assert fork.forked_from_thread == one.id
        assert deep.forked_from_thread == fork.id
        assert one.tree == fork.tree == deep.tree
        assert said(journal, one.id) == [f"{word} {turn}" for turn in (1, 2) for word in ("question", "answer")]
        assert said(journal, fork.id) == [f"{word} {turn}" for turn in (1, 3) for word in ("question", "answer")]
        assert said(journal, deep.id)[-2:] == ["question deep", "answer deep"]
        assert [hit.thread_id for hit in journal.search('"question 1"').hits] == [one.id]
        again = import_sessions(journal, home)
        assert (again.unchanged, again.entries_added) == (3, 0)


def test_a_fork_whose_source_is_gone_stands_alone_and_stays_so(home: Path) -> None:
    source = next(home.rglob(f"*{NAMES[0]}*"))
    data = source.read_bytes()
    with st.open("memory:") as journal:
        source.unlink()
        import_sessions(journal, home)
        assert journal.thread(NAMES[1]).forked_from_thread in (None, "")
        source.write_bytes(data)
        write(home, 1, [*turn(1), *turn(3), *turn(4)], forked_from_id=NAMES[0])
        report = import_sessions(journal, home)
        assert not report.conflicts
        assert said(journal, NAMES[1])[-1] == "answer 4"
        assert journal.thread(NAMES[1]).forked_from_thread in (None, "")


def test_a_fork_that_grows_goes_on(home: Path) -> None:
    with st.open("memory:") as journal:
        import_sessions(journal, home)
        write(home, 1, [*turn(1), *turn(3), *turn(4)], forked_from_id=NAMES[0])
        report = import_sessions(journal, home)
        assert not report.conflicts
        assert said(journal, NAMES[1]) == [f"{word} {turn}" for turn in (1, 3, 4) for word in ("question", "answer")]


def test_forks_of_one_another_do_not_hang(tmp_path: Path) -> None:
    write(tmp_path, 0, turn(1), forked_from_id=NAMES[1])
    write(tmp_path, 1, turn(1), forked_from_id=NAMES[0])
    with st.open("memory:") as journal:
        import_sessions(journal, tmp_path)
        assert said(journal, NAMES[0]) == said(journal, NAMES[1]) == ["question 1", "answer 1"]
