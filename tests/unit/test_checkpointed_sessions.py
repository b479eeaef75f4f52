"""CheckpointedSessions on every store: checkpoints of sessions and clones, fork ids, folders, lists, odd input."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sessiontree as st
from opened import open_store
from sessiontree.sessions.checkpointed import CheckpointedSession, clone_messages

HELLO = {"role": "user", "content": "hello"}
HI = {"role": "assistant", "content": "hi"}
AGAIN = {"role": "user", "content": "again"}


@pytest.fixture(params=["memory", "sqlite", "jsonl", "postgres", "sqlite-async"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[st.Journal]:
    """A journal whose clock stands still: nothing may depend on times that differ."""
    with open_store(request.param, tmp_path, clock=lambda: 7) as opened:
        yield opened
        assert opened.check() == []


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "a").write_text("one")
    return folder


def talked(journal: st.Journal, root: Path | None = None) -> st.CheckpointedSessions:
    """A session with a checkpoint on its path and one on another branch."""
    sessions = st.CheckpointedSessions(journal)
    sessions.set_state("chat", [HELLO], user_turns=1)
    sessions.snapshot("chat", "u1")
    sessions.set_state("chat", [HELLO, HI, AGAIN], user_turns=2)
    sessions.snapshot("chat", "u2")
    if root:
        sessions.snapshot_files("chat", "u2", root)
    sessions.rewind("chat", "u1")
    sessions.set_state("chat", [HELLO, AGAIN], user_turns=3)
    return sessions


def checkpoints(session: CheckpointedSession) -> dict[str, list[dict[str, Any]]]:
    return {name: list(messages) for name, messages in session.checkpoints.items()}


def test_a_session_shows_its_checkpoints(journal: st.Journal, root: Path) -> None:
    sessions = talked(journal, root)
    session = sessions.get("chat")
    assert checkpoints(session) == {"u1": [HELLO], "u2": [HELLO, HI, AGAIN]}
    assert [(name, found.files) for name, found in session.file_checkpoints.items()] == [("u2", 1)]
    found = sessions.checkpoints("chat")
    assert [(one.message_id, one.messages, one.files is not None) for one in found] == [
        ("u1", 1, False),
        ("u2", 3, True),
    ]
    assert sessions.checkpoint_files("chat", "u2") == {"a": b"one"}
    with pytest.raises(st.NoCheckpointError):
        sessions.checkpoint_files("chat", "u1")
    with pytest.raises(st.ThreadNotFoundError):
        sessions.checkpoints("unknown")


def test_a_clone_has_the_checkpoints_of_its_source_and_outlives_it(journal: st.Journal, root: Path) -> None:
    sessions = talked(journal, root)
    clone = sessions.clone("chat", "copy")
    assert (list(clone.messages), clone.user_turns) == ([HELLO, AGAIN], 3)
    assert checkpoints(clone) == {"u1": [HELLO], "u2": [HELLO, HI, AGAIN]}
    assert journal.reflog("copy") == []
    journal.delete_thread("chat")
    (root / "a").write_text("two")
    assert [one.message_id for one in sessions.checkpoints("copy")] == ["u1", "u2"]
    back = sessions.rewind("copy", "u2", files=root)
    assert (list(back.messages), back.user_turns, (root / "a").read_text()) == ([HELLO, HI, AGAIN], 2, "one")
    journal.undo("copy")
    assert (sessions.get("copy").messages, (root / "a").read_text()) == (clone.messages, "two")
    assert sessions.clone("copy", "third").checkpoints == sessions.get("copy").checkpoints
    journal.delete_thread("copy")
    assert sessions.rewind("third", "u1").user_turns == 1
    sessions.rewind_files("third", "u2", root)
    assert (root / "a").read_text() == "one"


def test_a_clone_and_its_source_do_not_see_each_others_later_checkpoints(journal: st.Journal) -> None:
    sessions = talked(journal)
    sessions.clone("chat", "copy")
    sessions.set_state("chat", [AGAIN], user_turns=9)
    sessions.snapshot("chat", "later")
    sessions.snapshot("chat", "u2")
    sessions.snapshot("copy", "own")
    assert set(sessions.get("copy").checkpoints) == {"u1", "u2", "own"}
    assert set(sessions.get("chat").checkpoints) == {"u1", "u2", "later"}
    assert list(sessions.rewind("copy", "u2").messages) == [HELLO, HI, AGAIN]
    with pytest.raises(st.NoCheckpointError, match="later"):
        sessions.rewind("copy", "later")


def test_a_clone_never_replaces_a_session(journal: st.Journal) -> None:
    sessions = talked(journal)
    first = sessions.clone("chat", "copy")
    for source, target in (("chat", "copy"), ("chat", "chat"), ("copy", "chat")):
        with pytest.raises(st.ThreadExistsError):
            sessions.clone(source, target)
    assert sessions.get("copy") == first
    with pytest.raises(st.InvalidInputError):
        sessions.clone("chat", "")
    with pytest.raises(st.ThreadNotFoundError):
        sessions.clone("unknown", "other")


def test_an_empty_session_can_be_cloned_and_rewound(journal: st.Journal) -> None:
    sessions = st.CheckpointedSessions(journal)
    sessions.get_or_create("empty")
    assert sessions.clone("empty", "copy").messages == ()
    sessions.snapshot("empty", "start")
    sessions.set_state("empty", [HELLO], user_turns=1)
    assert sessions.fork("empty").checkpoints["start"] == ()
    assert sessions.rewind("empty", "start").messages == ()


def test_fork_ids_never_repeat(journal: st.Journal) -> None:
    sessions = st.CheckpointedSessions(journal)
    assert [sessions.new_fork_id("a"), sessions.new_fork_id("a"), sessions.new_fork_id("b")] == [
        "a#fork-1",
        "a#fork-2",
        "b#fork-1",
    ]
    sessions.get_or_create("a")
    sessions.get_or_create("a#fork-3")
    assert sessions.fork("a").id == "a#fork-4"
    for name in ("a#fork-4", "a#fork-3", "a"):
        journal.delete_thread(name)
    assert st.CheckpointedSessions(journal).new_fork_id("a") == "a#fork-5"
    sessions.get_or_create("a")
    assert sessions.new_fork_id("a") == "a#fork-6"
    assert sessions.new_fork_id("a#fork-1") == "a#fork-1#fork-1"
    assert [sessions.new_fork_id(), sessions.new_fork_id("default")] == ["default#fork-1", "default#fork-2"]


def test_fork_ids_do_not_repeat_after_old_threads_were_deleted(journal: st.Journal) -> None:
    sessions = st.CheckpointedSessions(journal)
    assert sessions.fork(sessions.get_or_create("a").id).id == "a#fork-1"
    cut = 10**18
    assert {thread.id for thread in journal.delete_older_than(cut, is_dry_run=True)} == {"a", "a#fork-1"}
    journal.delete_older_than(cut)
    journal.delete_older_than(cut, is_archived=True)
    journal.delete_older_than(cut, is_empty=True)
    assert sessions.new_fork_id("a") == "a#fork-2"


def test_a_fork_of_an_unknown_session_uses_no_id_up(journal: st.Journal) -> None:
    sessions = st.CheckpointedSessions(journal)
    with pytest.raises(st.ThreadNotFoundError):
        sessions.fork("unknown")
    assert sessions.new_fork_id("unknown") == "unknown#fork-1"


def test_only_its_own_sessions_are_listed(journal: st.Journal) -> None:
    sessions = talked(journal)
    sessions.fork("chat")
    sessions.new_fork_id("nobody")
    st.SimpleStore(journal).add_message("chat", "user", "hello")
    st.SessionManager(journal).add_message(st.SessionKey(agent="a", channel="c", peer="p"), st.user("hello"))
    journal.create_thread("plain", contents=[st.user("hello")])
    assert {session.id for session in sessions.list()} == {"chat", "chat#fork-1"}
    assert [message["content"] for message in sessions.get("plain").messages] == ["hello"]
    sessions.get_or_create("plain")
    assert {session.id for session in sessions.list()} == {"chat", "chat#fork-1", "plain"}


def test_files_are_stored_without_a_snapshot_of_the_messages(journal: st.Journal, root: Path) -> None:
    sessions = st.CheckpointedSessions(journal)
    sessions.get_or_create("chat")
    sessions.snapshot_files("chat", "u1", root)
    sessions.set_state("chat", [HELLO], user_turns=1)
    (root / "a").write_text("two")
    assert [(one.message_id, one.messages) for one in sessions.checkpoints("chat")] == [("u1", None)]
    with pytest.raises(st.NoCheckpointError):
        sessions.rewind("chat", "u1", files=root)
    sessions.rewind_files("chat", "u1", root)
    assert (root / "a").read_text() == "one"
    sessions.snapshot("chat", "u1")
    sessions.set_state("chat", [HELLO, HI], user_turns=2)
    (root / "a").write_text("three")
    back = sessions.rewind("chat", "u1", files=root)
    assert (back.messages, back.user_turns, (root / "a").read_text()) == ((HELLO,), 1, "one")


def test_a_folder_that_was_renamed_is_restored_where_it_is_now(journal: st.Journal, root: Path) -> None:
    sessions = talked(journal, root)
    (root / "a").write_text("two")
    renamed = root.rename(root.with_name("renamed"))
    sessions.rewind_files("chat", "u2", renamed)
    assert (renamed / "a").read_text() == "one"
    (renamed / "a").write_text("three")
    assert sessions.rewind("chat", "u2", files=renamed).user_turns == 2
    assert (renamed / "a").read_text() == "one"
    journal.undo("chat")
    assert ((renamed / "a").read_text(), sessions.get("chat").user_turns) == ("three", 3)


def test_each_of_two_folders_goes_back_to_its_own_files(journal: st.Journal, root: Path) -> None:
    sessions = talked(journal)
    other = root.with_name("other")
    other.mkdir()
    (other / "a").write_text("other")
    for folder in (root, other):
        sessions.snapshot_files("chat", "u1", folder)
    clone = sessions.fork("chat").id
    for folder, text in ((root, "one"), (other, "other")):
        for name in ("chat", clone):
            (folder / "a").write_text("changed")
            sessions.rewind_files(name, "u1", folder)
            assert (folder / "a").read_text() == text


def test_what_another_session_did_in_a_folder_can_stop_a_rewind(journal: st.Journal, root: Path) -> None:
    sessions = talked(journal, root)
    clone = sessions.fork("chat").id
    (root / "a").write_text("by the source")
    for attempt in (
        lambda: sessions.rewind_files(clone, "u2", root, conflicts="stop"),
        lambda: sessions.rewind(clone, "u2", files=root, conflicts="stop"),
    ):
        with pytest.raises(st.RestoreConflictError):
            attempt()
    assert ((root / "a").read_text(), sessions.get(clone).user_turns) == ("by the source", 3)
    assert sessions.rewind(clone, "u2", files=root).user_turns == 2
    assert (root / "a").read_text() == "one"
    journal.undo(clone, conflicts="force")
    assert ((root / "a").read_text(), sessions.get(clone).user_turns) == ("by the source", 3)


def test_nothing_is_made_for_an_unknown_session(journal: st.Journal, root: Path) -> None:
    sessions = st.CheckpointedSessions(journal)
    for attempt in (
        lambda: sessions.get("unknown"),
        lambda: sessions.snapshot("unknown", "u1"),
        lambda: sessions.snapshot_files("unknown", "u1", root),
    ):
        with pytest.raises(st.ThreadNotFoundError):
            attempt()
    for attempt in (
        lambda: sessions.rewind("unknown", "u1"),
        lambda: sessions.rewind_files("unknown", "u1", root),
    ):
        with pytest.raises(st.NoCheckpointError):
            attempt()
    assert sessions.list() == []


def test_what_cannot_be_stored_changes_nothing(journal: st.Journal) -> None:
    sessions = talked(journal)
    before = sessions.get("chat")
    wrong: list[tuple[Any, Any]] = [(["text"], 1), ([HELLO], "1"), ([HELLO], True), ([{"n": float("nan")}], 1)]
    for messages, turns in wrong:
        with pytest.raises(st.InvalidInputError):
            sessions.set_state("chat", messages, user_turns=turns)
        with pytest.raises(st.InvalidInputError):
            sessions.set_state("new", messages, user_turns=turns)
    assert sessions.get("chat") == before
    assert [session.id for session in sessions.list()] == ["chat"]


def test_what_was_returned_shares_nothing_with_the_store(journal: st.Journal) -> None:
    sessions = st.CheckpointedSessions(journal)
    said = {"role": "user", "content": [{"type": "text", "text": "hello"}], "meta": {"deep": [1]}}
    given = clone_messages([said])
    sessions.set_state("chat", given, user_turns=1)
    sessions.snapshot("chat", "u1")
    given[0]["meta"]["deep"].append(2)
    sessions.get("chat").messages[0]["meta"]["deep"].append(3)
    sessions.get("chat").checkpoints["u1"][0]["content"].clear()
    assert sessions.get("chat").messages == sessions.rewind("chat", "u1").messages == (said,)


def test_a_session_is_not_changed_by_setting_what_it_has(journal: st.Journal) -> None:
    sessions = talked(journal)
    before = len(journal.entries("chat"))
    sessions.set_state("chat", [HELLO, AGAIN], user_turns=3)
    assert len(journal.entries("chat")) == before + 1
    assert sessions.set_state("chat", [], user_turns=0).messages == ()
    journal.undo("chat")
    assert sessions.get("chat").messages == (HELLO, AGAIN)
