"""The openrouter agent SDK's session manager, called by its names here and compared with what the SDK does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from opened import open_store
from seed_rows import covers
from sessiontree.errors import NoCheckpointError
from sessiontree.sessions.checkpointed import CheckpointedSession, CheckpointedSessions, clone_messages
from sessiontree.testing.clock import ManualClock

STORES = ("memory", "sqlite", "jsonl", "postgres")
USER = {"role": "user", "content": "hello"}
ANSWER = {"role": "assistant", "content": "hi", "n": 9007199254740993}


@pytest.fixture
def sessions(journal: st.Journal) -> CheckpointedSessions:
    return CheckpointedSessions(journal)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text("one")
    return folder


@covers("ErrNoCheckpoint")
def test_what_has_no_checkpoint_is_an_error_with_the_ids(sessions: CheckpointedSessions, root: Path) -> None:
    sessions.get_or_create("chat")
    attempts: tuple[tuple[str, Callable[[], object]], ...] = (
        ("chat", lambda: sessions.rewind("chat", "u1")),
        ("chat", lambda: sessions.rewind_files("chat", "u1", root)),
        ("unknown", lambda: sessions.rewind("unknown", "u1")),
        ("unknown", lambda: sessions.rewind_files("unknown", "u1", root)),
    )
    for name, attempt in attempts:
        with pytest.raises(NoCheckpointError) as caught:
            attempt()
        assert (caught.value.thread_id, caught.value.entry_id) == (name, "u1")


@covers("Clone")
def test_cloned_messages_share_nothing_with_the_original() -> None:
    """The SDK copies the outer map of each message only."""
    given: list[dict[str, Any]] = [{"role": "user", "content": "x", "meta": {"deep": [1]}}]
    cloned = clone_messages(given)
    assert cloned == given
    given[0]["meta"]["deep"].append(2)
    cloned[0]["role"] = "assistant"
    assert (cloned[0]["meta"], given[0]["role"]) == ({"deep": [1]}, "user")
    assert clone_messages(()) == []


@covers("NewManager", "Manager")
def test_a_new_manager_has_no_sessions_and_two_share_a_journal(journal: st.Journal) -> None:
    one, other = CheckpointedSessions(journal), CheckpointedSessions(journal)
    assert one.list() == []
    one.set_state("chat", [USER], user_turns=1)
    assert other.get("chat") == one.get("chat")


@covers("Manager.EnablePersistence")
@pytest.mark.parametrize("store", STORES[1:])
def test_sessions_are_durable_without_being_asked_for(store: str, tmp_path: Path) -> None:
    with open_store(store, tmp_path) as journal:
        CheckpointedSessions(journal).set_state("chat", [USER, ANSWER], user_turns=1)
        CheckpointedSessions(journal).snapshot("chat", "u1")
    with open_store(store, tmp_path) as journal:
        found = CheckpointedSessions(journal).get("chat")
        assert (found.messages, found.user_turns, list(found.checkpoints)) == ((USER, ANSWER), 1, ["u1"])


@covers("Manager.EnablePersistence")
def test_the_sdks_file_is_imported_beside_what_is_there(tmp_path: Path) -> None:
    """The SDK replaces the sessions in memory by those of the file, and overwrites a file that it cannot read."""
    file = tmp_path / "sessions.json"
    file.write_text(json.dumps({"sessions": {"old": {"ID": "old", "Messages": [USER], "UserTurns": 1}}}))
    with st.open(tmp_path / "journal.db") as journal:
        sessions = CheckpointedSessions(journal)
        sessions.get_or_create("new")
        st.import_sessions(journal, file)
        assert sorted(session.id for session in sessions.list()) == ["new", "old"]
        file.write_text('{"sessions": {')
        assert st.import_sessions(journal, file, format="openrouter").damage
        assert (sessions.get("old").messages, file.read_text()) == ((USER,), '{"sessions": {')


@covers("Manager.Get", "Manager.GetOrCreate")
def test_get_finds_and_get_or_create_makes(sessions: CheckpointedSessions) -> None:
    for name in ("", "chat"):
        with pytest.raises(st.ThreadNotFoundError):
            sessions.get(name)
        made = sessions.get_or_create(name)
        assert (made.id, made.messages, made.user_turns) == (name or "default", (), 0)
        assert sessions.get(name) == sessions.get_or_create(name) == made


@covers("Manager.List")
def test_a_list_is_newest_first_with_ties_by_id(sessions: CheckpointedSessions, clock: ManualClock) -> None:
    for name in ("b", "c", "a"):
        sessions.set_state(name, [USER], user_turns=1)
    clock.advance(1)
    sessions.set_state("c", [ANSWER], user_turns=2)
    assert [session.id for session in sessions.list()] == ["c", "a", "b"]
    assert sessions.list()[0].messages == (ANSWER,)


@covers("Manager.SetState")
def test_set_state_replaces_messages_and_turns(sessions: CheckpointedSessions) -> None:
    for name in ("", "chat"):
        first = sessions.set_state(name, [USER, ANSWER], user_turns=1)
        assert (first.id, first.messages, first.user_turns) == (name or "default", (USER, ANSWER), 1)
        again = sessions.set_state(name, [ANSWER], user_turns=7)
        assert (
            (again.messages, again.user_turns)
            == ((ANSWER,), 7)
            == (
                sessions.get(name).messages,
                sessions.get(name).user_turns,
            )
        )
        assert sessions.set_state(name, [], user_turns=0).messages == ()


@covers("Manager.Clone")
def test_a_clone_takes_everything_along_and_overwrites_nothing(
    sessions: CheckpointedSessions, root: Path, clock: ManualClock
) -> None:
    sessions.set_state("chat", [USER], user_turns=1)
    sessions.snapshot("chat", "u1")
    sessions.snapshot_files("chat", "u1", root)
    source = sessions.set_state("chat", [USER, ANSWER], user_turns=2)
    clock.advance(1)
    clone = sessions.clone("chat", "copy")
    assert (clone.messages, clone.user_turns) == (source.messages, source.user_turns)
    assert dict(clone.checkpoints) == dict(source.checkpoints) == {"u1": (USER,)}
    assert set(clone.file_checkpoints) == {"u1"}
    assert clone.created_ns == clone.updated_ns > source.updated_ns
    sessions.set_state("copy", [], user_turns=0)
    assert sessions.get("chat") == source
    with pytest.raises(st.ThreadExistsError):
        sessions.clone("chat", "copy")
    with pytest.raises(st.ThreadNotFoundError):
        sessions.clone("unknown", "other")


@covers("Manager.NewForkID")
def test_fork_ids_count_up_for_each_base(sessions: CheckpointedSessions) -> None:
    assert [sessions.new_fork_id("a") for _ in range(3)] == ["a#fork-1", "a#fork-2", "a#fork-3"]
    assert sessions.new_fork_id("b") == "b#fork-1"
    assert sessions.new_fork_id() == "default#fork-1"
    assert sessions.new_fork_id("a#fork-1") == "a#fork-1#fork-1"
    sessions.get_or_create("b#fork-2")
    assert sessions.new_fork_id("b") == "b#fork-3"


@covers("Manager.Snapshot", "Manager.Rewind")
def test_a_rewind_returns_to_the_newest_snapshot_and_keeps_later_ones(sessions: CheckpointedSessions) -> None:
    sessions.set_state("", [], user_turns=0)
    sessions.snapshot("", "u1")
    sessions.set_state("", [USER], user_turns=1)
    sessions.snapshot("", "u1")
    sessions.set_state("", [USER, ANSWER], user_turns=2)
    sessions.snapshot("", "u2")
    back = sessions.rewind("", "u1")
    assert (back.messages, back.user_turns) == ((USER,), 1)
    assert set(back.checkpoints) == {"u1", "u2"}
    assert sessions.rewind("", "u2").messages == (USER, ANSWER)
    with pytest.raises(st.ThreadNotFoundError):
        sessions.snapshot("unknown", "u1")
    assert [session.id for session in sessions.list()] == ["default"]


@covers("Manager.SnapshotFiles", "Manager.RewindFiles")
def test_files_go_back_to_a_snapshot_and_messages_stay(sessions: CheckpointedSessions, root: Path) -> None:
    sessions.set_state("chat", [USER], user_turns=1)
    (root / ".git").mkdir()
    (root / ".git" / "HEAD").write_text("git")
    sessions.snapshot_files("chat", "u1", root)
    (root / "sub" / "a.txt").write_text("two")
    (root / "made").write_text("since")
    (root / ".git" / "HEAD").write_text("changed")
    sessions.rewind_files("chat", "u1", root)
    assert ((root / "sub" / "a.txt").read_text(), (root / "made").exists()) == ("one", False)
    assert (root / ".git" / "HEAD").read_text() == "changed"
    assert sessions.get("chat").messages == (USER,)
    with pytest.raises(st.WorkspaceError):
        sessions.snapshot_files("chat", "u2", " ")
    with pytest.raises(NoCheckpointError):
        sessions.snapshot_files("chat", "", root)
    with pytest.raises(st.ThreadNotFoundError):
        sessions.snapshot_files("unknown", "u1", root)


@covers("Session")
def test_a_session_has_every_field_of_the_sdks(sessions: CheckpointedSessions, root: Path, clock: ManualClock) -> None:
    created = sessions.set_state("chat", [USER], user_turns=1)
    clock.advance(1)
    sessions.snapshot("chat", "u1")
    sessions.snapshot_files("chat", "u1", root)
    found = sessions.set_state("chat", [USER, ANSWER], user_turns=2)
    assert isinstance(found, CheckpointedSession)
    assert (found.id, found.messages, found.user_turns) == ("chat", (USER, ANSWER), 2)
    assert found.created_ns == created.created_ns < found.updated_ns
    assert found.checkpoints == {"u1": (USER,)}
    assert {name: files.files for name, files in found.file_checkpoints.items()} == {"u1": 1}
    assert sessions.checkpoint_files("chat", "u1") == {"sub/a.txt": b"one"}
