"""What cannot be read is reported at every import, and what stands beside it is read."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from transcript_samples import DATA, Sample, samples

import sessiontree as st
from sessiontree.search.matching import searchable
from sessiontree.transfer.formats import import_everything, import_sessions
from sessiontree.transfer.formats._cut_json import beginning_of

LOGS = [one for one in samples() if one.path.suffix in {".jsonl", ".md"}]
TALK = [{"role": "user", "content": "first words"}, {"role": "assistant", "content": "second words"}]


def words(journal: st.Journal) -> str:
    """Everything that search finds."""
    entries = [entry for one in journal.iter_threads(is_archived=None) for entry in journal.entries(one.id)]
    return "\n".join(found.text for entry in entries if (found := searchable(entry.payload)))


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("sample", LOGS, ids=lambda sample: sample.name)
def test_a_byte_order_mark_loses_nothing(sample: Sample, tmp_path: Path) -> None:
    found = []
    for mark in (b"", b"\xef\xbb\xbf"):
        path = tmp_path / str(len(mark)) / sample.path.name
        path.parent.mkdir()
        path.write_bytes(mark + sample.path.read_bytes())
        with st.open("memory:") as journal:
            report = import_sessions(journal, path)
            found.append((report.format, report.entries_added, len(report.damage), words(journal)))
    assert found[0] == found[1]


def test_a_time_beyond_all_times_is_no_time(tmp_path: Path) -> None:
    message = {"role": "user", "content": "first words"}
    line = {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "message": message, "timestamp": 1e300}
    path = written(tmp_path / "s.jsonl", line)
    with st.open("memory:") as journal:
        assert import_sessions(journal, path, format="claude-code").damage == ()
        assert "first words" in words(journal)


@pytest.mark.parametrize("has_ids", [True, False])
def test_chats_of_open_webui_without_a_tree_come_in(has_ids: bool, tmp_path: Path) -> None:
    messages = [{"id": f"m{number}", **one} if has_ids else one for number, one in enumerate(TALK)]
    path = written(tmp_path / "chats.json", [{"id": "c", "user_id": "u", "chat": {"title": "t", "messages": messages}}])
    with st.open("memory:") as journal:
        report = import_sessions(journal, path)
        assert (report.format, report.damage) == ("openwebui", ())
        assert [entry.message.text for entry in journal.path("c") if entry.message] == ["first words", "second words"]


def test_what_stands_before_the_cut_of_a_document_is_kept_and_the_cut_is_reported_every_time(tmp_path: Path) -> None:
    path = written(tmp_path / "task" / "api_conversation_history.json", TALK)
    path.write_bytes(path.read_bytes()[:-8])
    with st.open("memory:") as journal:
        first = import_sessions(journal, path)
        assert [entry.message.text for entry in journal.path("task") if entry.message] == ["first words", "second "]
        again = import_sessions(journal, path)
        assert again.unchanged == 1
        for report in (first, again):
            assert ["breaks off" in note.problem for note in report.damage] == [True]


def test_every_beginning_of_a_document_can_be_read() -> None:
    whole = json.dumps({"a": [1.5, True, None, {"b\\": 'x"\\ué'}], "c": "d", "e": [[]]}).encode()
    for end in range(1, len(whole)):
        found = beginning_of(whole[:end])
        assert found is not None
        assert found[1] <= end
    assert beginning_of(whole[:-12]) == ({"a": [1.5, True, None, {"b\\": 'x"\\ué'}], "c": "d"}, len(whole) - 12)


def opencode(tmp_path: Path, *statements: str) -> Path:
    path = tmp_path / "opencode.db"
    shutil.copy(DATA / "transcripts" / "opencode" / "synthetic" / "opencode.db", path)
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM session", "DELETE FROM message", "UPDATE part SET message_id = 'gone'"],
)
def test_messages_and_parts_of_opencode_that_lost_their_owner_are_kept_and_named(
    statement: str, tmp_path: Path
) -> None:
    with st.open("memory:") as whole:
        import_sessions(whole, opencode(tmp_path))
        wanted = sorted(words(whole).split())
    with st.open("memory:") as journal:
        report = import_sessions(journal, opencode(tmp_path, statement))
        assert set(wanted) <= set(words(journal).split())
        assert any("missing" in note.problem for note in report.repairs)


def test_files_of_opencode_that_lost_their_owner_are_named(tmp_path: Path) -> None:
    store = tmp_path / "storage"
    session = {"id": "ses_1", "version": "1", "time": {"created": 1785578400000}, "title": "t"}
    written(store / "session" / "p" / "ses_1.json", session)
    written(store / "message" / "ses_1" / "msg_1.json", {"id": "msg_1", "role": "user", "sessionID": "ses_1"})
    written(store / "part" / "msg_1" / "prt_1.json", {"id": "prt_1", "type": "text", "text": "hello"})
    written(store / "message" / "ses_2" / "msg_2.json", {"id": "msg_2", "role": "user"})
    written(store / "part" / "msg_3" / "prt_3.json", {"id": "prt_3", "type": "text", "text": "lost"})
    with st.open("memory:") as journal:
        for _ in range(2):
            report = import_sessions(journal, store)
            assert sorted(Path(note.place).name for note in report.damage) == ["msg_3", "ses_2"]


@pytest.mark.parametrize("odd", [17, "text", {"title": "empty"}])
def test_elements_that_are_no_conversations_are_named(odd: Any, tmp_path: Path) -> None:
    node = {"parent": None, "message": {"author": {"role": "user"}, "content": {"parts": ["hello"]}}}
    talk = {"id": "c", "current_node": "n", "mapping": {"n": {**node, "children": []}}}
    with st.open("memory:") as journal:
        report = import_sessions(journal, written(tmp_path / "conversations.json", [odd, talk]))
        assert (report.format, len(report.damage), report.threads) == ("chatgpt", 1, ("c",))


def test_a_message_of_gemini_that_was_written_again_keeps_its_earlier_form(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    lines = [
        {"sessionId": "s", "projectHash": "p", "startTime": "2026-08-01T10:00:00Z"},
        {"id": "1", "type": "user", "content": "question"},
        {"id": "2", "type": "gemini", "content": "the first draft"},
        {"id": "2", "type": "gemini", "content": "the answer"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with st.open("memory:") as journal:
        import_sessions(journal, path)
        assert "the first draft" in words(journal)
        assert [one.text for one in journal.context("s").messages] == ["question", "the answer"]


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_one_foreign_row_is_named_and_the_rest_of_a_data_set_is_read(suffix: str, tmp_path: Path) -> None:
    rows = [{"something": "else"}, {"messages": TALK}, {"messages": TALK[::-1]}]
    path = tmp_path / f"rows.{suffix}"
    path.write_text(json.dumps(rows) if suffix == "json" else "".join(json.dumps(row) + "\n" for row in rows))
    with st.open("memory:") as journal:
        for _ in range(2):
            report = import_sessions(journal, path)
            assert (report.format, len(report.threads), len(report.damage)) == ("dataset", 2, 1)


def test_a_session_without_times_has_that_of_its_file(tmp_path: Path) -> None:
    talk = {"id": "c", "user_id": "u", "chat": {"title": "t", "messages": TALK}}
    path = written(tmp_path / "chats.json", [talk])
    with st.open("memory:") as journal:
        import_sessions(journal, path)
        assert journal.thread("c").created_ns == path.stat().st_mtime_ns
        assert all(entry.created_ns == path.stat().st_mtime_ns for entry in journal.path("c"))


@pytest.mark.parametrize("tool", ["goose", "crush"])
def test_messages_without_the_row_of_their_session_are_kept_and_named(tool: str, tmp_path: Path) -> None:
    (source,) = sorted((DATA / "transcripts" / tool / "synthetic").rglob("*.db"))
    path = tmp_path / source.name
    shutil.copy(source, path)
    with st.open("memory:") as whole:
        import_sessions(whole, path)
        wanted = words(whole)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM sessions")
    connection.commit()
    connection.close()
    with st.open("memory:") as journal:
        report = import_sessions(journal, path)
        assert set(wanted.split()) <= set(words(journal).split())
        assert any("session itself is missing" in note.problem for note in report.repairs)
        assert import_sessions(journal, path).entries_added == 0


def test_a_log_of_which_nothing_can_be_read_is_named_at_every_import(tmp_path: Path) -> None:
    sample = next(one for one in samples() if one.format == "claude-code" and one.path.suffix == ".jsonl")
    shutil.copy(sample.path, tmp_path)
    (tmp_path / "broken.jsonl").write_bytes(b"\x00" * 5000)
    (tmp_path / "rollout-cut.jsonl.zst").write_bytes(b"not compressed")
    (tmp_path / "settings.jsonl").write_text('{"some": "settings"}\n')
    (tmp_path / "empty.jsonl").write_text("\n")
    with st.open("memory:") as journal:
        for _ in range(2):
            for (report,) in (import_everything(journal, tmp_path), [import_sessions(journal, tmp_path)]):
                places = [Path(note.place).name for note in report.damage if "nothing in it" in note.problem]
                assert places == ["broken.jsonl", "rollout-cut.jsonl.zst"]


def test_an_event_of_openhands_that_comes_late_is_imported(tmp_path: Path) -> None:
    folder = tmp_path / "conversation"
    written(folder / "base_state.json", {"id": "c", "agent": {"llm": {"model": "m"}}})
    events = [
        {
            "id": f"e{number}",
            "kind": "MessageEvent",
            "source": "user",
            "timestamp": f"2026-08-01T10:00:0{number}",
            "llm_message": {"role": "user", "content": f"words-{number}"},
        }
        for number in range(4)
    ]
    for number in (0, 1, 3):
        written(folder / "events" / f"event-{number:05}-x.json", events[number])
    with st.open("memory:") as journal:
        import_sessions(journal, tmp_path)
        assert "words-2" not in words(journal)
        written(folder / "events" / "event-00002-x.json", events[2])
        report = import_sessions(journal, tmp_path)
        assert (report.entries_added, report.conflicts) == (1, ())
        assert "words-2" in words(journal)
        assert journal.context("c").messages[-1].text == "words-3"
        assert import_sessions(journal, tmp_path).unchanged == 1


def test_a_document_of_gemini_is_known_whatever_its_name_says(tmp_path: Path) -> None:
    said = [{"id": "1", "type": "user", "content": "question"}, {"id": "2", "type": "gemini", "content": "answer"}]
    facts = {"sessionId": "s", "projectHash": "p", "startTime": "2026-08-01T10:00:00Z", "messages": said}
    path = tmp_path / "full.jsonl"
    path.write_text(json.dumps(facts, indent=2))
    with st.open("memory:") as journal:
        import_sessions(journal, path)
        assert [one.text for one in journal.context("s").messages] == ["question", "answer"]


@pytest.mark.parametrize("name", ["session.json", "session.jsonl"])
def test_bytes_that_are_no_text_are_named(name: str, tmp_path: Path) -> None:
    facts = {"sessionId": "s", "projectHash": "p", "startTime": "2026-08-01T10:00:00Z"}
    said = {"id": "1", "type": "user", "content": "caf\u00e9"}
    records = [facts | {"messages": [said]}] if name.endswith(".json") else [facts, said]
    path = tmp_path / name
    path.write_bytes("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records).encode("latin-1"))
    with st.open("memory:") as journal:
        report = import_sessions(journal, path)
        assert [note.kind for note in report.notes if "UTF-8" in note.problem] == ["repair"]
        assert [one.text for one in journal.context("s").messages] == ["caf\ufffd"]
