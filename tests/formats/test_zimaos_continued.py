"""Sessions of ZimaOS-Blue go on here: found by key, continued, compacted, and written back for the original."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from golden_sets import Json
from opened import open_store
from sessiontree.sessions import SessionManager
from sessiontree.transfer.formats.zimaos import SCHEMA, STATES

KINDS = ("memory", "sqlite", "jsonl", "postgres")
STATE, METADATA, MESSAGES, PROMPT = 5, 6, 7, 8


@pytest.fixture(params=KINDS)
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    with open_store(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def database(seed_fixtures: Path) -> Path:
    return seed_fixtures / "003" / "store" / "sessions.db"


def rows_of(database: Path) -> dict[str, tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{database}?immutable=1", uri=True)) as connection:
        return {row[0]: row for row in connection.execute("SELECT * FROM sessions")}


def as_read_by_the_original(row: tuple[Any, ...]) -> tuple[Json, list[Json]]:
    """Metadata and messages by the types of the original; JSON of another type fails its Load."""
    metadata = json.loads(row[METADATA] or "{}")
    messages = json.loads(row[MESSAGES] or "{}").get("messages", [])
    for message in messages:
        folded = {name.casefold(): value for name, value in message.items()}
        assert isinstance(folded["role"], str)
        assert isinstance(folded.get("content", ""), str)
        for call in folded.get("tool_calls") or []:
            assert {name: type(value) for name, value in call.items()} == {"id": str, "name": str, "arguments": str}
    assert all(isinstance(value, str) for value in metadata.get("custom_data", {}).values())
    return metadata, messages


def raw_messages(text: str) -> list[str]:
    """The text of each message, as it stands in the column."""
    decoder, at, found = json.JSONDecoder(), text.index("[") + 1, []
    while text[at] != "]":
        end = decoder.raw_decode(text, at)[1]
        found.append(text[at:end])
        at = end + (text[end] == ",")
    return found


def test_every_imported_session_is_found_by_its_key(journal: st.Journal, database: Path) -> None:
    st.import_sessions(journal, database)
    manager = SessionManager(journal)
    original = rows_of(database)
    for row in original.values():
        key = st.SessionKey(agent=row[1], channel=row[2], peer=row[3], thread=row[4] or "")
        session = manager.get(key)
        assert session is not None
        assert (session.thread_id, session.key, manager.info(key).generation) == (row[0], key, 0)
        assert manager.get_or_create(key).thread_id == row[0] or row[STATE] == STATES.index("archived")
        assert manager.get_system_prompt(key) == (row[PROMPT] or "") or row[STATE] == STATES.index("archived")
    listed = {info.thread_id for info in manager.list(limit=100)}
    assert set(original) <= listed


def test_continued_sessions_are_written_back_with_everything_that_was_there(
    journal: st.Journal, database: Path, tmp_path: Path
) -> None:
    st.import_sessions(journal, database)
    policy = st.ratio_policy(2_000, preserve_recent=2, strategy="truncate")
    manager = SessionManager(journal, policy=policy, auto_compact="off")
    original = rows_of(database)
    for row in original.values():
        key = journal.thread(row[0]).key
        if row[STATE] == STATES.index("archived"):
            manager.unarchive(key)
        manager.add_message(key, st.user("one more <thing>"))
        manager.add_message(key, st.assistant("looking", calls=[st.call("new1", "ls", '{"p":1}')]))
        manager.add_message(key, st.tool_result("new1", "a\nb"))
        manager.compact(key, force=True)
        info = manager.info(key)
        assert (info.title, list(info.tags), info.custom) == _labels(row)
    st.export_sessions(journal, tmp_path / "out", format="zimaos")
    exported = rows_of(tmp_path / "out" / "sessions.db")
    assert set(exported) == set(original)
    for name, before in original.items():
        _compare(before, exported[name])
    with st.open("memory:") as again:
        assert st.import_sessions(again, tmp_path / "out" / "sessions.db").damage == ()
        for name in original:
            assert _texts(again, name) == _texts(journal, name)


def _labels(row: tuple[Any, ...]) -> tuple[str, list[str], dict[str, str]]:
    metadata = {name.casefold(): value for name, value in json.loads(row[METADATA] or "{}").items()}
    return metadata.get("title", ""), metadata.get("tags") or [], metadata.get("custom_data", {})


def _compare(before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    assert after[:5] == before[:5]
    assert after[PROMPT] == before[PROMPT]
    assert after[9] == before[9], "the time of creation"
    was, _ = as_read_by_the_original(before)
    now, _ = as_read_by_the_original(after)
    assert _labels(after) == _labels(before)
    assert now["message_count"] == was.get("message_count", 0) + 3
    kept = raw_messages(before[MESSAGES]) if before[MESSAGES] else []
    written = raw_messages(after[MESSAGES])
    assert written[: len(kept)] == kept, "every message that was there, byte for byte"
    assert written[len(kept) :] == [
        '{"role":"user","content":"one more \\u003cthing\\u003e"}',
        '{"role":"assistant","content":"looking","tool_calls":[{"id":"new1","name":"ls","arguments":"{\\"p\\":1}"}]}',
        '{"role":"tool","content":"a\\nb","tool_call_id":"new1"}',
    ]
    assert now["compaction_count"] >= was.get("compaction_count", 0)


def _texts(journal: st.Journal, thread_id: str) -> list[str]:
    return [message.text for message in journal.context(thread_id).messages]


def test_a_compaction_made_here_has_its_count_summary_and_time_in_the_row(
    journal: st.Journal, database: Path, tmp_path: Path
) -> None:
    st.import_sessions(journal, database)
    manager = SessionManager(journal, policy=st.ratio_policy(2_000, preserve_recent=1, strategy="truncate"))
    key = journal.thread("main:telegram:77").key
    manager.add_message(key, st.user("and now?"))
    result = manager.compact(key, force=True)
    assert result.is_installed
    st.export_sessions(journal, tmp_path / "out", format="zimaos")
    row = rows_of(tmp_path / "out" / "sessions.db")["main:telegram:77"]
    metadata = json.loads(row[METADATA])
    assert (metadata["compaction_count"], metadata["summary"]) == (3, result.summary)
    assert row[12] != rows_of(database)["main:telegram:77"][12]


def test_sessions_made_here_are_written_under_the_ids_of_the_original(journal: st.Journal, tmp_path: Path) -> None:
    manager = SessionManager(journal)
    key = st.SessionKey(agent="main", channel="telegram", peer="42")
    colon = st.SessionKey(agent="main", channel="matrix", peer="@u:server", thread="t")
    manager.add_message(key, st.user("old"))
    manager.new(key)
    manager.add_message(key, st.user("new"))
    manager.add_message(colon, st.user("x"))
    manager.set_custom(colon, "mood", {"a": 1})
    st.export_sessions(journal, tmp_path / "out", format="zimaos")
    exported = rows_of(tmp_path / "out" / "sessions.db")
    assert sorted(exported) == ["main:matrix:@u:server:t", "main:telegram:42", "main:telegram:42#1"]
    assert [json.loads(exported[name][MESSAGES])["messages"][0]["content"] for name in sorted(exported)[1:]] == [
        "new",
        "old",
    ]
    assert json.loads(exported["main:matrix:@u:server:t"][METADATA])["custom_data"] == {"mood": '{"a":1}'}


def test_the_conversation_in_use_has_the_id_of_its_key_and_an_archived_one_is_beside_it(
    journal: st.Journal, database: Path, tmp_path: Path
) -> None:
    st.import_sessions(journal, database)
    manager = SessionManager(journal)
    key = journal.thread("helper:web:anon").key
    manager.add_message(key, st.user("hello again"))
    st.export_sessions(journal, tmp_path / "out", format="zimaos")
    exported = rows_of(tmp_path / "out" / "sessions.db")
    assert exported["helper:web:anon#0"][1:] == rows_of(database)["helper:web:anon"][1:]
    assert json.loads(exported["helper:web:anon"][MESSAGES])["messages"] == [{"role": "user", "content": "hello again"}]
    assert exported["helper:web:anon"][STATE] == STATES.index("active")
    with st.open("memory:") as again:
        st.import_sessions(again, tmp_path / "out" / "sessions.db")
        found = SessionManager(again)
        assert [message.text for message in found.get_messages(key)] == ["hello again"]
        st.export_sessions(again, tmp_path / "twice", format="zimaos")
    assert rows_of(tmp_path / "twice" / "sessions.db") == exported


def test_an_export_that_comes_back_wakes_no_archived_conversation_and_doubles_none(
    journal: st.Journal, database: Path, tmp_path: Path
) -> None:
    st.import_sessions(journal, database)
    manager = SessionManager(journal)
    archived, fresh = journal.thread("helper:web:anon").key, st.SessionKey(agent="a", channel="b", peer="c")
    for key in (archived, fresh):
        manager.add_message(key, st.user("said here"))
    out = tmp_path / "out" / "sessions.db"
    st.export_sessions(journal, out.parent, format="zimaos")
    with closing(sqlite3.connect(out)) as connection:
        said = json.dumps({"messages": [{"role": "user", "content": text} for text in ("said here", "said there")]})
        connection.execute("UPDATE sessions SET messages = ? WHERE id IN ('helper:web:anon', 'a:b:c')", (said,))
        connection.commit()
    before = sorted((thread.id, thread.leaf, thread.is_archived) for thread in journal.iter_threads(is_archived=None))
    report = st.import_sessions(journal, out)
    after = sorted((thread.id, thread.leaf, thread.is_archived) for thread in journal.iter_threads(is_archived=None))
    assert after == before
    assert sorted(note.thread_id for note in report.notes if note.kind == "conflict") == [
        "session:a:b:c#1",
        "session:helper:web:anon#1",
    ]
    for key in (archived, fresh):
        assert [message.text for message in manager.get_messages(key)] == ["said here"]
    exported = rows_of(out)
    st.export_sessions(journal, tmp_path / "again", format="zimaos")
    again = rows_of(tmp_path / "again" / "sessions.db")
    assert again.keys() == exported.keys()
    assert again["helper:web:anon#0"] == exported["helper:web:anon#0"]
    copied = st.import_sessions(journal, out, prefix="copy-")
    assert "copy-a:b:c" in copied.threads
    assert not [note for note in copied.notes if note.kind == "conflict"]


def test_a_session_with_an_empty_key_goes_on_but_none_is_created_with_one(journal: st.Journal, database: Path) -> None:
    manager = SessionManager(journal)
    empty = st.SessionKey()
    with pytest.raises(st.InvalidInputError, match="needs an agent"):
        manager.get(empty)
    st.import_sessions(journal, database)
    journal.create_thread("plain")
    assert manager.add_message(empty, st.user("on")).thread_id == "::"
    assert (manager.info(empty).id, manager.info(empty).state) == ("::", "active")
    manager.archive(empty)
    with pytest.raises(st.InvalidInputError, match="needs an agent"):
        manager.add_message(empty, st.user("a new one"))


def test_an_import_under_other_ids_exports_the_original_ones(tmp_path: Path) -> None:
    source = tmp_path / "sessions.db"
    with closing(sqlite3.connect(source)) as connection:
        connection.executescript(SCHEMA)
        time = "2026-02-01 15:54:05 +0000 UTC"
        row = ("a:b:c", "a", "b", "c", None, 2, "{}", '{"messages":[{"role":"user","content":"hi"}]}', None)
        connection.execute(f"INSERT INTO sessions VALUES ({','.join('?' * 13)})", (*row, time, time, time, None))
        connection.commit()
    with st.open("memory:") as journal:
        st.import_sessions(journal, source, prefix="old-")
        manager = SessionManager(journal)
        key = st.SessionKey(agent="a", channel="b", peer="c")
        manager.add_message(key, st.user("more"))
        st.export_sessions(journal, tmp_path / "out", format="zimaos")
        (exported,) = rows_of(tmp_path / "out" / "sessions.db").values()
    assert (exported[0], exported[STATE]) == ("a:b:c", STATES.index("active"))
