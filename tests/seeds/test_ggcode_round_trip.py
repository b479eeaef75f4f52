"""ggcode's sessions go on here and come back: every original line byte for byte, the new ones in ggcode's format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from golden_sets import sets
from opened import open_store
from sessiontree.transfer.formats import export_sessions, import_sessions

STORES = ("memory", "sqlite", "jsonl", "postgres")
ZERO = "0001-01-01T00:00:00Z"
NEW = ("and now? <&> \u2028 é", "look", "thanks")


def go_on(journal: st.Journal, session: str) -> None:
    """Three messages with an event, a checkpoint, and one more message."""
    journal.append(session, st.user(NEW[0]))
    journal.append(session, st.Event(event_id="ev-new", stream="s", name="status", data={"n": 1}))
    journal.append(session, st.assistant(NEW[1]))
    journal.append(session, st.user(NEW[2]))
    journal.replace_context(session, "What happened so far.", 2)
    journal.append(session, st.assistant("you are welcome"))


def loaded(lines: list[dict[str, Any]]) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Messages, events and metadata by ggcode's rules: the last checkpoint counts, the last meta record counts."""
    messages: list[Any] = []
    events: list[Any] = []
    meta: dict[str, Any] = {}
    for record in lines:
        match record.get("type"):
            case "meta":
                meta = record
            case "message" if "message" in record:
                messages.append(record["message"])
            case "tunnel_event" if "tunnel_event" in record:
                events.append(record["tunnel_event"])
            case "checkpoint":
                messages, events = list(record.get("checkpoint_messages", [])), []
    return messages, events, meta


def lines_of(path: Path) -> list[bytes]:
    """The lines of a file, without blank ones, which are no records."""
    return [line for line in path.read_bytes().split(b"\n") if line.strip()]


def text_of(message: dict[str, Any]) -> str:
    return "".join(block.get("text", "") for block in message["content"])


@pytest.mark.parametrize("store", STORES)
def test_every_session_goes_on_and_comes_back(store: str, seed_fixtures: Path, tmp_path: Path) -> None:
    for number, one in enumerate(sets(seed_fixtures, "ggcode")):
        place, again = tmp_path / str(number), tmp_path / f"again-{number}"
        place.mkdir()
        with open_store(store, place) as journal:
            import_sessions(journal, one.store)
            sessions = [path.stem for path in sorted(one.store.glob("*.jsonl"))]
            for session in sessions:
                go_on(journal, session)
            export_sessions(journal, again, format="ggcode")
        for session in sessions:
            original = lines_of(one.store / f"{session}.jsonl")
            exported = lines_of(again / f"{session}.jsonl")
            assert exported[: len(original)] == original
            new = exported[len(original) :]
            records = [json.loads(line) for line in new]
            kinds = [record["type"] for record in records]
            assert kinds == ["message", "tunnel_event", "message", "message", "checkpoint", "message"]
            assert all(record["session_id"] == session for record in records)
            assert all((record["created_at"], record["updated_at"]) == (ZERO, ZERO) for record in records)
            messages, events, _ = loaded(records)
            expected = ["What happened so far.", NEW[1], NEW[2], "you are welcome"]
            assert [text_of(message) for message in messages] == expected
            assert events == []
            assert records[1]["tunnel_event"]["event_id"] == "ev-new"
            assert b"<&> \\u2028" in new[0]
        index = json.loads((again / "index.json").read_bytes())
        assert {row["id"] for row in index} == set(sessions)
        assert {row["msg_count"] for row in index} == {4}
        with st.open("memory:") as journal:
            import_sessions(journal, again)
            for session in sessions:
                assert [message.text for message in journal.context(session).messages][1:] == [
                    *NEW[1:],
                    "you are welcome",
                ]


@pytest.mark.parametrize("is_complete", [True, False])
@pytest.mark.parametrize("store", STORES)
def test_the_flag_of_complete_events_survives_a_change(store: str, is_complete: bool, tmp_path: Path) -> None:
    source, session = tmp_path / "source", "20260410-111201-e5783ab8fd0dee71"
    source.mkdir()
    flag = {"tunnel_events_complete": True} if is_complete else {}
    times = {"created_at": "2026-04-10T11:12:01+08:00", "updated_at": "2026-04-10T12:00:00+08:00"}
    meta = {"type": "meta", "session_id": session, "title": "old", **times, **flag}
    said = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    message = {"type": "message", "session_id": session, "created_at": ZERO, "updated_at": ZERO, "message": said}
    event = {**message, "type": "tunnel_event", "tunnel_event": {"event_id": "ev-1", "type": "status"}}
    del event["message"]
    lines = [json.dumps(record, separators=(",", ":")) + "\n" for record in (meta, message, event)]
    (source / f"{session}.jsonl").write_text("".join(lines))
    with open_store(store, tmp_path / "source") as journal:
        import_sessions(journal, source, format="ggcode")
        journal.update_thread(session, title="new", model="m")
        journal.append(session, st.user("more"))
        export_sessions(journal, tmp_path / "again", format="ggcode")
    written = (tmp_path / "again" / f"{session}.jsonl").read_text()
    assert written.startswith("".join(lines))
    messages, events, last = loaded([json.loads(line) for line in written.splitlines()])
    assert (last["title"], last["model"], last.get("tunnel_events_complete", False)) == ("new", "m", is_complete)
    assert (len(messages), len(events)) == (2, 1)
